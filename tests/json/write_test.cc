// Laws of writing JSON: what is written reads back as the same, in every form.
#include "json/write.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>

namespace meshplan {
namespace {

using nlohmann::json;

std::string sample(size_t indent, Breaks breaks) {
  JsonWriter w(indent, breaks);
  w.open('{');
  const std::vector<int64_t> numbers = {1, -2, INT64_MAX, INT64_MIN};
  w.fields({{"empty", std::vector<std::string>()}, {"flag", true}, {"natural", UINT64_MAX}});
  w.list("nested", numbers, [&](int64_t number) { w.object({{"a", number}, {"b", std::nullopt}}); });
  w.fields({{"none", std::optional<int>()}, {"number", 0.5}, {"numbers", numbers}});
  w.field("some", std::optional<std::string>("x"));
  w.field("text", "a\"b\\c\n\t\x01\x1f/\x7f\xC3\xA9\xFF");
  w.key("zero");
  w.open('{');
  w.close();
  w.close();
  return w.take("");
}

}  // namespace

TEST_CASE("every form says the same, and is nlohmann's where that has one") {
  const json wanted = {
      {"empty", json::array()},
      {"flag", true},
      {"natural", UINT64_MAX},
      {"nested", json::array()},
      {"none", nullptr},
      {"number", 0.5},
      {"numbers", {1, -2, INT64_MAX, INT64_MIN}},
      {"some", "x"},
      {"text", "a\"b\\c\n\t\x01\x1f/\x7f\xC3\xA9\xEF\xBF\xBD"},
      {"zero", json::object()},
  };
  json whole = wanted;
  for (const auto& number : wanted["numbers"]) {
    whole["nested"].push_back({{"a", number}, {"b", nullptr}});
  }
  CHECK(json::parse(sample(2, Breaks::one_line)) == whole);
  CHECK(sample(2, Breaks::lines) == whole.dump(2));
  CHECK(sample(1, Breaks::lines) == whole.dump(1));
  CHECK(sample(2, Breaks::compact) == whole.dump());
}

TEST_CASE("a container without blanks has none inside, lines or not") {
  JsonWriter w(2, Breaks::one_line);
  w.open('{', Breaks::lines);
  w.key("a");
  w.open('[', Breaks::compact);
  w.value("b");
  w.object({{"c", 1}, {"d", std::vector<int64_t>{1, 2}}});
  w.close();
  w.field("e", std::vector<int64_t>{1, 2});
  w.close();
  CHECK(w.take() == "{\n  \"a\": [\"b\",{\"c\":1,\"d\":[1,2]}],\n  \"e\": [1, 2]\n}\n");
}

TEST_CASE("numbers read back as the same double") {
  const auto written = [](double value) {
    std::string out;
    append_json_number(out, value);
    return out;
  };
  double value = 5e-324;
  for (int k = 0; k < 720; ++k, value *= 7.3) {
    CHECK(std::strtod(written(value).c_str(), nullptr) == value);
    CHECK(json::parse(written(-value)).get<double>() == -value);
  }
  CHECK((value > 1e298 && value < 1e300));
  CHECK(written(0) == "0.0");
  CHECK(written(-0.0) == "-0.0");
  CHECK(written(1e15) == "1000000000000000.0");
  CHECK(written(1e16) == "1e+16");
  CHECK(written(0.0001) == "0.0001");
  CHECK(written(0.00001) == "1e-05");
  CHECK(written(123.456) == "123.456");
  CHECK(written(std::numeric_limits<double>::infinity()) == "null");
  CHECK(written(std::nan("")) == "null");
}

}  // namespace meshplan
