#include "json/reader.h"

#include <algorithm>

#include "base/text.h"
#include "base/utf8.h"

namespace meshplan {
namespace {

constexpr size_t longest_word = 100;  // longer words are compared with nothing
constexpr size_t most_listed = 16;    // longer lists of choices are not printed

}  // namespace

std::string quote(std::string_view text) { return "\"" + printable(text) + "\""; }

Reader::More suggestion(std::string_view word, const std::vector<std::string>& choices,
                        std::string_view lead) {
  Reader::More more;
  if (word.size() <= longest_word) {
    if (const auto near = nearest(word, choices)) {
      more.help = "did you mean " + quote(*near) + "?";
      more.fix = Fix{json_string(*near), false};
      return more;
    }
  }
  if (choices.empty() || choices.size() > most_listed) return more;
  std::vector<std::string> shown;
  for (const std::string& choice : choices) shown.push_back(printable(choice, 40));
  more.help = std::string(lead) + join(shown, ", ");
  return more;
}

void Reader::add(std::string_view code, Place place, std::string message, More more,
                 Severity severity) {
  Diagnostic diagnostic;
  diagnostic.code = std::string(code);
  diagnostic.severity = severity;
  diagnostic.place = std::move(place);
  diagnostic.message = std::move(message);
  diagnostic.help = std::move(more.help);
  diagnostic.fix = std::move(more.fix);
  if (more.second != 0)
    diagnostic.second = SecondPlace{place_of(document_, more.second), std::move(more.label)};
  diagnostics_.add(std::move(diagnostic));
}

void Reader::error(const char* code, uint32_t index, std::string message, More more) {
  ++errors_;
  if (diagnostics_.full(Severity::error)) {
    diagnostics_.count_only(Severity::error);
    return;
  }
  add(code, place_of(document_, index), std::move(message), std::move(more));
}

void Reader::warning(std::string_view code, uint32_t index, std::string message, More more) {
  add(code, place_of(document_, index), std::move(message), std::move(more), Severity::warning);
}

void Reader::error_naming(const char* code, uint32_t index, std::string message,
                          std::string_view word, const Choices& choices, std::string_view lead) {
  const bool kept = !diagnostics_.full(Severity::error);
  error(code, index, std::move(message), kept ? suggestion(word, choices(), lead) : More{});
}

void Reader::error_at_key(const char* code, uint32_t index, std::string message, More more) {
  ++errors_;
  if (diagnostics_.full(Severity::error)) {
    diagnostics_.count_only(Severity::error);
    return;
  }
  add(code, place_of_key(document_, index), std::move(message), std::move(more));
}

void Reader::wrong_type(uint32_t index, std::string_view what, const char* expected) {
  if (!readable(index)) {
    ++errors_;  // reported by the parser
    return;
  }
  error("E0201", index,
        std::string(what) + " takes " + expected + ", not " + to_text(node(index).kind));
}

void Reader::unknown_key(uint32_t index, std::string_view key, const KeyRule* rules, size_t count,
                         std::string_view what) {
  std::vector<std::string> known;
  for (size_t i = 0; i < count; ++i) known.emplace_back(rules[i].name);
  if (key.size() <= longest_word) {
    if (auto near = nearest(key, known)) misspelt_.push_back(std::move(*near));
  }
  error_at_key("E0203", index, "unknown key " + quote(key) + " in " + std::string(what),
               suggestion(key, known, "its keys are "));
}

bool Reader::misspelt(std::string_view key) const {
  return keyless_ || std::find(misspelt_.begin(), misspelt_.end(), key) != misspelt_.end();
}

bool Reader::find_members(uint32_t index, const KeyRule* rules, size_t count, uint32_t* found,
                          std::string_view what) {
  if (node(index).kind != JsonKind::object) {
    wrong_type(index, what, "an object");
    return false;
  }
  misspelt_.clear();
  keyless_ = false;
  for (uint32_t child = index + 1; child < node(index).next; child = node(child).next) {
    const JsonNode& member = node(child);
    if (member.repeated || member.keyless) {
      keyless_ = keyless_ || member.keyless;
      ++errors_;  // reported by the parser
      continue;
    }
    const std::string_view key = key_of(document_, member, buffer_);
    size_t i = 0;
    while (i < count && rules[i].name != key) ++i;
    if (i < count) {
      found[i] = child;
    } else if (key.substr(0, 2) != "x-") {
      unknown_key(child, std::string(key), rules, count, what);
    }
  }
  std::vector<std::string> missing;
  for (size_t i = 0; i < count; ++i) {
    if (rules[i].required && found[i] == 0 && !misspelt(rules[i].name))
      missing.push_back(quote(rules[i].name));
  }
  if (!missing.empty())
    error("E0202", index,
          std::string(what) + " lacks the key" + (missing.size() == 1 ? " " : "s ") +
              join(missing, ", "));
  return true;
}

std::optional<std::vector<uint32_t>> Reader::elements(uint32_t index, std::string_view what) {
  if (node(index).kind != JsonKind::array) {
    wrong_type(index, what, "a list");
    return std::nullopt;
  }
  std::vector<uint32_t> list;
  list.reserve(node(index).count);
  for (uint32_t child = index + 1; child < node(index).next; child = node(child).next)
    list.push_back(child);
  return list;
}

std::optional<int64_t> Reader::integer(uint32_t index, std::string_view what, int64_t least,
                                       int64_t most) {
  if (index == 0) return std::nullopt;
  const JsonNode& value = node(index);
  if (value.kind == JsonKind::number) {
    error("E0204", index,
          std::string(what) + " takes an integer, not " + printable(raw(document_, value)),
          {"write it without a fraction and without an exponent", {}, 0, {}});
    return std::nullopt;
  }
  if (value.kind != JsonKind::integer) {
    wrong_type(index, what, "an integer");
    return std::nullopt;
  }
  const auto number = integer_of(document_, value);
  if (number && *number >= least && *number <= most) return number;
  const std::string range = most == int64_max
                                ? std::to_string(least) + " or more"
                                : std::to_string(least) + " to " + std::to_string(most);
  error("E0205", index,
        std::string(what) + " is " + printable(raw(document_, value), 40) + "; it must be " +
            range + (number || raw(document_, value).front() == '-' ? "" : " and fit in 64 bits"));
  return std::nullopt;
}

std::optional<int64_t> Reader::thousandths(uint32_t index, std::string_view what, int64_t least,
                                           int64_t most) {
  const JsonNode& value = node(index);
  if (value.kind != JsonKind::integer && value.kind != JsonKind::number) {
    wrong_type(index, what, "a number");
    return std::nullopt;
  }
  const std::string_view written = raw(document_, value);
  const size_t point = written.find('.');
  const std::string_view fraction =
      point == std::string_view::npos ? std::string_view() : written.substr(point + 1);
  if (written.find_first_of("eE") != std::string_view::npos || fraction.size() > 3) {
    error("E0204", index,
          std::string(what) + " takes at most three decimals and no exponent, not " +
              printable(written));
    return std::nullopt;
  }
  std::string digits(written.substr(0, point));
  digits += fraction;
  digits.append(3 - fraction.size(), '0');
  const auto number = parse_int(digits);
  if (number && *number >= least && *number <= most) return number;
  const auto decimal = [](int64_t thousand) {
    std::string text = std::to_string(thousand / 1000);
    if (thousand % 1000 != 0) text += "." + std::to_string(1000 + thousand % 1000).substr(1);
    return text;
  };
  error("E0205", index,
        std::string(what) + " is " + printable(written, 40) + "; it must be " + decimal(least) +
            " to " + decimal(most));
  return std::nullopt;
}

std::optional<bool> Reader::boolean(uint32_t index, std::string_view what) {
  if (index == 0) return std::nullopt;
  if (node(index).kind == JsonKind::boolean) return node(index).truth;
  wrong_type(index, what, "true or false");
  return std::nullopt;
}

std::optional<std::string_view> Reader::text(uint32_t index, std::string_view what) {
  if (index == 0) return std::nullopt;
  if (node(index).kind == JsonKind::string) return string_of(document_, node(index), buffer_);
  wrong_type(index, what, "a string");
  return std::nullopt;
}

std::optional<std::string> Reader::name(uint32_t index, std::string_view what) {
  const auto given = text(index, what);
  if (!given) return std::nullopt;
  if (!given->empty()) return std::string(*given);
  error("E0209", index, std::string(what) + " is empty");
  return std::nullopt;
}

std::optional<size_t> Reader::choice(uint32_t index, std::string_view what,
                                     const std::vector<std::string>& choices, const char* code) {
  const auto given = text(index, what);
  if (!given) return std::nullopt;
  for (size_t i = 0; i < choices.size(); ++i) {
    if (choices[i] == *given) return i;
  }
  error(code, index, "unknown " + std::string(what) + " " + quote(*given),
        suggestion(*given, choices, "expected one of "));
  return std::nullopt;
}

}  // namespace meshplan
