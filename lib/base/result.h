// A value, or the error that explains why there is none.
//
// Every operation that can fail because of input or environment returns Result<T>. Bugs in meshplan
// itself are caught by checks (base/check.h).
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "base/check.h"

namespace meshplan {

// The kind of failure; each has its own exit code.
enum class Fault {
  bad_input,    // exit 2: bad usage or bad input
  no_plan,      // exit 3: no plan exists
  wrong_data,   // exit 4: replay or verification found wrong data
  environment,  // exit 5: the environment lacks something
};

// The process exit status of a fault: 2, 3, 4 or 5.
[[nodiscard]] int exit_code(Fault fault);

// `message`: one line, lower-case, no final period: where, expected and actual value, what to do
// next.
struct Error {
  Fault fault = Fault::bad_input;
  std::string message;
  bool operator==(const Error&) const = default;
};

// The same where it happened.
[[nodiscard]] inline Error at_place(const std::string& place, const Error& error) {
  return {error.fault, place + ": " + error.message};
}

[[nodiscard]] inline Error bad_input(std::string message) {
  return {Fault::bad_input, std::move(message)};
}
[[nodiscard]] inline Error no_plan(std::string message) {
  return {Fault::no_plan, std::move(message)};
}
[[nodiscard]] inline Error wrong_data(std::string message) {
  return {Fault::wrong_data, std::move(message)};
}
[[nodiscard]] inline Error environment(std::string message) {
  return {Fault::environment, std::move(message)};
}

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value)
      : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT(google-explicit-constructor)
  Result(Error error)
      : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  [[nodiscard]] const T& value() const& {
    MESHPLAN_CHECK(ok(), "value() of a failed result: " + error_text());
    return std::get<0>(state_);
  }
  [[nodiscard]] T& value() & {
    MESHPLAN_CHECK(ok(), "value() of a failed result: " + error_text());
    return std::get<0>(state_);
  }
  [[nodiscard]] T&& value() && {
    MESHPLAN_CHECK(ok(), "value() of a failed result: " + error_text());
    return std::move(std::get<0>(state_));
  }
  [[nodiscard]] const T& operator*() const& { return value(); }
  [[nodiscard]] T& operator*() & { return value(); }
  [[nodiscard]] T&& operator*() && { return std::move(*this).value(); }
  [[nodiscard]] const T* operator->() const { return &value(); }
  [[nodiscard]] T* operator->() { return &value(); }

  [[nodiscard]] const Error& error() const {
    MESHPLAN_CHECK(!ok(), "error() of a result that holds a value");
    return std::get<1>(state_);
  }

 private:
  [[nodiscard]] std::string error_text() const {
    return ok() ? std::string() : std::get<1>(state_).message;
  }
  std::variant<T, Error> state_;
};

struct Done {
  bool operator==(const Done&) const = default;
};
// Result of an operation that may fail and returns no value.
using Status = Result<Done>;

}  // namespace meshplan
