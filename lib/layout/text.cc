#include "base/text.h"

#include "layout/layout.h"

namespace meshplan {
namespace {

std::string tuple(const std::vector<Mode>& modes, int64_t Mode::*field) {
  std::string text = "(";
  for (size_t i = 0; i < modes.size(); ++i) {
    if (i > 0) text += ',';
    text += std::to_string(modes[i].*field);
  }
  return text + ")";
}

// "8" or "(2,4)"; nullopt for anything else.
std::optional<std::vector<int64_t>> parse_side(std::string_view text) {
  if (text.empty() || text.front() != '(') {
    const auto value = parse_int(text);
    if (!value) return std::nullopt;
    return std::vector<int64_t>{*value};
  }
  if (text.back() != ')') return std::nullopt;
  text = text.substr(1, text.size() - 2);
  std::vector<int64_t> values;
  while (true) {
    const size_t comma = text.find(',');
    const auto value = parse_int(text.substr(0, comma));
    if (!value) return std::nullopt;
    values.push_back(*value);
    if (comma == std::string_view::npos) return values;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace

std::string to_text(const Layout& layout) {
  const std::vector<Mode>& modes = layout.modes;
  if (modes.empty()) return "1:0";
  // A single mode has no parentheses, except 1:0, which would read as the trivial layout (no
  // modes).
  if (modes.size() == 1 && modes[0] != Mode{1, 0})
    return std::to_string(modes[0].size) + ":" + std::to_string(modes[0].stride);
  return tuple(modes, &Mode::size) + ":" + tuple(modes, &Mode::stride);
}

Result<Layout> parse_layout(std::string_view text) {
  if (text == "1:0") return Layout{};
  const auto wrong = [&](const std::string& why) {
    return bad_input(quoted(text) + " is not a layout: " + why +
                     "; write sizes and strides like 8:1 or (2,4):(8,1)");
  };
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return wrong("it has no \":\"");
  const auto sizes = parse_side(text.substr(0, colon));
  const auto strides = parse_side(text.substr(colon + 1));
  if (!sizes || !strides)
    return wrong(std::string("its ") + (sizes ? "strides are" : "sizes are") +
                 " not a list of integers");
  if (sizes->size() != strides->size()) {
    return wrong("it has " + std::to_string(sizes->size()) + " sizes and " +
                 std::to_string(strides->size()) + " strides");
  }
  std::vector<Mode> modes(sizes->size());
  for (size_t i = 0; i < modes.size(); ++i) modes[i] = {(*sizes)[i], (*strides)[i]};
  auto layout = make_layout(std::move(modes));
  if (!layout) return wrong(layout.error().message);
  return layout;
}

}  // namespace meshplan
