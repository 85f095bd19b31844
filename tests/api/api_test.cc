// The C ABI against the library itself: the same plans, prices and diagnostics.
#include "api/answer.h"
#include "api/meshplan.h"

#include <doctest/doctest.h>

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace {

using meshplan::test::Answer;
using meshplan::test::text_of;
using nlohmann::json;

std::string file(const std::string& name) {
  std::ifstream in(std::string(MESHPLAN_TESTDATA) + "/" + name, std::ios::binary);
  REQUIRE(in.good());
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}
Answer plan(const std::string& spec, const char* topology = nullptr) {
  return {meshplan_plan(spec.data(), spec.size(), topology), meshplan_free};
}
Answer price(const std::string& spec, const char* topology = nullptr) {
  return {meshplan_price(spec.data(), spec.size(), topology), meshplan_free};
}
Answer verify(const std::string& text) { return {meshplan_verify(text.data(), text.size()), meshplan_free}; }
json diagnostics_of(const Answer& answer) { return json::parse(meshplan_diagnostics(answer.get())); }

const char* const small_spec =
    R"x({"schema": "meshplan/spec/1", "mesh": {"dims": [{"name": "a", "size": 4}]},
        "redistributions": [{"id": "x", "tensor": {"shape": [16, 6], "dtype": "float32"},
                             "src": ["S(0)"], "dst": ["R"]}]})x";

}  // namespace

TEST_CASE("the version of the header is that of the library") {
  CHECK(meshplan_api_version() == MESHPLAN_API_VERSION);
  CHECK(std::string(meshplan_version()).find('.') != std::string::npos);
}

TEST_CASE("a spec's text gives a plan that verifies, and its prices") {
  const Answer planned = plan(small_spec, "h100");
  REQUIRE(meshplan_code(planned.get()) == 0);
  const std::string text = text_of(planned);
  CHECK(text == meshplan_text(planned.get()));  // closed by a zero byte
  const json document = json::parse(text);
  CHECK(document["topology"]["name"] == "h100");
  const Answer verified = verify(text);
  CHECK(meshplan_code(verified.get()) == 0);
  CHECK(json::parse(text_of(verified)) == json{{"left_out", json::array()}});

  const Answer priced = price(small_spec, "h100");
  REQUIRE(meshplan_code(priced.get()) == 0);
  const json prices = json::parse(text_of(priced))["redistributions"];
  REQUIRE(prices.size() == 1);
  CHECK(prices[0]["id"] == "x");
  for (const char* key : {"predicted_ns", "wire_bytes", "peak_bytes", "collectives", "lower_bound_ns"})
    CHECK(prices[0][key] == document["redistributions"][0]["totals"][key]);
  CHECK(prices[0]["wire_bytes"] == 288);
}

TEST_CASE("a shipped spec gives the plan file that the command line writes") {
  const Answer planned = plan(file("specs/llama3-8b-fsdp8-tp8.json"));
  REQUIRE(meshplan_code(planned.get()) == 0);
  CHECK(text_of(planned) == file("plans/llama3-8b-fsdp8-tp8.plan.json"));
  CHECK(diagnostics_of(planned)["warnings"] > 0);
}

extern "C" int c_program_plans(const char* spec);

TEST_CASE("a C program plans") {
  CHECK(c_program_plans(small_spec) == 0);
  CHECK(c_program_plans("{}") == 2);
}

