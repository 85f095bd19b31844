#include "replay/strike.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

namespace meshplan {
namespace {

void spoil(FaultKind kind, DType dtype, std::span<const int64_t> at, std::byte* data) {
  const int64_t size = element_bytes(dtype);
  const size_t n = at.size();
  if (kind == FaultKind::flip) {
    // The second highest bit: for floats the top bit of the exponent, so that rounding does not
    // hide the fault.
    data[at[n / 2] * size + size - 1] ^= dtype == DType::boolean ? std::byte{1} : std::byte{0x40};
  } else if (kind == FaultKind::drop) {
    for (size_t i = n / 2; i < n; ++i) std::fill_n(data + at[i] * size, size, std::byte{0xdb});
  } else if (kind == FaultKind::swap) {
    std::byte* const first = data + at[0] * size;
    for (size_t i = 1; i < n; ++i) {
      std::byte* const other = data + at[i] * size;
      if (std::equal(first, first + size, other)) continue;
      std::swap_ranges(first, first + size, other);
      return;
    }
  }
}

}  // namespace

void strike_process(FaultKind kind) {
  if (kind == FaultKind::exit) std::_Exit(5);
  if (kind == FaultKind::hang) {
    // Longer than any deadline, but not forever.
    std::this_thread::sleep_for(std::chrono::minutes(10));
    std::_Exit(5);
  }
}

Result<bool> strike_box(const StruckBox& box, FaultKind kind, std::span<const int64_t> at,
                        Device& device) {
  if (needs_process(kind) || kind == FaultKind::memory) return true;
  const int64_t size = element_bytes(box.dtype);
  const int64_t bytes = box.elements * size;
  if (kind == FaultKind::overrun) {
    const std::vector<std::byte> more(static_cast<size_t>(size), std::byte{0});
    const Status done = device.write(box.rank, more.data(), box.data + bytes, size);
    return done ? Result<bool>(true) : done.error();
  }
  std::vector<std::byte> before(static_cast<size_t>(bytes));
  if (auto done = device.read(box.rank, box.data, before.data(), bytes); !done) return done.error();
  std::vector<std::byte> after = before;
  spoil(kind, box.dtype, at, after.data());
  if (auto done = device.write(box.rank, after.data(), box.data, bytes); !done) return done.error();
  return after != before;
}

Error changes_nothing(const InjectedFault& fault, const std::string& place) {
  return bad_input("--inject " + to_text(fault) + ": the data of rank " +
                   std::to_string(fault.rank) + " after " + place +
                   " stays as it is; choose another rank or kind");
}

}  // namespace meshplan
