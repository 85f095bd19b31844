#include "diag/code_parts.h"

namespace meshplan {

std::vector<CodeEntry> form_codes() {
  std::string ones = "1";
  for (int i = 1; i < 65; ++i) ones += ", 1";
  const auto tensor_of = [](const std::string& shape) {
    return redistribution_of(
        "\"tensor\": {\"shape\": " + shape +
        ", \"dtype\": \"float32\"},\n    \"src\": [\"R\", \"S(0)\"], \"dst\": [\"R\", \"R\"]");
  };
  const std::string mesh = R"~("mesh": {"dims": [{"name": "dp", "size": 2}]})~";
  const std::string good = spec_of(mesh);
  return {
      {"E0201", "wrong_type", "a value of the wrong type",
       "Every key takes one type of value: a string, an integer, true or false, a list or an "
       "object. A number in quotes is a string.",
       spec_of(R"~("mesh": {"dims": [{"name": "dp", "size": "2"}]})~"), good},
      {"E0202", "missing_key", "a required key is missing",
       "A spec needs a schema and a mesh; a mesh dim a name and a size; a redistribution an id, a "
       "tensor, a source and a target, and its mesh if the file has several.",
       spec_of(R"~("mesh": {"dims": [{"name": "dp"}]})~"), good},
      {"E0203", "unknown_key", "a key that this object does not have",
       "Unknown keys are errors, since most are misspelled and would silently be ignored. Keys "
       "that begin with x- are for your own use and are ignored everywhere.",
       spec_of(R"~("mesh": {"dims": [{"name": "dp", "size": 2, "note": "data parallel"}]})~"),
       spec_of(R"~("mesh": {"dims": [{"name": "dp", "size": 2, "x-note": "data parallel"}]})~")},
      {"E0204", "not_an_integer", "a fraction or an exponent where a plain number is expected",
       "Sizes, counts and byte limits are written as integers: 2, not 2.0 or 2e0, which other "
       "parsers read as floating-point numbers and may round. Bandwidths take at most three "
       "decimals.",
       spec_of(R"~("mesh": {"dims": [{"name": "dp", "size": 2.0}]})~"), good},
      {"E0205", "out_of_range", "a number out of range",
       "The message gives the range. Counts and sizes of mesh dims are 1 or more, sizes of tensor "
       "dims 0 or more, and all numbers fit in a signed 64-bit integer.",
       spec_of(R"~("mesh": {"dims": [{"name": "dp", "size": 0}]})~"), good},
      {"E0206", "unknown_choice", "a value that is not one of the choices",
       "Some keys take one of a few values: planner, rules, groups, world_group, direction, dtype, "
       "a topology preset. The message suggests the closest one or lists them all.",
       spec_of(mesh + ",\n  \"options\": {\"planner\": \"optimum\"}"),
       spec_of(mesh + ",\n  \"options\": {\"planner\": \"optimal\"}")},
      {"E0207", "wrong_schema", "the file has another schema",
       "The key schema gives the kind and version of a file; for a spec it is meshplan/spec/1. "
       "Another major version may use the same keys with another meaning, so the file is not read.",
       "{\n  \"schema\": \"meshplan/spec/2\",\n  " + mesh + "\n}", good},
      {"E0208", "exclusive_keys", "two keys that exclude each other",
       "A file has either mesh or meshes, and none of its own where it extends another; an entry of "
       "meshes is one operation; a redistribution names one mesh, or a source and a target mesh; a "
       "bandwidth is given in one unit.",
       spec_of(mesh + ",\n  \"meshes\": [{\"name\": \"root\", \"world\": 2}]"), good},
      {"E0209", "empty_text", "an empty string where a name is expected",
       "Names, ids, codes and reasons have at least one character.",
       spec_of(R"~("mesh": {"dims": [{"name": "", "size": 2}]})~"), good},
      {"E0210", "duplicate_id", "an id given twice",
       "Ids identify redistributions in budgets, diffs and messages. A redistribution that happens "
       "several times per step is given once, with a count.",
       redistribution_of(
           R"~("tensor": {"shape": [8], "dtype": "float32"}, "src": ["R", "S(0)"], "dst": ["R", "R"]},
    {"id": "wq.grad", "tensor": {"shape": [8], "dtype": "float32"}, "src": ["R", "S(0)"], "dst": ["R", "R"])~"),
       redistribution_of(
           R"~("tensor": {"shape": [8], "dtype": "float32"}, "src": ["R", "S(0)"], "dst": ["R", "R"], "count": 2)~")},
      {"E0211", "empty_list", "an empty list where entries are required",
       "The lists of dims of a mesh, slice or flatten and the levels of a topology have at least "
       "one entry. An empty list of redistributions is allowed.",
       spec_of(R"~("mesh": {"dims": []})~"), good},
      {"E0212", "too_many", "too many dims or levels",
       "A mesh or a tensor has at most 64 dims, a topology at most 8 levels.",
       tensor_of("[" + ones + "]"), tensor_of("[8, 8]")},
      {"E0213", "cannot_extend", "a file that cannot be extended",
       "extends names a spec, relative to the folder of the file that extends it: one that can be "
       "read and does not extend that file in turn. At most 8 files may extend one another, and a "
       "text on stdin, which is in no folder, extends none.",
       "{\n  \"schema\": \"meshplan/spec/1\",\n  \"extends\": \"recorded.json\"\n}", good},
  };
}

}  // namespace meshplan
