#include "json/scan.h"

#include <algorithm>
#include <cstring>

#include "base/utf8.h"
#include "json/parse.h"
#include "json/words.h"

namespace meshplan {
namespace {

class Scanner {
 public:
  Scanner(std::string_view text, const std::string& file, Diagnostics& diagnostics)
      : text_(text), diagnostics_(diagnostics) {
    document_.text = text;
    document_.file = file;
  }

  std::optional<JsonDocument> scan() {
    if (!check_bytes()) return std::nullopt;
    skip_space();
    if (lost_) return std::nullopt;
    if (at_ == text_.size()) {
      report(
          "E0104", at_, at_, "the file holds no value",
          "a spec begins with {\"schema\": \"meshplan/spec/1\"; a plan is what meshplan plan writes");
      return std::nullopt;
    }
    document_.nodes.reserve(std::min(text_.size() / 8 + 16, size_t{1} << 20));
    read_value(0, 0);
    while (!open_.empty() && !lost_) read_in_container();
    if (!lost_) skip_space();
    if (lost_) return std::nullopt;
    if (at_ < text_.size()) {
      report("E0111", at_, at_ + std::max<size_t>(1, utf8_length(text_, at_)),
             "text after the end of the document",
             "one file holds one object; remove what follows it");
    }
    return std::move(document_);
  }

 private:
  JsonNode& node(uint32_t index) { return document_.nodes[index]; }

  void report(const char* code, size_t begin, size_t end, std::string message,
              std::string help = {}, std::optional<Fix> fix = {},
              std::optional<SecondPlace> second = {}) {
    if (diagnostics_.full(Severity::error)) {
      diagnostics_.count_only(Severity::error);
      return;
    }
    const std::string pointer = open_.empty() ? "" : pointer_to(document_, open_.back());
    diagnostics_.add({code, Severity::error, locate(text_, document_.file, begin, end, pointer),
                      std::move(message), std::move(second), std::move(help), std::move(fix), 0});
  }
  // Nothing after this place can be made sense of.
  void lose(const char* code, size_t begin, size_t end, std::string message, std::string help = {},
            std::optional<SecondPlace> second = {}) {
    report(code, begin, end, std::move(message), std::move(help), {}, std::move(second));
    lost_ = true;
  }

  bool check_bytes() {
    if (text_.size() > max_json_bytes) {
      Diagnostic diagnostic;
      diagnostic.code = "E0109";
      diagnostic.place = whole_file(document_.file);
      diagnostic.message = "the file has " + std::to_string(text_.size()) + " bytes; at most " +
                           std::to_string(max_json_bytes) + " are read";
      diagnostic.help = "split it into several files";
      diagnostics_.add(std::move(diagnostic));
      return false;
    }
    if (text_.substr(0, 2) == "\xFE\xFF" || text_.substr(0, 2) == "\xFF\xFE") {
      lose("E0101", 0, 2, "the file is UTF-16; specs are UTF-8",
           "save it as UTF-8 without a byte order mark");
      return false;
    }
    if (text_.substr(0, 3) == "\xEF\xBB\xBF") {
      report("E0102", 0, 3, "the file begins with a byte order mark",
             "save it as UTF-8 without one", Fix{"", true});
      at_ = 3;
    }
    for (size_t at = find_stray_byte(text_, at_); at < text_.size();
         at = find_stray_byte(text_, at)) {
      size_t end = at + 1;
      while (end < text_.size() && utf8_length(text_, end) == 0) ++end;
      report("E0101", at, end,
             std::string(end - at > 1 ? "bytes that are" : "a byte that is") +
                 " not UTF-8: " + printable(text_.substr(at, std::min<size_t>(end - at, 8))),
             "save the file as UTF-8");
      stray_bytes_ = true;
      at = end;
    }
    return true;
  }

  void skip_space() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (is_space(c)) {
        ++at_;
      } else if (c == '/' && at_ + 1 < text_.size() && text_[at_ + 1] == '/') {
        at_ = std::min(text_.find_first_of("\r\n", at_), text_.size());
      } else if (c == '/' && at_ + 1 < text_.size() && text_[at_ + 1] == '*') {
        const size_t end = text_.find("*/", at_ + 2);
        if (end == std::string_view::npos) {
          lose("E0112", at_, at_ + 2, "a comment that is never closed", "close it with */");
          at_ = text_.size();
          return;
        }
        at_ = end + 2;
      } else if (c == '#') {
        const size_t end = std::min(text_.find('\n', at_), text_.size());
        report("E0103", at_, at_ + 1, "unexpected character \"#\"", "comments begin with //",
               Fix{"//", true});
        at_ = end;
      } else {
        return;
      }
    }
  }

