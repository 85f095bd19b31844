// The texts of an enum whose values count from 0, in their order.
//
//     constexpr EnumNames<Rules, 2> names{{"dtensor", "native"}};
//     names[Rules::native]     "native"
//     names.parse("native")    Rules::native; nullopt for any other text
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace meshplan {

template <class Enum, size_t count>
struct EnumNames {
  std::array<const char*, count> texts;

  [[nodiscard]] constexpr const char* operator[](Enum value) const {
    return texts[static_cast<size_t>(value)];
  }
  [[nodiscard]] std::optional<Enum> parse(std::string_view text) const {
    for (size_t i = 0; i < count; ++i) {
      if (text == texts[i]) return static_cast<Enum>(i);
    }
    return std::nullopt;
  }
};

}  // namespace meshplan
