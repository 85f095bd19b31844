#include "json/value.h"

#include <charconv>

#include "json/write.h"

namespace meshplan {

void Value::fail(std::string message) const {
  throw Unreadable{std::move(message), pointer(), node().begin, node().end};
}

std::optional<Value> Value::find(std::string_view key) const {
  const uint32_t member = find_key(*document_, node_, key);
  if (member == 0) return std::nullopt;
  return Value(*document_, member);
}

std::string Value::canonical() const { return canonical_text(*document_, node_); }

Value Value::at(std::string_view key) const {
  if (kind() != JsonKind::object) fail("expected an object");
  const auto member = find(key);
  if (!member) fail("the key \"" + std::string(key) + "\" is missing");
  return *member;
}

int64_t Value::integer(int64_t least, int64_t most) const {
  const auto number = whole();
  if (!number) fail("expected an integer");
  if (*number < least || *number > most) {
    fail(std::to_string(*number) + " is out of range: expected " + std::to_string(least) +
         (most == INT64_MAX ? " or more" : " to " + std::to_string(most)));
  }
  return *number;
}

std::optional<double> Value::number() const {
  if (kind() != JsonKind::integer && kind() != JsonKind::number) return std::nullopt;
  const std::string_view text = as_written();
  double value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc())
    return std::nullopt;
  return value;
}

bool Value::flag() const {
  if (kind() != JsonKind::boolean) fail("expected true or false");
  return node().truth;
}

std::string Value::text() const {
  if (!is_text()) fail("expected a string");
  std::string buffer;
  return std::string(string_of(*document_, node(), buffer));
}

std::vector<std::string> Value::texts() const {
  std::vector<std::string> all;
  each([&](const Value& value) { all.push_back(value.text()); });
  return all;
}

std::vector<int64_t> Value::integers(int64_t least) const {
  std::vector<int64_t> all;
  each([&](const Value& value) { all.push_back(value.integer(least)); });
  return all;
}

}  // namespace meshplan
