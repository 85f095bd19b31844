#include "base/sha256.h"

#include <algorithm>
#include <bit>

namespace meshplan {
namespace {

constexpr std::array<uint32_t, 64> round_constants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

void digest_block(std::array<uint32_t, 8>& state, const unsigned char* block) {
  std::array<uint32_t, 64> w;
  for (size_t i = 0; i < 16; ++i) {
    w[i] = uint32_t{block[4 * i]} << 24 | uint32_t{block[4 * i + 1]} << 16 |
           uint32_t{block[4 * i + 2]} << 8 | uint32_t{block[4 * i + 3]};
  }
  for (size_t i = 16; i < 64; ++i) {
    uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
    uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (size_t i = 0; i < 64; ++i) {
    uint32_t t1 = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                  ((e & f) ^ (~e & g)) + round_constants[i] + w[i];
    uint32_t t2 =
        (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  state[0] += a, state[1] += b, state[2] += c, state[3] += d, state[4] += e, state[5] += f,
      state[6] += g, state[7] += h;
}

}  // namespace

void Sha256::update(std::string_view bytes) {
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  size_t left = bytes.size();
  const size_t held = bytes_ % 64;
  bytes_ += left;
  if (held > 0) {
    const size_t more = std::min(64 - held, left);
    std::copy_n(data, more, tail_.begin() + static_cast<std::ptrdiff_t>(held));
    if (held + more < 64) return;
    digest_block(state_, tail_.data());
    data += more;
    left -= more;
  }
  for (; left >= 64; left -= 64, data += 64) digest_block(state_, data);
  std::copy_n(data, left, tail_.begin());
}

std::string Sha256::hex() {
  // Behind what is left: a one bit, zeros, and the length in bits as a big-endian 64-bit number.
  const size_t left = bytes_ % 64;
  const size_t size = left < 56 ? 64 : 128;
  std::fill(tail_.begin() + static_cast<std::ptrdiff_t>(left), tail_.end(), 0);
  tail_[left] = 0x80;
  const uint64_t bits = bytes_ * 8;
  for (size_t i = 0; i < 8; ++i) tail_[size - 1 - i] = static_cast<unsigned char>(bits >> (8 * i));
  for (size_t i = 0; i < size; i += 64) digest_block(state_, tail_.data() + i);

  static constexpr char digits[] = "0123456789abcdef";
  std::string hex;
  for (uint32_t word : state_) {
    for (int shift = 28; shift >= 0; shift -= 4) hex += digits[word >> shift & 15];
  }
  return hex;
}

std::string sha256_hex(std::string_view bytes) {
  Sha256 digest;
  digest.update(bytes);
  return digest.hex();
}

}  // namespace meshplan
