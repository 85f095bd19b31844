// SHA-256 (FIPS 180-4), for the digests of specs and plans.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace meshplan {

// A digest of bytes that come in pieces.
class Sha256 {
 public:
  void update(std::string_view bytes);
  // Of all bytes so far, as sha256_hex; nothing may follow.
  [[nodiscard]] std::string hex();

 private:
  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 128> tail_{};  // begins with what fills no block yet
  uint64_t bytes_ = 0;
};

// 64 lower-case hexadecimal digits.
[[nodiscard]] std::string sha256_hex(std::string_view bytes);

}  // namespace meshplan
