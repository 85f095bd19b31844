#include "measure/ran.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/int_math.h"
#include "base/text.h"
#include "json/parse.h"
#include "json/value.h"

namespace meshplan {
namespace {

std::string lower(std::string_view text) {
  std::string out;
  for (const char c : text) out += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return out;
}

// "nccl:_all_gather_base", "allgather_into_tensor_coalesced", "_reduce_scatter_base"
std::optional<Op> op_of(std::string_view name) {
  std::string word;
  for (const char c : lower(name.substr(name.rfind(':') + 1))) {
    if (c != '_') word += c;
  }
  const auto has = [&](std::string_view part) { return word.find(part) != std::string::npos; };
  if (has("reducescatter")) return Op::reduce_scatter;
  if (has("allgather")) return Op::all_gather;
  if (has("allreduce")) return Op::all_reduce;
  if (has("alltoall")) return Op::all_to_all;
  return std::nullopt;
}

// Bytes of an element: PyTorch's names of dtypes, in the spelling of each writer.
int64_t dtype_bytes(std::string_view name) {
  static const std::map<std::string, int64_t> sizes = {
      {"double", 8},      {"float64", 8},       {"long", 8},  {"int64", 8}, {"complexfloat", 8},
      {"float", 4},       {"float32", 4},       {"int", 4},   {"int32", 4}, {"half", 2},
      {"float16", 2},     {"bfloat16", 2},      {"short", 2}, {"int16", 2}, {"char", 1},
      {"int8", 1},        {"byte", 1},          {"uint8", 1}, {"bool", 1},  {"float8_e4m3fn", 1},
      {"float8_e5m2", 1}, {"complexdouble", 16}};
  std::string word = lower(name);
  if (word.rfind("c10::", 0) == 0) word = word.substr(5);
  if (word.rfind("torch.", 0) == 0) word = word.substr(6);
  const auto found = sizes.find(word);
  return found == sizes.end() ? 0 : found->second;
}

// The integers in a text such as "[0, 1, 2]", ascending; none where it is cut short ("...").
std::vector<int64_t> ranks_in(std::string_view text) {
  std::vector<int64_t> ranks;
  if (text.find("...") != std::string_view::npos) return ranks;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
    if (end > at) {
      if (const auto rank = parse_int(text.substr(at, end - at))) ranks.push_back(*rank);
    }
    at = std::max(end, at + 1);
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

std::optional<int64_t> nanoseconds(const std::optional<Value>& value, double unit) {
  if (!value) return std::nullopt;
  const auto number = value->number();
  if (!number || *number < 0 || *number * unit > 9e18) return std::nullopt;
  return static_cast<int64_t>(std::llround(*number * unit));
}

// A number, or a text of one.
int64_t integer_or_zero(const std::optional<Value>& value) {
  if (!value) return 0;
  if (const auto whole = value->whole()) return *whole;
  return value->is_text() ? parse_int(value->text()).value_or(0) : 0;
}

std::string text_or_empty(const std::optional<Value>& value) {
  return value && value->is_text() ? value->text() : std::string();
}

// ---- flight recorder

int64_t bytes_of_tensors(const Value& entry, const char* sizes, const char* dtypes) {
  std::vector<int64_t> elements;
  if (const auto list = entry.find(sizes)) {
    list->each([&](const Value& shape) {
      int64_t n = 1;
      shape.each([&](const Value& extent) { n = saturating_mul(n, extent.integer(0)); });
      elements.push_back(n);
    });
  }
  std::vector<int64_t> widths;
  if (const auto list = entry.find(dtypes)) {
    list->each([&](const Value& name) { widths.push_back(dtype_bytes(name.text())); });
  }
  int64_t bytes = 0;
  for (size_t i = 0; i < elements.size(); ++i)
    bytes = saturating_add(bytes, saturating_mul(elements[i], i < widths.size() ? widths[i] : 0));
  return bytes;
}

// Of a group: its name, then what describes it, where it has that.
std::vector<std::string> names_of(const Value& group) {
  if (group.is_text()) return {group.text()};
  std::vector<std::string> names;
  group.each([&](const Value& each) { names.push_back(each.text()); });
  return names.empty() ? std::vector<std::string>{""} : names;
}

void read_flight_recorder(const Value& root, RanDump& dump) {
  dump.format = "flight recorder " + text_or_empty(root.find("version"));
  std::map<std::string, std::vector<int64_t>> ranks;
  if (const auto groups = root.find("pg_config")) {
    groups->each_member([&](std::string_view name, const Value& group) {
      const auto listed = group.find("ranks");
      if (!listed) return;
      ranks[std::string(name)] = listed->is_text() ? ranks_in(listed->text()) : listed->integers(0);
    });
  }
  const auto entries = root.find("entries");
  if (!entries) return;
  std::optional<int64_t> first;
  std::map<int64_t, RanCollective> by_record;  // entries stand in the order of the ring
  entries->each([&](const Value& entry) {
    RanCollective ran;
    ran.name = text_or_empty(entry.find("profiling_name"));
    ran.op = op_of(ran.name);
    ran.by_gloo = ran.name.rfind("gloo:", 0) == 0;
    if (const auto group = entry.find("process_group")) {
      const std::vector<std::string> names = names_of(*group);
      if (const auto known = ranks.find(names.front()); known != ranks.end())
        ran.ranks = known->second;
      else
        ran.group_name = names.back();
    }
    ran.group_size = std::ssize(ran.ranks);
    ran.in_bytes = bytes_of_tensors(entry, "input_sizes", "input_dtypes");
    ran.out_bytes = bytes_of_tensors(entry, "output_sizes", "output_dtypes");
    ran.took_ns = nanoseconds(entry.find("duration_ms"), 1e6);
    const int64_t record =
        entry.has("record_id") ? entry.at("record_id").integer(0) : std::ssize(by_record);
    first = std::min(first.value_or(record), record);
    by_record[record] = std::move(ran);
  });
  dump.dropped = first.value_or(0);
  for (auto& [record, ran] : by_record) dump.collectives.push_back(std::move(ran));
}

// ---- Kineto

// Both the host's record_param_comms and the kernels that follow from it have the facts; kernels
// have the time that counts.
void read_kineto(const Value& root, RanDump& dump) {
  dump.format = "Kineto";
  struct Event {
    double at = 0;
    RanCollective ran;
  };
  std::vector<Event> host;
  std::vector<Event> kernels;
  root.at("traceEvents").each([&](const Value& event) {
    const auto args = event.find("args");
    if (!args || args->kind() != JsonKind::object) return;
    const std::string name = text_or_empty(args->find("Collective name"));
    if (name.empty()) return;
    Event found;
    if (const auto at = event.find("ts")) found.at = at->number().value_or(0);
    found.ran.name = name;
    found.ran.op = op_of(name);
    found.ran.ranks = ranks_in(text_or_empty(args->find("Process Group Ranks")));
    found.ran.group_size = integer_or_zero(args->find("Group size"));
    const int64_t width = dtype_bytes(text_or_empty(args->find("dtype")));
    found.ran.in_bytes = saturating_mul(integer_or_zero(args->find("In msg nelems")), width);
    found.ran.out_bytes = saturating_mul(integer_or_zero(args->find("Out msg nelems")), width);
    const bool kernel = text_or_empty(event.find("cat")) == "kernel";
    if (kernel) found.ran.took_ns = nanoseconds(event.find("dur"), 1e3);
    (kernel ? kernels : host).push_back(std::move(found));
  });
  std::vector<Event>& events = kernels.empty() ? host : kernels;
  std::stable_sort(events.begin(), events.end(),
                   [](const Event& a, const Event& b) { return a.at < b.at; });
  for (Event& event : events) dump.collectives.push_back(std::move(event.ran));
}

// ---- Chakra

void read_chakra(const Value& root, RanDump& dump) {
  dump.format = "Chakra " + text_or_empty(root.find("schema"));
  root.at("nodes").each([&](const Value& node) {
    if (text_or_empty(node.find("name")) != "record_param_comms") return;
    std::map<std::string, std::string> texts;
    std::map<std::string, int64_t> numbers;
    if (const auto attributes = node.find("attrs")) {
      attributes->each([&](const Value& each) {
        const std::string name = text_or_empty(each.find("name"));
        texts[name] = text_or_empty(each.find("value"));
        numbers[name] = integer_or_zero(each.find("value"));
      });
    }
    RanCollective ran;
    ran.name = texts["collective_name"];
    ran.op = op_of(ran.name);
    ran.group_size = numbers["pg_size"];
    const int64_t start = numbers["global_rank_start"];
    const int64_t stride = numbers["global_rank_stride"];
    for (int64_t i = 0; stride > 0 && i < std::min<int64_t>(ran.group_size, 1 << 20); ++i)
      ran.ranks.push_back(start + i * stride);
    const int64_t width = dtype_bytes(texts["dtype"]);
    ran.in_bytes = saturating_mul(numbers["in_msg_nelems"], width);
    ran.out_bytes = saturating_mul(numbers["out_msg_nelems"], width);
    if (!ran.name.empty()) dump.collectives.push_back(std::move(ran));
  });
}

}  // namespace

Result<RanDump> read_ran_dump(std::string_view text, const std::string& source) {
  RanDump dump;
  dump.source = source;
  if (!text.empty() && text.front() == '\x80') {
    return bad_input(
        "this is a pickle; write JSON: json.dump(pickle.load(open(FILE, \"rb\")), ...), or ask the "
        "program for dump_nccl_trace_json");
  }
  const auto parsed = parse_json(text, {});
  if (const auto* refusal = std::get_if<JsonRefusal>(&parsed)) {
    return bad_input("invalid JSON" +
                     (refusal->byte ? " at " + line_and_column(text, *refusal->byte) : "") + ": " +
                     refusal->message);
  }
  const Value root(std::get<JsonDocument>(parsed), 0);
  try {
    if (root.has("traceEvents")) {
      read_kineto(root, dump);
    } else if (root.has("nodes")) {
      read_chakra(root, dump);
    } else if (root.has("pg_config") || root.has("entries")) {
      read_flight_recorder(root, dump);
    } else {
      return bad_input(
          "expected a dump of PyTorch's flight recorder (\"entries\"), of its profiler "
          "(\"traceEvents\") or of its execution trace (\"nodes\")");
    }
  } catch (const Unreadable& problem) {
    return bad_input((problem.pointer.empty() ? "" : problem.pointer + ": ") + problem.message);
  }
  if (dump.collectives.empty() && !root.has("entries")) {
    return bad_input(
        "the trace has no collective with its group and size; of gloo's PyTorch writes them in the "
        "flight recorder only (TORCH_FR_BUFFER_SIZE)");
  }
  return dump;
}

}  // namespace meshplan
