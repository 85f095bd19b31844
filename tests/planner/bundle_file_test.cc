// How the plan file names the members of a bundle: few by their ids, many by the first and the last.
#include <doctest/doctest.h>

#include <algorithm>

#include "planner/small_bundle.h"

namespace meshplan {

TEST_CASE("like members behind one another are one part of the plan file") {
  const MeshTable table = two_roots({{"dp", 2}, {"tp", 4}}, {{"dp", 1}, {"tp", 4}}, 8);
  std::vector<Request> requests;
  for (int layer = 0; layer < 5; ++layer) {
    requests.push_back(request_of(table, std::to_string(layer) + ".w", {96, 64}, "RS(0)", "RS(0)", 1 + layer));
  }
  requests.push_back(request_of(table, "v", {64, 96}, "RS(1)", "RS(1)", 3));
  const Plan plan = planned(table, uniform_topology(), requests, {});
  const std::string text = write_plan(plan);
  const std::string part = R"({"id": "0.w", "step": 0, "through": "4.w"})";
  REQUIRE(text.find(part) != std::string::npos);
  CHECK(plan.bundles.front().rounds.front().parts.size() == 6);
  const auto message_with = [&](const std::string& other) {
    std::string changed = text;
    changed.replace(text.find(part), part.size(), other);
    const auto read = read_plan(changed, false);
    return read.ok() ? "" : read.error().message;
  };
  CHECK(message_with(R"({"id": "4.w", "step": 0, "through": "0.w"})") ==
        "/bundles/0/rounds/0/parts/0/through: expected a member of the bundle behind \"4.w\"");
  CHECK(message_with(R"({"id": "0.w", "step": 0, "through": "v"})") ==
        "/bundles/0/rounds/0/parts/0/through: expected members with the steps of \"0.w\", "
        "not \"v\"");
  CHECK(message_with(R"({"id": "0.w", "step": 0, "through": "u"})") ==
        "/bundles/0/rounds/0/parts/0/through: there is no redistribution \"u\"");
  CHECK(message_with(part + ", " + part) == "/bundles/0/rounds/0/parts/1/through: step 0 of \"0.w\" is run twice");
  CHECK(message_with(R"({"id": "0.w", "pieces": 2, "step": 0, "through": "4.w"})") ==
        "/bundles/0/rounds/0/parts/0/pieces: expected whole tensors beside \"through\"");
}

TEST_CASE("many members that stand behind one another in the plan file are named by the first and the last") {
  const MeshTable table = two_roots({{"dp", 2}, {"tp", 4}}, {{"dp", 1}, {"tp", 4}}, 8);
  std::vector<Request> requests;
  for (int layer = 10; layer < 76; ++layer) {
    requests.push_back(request_of(table, std::to_string(layer) + ".w", {96, 64}, "RS(0)", "RS(0)", 1));
  }
  const Plan plan = planned(table, uniform_topology(), requests, {});
  const std::string text = write_plan(plan);
  const std::string run = R"("members": [{"id": "10.w", "through": "75.w"}])";
  REQUIRE(text.find(run) != std::string::npos);
  CHECK(write_plan(*read_plan(text)) == text);
  const auto members_with = [&](const std::string& list) {
    std::string changed = text;
    changed.replace(text.find(run), run.size(), R"("members": )" + list);
    return read_plan(changed, false);
  };
  // Each by its id is the same.
  std::string ids;
  for (const Request& request : requests) ids += (ids.empty() ? "\"" : ", \"") + request.id + '"';
  const auto listed = members_with('[' + ids + ']');
  REQUIRE(listed.ok());
  CHECK(listed->bundles == read_plan(text)->bundles);
  const auto mixed = members_with(R"(["10.w", {"id": "11.w", "through": "20.w"}, "21.w", {"id": "22.w", "through": "75.w"}])");
  REQUIRE(mixed.ok());
  CHECK(mixed->bundles == listed->bundles);
  const auto message = [&](const std::string& list) {
    const auto read = members_with(list);
    return read.ok() ? "" : read.error().message;
  };
  CHECK(message(R"([{"id": "75.w", "through": "10.w"}])") == "/bundles/0/members/0/through: expected a redistribution behind \"75.w\"");
  CHECK(message(R"([{"id": "10.w", "through": "76.w"}])") == "/bundles/0/members/0/through: there is no redistribution \"76.w\"");
  CHECK(message(R"(["20.w", {"id": "10.w", "through": "75.w"}])") == "/bundles/0/members/1: member \"20.w\" is named twice");
  // Fewer of them, or in another order, by their ids.
  Plan other = plan;
  std::vector<size_t>& members = other.bundles[0].request.members;
  std::swap(members[1], members[2]);
  for (BundleRound& round : other.bundles[0].rounds) round.parts.resize(1);
  CHECK(write_plan(other).find(R"("members": ["10.w", "12.w", "11.w", "13.w", )") != std::string::npos);
}

}  // namespace meshplan
