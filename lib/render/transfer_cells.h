// What rows of transfers are made of, in JSON and CSV alike.
#pragma once

#include <string>

#include "base/text_sink.h"
#include "json/write.h"
#include "tensor/box.h"
#include "transfer/step_transfers.h"

namespace meshplan {

// So much text is handed on at a time.
inline constexpr size_t part_of_text = size_t{1} << 16;

// The text of a listing in one form, which is handed on in parts.
class ListingText {
 public:
  ListingText() = default;
  ListingText(const ListingText&) = delete;
  ListingText& operator=(const ListingText&) = delete;
  virtual ~ListingText() = default;

  // Hands on what there is, if it is `least` bytes or more.
  [[nodiscard]] Status flush(const TextSink& sink, size_t least = 1);

 protected:
  [[nodiscard]] std::string& text() { return text_; }
  // Between the entries of a JSON list: `before` are there already.
  void separate(int64_t before, const char* line) {
    text_ += (before > 0 ? "," : "") + std::string(line);
  }

 private:
  std::string text_;
};

// RFC 4180: quoted where a comma, a quote or a line break stands in it.
[[nodiscard]] std::string csv_cell(const std::string& text);
void add_csv_number(std::string& text, int64_t value);  // and a comma behind it

// [[0, 4], [2, 8]]
void write_box(JsonWriter& w, const char* key, const Box& box);
// An object that is written on: its text without the closing bracket.
[[nodiscard]] std::string opened(JsonWriter& w);

// What combines contributions in a step, for those who execute it: avg is a sum whose divisor
// counts them.
[[nodiscard]] std::optional<ReduceOp> listed_reduce_op(const StepTransfers& transfers);

}  // namespace meshplan
