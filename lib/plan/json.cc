#include "plan/json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/text.h"

namespace meshplan {
namespace {

// A byte of the text that counts those before it, since the events carry no positions.
class CountingIterator {
 public:
  using difference_type = std::ptrdiff_t;
  using value_type = char;
  using pointer = const char*;
  using reference = const char&;
  using iterator_category = std::input_iterator_tag;
  CountingIterator(const char* at, size_t* count) : at_(at), count_(count) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    ++at_;
    ++*count_;
    return *this;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  size_t* count_;
};

// Builds the tree from the events of nlohmann's parser, which knows syntax, escapes and UTF-8 but keeps the last of keys given twice and
// turns integers beyond 64 bits into fractions.
class TreeBuilder {
 public:
  using json = nlohmann::json;

  // `consumed`: bytes read so far; behind a number that is one byte more than its end.
  explicit TreeBuilder(const size_t& consumed) : consumed_(consumed) {}

  bool null() { return put({}); }
  bool boolean(bool value) { return put({value}); }
  bool number_integer(json::number_integer_t value) { return put({int64_t{value}}); }
  bool number_unsigned(json::number_unsigned_t value) {
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return refuse("the number " + std::to_string(value) + " does not fit 64 bits", behind_number(std::to_string(value).size()));
    }
    return put({static_cast<int64_t>(value)});
  }
  bool number_float(json::number_float_t /*value*/, const std::string& text) {
    return refuse("the number " + text + " is no whole number of 64 bits", behind_number(text.size()));
  }
  bool string(std::string& value) { return put({std::move(value)}); }
  bool binary(json::binary_t& /*value*/) { return refuse("binary data", {}); }
  bool start_object(size_t /*size*/) { return open({JsonObject()}); }
  bool start_array(size_t /*size*/) { return open({JsonList()}); }
  bool key(std::string& name) {
    keys_.back() = std::move(name);
    return true;
  }
  bool end_object() {
    auto& members = std::get<JsonObject>(open_.back().value);
    const auto by_key = [](const auto& a, const auto& b) { return a.first < b.first; };
    if (!std::is_sorted(members.begin(), members.end(), by_key)) std::sort(members.begin(), members.end(), by_key);
    for (size_t i = 1; i < members.size(); ++i) {
      if (members[i].first == members[i - 1].first) return refuse("the key \"" + members[i].first + "\" is given twice in one object", {});
    }
    return end_array();
  }
  bool end_array() {
    Json done = std::move(open_.back());
    open_.pop_back();
    keys_.pop_back();
    return put(std::move(done));
  }
  bool parse_error(size_t position, const std::string& /*token*/, const json::exception& error) {
    byte_ = position == 0 ? 0 : position - 1;
    const std::string what = error.what();
    const size_t reason = what.rfind("; ");
    problem_ = reason == std::string::npos ? "it is no JSON" : what.substr(reason + 2);
    return false;
  }

  Json root;
  [[nodiscard]] JsonRefusal refusal() const { return {problem_, byte_}; }

 private:
  bool refuse(std::string problem, std::optional<size_t> byte) {
    problem_ = std::move(problem);
    byte_ = byte;
    return false;
  }
  [[nodiscard]] size_t behind_number(size_t length) const { return consumed_ > length ? consumed_ - 1 - length : 0; }
  bool open(Json container) {
    if (open_.size() >= json_max_depth)
      return refuse("it is nested deeper than " + std::to_string(json_max_depth) + " levels", consumed_ - 1);
    open_.push_back(std::move(container));
    keys_.emplace_back();
    return true;
  }
  bool put(Json value) {
    if (open_.empty()) {
      root = std::move(value);
    } else if (auto* list = std::get_if<JsonList>(&open_.back().value)) {
      list->push_back(std::move(value));
    } else {
      std::get<JsonObject>(open_.back().value).push_back({std::move(keys_.back()), std::move(value)});
    }
    return true;
  }

  std::vector<Json> open_;
  std::vector<std::string> keys_;  // of the member that comes next, one per open container
  std::string problem_;
  std::optional<size_t> byte_;
  const size_t& consumed_;
};

}  // namespace

std::string line_and_column(std::string_view text, size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte, text.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const size_t start = before.rfind('\n');
  const size_t column = start == std::string_view::npos ? before.size() : before.size() - start - 1;
  return "line " + std::to_string(line) + ", column " + std::to_string(column + 1);
}

const Json* find_member(const Json& json, std::string_view key) {
  const auto* members = std::get_if<JsonObject>(&json.value);
  if (members == nullptr) return nullptr;
  const auto at =
      std::lower_bound(members->begin(), members->end(), key, [](const auto& member, std::string_view k) { return member.first < k; });
  return at != members->end() && at->first == key ? &at->second : nullptr;
}

std::variant<Json, JsonRefusal> parse_json(std::string_view text) {
  size_t consumed = 0;
  TreeBuilder builder(consumed);
  const CountingIterator first(text.data(), &consumed);
  const CountingIterator last(text.data() + text.size(), &consumed);
  try {
    if (nlohmann::json::sax_parse(first, last, &builder)) return std::move(builder.root);
  } catch (const nlohmann::json::exception& error) {
    return JsonRefusal{std::string("it is no JSON: ") + error.what(), {}};
  }
  return builder.refusal();
}

void append_json_text(std::string& out, std::string_view text) {
  static constexpr char hex[] = "0123456789abcdef";
  out += '"';
  size_t plain = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte >= 0x20 && byte != '"' && byte != '\\') continue;
    out.append(text, plain, i - plain);
    plain = i + 1;
    out += '\\';
    switch (byte) {
      case '"':
      case '\\':
        out += text[i];
        break;
      case '\b':
        out += 'b';
        break;
      case '\f':
        out += 'f';
        break;
      case '\n':
        out += 'n';
        break;
      case '\r':
        out += 'r';
        break;
      case '\t':
        out += 't';
        break;
      default:
        out += "u00";
        out += hex[byte >> 4];
        out += hex[byte & 15];
    }
  }
  out.append(text, plain);
  out += '"';
}

void append_json(std::string& out, const Json& json) {
  if (const auto* flag = std::get_if<bool>(&json.value)) {
    out += *flag ? "true" : "false";
  } else if (const auto* number = std::get_if<int64_t>(&json.value)) {
    append_integer(out, *number);
  } else if (const auto* text = std::get_if<std::string>(&json.value)) {
    append_json_text(out, *text);
  } else if (const auto* list = std::get_if<JsonList>(&json.value)) {
    out += '[';
    for (size_t i = 0; i < list->size(); ++i) {
      if (i > 0) out += ',';
      append_json(out, (*list)[i]);
    }
    out += ']';
  } else if (const auto* members = std::get_if<JsonObject>(&json.value)) {
    out += '{';
    bool first = true;
    for (const auto& [key, value] : *members) {
      if (!first) out += ',';
      first = false;
      append_json_text(out, key);
      out += ':';
      append_json(out, value);
    }
    out += '}';
  } else {
    out += "null";
  }
}

}  // namespace meshplan
