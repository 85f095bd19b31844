#include <cctype>

#include "base/text.h"
#include "spec/read_placements.h"

namespace meshplan {
namespace {

// Lower case, without blanks, quotes and underscores in front.
std::string plain(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == ' ' || c == '"' || c == '\'' || (c == '_' && out.empty())) continue;
    out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

// The value of "dim=0" or "0".
std::string_view value_of(std::string_view argument) {
  const size_t equals = argument.find('=');
  return equals == std::string_view::npos ? argument : argument.substr(equals + 1);
}

std::optional<int64_t> dim_meant(std::string_view argument, int64_t tensor_rank) {
  const auto dim = parse_int(value_of(argument));
  if (!dim) return std::nullopt;
  if (*dim >= 0) return dim;
  if (tensor_rank < 0 || *dim < -tensor_rank) return std::nullopt;
  return *dim + tensor_rank;
}

std::optional<std::string> op_meant(std::string_view argument) {
  const std::string word(value_of(argument));
  if (word.empty() || word == "add" || word == "+") return "sum";
  if (word == "mean" || word == "average") return "avg";
  if (word == "prod" || word == "mul" || word == "multiply") return "product";
  return nearest(word, {"sum", "avg", "min", "max", "product"});
}

}  // namespace

std::optional<std::string> placement_meant(std::string_view text, int64_t tensor_rank) {
  if (text.size() > 60) return std::nullopt;
  const std::string word = plain(text);
  const size_t open = word.find_first_of("([");
  const std::string head = word.substr(0, open);
  std::string inside;
  if (open != std::string::npos) {
    const size_t close = word.find_first_of(")]", open);
    inside = word.substr(open + 1, close == std::string::npos ? close : close - open - 1);
  }
  if (head == "r" || head == "rep" || head == "replicate" || head == "replicated" ||
      head == "replica")
    return "R";
  if (head == "p" || head == "partial" || head == "partialsum") {
    if (const auto op = op_meant(inside)) return "P(" + *op + ")";
    return std::nullopt;
  }
  if (head == "s" || head == "shard" || head == "sharded") {
    if (const auto dim = dim_meant(inside, tensor_rank)) return "S(" + std::to_string(*dim) + ")";
    return std::nullopt;
  }
  if (head == "ss" || head == "stridedshard") {
    const size_t comma = inside.find(',');
    if (comma == std::string::npos) return std::nullopt;
    const auto dim = dim_meant(inside.substr(0, comma), tensor_rank);
    const auto factor = parse_int(value_of(inside.substr(comma + 1)));
    if (dim && factor && *factor >= 1)
      return "SS(" + std::to_string(*dim) + "," + std::to_string(*factor) + ")";
    return std::nullopt;
  }
  // S0, s1: the brackets left out.
  if (head.size() > 1 && head[0] == 's' && open == std::string::npos) {
    if (const auto dim = dim_meant(std::string_view(head).substr(1), tensor_rank))
      return "S(" + std::to_string(*dim) + ")";
  }
  return std::nullopt;
}

}  // namespace meshplan
