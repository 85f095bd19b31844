#include "json/document_kind.h"

#include <algorithm>

#include "json/words.h"

namespace meshplan {
namespace {

// The words of a text one after the other, without blanks and comments: a string with its quotes,
// or one character.
class Words {
 public:
  explicit Words(std::string_view text) : text_(text) {}
  // Empty at the end of the text.
  std::string_view next() {
    skip_blanks();
    if (at_ == text_.size()) return {};
    const size_t begin = at_;
    at_ = text_[begin] == '"' ? end_of_string() : begin + 1;
    return text_.substr(begin, at_ - begin);
  }

 private:
  void skip_blanks() {
    while (at_ < text_.size()) {
      if (is_space(text_[at_])) {
        ++at_;
      } else if (text_.compare(at_, 2, "//") == 0) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (text_.compare(at_, 2, "/*") == 0) {
        const size_t end = text_.find("*/", at_ + 2);
        at_ = end == std::string_view::npos ? text_.size() : end + 2;
      } else {
        return;
      }
    }
  }
  [[nodiscard]] size_t end_of_string() const {
    size_t i = at_ + 1;
    while (i < text_.size() && text_[i] != '"') i += text_[i] == '\\' ? 2 : 1;
    return std::min(i + 1, text_.size());
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::optional<DocumentKind> document_kind(std::string_view text) {
  Words words(text);
  int depth = 0;
  bool is_schema = false;  // what comes next is the value
  bool may_be_key = false;
  for (std::string_view word = words.next(); !word.empty(); word = words.next()) {
    if (is_schema && word != ":") {
      if (word.starts_with("\"meshplan/spec/")) return DocumentKind::spec;
      if (word.starts_with("\"meshplan/plan/")) return DocumentKind::plan;
      return std::nullopt;
    }
    if (word == "{" || word == "[") ++depth;
    if (word == "}" || word == "]") --depth;
    if (depth == 1 && may_be_key && word == "\"schema\"") is_schema = true;
    may_be_key = word == "{" || word == ",";
  }
  return std::nullopt;
}

}  // namespace meshplan
