// A value of a plan file and the way to it: every value is checked for type and range before it is used, and what is wrong with one ends
// the reading with its JSON pointer.
//
//     root.at("mesh").at("world").integer(1)        throws Unreadable{"0 is out of range: expected 1 or more", "/mesh/world"}
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/int_math.h"
#include "plan/json.h"
#include "plan/plan.h"

namespace meshplan {

constexpr int64_t max_plan_int = std::numeric_limits<int64_t>::max();

// Ends the reading of a file; caught in try_read_plan.
struct Unreadable {
  PlanRefusal refusal;
};

// Lives only as long as the values above it.
class Value {
 public:
  explicit Value(const Json& json) : json_(&json) {}
  Value(const Json& json, const Value& up, std::string_view key) : json_(&json), up_(&up), key_(key) {}
  Value(const Json& json, const Value& up, size_t index) : json_(&json), up_(&up), index_(index) {}

  [[noreturn]] void fail(const std::string& message) const { throw Unreadable{{message, pointer(), {}}}; }
  [[nodiscard]] std::string pointer() const {
    if (up_ == nullptr) return {};
    return up_->pointer() + "/" + (key_.data() == nullptr ? std::to_string(index_) : std::string(key_));
  }

  [[nodiscard]] bool has(std::string_view key) const { return find_member(*json_, key) != nullptr; }
  [[nodiscard]] bool is_null() const { return std::holds_alternative<std::monostate>(json_->value); }
  [[nodiscard]] bool is_text() const { return std::holds_alternative<std::string>(json_->value); }
  [[nodiscard]] Value at(std::string_view key) const {
    if (!std::holds_alternative<JsonObject>(json_->value)) fail("expected an object");
    const Json* member = find_member(*json_, key);
    if (member == nullptr) fail("the key \"" + std::string(key) + "\" is missing");
    return {*member, *this, key};
  }

  [[nodiscard]] int64_t integer(int64_t least, int64_t most = max_plan_int) const {
    const auto* number = std::get_if<int64_t>(&json_->value);
    if (number == nullptr) fail("expected a whole number");
    if (*number < least || *number > most) {
      fail(std::to_string(*number) + " is out of range: expected " + std::to_string(least) +
           (most == max_plan_int ? " or more" : " to " + std::to_string(most)));
    }
    return *number;
  }
  [[nodiscard]] bool flag() const {
    const auto* value = std::get_if<bool>(&json_->value);
    if (value == nullptr) fail("expected true or false");
    return *value;
  }
  [[nodiscard]] const std::string& text() const {
    const auto* value = std::get_if<std::string>(&json_->value);
    if (value == nullptr) fail("expected a text");
    return *value;
  }
  // Nanoseconds of the file as picoseconds, held at the largest where they were held when written.
  [[nodiscard]] int64_t picoseconds(int64_t least = 0) const { return saturating_mul(integer(least, ns_of_ps(max_plan_int)), 1000); }

  // Calls `read` with each element.
  template <class Read>
  void each(const Read& read) const {
    const auto* list = std::get_if<JsonList>(&json_->value);
    if (list == nullptr) fail("expected a list");
    for (size_t i = 0; i < list->size(); ++i) read(Value((*list)[i], *this, i));
  }
  [[nodiscard]] std::vector<std::string> texts() const {
    std::vector<std::string> all;
    each([&](const Value& value) { all.push_back(value.text()); });
    return all;
  }
  [[nodiscard]] std::vector<int64_t> integers(int64_t least) const {
    std::vector<int64_t> all;
    each([&](const Value& value) { all.push_back(value.integer(least)); });
    return all;
  }

  // What a parser of the text form gives, its error placed here.
  template <class Parsed>
  [[nodiscard]] Parsed must(Result<Parsed> result) const {
    if (!result) fail(result.error().message);
    return std::move(result).value();
  }
  template <class Parsed>
  [[nodiscard]] Parsed must(std::optional<Parsed> result, const char* what) const {
    if (!result) fail("\"" + text() + "\" is no " + what);
    return *result;
  }

 private:
  const Json* json_;
  const Value* up_ = nullptr;
  std::string_view key_;
  size_t index_ = 0;
};

}  // namespace meshplan
