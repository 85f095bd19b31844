#include "diag/code_parts.h"

namespace meshplan {

std::vector<CodeEntry> form_codes() {
  std::string ones = "1";
  for (int i = 1; i < 65; ++i) ones += ", 1";
  const auto tensor_of = [](const std::string& shape) {
    return redistribution_of("\"tensor\": {\"shape\": " + shape +
                             ", \"dtype\": \"float32\"},\n    \"src\": [\"R\", \"S(0)\"], \"dst\": [\"R\", \"R\"]");
  };
  const std::string mesh = R"~("mesh": {"dims": [{"name": "dp", "size": 2}]})~";
  const std::string good = spec_of(mesh);
  return {
      {"E0201", "wrong_type", "a value of another type than its key takes",
       "Every key takes one type of value: a text, an integer, true or false, a list or an object. Numbers in quotes are texts.",
       spec_of(R"~("mesh": {"dims": [{"name": "dp", "size": "2"}]})~"), good},
      {"E0202", "missing_key", "a key that must be given is not there",
       "A spec says its schema and its mesh; a mesh dim has a name and a size; a redistribution has an id, a tensor, a source and a "
       "target, "
       "and names its mesh where the file has several.",
       spec_of(R"~("mesh": {"dims": [{"name": "dp"}]})~"), good},
      {"E0203", "unknown_key", "a key that this object does not have",
       "Keys that mean nothing are refused, since most are misspelt ones that would silently be left out. Keys that begin with x- are "
       "yours: "
       "they are ignored everywhere.",
       spec_of(R"~("mesh": {"dims": [{"name": "dp", "size": 2, "note": "data parallel"}]})~"),
       spec_of(R"~("mesh": {"dims": [{"name": "dp", "size": 2, "x-note": "data parallel"}]})~")},
      {"E0204", "not_an_integer", "a fraction or an exponent where a plain number is expected",
       "Sizes, counts and byte limits are integers and are written as such: 2, not 2.0 and not 2e0, since other readers take those for "
       "floating-point numbers and round them. Bandwidths take at most three decimals.",
       spec_of(R"~("mesh": {"dims": [{"name": "dp", "size": 2.0}]})~"), good},
      {"E0205", "out_of_range", "a number outside of its range",
       "The message names the range. Sizes of mesh dims and counts are 1 or more, sizes of tensor dims 0 or more, and everything fits in "
       "64 "
       "bits with a sign.",
       spec_of(R"~("mesh": {"dims": [{"name": "dp", "size": 0}]})~"), good},
      {"E0206", "unknown_choice", "a word that is none of the choices",
       "Some keys take one of a few words: planner, rules, groups, world_group, direction, dtype, a topology preset. The message suggests "
       "the "
       "nearest or lists them.",
       spec_of(mesh + ",\n  \"options\": {\"planner\": \"optimum\"}"), spec_of(mesh + ",\n  \"options\": {\"planner\": \"optimal\"}")},
      {"E0207", "wrong_schema", "the file says that it is something else",
       "The key schema says what a file is and in which version. A spec says meshplan/spec/1. Another major version may mean the same keys "
       "differently, so it is not read at all.",
       "{\n  \"schema\": \"meshplan/spec/2\",\n  " + mesh + "\n}", good},
      {"E0208", "exclusive_keys", "two keys that exclude each other",
       "A file has mesh or meshes, not both; an entry of meshes is one operation; a redistribution names one mesh, or a source and a "
       "target "
       "mesh; a bandwidth is given in one unit.",
       spec_of(mesh + ",\n  \"meshes\": [{\"name\": \"root\", \"world\": 2}]"), good},
      {"E0209", "empty_text", "an empty text where a name is expected", "Names, ids, codes and reasons have at least one character.",
       spec_of(R"~("mesh": {"dims": [{"name": "", "size": 2}]})~"), good},
      {"E0210", "duplicate_id", "an id given twice",
       "Ids tell redistributions apart, in budgets, in diffs and in messages. What happens several times a step is one redistribution with "
       "a "
       "count.",
       redistribution_of(R"~("tensor": {"shape": [8], "dtype": "float32"}, "src": ["R", "S(0)"], "dst": ["R", "R"]},
    {"id": "wq.grad", "tensor": {"shape": [8], "dtype": "float32"}, "src": ["R", "S(0)"], "dst": ["R", "R"])~"),
       redistribution_of(R"~("tensor": {"shape": [8], "dtype": "float32"}, "src": ["R", "S(0)"], "dst": ["R", "R"], "count": 2)~")},
      {"E0211", "empty_list", "an empty list where something is expected",
       "A mesh has dims, a slice or flatten names some, a topology has levels. An empty redistributions list is fine.",
       spec_of(R"~("mesh": {"dims": []})~"), good},
      {"E0212", "too_many", "more dims or levels than are read",
       "A mesh or a tensor has at most 64 dims and a topology at most 8 levels. More than 62 mesh dims of size 2 would hold more ranks "
       "than "
       "64 bits count.",
       tensor_of("[" + ones + "]"), tensor_of("[8, 8]")},
  };
}

}  // namespace meshplan