TEST_CASE("problems are diagnostics with places, and codes those of the command line") {
  const Answer broken = plan("{\"schema\": \"meshplan/spec/1\", \"mesh\": 3}");
  CHECK(meshplan_code(broken.get()) == 2);
  CHECK(text_of(broken).empty());
  const json found = diagnostics_of(broken);
  CHECK(found["errors"] > 0);
  CHECK(found["diagnostics"][0]["place"]["line"] == 1);

  CHECK(meshplan_code(plan("", nullptr).get()) == 2);
  CHECK(meshplan_code(plan(small_spec, "h1000").get()) == 2);
  CHECK(meshplan_code(verify("{").get()) == 2);

  std::string spec = small_spec;
  spec.insert(spec.rfind('}'), ", \"options\": {\"max_memory_bytes\": 8}");
  CHECK(meshplan_code(plan(spec).get()) == 3);

  std::string wrong = text_of(plan(small_spec));
  const size_t at = wrong.find("\"wire_bytes\": 288");
  REQUIRE(at != std::string::npos);
  wrong[at + 14] = '1';
  CHECK(meshplan_code(verify(wrong).get()) == 2);  // its digest is another
}

TEST_CASE("files that a spec names are not read") {
  std::string spec = small_spec;
  spec.insert(spec.rfind('}'), ", \"topology\": {\"file\": \"/etc/passwd\"}");
  const Answer answer = plan(spec);
  CHECK(meshplan_code(answer.get()) == 2);
  CHECK(std::string(meshplan_diagnostics(answer.get())).find("is not read here") != std::string::npos);
}

TEST_CASE("a text extends no file") {
  const auto refused = [](const std::string& name) {
    const Answer answer = plan(R"({"schema": "meshplan/spec/1", "extends": ")" + name + "\"}");
    CHECK(meshplan_code(answer.get()) == 2);
    const json found = diagnostics_of(answer)["diagnostics"];
    REQUIRE(found.size() == 1);
    CHECK(found[0]["code"] == "E0213");
    return found[0]["message"].get<std::string>();
  };
  CHECK(refused("recorded.json") == "\"extends\" is relative to the folder of its file, and this text is not in a file");
  CHECK(refused("/etc/recorded.json") == "'/etc/recorded.json' is not read here; put its content into the spec");
}

TEST_CASE("threads get what one gets alone") {
  const std::string spec = small_spec;
  const std::string alone = text_of(plan(spec));
  std::vector<std::string> texts(4);
  std::vector<std::thread> threads;
  for (std::string& text : texts) threads.emplace_back([&] { text = text_of(plan(spec)); });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& text : texts) CHECK(text == alone);
}

TEST_CASE("times beyond 64 bits are refused at the redistribution or bundle with which they are") {
  const auto planned = [](const std::string& rest) {
    return plan(R"x({"schema": "meshplan/spec/1", "mesh": {"dims": [{"name": "a", "size": 4}]}, "redistributions": [
      {"id": "x", "tensor": {"shape": [16], "dtype": "float32"}, "src": ["S(0)"], "dst": ["R"]},
      {"id": "y", "tensor": {"shape": [16], "dtype": "float32"}, "src": ["S(0)"], "dst": ["R"], "count": )x" +
                rest);
  };
  // 10,001 ns each: 9.2e14 fit.
  const Answer fits = planned("922244000000}]}");
  REQUIRE(meshplan_code(fits.get()) == 0);
  CHECK(meshplan_code(verify(text_of(fits)).get()) == 0);
  CHECK(json::parse(text_of(fits))["totals"]["predicted_ns"] < 9223372036854776);
  for (const std::string rest :
       {R"x(922246000000}]})x", R"x(1}], "bundles": [{"id": "b", "redistributions": ["y"], "count": 922246000000}]})x",
        R"x(9223400}], "topology": {"levels": [{"name": "l", "ranks": 4, "gb_per_s": 1, "latency_ns": 1000000000000}]}})x"}) {
    const Answer beyond = planned(rest);
    CHECK(meshplan_code(beyond.get()) == 2);
    const json found = diagnostics_of(beyond)["diagnostics"];
    REQUIRE(found.size() == 1);
    CHECK(found[0]["code"] == "E0410");
    CHECK(found[0]["message"].get<std::string>().find("more than the 9223372036854775 ns that are counted") != std::string::npos);
    CHECK(found[0]["place"]["line"] == 3);
  }
}
