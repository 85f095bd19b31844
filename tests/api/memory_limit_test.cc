// Plans within a memory limit: what fits is found, whatever else would not.
#include <doctest/doctest.h>

#include <string>

#include "api/texts.h"

using namespace meshplan;

namespace {

struct Fitted {
  int code = 0;
  int64_t predicted_ps = 0;
  int64_t peak_bytes = 0;
  std::string message;
};

Fitted fitted(const std::string& members, int64_t most_bytes, const std::string& redistribution) {
  const std::string text = R"~({"schema": "meshplan/spec/1", )~" + members + R"~(, "options": {"max_memory_bytes": )~" +
                           std::to_string(most_bytes) + R"~(}, "redistributions": [{"id": "a", )~" + redistribution + "}]}";
  Diagnostics diagnostics;
  Fitted answer;
  const auto planned = plan_spec_text(text, {}, {"spec.json", {}, {}, {}}, diagnostics, answer.code);
  if (!planned) {
    answer.message = diagnostics.sorted().front().message;
    return answer;
  }
  const Totals& totals = planned->plan.redistributions.front().totals;
  answer.predicted_ps = totals.predicted_ps;
  answer.peak_bytes = totals.peak_bytes;
  return answer;
}

}  // namespace

TEST_CASE("shards may rest on any tensor dim where nothing else fits the limit") {
  const std::string mesh = R"~("mesh": {"dims": [{"name": "a", "size": 5}, {"name": "b", "size": 6}]})~";
  const std::string five_dims =
      R"~("tensor": {"shape": [16, 32, 4, 16, 5], "dtype": "float8_e4m3"}, "src": ["S(1)", "S(2)"], "dst": ["R", "S(1)"])~";
  // By way of S(4)S(1), where the fifth dim is one that neither end shards.
  const Fitted fits = fitted(mesh, 67'584, five_dims);
  CHECK(fits.message == "");
  CHECK(fits.peak_bytes <= 67'584);
  const Fitted too_little = fitted(mesh, 40'000, five_dims);
  CHECK(too_little.code == 3);
  CHECK(too_little.message.find("the least peak that exists") != std::string::npos);
  // What it says fits, and one byte less does not.
  const std::string least = too_little.message.substr(too_little.message.find("exists is ") + 10);
  const int64_t bytes = std::stoll(least);
  CHECK(fitted(mesh, bytes, five_dims).peak_bytes == bytes);
  CHECK(fitted(mesh, bytes - 1, five_dims).code == 3);
}

TEST_CASE("an exchange whose fastest way takes too much memory goes in a plainer one") {
  const std::string world =
      R"~("meshes": [{"name": "m", "world": 64, "dims": [{"name": "a", "size": 8}, {"name": "b", "size": 4}, {"name": "c", "size": 2}]},
      {"name": "n", "world": 64, "dims": [{"name": "a", "size": 8}, {"name": "b", "size": 4}, {"name": "c", "size": 2}]}],
      "topology": {"levels": [{"ranks": 8, "gb_per_s": 100, "latency_ns": 3000, "per_peer_ns": 50},
                              {"ranks": 4096, "gb_per_s": 50, "latency_ns": 5000, "per_peer_ns": 50}]})~";
  const std::string moved =
      R"~(, "tensor": {"shape": [1024, 4096], "dtype": "bfloat16"}, "src": ["R", "S(0)", "S(1)"], "dst": ["R", "S(1)", "S(0)"])~";
  const Fitted within = fitted(world, 4'194'304, R"~("mesh": "m")~" + moved);
  const Fitted across = fitted(world, 4'194'304, R"~("src_mesh": "m", "dst_mesh": "n")~" + moved);
  CHECK(within.peak_bytes <= 4'194'304);
  CHECK(within.predicted_ps <= across.predicted_ps);
}
