#include "replay/free_memory.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <string>

#include "base/int_math.h"

namespace meshplan {
namespace {

// Of a line "name:   number kB".
std::optional<int64_t> bytes_of(std::string_view meminfo, std::string_view name) {
  for (size_t begin = 0; begin < meminfo.size();) {
    const size_t end = std::min(meminfo.find('\n', begin), meminfo.size());
    std::string_view line = meminfo.substr(begin, end - begin);
    begin = end + 1;
    if (!line.starts_with(name) || line.substr(name.size(), 1) != ":") continue;
    line.remove_prefix(name.size() + 1);
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    int64_t kilobytes = 0;
    const auto read = std::from_chars(line.data(), line.data() + line.size(), kilobytes);
    if (read.ec != std::errc() || kilobytes < 0) return std::nullopt;
    return saturating_mul(kilobytes, 1024);
  }
  return std::nullopt;
}

}  // namespace

std::optional<int64_t> free_memory_in(std::string_view meminfo) {
  const auto available = bytes_of(meminfo, "MemAvailable");
  if (!available) return std::nullopt;
  return saturating_add(*available, bytes_of(meminfo, "SwapFree").value_or(0));
}

std::optional<int64_t> free_memory() {
  std::ifstream file("/proc/meminfo");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  return free_memory_in(text);
}

}  // namespace meshplan
