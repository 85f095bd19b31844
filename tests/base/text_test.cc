#include "base/text.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/utf8.h"

using namespace meshplan;

TEST_CASE("join puts the separator between parts only") {
  CHECK(join({}, ", ").empty());
  CHECK(join({"a"}, ", ") == "a");
  CHECK(join({"a", "", "b"}, ", ") == "a, , b");
}

TEST_CASE("what is counted is in the singular where it is one") {
  CHECK(counted(0, "rank") == "0 ranks");
  CHECK(counted(1, "more rank") == "1 more rank");
  CHECK(counted(1024, "rank") == "1,024 ranks");
}

TEST_CASE("escaped text has one line and nothing that a terminal would obey") {
  CHECK(escaped("dp_shard") == "dp_shard");
  CHECK(escaped("a\nb\tc") == "a\\nb\\tc");
  CHECK(escaped("\x1b[31m\x7f") == "\\u001b[31m\\u007f");
  CHECK(escaped("\"\\") == "\\\"\\\\");
  CHECK(escaped("größe") == "größe");
  CHECK(quoted("a b") == "\"a b\"");
}

TEST_CASE("text on one line has nothing that a terminal or a log would obey, and stays as it is when done again") {
  CHECK(one_line("dp \"x\" \\ größe") == "dp \"x\" \\ größe");
  CHECK(one_line("a\r\n\tb") == "a\\r\\n\\tb");
  CHECK(one_line(std::string_view("\x1b[2J\0\x7f", 6)) == "\\x1b[2J\\x00\\x7f");
  CHECK(one_line("\xc2\x9b"
                 "1m \xe2\x80\xa8 \xe2\x80\xae \xe2\x81\xa6") == "\\u009b1m \\u2028 \\u202e \\u2066");
  CHECK(one_line("\xff\xc2") == "\\xff\\xc2");
  CHECK(one_line("\xef\xbf\xbe \xef\xbf\xbf \xef\xbf\xbd") == "\\ufffe \\uffff \xef\xbf\xbd");
  CHECK(escaped("\xc2\x9b\xe2\x80\xae") == "\\u009b\\u202e");
  for (uint32_t c = 1; c < 0x3000; ++c) {
    std::string text;
    append_utf8(text, c);
    const std::string shown = one_line(text);
    CHECK(one_line(shown) == shown);
    CHECK(printable(text) == shown);
    CHECK(!is_control(shown, 0, utf8_length(shown, 0)));
  }
}

TEST_CASE("an integer is appended as std::to_string writes it") {
  for (int64_t value : {int64_t{0}, int64_t{-7}, int64_t{12345}, INT64_MAX, INT64_MIN}) {
    std::string text = "n=";
    append_integer(text, value);
    CHECK(text == "n=" + std::to_string(value));
  }
}

TEST_CASE("parse_int takes a whole decimal int64 and nothing else") {
  CHECK(parse_int("0") == 0);
  CHECK(parse_int("-12") == -12);
  CHECK(parse_int("9223372036854775807") == INT64_MAX);
  CHECK(parse_int("-9223372036854775808") == INT64_MIN);
  for (const char* text : {"", " 1", "1 ", "+1", "1.0", "1e3", "0x10", "9223372036854775808", "-", "one"}) {
    CAPTURE(text);
    CHECK(!parse_int(text));
  }
}

TEST_CASE("bytes print with three significant digits and powers of 1024") {
  CHECK(human_bytes(0) == "0 B");
  CHECK(human_bytes(1023) == "1023 B");
  CHECK(human_bytes(1024) == "1.00 KiB");
  CHECK(human_bytes(64 * 1024) == "64.0 KiB");
  CHECK(human_bytes(100 * 1024) == "100 KiB");
  CHECK(human_bytes(1000 * 1024) == "1000 KiB");
  CHECK(human_bytes(5LL << 28) == "1.25 GiB");
  CHECK(human_bytes(-2048) == "-2.00 KiB");
  CHECK(human_bytes(INT64_MAX) == "8.00 EiB");
}

TEST_CASE("what would round up to a whole next unit is printed in that unit") {
  CHECK(human_bytes(1024 * 1024 - 1) == "1.00 MiB");
  CHECK(human_bytes(1023 * 1024) == "1023 KiB");
  CHECK(human_ns(999'499) == "999 us");
  CHECK(human_ns(999'500) == "1.00 ms");
  CHECK(human_ns(999'999'999) == "1.00 s");
}

TEST_CASE("times print with three significant digits") {
  CHECK(human_ns(0) == "0 ns");
  CHECK(human_ns(999) == "999 ns");
  CHECK(human_ns(1000) == "1.00 us");
  CHECK(human_ns(12'345) == "12.3 us");
  CHECK(human_ns(9'995) == "10.0 us");  // rounds into the next digit, still three of them
  CHECK(human_ns(4'560'000) == "4.56 ms");
  CHECK(human_ns(1'200'000'000) == "1.20 s");
  CHECK(human_ns(3'600'000'000'000) == "3600 s");
  CHECK(human_ns(-1500) == "-1.50 us");
}

TEST_CASE("commas stand between groups of three digits") {
  CHECK(with_commas(0) == "0");
  CHECK(with_commas(999) == "999");
  CHECK(with_commas(1000) == "1,000");
  CHECK(with_commas(-1234567) == "-1,234,567");
  CHECK(with_commas(INT64_MIN) == "-9,223,372,036,854,775,808");
}

TEST_CASE("the nearest candidate is suggested only when it is near") {
  CHECK(nearest("shap", {"dtype", "shape"}) == "shape");
  CHECK(nearest("DTYPE", {"dtype", "shape"}) == "dtype");
  CHECK(nearest("redistribution", {"redistributions", "options"}) == "redistributions");
  CHECK(!nearest("zzz", {"dtype", "shape"}));
  CHECK(!nearest("x", {}));
  CHECK(nearest("tq", {"tp", "tx"}) == "tp");  // equally near: the first
}

namespace {

size_t distance(std::string_view a, std::string_view b) {
  if (a.empty() || b.empty()) return a.size() + b.size();
  if (a.back() == b.back()) return distance(a.substr(0, a.size() - 1), b.substr(0, b.size() - 1));
  return 1 + std::min({distance(a.substr(0, a.size() - 1), b), distance(a, b.substr(0, b.size() - 1)),
                       distance(a.substr(0, a.size() - 1), b.substr(0, b.size() - 1))});
}

}  // namespace

TEST_CASE("the nearest candidate is the first of least edit distance, at most a third of the word") {
  std::vector<std::string> words;
  for (const char a : {'a', 'b'})
    for (const char b : {'a', 'b', 'c'})
      for (const char* rest : {"", "a", "ab", "cab", "bbca"}) words.push_back(std::string{a, b} + rest);
  for (const std::string& word : words) {
    const std::vector<std::string> others{words[7], words[22], words[3], words[14], words[29], "", "abcabcabc"};
    std::optional<std::string> best;
    size_t least = std::max<size_t>(1, word.size() / 3) + 1;
    for (const std::string& other : others) {
      if (distance(word, other) >= least) continue;
      least = distance(word, other);
      best = other;
    }
    CAPTURE(word);
    CHECK(nearest(word, others) == best);
  }
}
