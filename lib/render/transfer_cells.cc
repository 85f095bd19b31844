#include "render/transfer_cells.h"

#include "base/text.h"

namespace meshplan {

Status ListingText::flush(const TextSink& sink, size_t least) {
  if (text_.size() < least) return Done{};
  auto taken = sink(text_);
  text_.clear();
  return taken;
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

void add_csv_number(std::string& text, int64_t value) {
  append_integer(text, value);
  text += ',';
}

void write_box(JsonWriter& w, const char* key, const Box& box) {
  w.list(key, box, [&](const Interval& i) {
    w.open('[');
    w.value(i.lo);
    w.value(i.hi);
    w.close();
  });
}

std::string opened(JsonWriter& w) {
  w.close();
  std::string object = w.take("");
  object.pop_back();
  return object;
}

std::optional<ReduceOp> listed_reduce_op(const StepTransfers& transfers) {
  if (transfers.reduce_op == ReduceOp::avg) return ReduceOp::sum;
  return transfers.reduce_op;
}

}  // namespace meshplan
