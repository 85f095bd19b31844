#include "tensor/dtype.h"

#include <array>

namespace meshplan {
namespace {

struct Entry {
  const char* name;
  int64_t bytes;
  bool floating;
};

// In the order of the enum.
constexpr std::array<Entry, 12> entries = {{{"float64", 8, true},
                                            {"float32", 4, true},
                                            {"bfloat16", 2, true},
                                            {"float16", 2, true},
                                            {"float8_e4m3", 1, true},
                                            {"float8_e5m2", 1, true},
                                            {"int64", 8, false},
                                            {"int32", 4, false},
                                            {"int16", 2, false},
                                            {"int8", 1, false},
                                            {"uint8", 1, false},
                                            {"bool", 1, false}}};

const Entry& entry(DType dtype) { return entries[static_cast<size_t>(dtype)]; }

}  // namespace

int64_t element_bytes(DType dtype) { return entry(dtype).bytes; }
bool is_floating(DType dtype) { return entry(dtype).floating; }
const char* to_text(DType dtype) { return entry(dtype).name; }

std::optional<DType> parse_dtype(std::string_view text) {
  for (size_t i = 0; i < entries.size(); ++i) {
    if (text == entries[i].name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

const std::vector<std::string>& dtype_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Entry& e : entries) all.emplace_back(e.name);
    return all;
  }();
  return names;
}

}  // namespace meshplan
