#include "tensor/placement.h"

#include <array>
#include <limits>

#include "base/enum_names.h"
#include "base/text.h"

namespace meshplan {
namespace {

constexpr EnumNames<ReduceOp, 5> reduce_names{{"sum", "avg", "min", "max", "product"}};
constexpr std::array<std::string_view, 5> partial_texts = {"P(sum)", "P(avg)", "P(min)", "P(max)",
                                                           "P(product)"};

// "NAME(inside)" -> inside; nullopt for any other text.
std::optional<std::string_view> inside(std::string_view text, std::string_view name) {
  if (text.size() < name.size() + 2 || text.substr(0, name.size()) != name) return std::nullopt;
  if (text[name.size()] != '(' || text.back() != ')') return std::nullopt;
  return text.substr(name.size() + 1, text.size() - name.size() - 2);
}

std::optional<int32_t> parse_dim(std::string_view text) {
  auto value = parse_int(text);
  if (!value || *value < 0 || *value > std::numeric_limits<int32_t>::max()) return std::nullopt;
  return static_cast<int32_t>(*value);
}

}  // namespace

const char* to_text(ReduceOp op) { return reduce_names[op]; }

std::optional<ReduceOp> parse_reduce_op(std::string_view text) { return reduce_names.parse(text); }

bool may_mix(ReduceOp a, ReduceOp b) {
  auto additive = [](ReduceOp op) { return op == ReduceOp::sum || op == ReduceOp::avg; };
  return a == b || (additive(a) && additive(b));
}

void append_text(std::string& out, const Placement& placement) {
  switch (placement.kind) {
    case Placement::Kind::replicate:
      out += 'R';
      return;
    case Placement::Kind::shard:
      if (placement.tensor_dim < 10) {  // appended at once, since traces are printed often
        const std::array<char, 4> text{'S', '(', static_cast<char>('0' + placement.tensor_dim),
                                       ')'};
        out.append(text.data(), text.size());
        return;
      }
      out += "S(";
      append_integer(out, placement.tensor_dim);
      break;
    case Placement::Kind::partial:
      out += partial_texts[static_cast<size_t>(placement.op)];
      return;
    case Placement::Kind::strided_shard:
      out += "SS(";
      append_integer(out, placement.tensor_dim);
      out += ',';
      append_integer(out, placement.split_factor);
      break;
  }
  out += ')';
}

std::string to_text(const Placement& placement) {
  std::string out;
  append_text(out, placement);
  return out;
}

Result<Placement> parse_placement(std::string_view text) {
  if (text == "R") return replicate();
  if (auto dim = inside(text, "S")) {
    if (auto value = parse_dim(*dim)) return shard(*value);
    return bad_input("'" + std::string(text) +
                     "' is not a shard: write S(tensor dim), such as S(0)");
  }
  if (auto args = inside(text, "SS")) {
    size_t comma = args->find(',');
    if (comma != std::string_view::npos) {
      std::string_view second = args->substr(comma + 1);
      while (!second.empty() && second.front() == ' ') second.remove_prefix(1);
      auto dim = parse_dim(args->substr(0, comma));
      auto factor = parse_int(second);
      if (dim && factor && *factor >= 1)
        return Placement{Placement::Kind::strided_shard, *dim, ReduceOp::sum, *factor};
    }
    return bad_input(
        "'" + std::string(text) +
        "' is not a strided shard: write SS(tensor dim,split factor), such as SS(0,2)");
  }
  if (auto op = inside(text, "P")) {
    if (auto value = parse_reduce_op(*op)) return partial(*value);
    if (op->substr(0, 4) == "mask") {
      return bad_input(
          "'" + std::string(text) +
          "' is a mask partial, which is meaningful only inside its operator: reduce it there and use P(sum)");
    }
    return bad_input("'" + std::string(text) +
                     "' has an unknown reduce op: use one of sum avg min max product");
  }
  if (text == "P")
    return bad_input("'P' has no reduce op: write P(sum), or one of avg min max product");
  return bad_input(
      "'" + std::string(text) +
      "' is not a placement: write R, S(tensor dim), P(reduce op) or SS(tensor dim,split factor)");
}

}  // namespace meshplan