  // Reads the value that begins at at_, or opens it.
  void read_value(size_t key_begin, size_t key_end, bool key_escaped = false) {
    const auto index = static_cast<uint32_t>(document_.nodes.size());
    add_node(document_, open_.empty() ? 0 : open_.back(), at_, key_begin, key_end);
    node(index).key_escaped = key_escaped;
    if (document_.nodes.size() > max_json_values) {
      lose("E0109", at_, at_ + 1,
           "the file has more than " + std::to_string(max_json_values) + " values",
           "split it into several files");
      return;
    }
    const char c = text_[at_];
    if (c == '{' || c == '[') {
      node(index).kind = c == '{' ? JsonKind::object : JsonKind::array;
      if (open_.size() == max_json_depth) {
        lose("E0108", at_, at_ + 1,
             "values are nested deeper than " + std::to_string(max_json_depth) + " levels",
             "no part of a spec needs more than 8");
        return;
      }
      open_.push_back(index);
      ++at_;
      comma_ = no_comma;
      return;
    }
    if (c == '"') {
      bool escaped = false;
      node(index).kind = read_string(escaped) ? JsonKind::string : JsonKind::broken;
      node(index).escaped = escaped;
    } else if (is_word(c)) {
      node(index).kind = read_word(node(index));
    } else {
      node(index).kind = JsonKind::broken;
      read_junk();
    }
    node(index).end = static_cast<uint32_t>(at_);
  }

  // A string that begins at at_; afterwards at_ is past it. False where it was reported.
  bool read_string(bool& escaped) {
    const size_t begin = at_++;
    bool good = true;
    while (at_ < text_.size()) {
      const auto byte = static_cast<unsigned char>(text_[at_]);
      if (byte == '"') {
        ++at_;
        return good && !(stray_bytes_ && has_stray_bytes(begin));
      }
      if (byte == '\\') {
        escaped = true;
        if (!read_escape()) good = false;
      } else if (byte == '\n' || byte == '\r') {
        break;
      } else if (byte < 0x20) {
        report("E0105", at_, at_ + 1,
               "a control character in a string: " + printable(text_.substr(at_, 1)),
               "write it as an escape, such as \\t or \\u0000");
        good = false;
        ++at_;
      } else {
        ++at_;
      }
    }
    lose("E0105", begin, at_, "a string that does not end on its line", "close it with \"");
    return false;
  }

  bool has_stray_bytes(size_t begin) const {
    for (size_t at = begin; at < at_;) {
      const size_t length = utf8_length(text_, at);
      if (length == 0) return true;
      at += length;
    }
    return false;
  }

  // An escape that begins at at_; afterwards at_ is past it. False where it was reported.
  bool read_escape() {
    const size_t begin = at_++;
    const char c = at_ < text_.size() ? text_[at_] : '\0';
    if (c == '\0' || c == '\n' || c == '\r')
      return true;  // the caller reports the end of the string
    if (c != 'u') {
      ++at_;
      if (std::strchr("\"\\/bfnrt", c) != nullptr) return true;
      const size_t length = std::max<size_t>(1, utf8_length(text_, begin + 1));
      at_ = begin + 1 + length;
      report("E0105", begin, at_,
             "unknown escape \"" + printable(text_.substr(begin, at_ - begin)) + "\"",
             "JSON has \\\" \\\\ \\/ \\b \\f \\n \\r \\t and \\u0000");
      return false;
    }
    const auto unit = hex4_at(at_ + 1);
    if (!unit) {
      ++at_;
      while (at_ < begin + 6 && at_ < text_.size() &&
             std::isxdigit(static_cast<unsigned char>(text_[at_])))
        ++at_;
      report("E0105", begin, at_, "an escape \\u without four hexadecimal digits",
             "write it as \\u0041");
      return false;
    }
    at_ += 5;
    if (*unit < 0xD800 || *unit > 0xDFFF) return true;
    const bool high = *unit < 0xDC00;
    if (high && text_.substr(at_, 2) == "\\u") {
      const auto low = hex4_at(at_ + 2);
      if (low && *low >= 0xDC00 && *low <= 0xDFFF) {
        at_ += 6;
        return true;
      }
    }
    report("E0105", begin, at_,
           "half of a surrogate pair: " + std::string(text_.substr(begin, at_ - begin)),
           "write both halves, such as \\ud83d\\ude00, or the character itself");
    return false;
  }

