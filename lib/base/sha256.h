// SHA-256 (FIPS 180-4), for the digests of specs and plans.
#pragma once

#include <string>
#include <string_view>

namespace meshplan {

// 64 lower-case hexadecimal digits.
[[nodiscard]] std::string sha256_hex(std::string_view bytes);

}  // namespace meshplan
