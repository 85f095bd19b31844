// meshplan_transfers against the listing that the command line prints.
#include <doctest/doctest.h>

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>

#include "api/answer.h"
#include "api/meshplan.h"
#include "plan/plan.h"
#include "render/bundle_transfers_text.h"
#include "render/transfers_text.h"

namespace {

using meshplan::test::Answer;
using meshplan::test::text_of;
using nlohmann::json;

std::string shipped_plan(const std::string& name) {
  std::ifstream in(std::string(MESHPLAN_TESTDATA) + "/plans/" + name, std::ios::binary);
  REQUIRE(in.good());
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

Answer transfers(const std::string& plan, const char* id, int64_t rank) {
  return {meshplan_transfers(plan.data(), plan.size(), id, rank), meshplan_free};
}

std::string listed(const std::string& text, const meshplan::TransfersQuestion& question) {
  const auto read = meshplan::try_read_plan(text);
  std::string out;
  const auto written =
      meshplan::write_transfers_json(std::get<meshplan::Plan>(read), question, [&](std::string_view part) -> meshplan::Status {
        out += part;
        return meshplan::Done{};
      });
  REQUIRE(written.ok());
  return out;
}

}  // namespace

TEST_CASE("all transfers, those of one redistribution, those of one rank") {
  const std::string plan = shipped_plan("train-8-serve-8.plan.json");
  const Answer all = transfers(plan, nullptr, -1);
  REQUIRE(meshplan_code(all.get()) == 0);
  CHECK(text_of(all) == listed(plan, {}));

  const Answer one = transfers(plan, "experts", 3);
  REQUIRE(meshplan_code(one.get()) == 0);
  CHECK(text_of(one) == listed(plan, {{"experts"}, 3}));
  const json document = json::parse(text_of(one));
  REQUIRE(document["redistributions"].size() == 1);
  CHECK(document["redistributions"][0]["id"] == "experts");
  int rows = 0;
  for (const json& step : document["redistributions"][0]["steps"]) {
    for (const json& row : step["transfers"]) {
      CHECK((row["from"] == 3 || row["to"] == 3));
      ++rows;
    }
  }
  CHECK(rows > 0);
}

TEST_CASE("those of one rank are the rows of all that name it, in the same order") {
  int rows = 0;
  std::set<std::string> ops;
  for (const char* name : {"llama3-8b-hsdp2x8-tp4.greedy.plan.json", "llama3-8b-fsdp8-tp8.plan.json", "fetched-by-all-8x6.plan.json",
                           "train-8-serve-8.plan.json"}) {
    CAPTURE(name);
    const std::string plan = shipped_plan(name);
    const json all = json::parse(listed(plan, {}));
    std::set<int64_t> ranks;
    for (const json& r : all["redistributions"]) {
      if (!r.contains("steps")) continue;
      for (const json& step : r["steps"]) {
        ops.insert(step["op"]);
        for (const json& row : step["transfers"]) ranks.insert(row["to"].get<int64_t>());
      }
    }
    for (const int64_t rank : ranks) {
      if (rank > 2 && rank % 11 != 0) continue;
      const json one = json::parse(listed(plan, {{}, rank}));
      REQUIRE(one["redistributions"].size() == all["redistributions"].size());
      for (size_t r = 0; r < all["redistributions"].size(); ++r) {
        const json& every = all["redistributions"][r];
        const json& own = one["redistributions"][r];
        CHECK(every["id"] == own["id"]);
        for (size_t s = 0; every.contains("steps") && s < every["steps"].size(); ++s) {
          CAPTURE(every["id"]);
          const json& mine = own["steps"].at(s)["transfers"];
          size_t at = 0;
          int wrong = 0;
          for (const json& row : every["steps"][s]["transfers"]) {
            if (row["to"] != rank && (!row.contains("from") || row["from"] != rank)) continue;
            wrong += at >= mine.size() || mine[at] != row ? 1 : 0;
            ++at;
            ++rows;
          }
          CHECK(wrong == 0);
          CHECK(at == mine.size());
        }
      }
    }
  }
  CHECK(rows > 0);
  for (const char* op : {"all_gather", "all_reduce", "all_to_all", "exchange", "reduce_scatter", "slice", "to_partial"})
    CHECK_MESSAGE(ops.contains(op), op);
}

TEST_CASE("an id, a rank or a plan that is not there is bad input") {
  const std::string plan = shipped_plan("train-8-serve-8.plan.json");
  const auto message = [](const Answer& answer) {
    CHECK(meshplan_code(answer.get()) == 2);
    CHECK(text_of(answer).empty());
    return json::parse(meshplan_diagnostics(answer.get()))["diagnostics"][0]["message"].get<std::string>();
  };
  CHECK(message(transfers(plan, "expert", -1)) == "the plan has no redistribution 'expert'; did you mean 'experts'?");
  CHECK(message(transfers(plan, nullptr, 16)) == "rank 16 is not in the plan, which has 16 ranks between 0 and 15");
  CHECK(message(transfers("{}", nullptr, -1)) != "");
  std::string wrong = plan;
  wrong[wrong.find("\"wire_bytes\": ") + 14] ^= 1;
  CHECK(message(transfers(wrong, nullptr, -1)).find("digest") != std::string::npos);
}

TEST_CASE("the rounds of a bundle, and those of one rank, as the command line lists them") {
  const std::string plan = shipped_plan("sync-llama3-8b-8-8.plan.json");
  const auto read = meshplan::try_read_plan(plan);
  const meshplan::Plan& document = std::get<meshplan::Plan>(read);
  const auto asked = [&](const char* bundle, int64_t rank) {
    return Answer(meshplan_bundle_transfers(plan.data(), plan.size(), bundle, rank), meshplan_free);
  };
  for (const int64_t rank : {-1, 0, 15}) {
    meshplan::BundleTransfersQuestion question{document.bundles.data(), std::nullopt};
    if (rank >= 0) question.rank = rank;
    std::string listed;
    const auto written = meshplan::write_bundle_transfers_json(document, question, [&](std::string_view part) -> meshplan::Status {
      listed += part;
      return meshplan::Done{};
    });
    REQUIRE(written.ok());
    const Answer answer = asked("sync", rank);
    CHECK(meshplan_code(answer.get()) == 0);
    CHECK(text_of(answer) == listed);
  }
  for (const auto& [bundle, rank] : {std::pair{"synk", -1}, std::pair{"sync", 16}}) {
    const Answer refused = asked(bundle, rank);
    CHECK(meshplan_code(refused.get()) == 2);
    CHECK(text_of(refused).empty());
  }
  CHECK(std::string(meshplan_diagnostics(asked("synk", -1).get())).find("did you mean 'sync'?") != std::string::npos);
}
