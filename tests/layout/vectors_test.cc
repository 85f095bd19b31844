// PyTorch's own answers for 150 layouts (testdata/vectors/layouts.json).
#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "layout/layout.h"

using meshplan::Layout;
using nlohmann::json;

namespace {

Layout layout_of(const json& text) {
  std::vector<meshplan::Mode> modes;
  for (size_t i = 0; i < text["sizes"].size(); ++i) modes.push_back({text["sizes"][i].get<int64_t>(), text["strides"][i].get<int64_t>()});
  const auto layout = meshplan::make_layout(std::move(modes));
  REQUIRE(layout.ok());
  return *layout;
}

}  // namespace

TEST_CASE("PyTorch's layouts") {
  std::ifstream file(MESHPLAN_TESTDATA "/vectors/layouts.json");
  const json cases = json::parse(file).at("layouts");
  REQUIRE(cases.size() == 150);
  int complements = 0;
  int unflattens = 0;
  for (const json& entry : cases) {
    const Layout layout = layout_of(entry);
    CAPTURE(to_text(layout));
    CHECK(coalesce(layout) == layout_of(entry["coalesced"]));
    CHECK(size(layout) == entry["numel"].get<int64_t>());
    const auto ranks = entry["ranks"].get<std::vector<int64_t>>();
    CHECK(offsets(layout) == ranks);
    CHECK(cosize(layout) == *std::max_element(ranks.begin(), ranks.end()) + 1);
    CHECK(is_orthogonal(layout) == entry["orthogonal"].get<bool>());
    CHECK(is_sorted(layout) == entry["sorted"].get<bool>());
    if (entry.contains("world")) {
      const auto copies = complement(layout, entry["world"].get<int64_t>());
      REQUIRE(copies.ok());
      CHECK(*copies == layout_of(entry["complement"].at("ok")));
      std::vector<std::vector<int64_t>> groups;
      for (const int64_t base : offsets(*copies)) {
        std::vector<int64_t> group;
        for (const int64_t offset : offsets(layout)) group.push_back(base + offset);
        groups.push_back(group);
      }
      CHECK(groups == entry["groups"].at("ok").get<std::vector<std::vector<int64_t>>>());
      ++complements;
    }
    if (entry.contains("unflatten")) {
      const json& axes = entry["unflatten"]["axes"];
      const auto parts = split_layout(layout, entry["unflatten"]["sizes"].get<std::vector<int64_t>>());
      CHECK(parts.ok() == axes.contains("ok"));
      for (size_t i = 0; parts.ok() && i < parts->size(); ++i) CHECK((*parts)[i] == layout_of(axes["ok"][i]));
      ++unflattens;
    }
  }
  CHECK(complements == 101);
  CHECK(unflattens == 109);
}
