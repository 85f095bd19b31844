// What rows of transfers are made of, in JSON and CSV alike.
#pragma once

#include <string>

#include "json/write.h"
#include "transfer/listed_transfers.h"

namespace meshplan {

// So much text is handed on at a time.
inline constexpr size_t part_of_text = size_t{1} << 16;

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