  std::optional<uint32_t> hex4_at(size_t at) const {
    uint32_t value = 0;
    for (size_t i = at; i < at + 4; ++i) {
      if (i >= text_.size() || !std::isxdigit(static_cast<unsigned char>(text_[i])))
        return std::nullopt;
      const char c = text_[i];
      value = value * 16 + static_cast<uint32_t>(is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return value;
  }

  // A number, true, false or null that begins at at_, or something similar.
  JsonKind read_word(JsonNode& made) {
    const size_t begin = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    if (at_ < text_.size() && text_[at_] == '(') {  // S(0) without quotes
      const size_t end = text_.find_first_of(")\n", at_);
      if (end != std::string_view::npos && text_[end] == ')') at_ = end + 1;
    }
    const std::string_view word = text_.substr(begin, at_ - begin);
    if (is_digit(word[0]) || word[0] == '-') {
      const JsonKind kind = number_kind(word);
      if (kind != JsonKind::broken) return kind;
    }
    if (word == "true" || word == "false") {
      made.truth = word == "true";
      return JsonKind::boolean;
    }
    if (word == "null") return JsonKind::null;
    const std::string shown = "\"" + printable(word) + "\"";
    std::string_view digits = word;
    while (!digits.empty() && (digits[0] == '+' || digits[0] == '-')) digits.remove_prefix(1);
    if (word == "True" || word == "False" || word == "None") {
      const std::string right = word == "True" ? "true" : word == "False" ? "false" : "null";
      report("E0113", begin, at_, "unknown word " + shown, "write " + right, Fix{right, true});
    } else if (digits == "NaN" || digits == "nan" || digits == "Infinity" || digits == "inf" ||
               digits == "Inf") {
      report("E0106", begin, at_, shown + " is not a JSON number",
             "only finite decimal numbers are");
    } else if (digits != word || is_digit(word[0]) || word[0] == '.') {
      report("E0106", begin, at_, shown + " is not a JSON number", number_help(word));
    } else {
      report("E0113", begin, at_, "unknown word " + shown,
             "a string is in double quotes: \"" + printable(word) + "\"",
             Fix{"\"" + std::string(word) + "\"", false});
    }
    return JsonKind::broken;
  }

  // Something that begins no value. Passed over up to where the next value may begin.
  void read_junk() {
    const size_t begin = at_;
    const size_t length = std::max<size_t>(1, utf8_length(text_, at_));
    if (text_[at_] == '\'') {
      size_t end = at_ + 1;
      while (end < text_.size() && text_[end] != '\'' && text_[end] != '\n') ++end;
      if (end < text_.size() && text_[end] == '\'') {
        at_ = end + 1;
        report("E0105", begin, at_, "a string in single quotes", "use double quotes",
               Fix{json_string(text_.substr(begin + 1, end - begin - 1)), true});
        return;
      }
    }
    const std::string shown = printable(text_.substr(at_, length));
    while (at_ < text_.size() && std::strchr(",]}\n", text_[at_]) == nullptr) ++at_;
    if (at_ == begin) {
      report("E0103", begin, begin + length, "expected a value, found \"" + shown + "\"",
             "a value is missing here");
    } else if (!(stray_bytes_ && utf8_length(text_, begin) == 0)) {
      report("E0103", begin, begin + length, "unexpected character \"" + shown + "\"",
             "expected a value");
    }
  }

  void read_in_container() {
    skip_space();
    if (lost_) return;
    const uint32_t index = open_.back();
    const bool object = node(index).kind == JsonKind::object;
    const char closer = object ? '}' : ']';
    if (at_ == text_.size()) {
      lose("E0104", at_, at_, std::string("the file ends inside ") + to_text(node(index).kind),
           std::string("close it with ") + closer,
           SecondPlace{locate(text_, document_.file, node(index).begin, node(index).begin + 1),
                       "opened here"});
      return;
    }
    const char c = text_[at_];
    if (c == closer) {
      if (comma_ != no_comma && node(index).count > 0) {
        report("E0107", comma_, comma_ + 1, std::string("a comma before ") + closer, "remove it",
               Fix{"", true});
      }
      close(index);
      return;
    }
    if (c == ',') {
      if (node(index).count == 0 || comma_ != no_comma) {
        report("E0107", at_, at_ + 1, "a comma without a value before it", "remove it",
               Fix{"", true});
      } else {
        comma_ = at_;
      }
      ++at_;
      return;
    }
    if (c == '}' || c == ']') {
      lose("E0103", at_, at_ + 1, std::string("expected \"") + closer + "\", found \"" + c + "\"",
           std::string("close ") + to_text(node(index).kind) + " with " + closer,
           SecondPlace{locate(text_, document_.file, node(index).begin, node(index).begin + 1),
                       "opened here"});
      return;
    }
    if (node(index).count > 0 && comma_ == no_comma && !missing_comma(object)) return;
    comma_ = no_comma;
    if (object) {
      read_member();
    } else {
      read_value(0, 0);
    }
  }

  // Reports a comma that is missing before at_; false where what follows is no value.
  bool missing_comma(bool object) {
    const char c = text_[at_];
    const bool plausible =
        c == '"' || (!object && (c == '{' || c == '[' || is_digit(c) || c == '-'));
    size_t before = at_;
    while (before > 0 && is_space(text_[before - 1])) --before;
    if (plausible) {
      report("E0107", at_, at_ + 1,
             "expected a comma before this " + std::string(object ? "key" : "value"),
             "separate them with a comma");
      return true;
    }
    const size_t length = std::max<size_t>(1, utf8_length(text_, at_));
    lose("E0103", at_, at_ + length,
         "unexpected character \"" + printable(text_.substr(at_, length)) + "\"",
         std::string("expected a comma or ") + (object ? "}" : "]"));
    return false;
  }

  void read_member() {
    const size_t begin = at_;
    bool escaped = false;
    bool good = true;
    if (text_[at_] == '"') {
      good = read_string(escaped);
      if (lost_) return;
    } else if (is_letter(text_[at_])) {
      while (at_ < text_.size() && is_word(text_[at_])) ++at_;
      const std::string word(text_.substr(begin, at_ - begin));
      report("E0113", begin, at_, "a key without quotes: " + printable(word),
             "write \"" + printable(word) + "\"", Fix{"\"" + word + "\"", true});
      good = false;
    } else if (text_[at_] == '\'') {
      read_junk();
      good = false;
    } else {
      const size_t length = std::max<size_t>(1, utf8_length(text_, at_));
      lose("E0103", begin, begin + length,
           "unexpected character \"" + printable(text_.substr(begin, length)) + "\"",
           "expected a key in double quotes or }");
      return;
    }
    const size_t end = at_;
    skip_space();
    if (lost_) return;
    if (at_ < text_.size() && text_[at_] == '=') {
      report("E0103", at_, at_ + 1, "unexpected character \"=\"", "a key is followed by a colon",
             Fix{":", true});
      ++at_;
    } else if (at_ < text_.size() && text_[at_] == ':') {
      ++at_;
    } else {
      lose("E0103", begin, end, "a key without a value", "write a colon and the value after it");
      return;
    }
    skip_space();
    if (lost_) return;
    if (at_ == text_.size()) return;  // the end is reported for the object
    read_value(begin, end, escaped);
    if (!good && !lost_) keyless(begin);
  }

  // A member whose key cannot be read: no reader may take it for an unknown one.
  void keyless(size_t key_begin) {
    for (size_t i = document_.nodes.size(); i-- > 0;) {
      if (document_.nodes[i].key_begin == key_begin) {
        document_.nodes[i].keyless = true;
        return;
      }
    }
  }

  void close(uint32_t index) {
    ++at_;
    node(index).end = static_cast<uint32_t>(at_);
    node(index).next = static_cast<uint32_t>(document_.nodes.size());
    if (node(index).kind == JsonKind::object) check_keys(index);
    open_.pop_back();
    comma_ = no_comma;
  }

  void check_keys(uint32_t index) {
    for (const auto& [again, first] : repeated_keys(document_, index)) {
      node(again).repeated = true;
      std::string buffer;
      report("E0110", node(again).key_begin, node(again).key_end,
             "key \"" + printable(key_of(document_, node(again), buffer)) + "\" is given twice",
             "keep one of them", {},
             SecondPlace{locate(text_, document_.file, node(first).key_begin, node(first).key_end),
                         "first given here"});
    }
  }

  static constexpr size_t no_comma = static_cast<size_t>(-1);

  std::string_view text_;
  Diagnostics& diagnostics_;
  JsonDocument document_;
  std::vector<uint32_t> open_;  // containers, outermost first
  size_t at_ = 0;
  size_t comma_ = no_comma;  // where the last comma stands that no value has followed yet
  bool stray_bytes_ = false;
  bool lost_ = false;
};

}  // namespace

std::optional<JsonDocument> scan_json(std::string_view text, const std::string& file,
                                      Diagnostics& diagnostics) {
  return Scanner(text, file, diagnostics).scan();
}

std::optional<JsonDocument> read_json(std::string_view text, const std::string& file,
                                      Diagnostics& diagnostics) {
  if (text.size() <= max_json_bytes) {
    auto parsed = parse_json(text, {.comments = true, .most_values = max_json_values});
    if (auto* document = std::get_if<JsonDocument>(&parsed)) {
      document->file = file;
      return std::move(*document);
    }
  }
  return scan_json(text, file, diagnostics);
}

}  // namespace meshplan
