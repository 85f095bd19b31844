// How much memory buffers may take. A system that has none left ends a process without a word, so
// that buffers are counted before they are filled.
//
//     MemAvailable:    1048576 kB
//     SwapFree:         524288 kB     1.5 GiB
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace meshplan {

// Bytes, of the text of /proc/meminfo (proc_meminfo(5)); nullopt where it does not say.
[[nodiscard]] std::optional<int64_t> free_memory_in(std::string_view meminfo);
// Of this system, now; nullopt where it has no such file.
[[nodiscard]] std::optional<int64_t> free_memory();

}  // namespace meshplan
