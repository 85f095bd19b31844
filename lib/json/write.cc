#include "json/write.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <list>

#include "base/text.h"
#include "base/utf8.h"

namespace meshplan {
namespace {

// A text in its quotes: without a backslash it is canonical as it stands.
void append_text(std::string& out, std::string_view quoted, bool escaped,
                 std::string_view resolved) {
  if (escaped) {
    append_json_string(out, resolved);
  } else {
    out += quoted;
  }
}

void append_scalar(std::string& out, const JsonDocument& document, const JsonNode& node) {
  const std::string_view text = raw(document, node);
  double value = 0;
  std::string buffer;
  switch (node.kind) {
    case JsonKind::string:
      append_text(out, text, node.escaped, string_of(document, node, buffer));
      break;
    case JsonKind::integer:
      out += text == "-0" ? "0" : text;
      break;
    case JsonKind::number:
      // Beyond every double: stays as written.
      if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc()) {
        out += text;
      } else {
        append_json_number(out, value);
      }
      break;
    case JsonKind::boolean:
      out += node.truth ? "true" : "false";
      break;
    default:
      out += "null";
  }
}

void append_object(std::string& out, const JsonDocument& document, uint32_t object) {
  struct Member {
    std::string_view key;
    uint32_t node = 0;
  };
  std::vector<Member> members;
  members.reserve(document.nodes[object].count);
  std::list<std::string> resolved;  // stay where they are; seldom any
  const uint32_t end = document.nodes[object].next;
  for (uint32_t child = object + 1; child < end; child = document.nodes[child].next) {
    std::string buffer;
    std::string_view key = key_of(document, document.nodes[child], buffer);
    if (document.nodes[child].key_escaped) key = resolved.emplace_back(key);
    members.push_back({key, child});
  }
  const auto by_key = [](const Member& a, const Member& b) { return a.key < b.key; };
  if (!std::is_sorted(members.begin(), members.end(), by_key)) {
    std::sort(members.begin(), members.end(), by_key);
  }
  out += '{';
  for (size_t i = 0; i < members.size(); ++i) {
    if (i > 0) out += ',';
    const JsonNode& member = document.nodes[members[i].node];
    const size_t length = member.key_end - member.key_begin;
    append_text(out, document.text.substr(member.key_begin, length), member.key_escaped,
                members[i].key);
    out += ':';
    append_canonical(out, document, members[i].node);
  }
  out += '}';
}

}  // namespace

void append_json_number(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  char buffer[40];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  std::string_view text(buffer, static_cast<size_t>(end - buffer));
  if (text.front() == '-') {
    out += '-';
    text.remove_prefix(1);
  }
  const size_t e = text.find('e');
  std::string digits(1, text[0]);
  if (e > 2) digits += text.substr(2, e - 2);
  const size_t power_at = e + (text[e + 1] == '+' ? 2 : 1);
  const int64_t exponent = parse_int(text.substr(power_at)).value_or(0);
  const auto count = std::ssize(digits);
  const auto zeros = [](int64_t number) { return std::string(static_cast<size_t>(number), '0'); };
  if (exponent < -4 || exponent >= 16) {
    const std::string power = std::to_string(exponent < 0 ? -exponent : exponent);
    out += digits.substr(0, 1) + (count > 1 ? "." + digits.substr(1) : "");
    out += (exponent < 0 ? "e-" : "e+") + zeros(power.size() < 2 ? 1 : 0) + power;
  } else if (exponent < 0) {
    out += "0." + zeros(-exponent - 1) + digits;
  } else if (count <= exponent + 1) {
    out += digits + zeros(exponent + 1 - count) + ".0";
  } else {
    out += digits.insert(static_cast<size_t>(exponent + 1), ".");
  }
}

// Depth is at most max_json_depth, so that recursion is safe here.
void append_canonical(std::string& out, const JsonDocument& document, uint32_t index) {
  const JsonNode& node = document.nodes[index];
  if (node.kind == JsonKind::object) {
    append_object(out, document, index);
  } else if (node.kind == JsonKind::array) {
    out += '[';
    for (uint32_t child = index + 1; child < node.next; child = document.nodes[child].next) {
      if (child > index + 1) out += ',';
      append_canonical(out, document, child);
    }
    out += ']';
  } else {
    append_scalar(out, document, node);
  }
}

std::string canonical_text(const JsonDocument& document, uint32_t node) {
  std::string out;
  append_canonical(out, document, node);
  return out;
}

void JsonWriter::open(char bracket, Breaks breaks) {
  begin_value();
  const bool compact = !open_.empty() && open_.back().breaks == Breaks::compact;
  open_.push_back({bracket == '{' ? '}' : ']', compact ? Breaks::compact : breaks, true});
  text_ += bracket;
}

void JsonWriter::close() {
  const Level level = open_.back();
  open_.pop_back();
  if (level.breaks == Breaks::lines && !level.empty) {
    text_ += '\n';
    text_.append(open_.size() * indent_, ' ');
  }
  text_ += level.closer;
}

void JsonWriter::key(std::string_view name) {
  separate();
  append_json_string(text_, name);
  text_ += open_.back().breaks == Breaks::compact ? ":" : ": ";
  after_key_ = true;
}

void JsonWriter::value(const JsonItem& item) {
  const auto each = [&](const auto& list) {
    open('[');
    for (const auto& element : list) value(element);
    close();
  };
  if (const auto* numbers = std::get_if<const std::vector<int64_t>*>(&item.value_)) {
    return each(**numbers);
  }
  if (const auto* texts = std::get_if<const std::vector<std::string>*>(&item.value_)) {
    return each(**texts);
  }
  begin_value();
  if (const auto* text = std::get_if<std::string_view>(&item.value_)) {
    append_json_string(text_, *text);
  } else if (const auto* whole = std::get_if<int64_t>(&item.value_)) {
    append_integer(text_, *whole);
  } else if (const auto* natural = std::get_if<uint64_t>(&item.value_)) {
    text_ += std::to_string(*natural);
  } else if (const auto* number = std::get_if<double>(&item.value_)) {
    append_json_number(text_, *number);
  } else if (const auto* flag = std::get_if<bool>(&item.value_)) {
    text_ += *flag ? "true" : "false";
  } else {
    text_ += "null";
  }
}

void JsonWriter::number(std::string_view digits) {
  begin_value();
  text_ += digits;
}

void JsonWriter::field(std::string_view name, const JsonItem& item) {
  key(name);
  value(item);
}

void JsonWriter::fields(std::initializer_list<JsonField> all) {
  for (const JsonField& each : all) field(each.key, each.value);
}

void JsonWriter::object(std::initializer_list<JsonField> all) {
  open('{');
  fields(all);
  close();
}

std::string JsonWriter::take(std::string_view end) {
  text_ += end;
  return std::move(text_);
}

void JsonWriter::begin_value() {
  if (!after_key_ && !open_.empty()) separate();
  after_key_ = false;
}

void JsonWriter::separate() {
  Level& level = open_.back();
  if (!level.empty) text_ += level.breaks == Breaks::one_line ? ", " : ",";
  level.empty = false;
  if (level.breaks == Breaks::lines) {
    text_ += '\n';
    text_.append(open_.size() * indent_, ' ');
  }
}

}  // namespace meshplan
