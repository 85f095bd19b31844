#include "plan/op_table.h"

#include <algorithm>

#include "base/int_math.h"

namespace meshplan {

std::optional<Op> parse_op(std::string_view text) {
  for (size_t i = 0; i < op_table.size(); ++i) {
    if (text == op_table[i].name) return static_cast<Op>(i);
  }
  return std::nullopt;
}

Op op_between(const Placement& src, const Placement& dst) {
  if (is_partial(dst)) return Op::to_partial;
  if (is_partial(src)) return is_replicate(dst) ? Op::all_reduce : Op::reduce_scatter;
  if (is_shard(src)) return is_replicate(dst) ? Op::all_gather : Op::all_to_all;
  return Op::slice;
}

OpBytes bytes_of(Op op, int64_t largest, int64_t group) {
  if (!is_collective(op)) return {};
  const OpRow& row = row_of(op);
  if (row.piece != OpPiece::share_of_box)
    return {largest, saturating_mul(largest, group), saturating_mul(largest, group - 1)};
  const int128 received = int128{row.rounds} * (group - 1) * largest;
  const int64_t wire = received <= INT64_MAX
                           ? ceil_div(static_cast<int64_t>(received), group)
                           : saturated(received / group + (received % group != 0));
  return {ceil_div(largest, group), largest, wire};
}

double bus_bytes(Op op, double size, int64_t ranks) {
  if (!is_collective(op)) return size;
  const auto n = static_cast<double>(ranks);
  return size * static_cast<double>(row_of(op).rounds) * (n - 1) / n;
}

std::string filled(std::string_view sentence, NamedWords words) {
  std::string out;
  out.reserve(128);
  while (!sentence.empty()) {
    const size_t open = std::min(sentence.find('{'), sentence.size());
    out += sentence.substr(0, open);
    sentence.remove_prefix(open);
    if (sentence.empty()) break;
    const size_t close = sentence.find('}');
    const std::string_view name = sentence.substr(1, close - 1);
    const auto* word =
        std::find_if(words.begin(), words.end(), [&](const auto& w) { return w.first == name; });
    MESHPLAN_CHECK(word != words.end(),
                   "a row of the op table uses a word that its sentence is not given");
    out += word->second;
    sentence.remove_prefix(close + 1);
  }
  return out;
}

}  // namespace meshplan
