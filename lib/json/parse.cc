#include "json/parse.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/utf8.h"
#include "json/words.h"

namespace meshplan {
namespace {

using json = nlohmann::json;

// Makes a document from the parser's events; the text says where each of them stands.
class DocumentBuilder {
 public:
  DocumentBuilder(std::string_view text, const JsonRules& rules, std::string_view list,
                  const TakeElement* take)
      : text_(text), rules_(rules), list_(list), take_(take) {
    document_.text = text;
    const size_t most = rules.most_values;
    if (take == nullptr) document_.nodes.reserve(std::min(text.size() / 8 + 16, most));
  }

  bool null() { return scalar(JsonKind::null, 4); }
  bool boolean(bool value) {
    scalar(JsonKind::boolean, value ? 4 : 5);
    last().truth = value;
    return done();
  }
  bool number_integer(json::number_integer_t /*value*/) { return integer(); }
  bool number_unsigned(json::number_unsigned_t value) {
    if (!rules_.fractions && value > json::number_unsigned_t{INT64_MAX}) {
      return refuse("the number " + std::to_string(value) + " does not fit 64 bits", next_token());
    }
    return integer();
  }
  bool number_float(json::number_float_t /*value*/, const std::string& text) {
    if (!rules_.fractions) {
      return refuse("the number " + text + " is not an integer of 64 bits", next_token());
    }
    const bool whole = text.find_first_of(".eE") == std::string::npos;
    scalar(whole ? JsonKind::integer : JsonKind::number, text.size());
    return done();
  }
  bool string(std::string& value) {
    scalar(JsonKind::string, 0);
    last().escaped = pass_string(last().begin, value);
    last().end = static_cast<uint32_t>(at_);
    return done();
  }
  bool binary(json::binary_t& /*value*/) { return refuse("binary data", {}); }
  bool start_object(size_t /*size*/) { return open(JsonKind::object); }
  bool start_array(size_t /*size*/) { return open(JsonKind::array); }
  bool key(std::string& name) {
    key_begin_ = next_token();
    key_escaped_ = pass_string(key_begin_, name);
    key_end_ = at_;
    return true;
  }
  bool end_object() {
    close();
    const auto repeated = repeated_keys(document_, open_.back());
    if (!repeated.empty()) {
      std::string buffer;
      const std::string_view name =
          key_of(document_, document_.nodes[repeated.front().first], buffer);
      return refuse("the key \"" + std::string(name) + "\" is given twice in one object", {});
    }
    open_.pop_back();
    return done();
  }
  bool end_array() {
    close();
    open_.pop_back();
    return done();
  }
  bool parse_error(size_t position, const std::string& /*token*/, const json::exception& error) {
    const std::string what = error.what();
    const size_t reason = what.rfind("; ");
    constexpr int number_overflow = 406;  // which has no reason behind a semicolon
    const std::string problem = error.id == number_overflow   ? "a number that is too large"
                                : reason == std::string::npos ? "invalid JSON"
                                                              : what.substr(reason + 2);
    return refuse(problem, position == 0 ? 0 : position - 1);
  }

  std::variant<JsonDocument, JsonRefusal> result(bool accepted) {
    if (accepted) return std::move(document_);
    return JsonRefusal{std::move(problem_), byte_};
  }

 private:
  bool refuse(std::string problem, std::optional<size_t> byte) {
    problem_ = std::move(problem);
    byte_ = byte;
    return false;
  }
  JsonNode& last() { return document_.nodes.back(); }

  // Where the token after the last one begins.
  [[nodiscard]] size_t next_token() const {
    size_t at = at_;
    for (;; ++at) {
      while (is_space(text_[at]) || text_[at] == ',' || text_[at] == ':') ++at;
      if (text_[at] != '/') return at;
      if (text_[at + 1] == '/') {
        at = text_.find_first_of("\r\n", at);
      } else {
        at = text_.find("*/", at + 2) + 1;
      }
    }
  }

  // Moves behind a string whose quote stands at `begin`; whether it is written with escapes.
  bool pass_string(size_t begin, const std::string& value) {
    const size_t inside = begin + 1;
    at_ = inside + value.size() + 1;
    // Escapes are longer than what they stand for, so that without any the quote stands here.
    if (text_[at_ - 1] == '"' && text_.compare(inside, value.size(), value) == 0) return false;
    at_ = inside;
    while (text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
    ++at_;
    return true;
  }

  // Adds a value of `length` bytes.
  bool scalar(JsonKind kind, size_t length) {
    const size_t begin = next_token();
    const uint32_t parent = open_.empty() ? 0 : open_.back();
    add_node(document_, parent, begin, key_begin_, key_end_);
    last().kind = kind;
    last().key_escaped = key_escaped_;
    at_ = begin + length;
    last().end = static_cast<uint32_t>(at_);
    key_begin_ = key_end_ = 0;
    key_escaped_ = false;
    return true;
  }
  bool integer() {
    scalar(JsonKind::integer, 0);
    while (at_ < text_.size() && (is_digit(text_[at_]) || text_[at_] == '-')) ++at_;
    last().end = static_cast<uint32_t>(at_);
    return done();
  }
  bool open(JsonKind kind) {
    if (open_.size() >= max_json_depth) {
      return refuse("it is nested deeper than " + std::to_string(max_json_depth) + " levels",
                    next_token());
    }
    scalar(kind, 1);
    open_.push_back(static_cast<uint32_t>(document_.nodes.size() - 1));
    return true;
  }
  void close() {
    at_ = next_token() + 1;
    JsonNode& closed = document_.nodes[open_.back()];
    closed.end = static_cast<uint32_t>(at_);
    closed.next = static_cast<uint32_t>(document_.nodes.size());
  }
  // After each value that is whole.
  bool done() {
    if (document_.nodes.size() > rules_.most_values) {
      return refuse("it has more than " + std::to_string(rules_.most_values) + " values", at_);
    }
    if (take_ != nullptr && open_.size() == 2 && is_list(open_.back())) {
      const uint32_t element = open_.back() + 1;
      document_.nodes[0].next = element;  // so far
      (*take_)(document_, element);
      document_.nodes.resize(element);
    }
    return true;
  }
  [[nodiscard]] bool is_list(uint32_t index) const {
    const JsonNode& node = document_.nodes[index];
    std::string buffer;
    return node.kind == JsonKind::array && key_of(document_, node, buffer) == list_;
  }

  std::string_view text_;
  JsonRules rules_;
  std::string_view list_;
  const TakeElement* take_;
  JsonDocument document_;
  std::vector<uint32_t> open_;  // containers, outermost first
  size_t at_ = 0;               // behind the last token
  size_t key_begin_ = 0;        // of the member that comes next
  size_t key_end_ = 0;
  bool key_escaped_ = false;
  std::string problem_;
  std::optional<size_t> byte_;
};

std::optional<JsonRefusal> check_bytes(std::string_view text) {
  if (text.size() >= UINT32_MAX) {
    return JsonRefusal{"it has " + std::to_string(text.size()) + " bytes; at most " +
                           std::to_string(UINT32_MAX - 1) + " are read",
                       {}};
  }
  if (text.substr(0, 3) == "\xEF\xBB\xBF") return JsonRefusal{"a byte order mark", 0};
  if (const size_t zero = text.find('\0'); zero != std::string_view::npos) {
    return JsonRefusal{"a zero byte", zero};
  }
  // The parser looks into strings, not into comments.
  if (const size_t stray = find_stray_byte(text); stray < text.size()) {
    return JsonRefusal{"a byte that is not UTF-8", stray};
  }
  return std::nullopt;
}

std::variant<JsonDocument, JsonRefusal> parse(std::string_view text, const JsonRules& rules,
                                              std::string_view list, const TakeElement* take) {
  if (auto refusal = check_bytes(text)) return std::move(*refusal);
  DocumentBuilder builder(text, rules, list, take);
  const char* const begin = text.data();
  const bool accepted = json::sax_parse(begin, begin + text.size(), &builder,
                                        json::input_format_t::json, true, rules.comments);
  return builder.result(accepted);
}

}  // namespace

std::variant<JsonDocument, JsonRefusal> parse_json(std::string_view text, const JsonRules& rules) {
  return parse(text, rules, {}, nullptr);
}

std::variant<JsonDocument, JsonRefusal> parse_json_list(std::string_view text,
                                                        const JsonRules& rules,
                                                        std::string_view list,
                                                        const TakeElement& take) {
  return parse(text, rules, list, &take);
}

std::string line_and_column(std::string_view text, size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte, text.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const size_t start = before.rfind('\n');
  const size_t column = start == std::string_view::npos ? before.size() : before.size() - start - 1;
  return "line " + std::to_string(line) + ", column " + std::to_string(column + 1);
}

}  // namespace meshplan
