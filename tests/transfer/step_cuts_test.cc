// What pieces of steps move between pairs of ranks: counted from boxes, and whole together.
#include "transfer/step_cuts.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "cost/topology.h"
#include "transfer/elements_of.h"
#include "transfer/listed_transfers.h"

namespace meshplan {
namespace {

using test::elements_of;

using Pairs = std::map<std::pair<int32_t, int32_t>, int64_t>;

Pairs counted(const StepTransfers& transfers, const HeldBoxes& before, const HeldBoxes& after) {
  Pairs pairs;
  for (size_t slot = 0; slot < transfers.slots.size(); ++slot) {
    for (const Transfer& t : transfers.slots[slot].transfers) {
      const int32_t from = before.ranks[static_cast<size_t>(t.from)];
      if (from != after.ranks[slot]) pairs[{from, after.ranks[slot]}] += volume(t.box);
    }
  }
  return pairs;
}

Pairs counted(const std::vector<PairElements>& list) {
  Pairs pairs;
  for (const PairElements& pair : list) {
    CHECK(pair.elements > 0);
    CHECK(pairs.emplace(std::pair(pair.from, pair.to), pair.elements).second);
  }
  return pairs;
}

// Exchanges through these states on 2 x 3 ranks.
PlannedRedistribution chain(const MeshTable& meshes, const std::vector<std::string>& states, const std::vector<int64_t>& shape) {
  const auto sizes = mesh_shape(meshes.meshes[0]);
  PlannedRedistribution r;
  r.request.tensor = {shape, DType::float32};
  r.request.src = *parse_state(states.front(), sizes, shape.size());
  for (size_t i = 1; i < states.size(); ++i) {
    Step step;
    step.op = Op::exchange;
    step.mesh_dims = {{0, 1, 2}, {1, 1, 3}};
    step.state = *parse_state(states[i], sizes, shape.size());
    r.steps.push_back(step);
  }
  r.request.dst = r.steps.back().state;
  return r;
}

}  // namespace

TEST_CASE("pieces are cut along a dim that later steps leave alone, where it is wide enough") {
  MeshTable meshes;
  REQUIRE(add_root(meshes, "mesh", 6, {}, {{"a", 2}, {"b", 3}}).ok());
  const auto dim_of = [&](const std::vector<std::string>& states, const Box& box) {
    return piece_dim(piece_cut(chain(meshes, states, {120, 120})), box);
  };
  // Step 1 cuts dim 0 otherwise: a piece along it would come from, or go to, some ranks only.
  CHECK(dim_of({"RS(1)", "S(1)S(0)", "S(1)R"}, {{0, 40}, {0, 20}}) == 1);
  CHECK(dim_of({"RS(1)", "S(1)S(0)", "S(1)R"}, {{0, 40}, {0, 16}}) == 1);
  CHECK(dim_of({"RS(1)", "S(1)S(0)", "S(1)R"}, {{0, 40}, {0, 15}}) == 0);
  // One step: the longest; ties: the lowest.
  CHECK(dim_of({"RS(1)", "S(0)R"}, {{0, 40}, {0, 20}}) == 0);
  CHECK(dim_of({"RS(1)", "S(0)R"}, {{0, 20}, {0, 20}}) == 0);
  // Both are cut otherwise.
  CHECK(dim_of({"RS(1)", "S(0)R", "RS(1)"}, {{0, 30}, {0, 31}}) == 1);
  // The last step cuts both otherwise, the one before it dim 0 alone.
  CHECK(dim_of({"RS(1)", "S(0)S(1)", "RS(1)", "S(1)R"}, {{0, 40}, {0, 20}}) == 1);
  CHECK(dim_of({"RS(1)", "S(0)S(1)", "RS(1)", "S(1)R"}, {{0, 40}, {0, 15}}) == 0);
  // What is as it was again counts no more.
  CHECK(dim_of({"RS(0)", "S(0)S(1)", "RS(1)", "S(0)S(1)", "RR"}, {{0, 40}, {0, 20}}) == 1);
  // A later step that goes in no pieces does not count.
  PlannedRedistribution gathered = chain(meshes, {"RS(1)", "S(1)S(0)", "S(1)R"}, {120, 120});
  gathered.steps[1].op = Op::all_gather;
  CHECK(piece_dim(piece_cut(gathered), {{0, 40}, {0, 20}}) == 0);
}

TEST_CASE("cuts are the volumes of the boxes of every piece, and the pieces are the step") {
  MeshTable meshes;
  REQUIRE(add_root(meshes, "mesh", 6, {}, {{"a", 2}, {"b", 3}}).ok());
  Plan plan;
  plan.meshes = meshes;
  plan.topology = uniform_topology();
  const RankTable ranks = make_rank_table(plan.meshes);
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{12, 18}, {7, 5}, {1, 16}, {5003, 1}, {40, 90}}) {
    for (const auto& states : {std::vector<std::string>{"S(0)R", "S(0)S(1)", "RS(1)", "RR"},
                               {"RS(1)", "S(1)S(0)", "RR"},
                               {"S(0)[0]S(0)[1]", "S(0)[1]S(0)[0]", "S(1)R", "RS(0)"}}) {
      const PlannedRedistribution r = chain(plan.meshes, states, shape);
      const std::vector<HeldBoxes> held = held_boxes_of(plan, r, ranks);
      const PieceCut cut = piece_cut(r);
      GotBoxes got;
      for (size_t s = 0; s < r.steps.size(); ++s) {
        CHECK(goes_in_pieces(r, s));
        const auto transfers = make_transfers({&held[s], &held[s + 1], &r.steps[s], &ranks, &plan.topology, "here"});
        REQUIRE(transfers.ok());
        const auto cuts = s == 0 ? cuts_of(cut, *transfers, held[s], held[s + 1]) : cuts_of_next(got, *transfers, held[s], held[s + 1]);
        for (const int64_t pieces : {1, 2, 3, 7}) {
          Pairs together;
          for (int64_t piece = 0; piece < pieces; ++piece) {
            // All from this one on.
            Pairs rest;
            for (int64_t later = piece; later < pieces; ++later) {
              for (const auto& [pair, elements] : counted(elements_of(cuts, later, pieces))) rest[pair] += elements;
            }
            CHECK(counted(elements_of(cuts, piece, pieces, pieces - piece)) == rest);
            const StepTransfers part =
                s == 0 ? piece_of_first(cut, *transfers, piece, pieces) : piece_of_next(got, *transfers, piece, pieces);
            const Pairs listed = counted(part, held[s], held[s + 1]);
            CHECK(counted(elements_of(cuts, piece, pieces)) == listed);
            const std::vector<bool> moved = pairs_in_pieces(cuts, piece, pieces, pieces - piece);
            CHECK(std::ssize(moved) == std::ssize(elements_of(cuts, 0, pieces, pieces)));
            CHECK(std::count(moved.begin(), moved.end(), true) == std::ssize(rest));
            for (const auto& [pair, elements] : listed) together[pair] += elements;
          }
          CHECK(together == counted(*transfers, held[s], held[s + 1]));
          Pairs all;
          for (const PairElements& pair : pairs_of(*transfers, held[s], held[s + 1])) all[{pair.from, pair.to}] += pair.elements;
          CHECK(together == all);
        }
        got = s == 0 ? got_in_first(cut, *transfers) : got_in_next(got, *transfers);
      }
    }
  }
}

TEST_CASE("pieces of two phases bring every element once, and pass on only what was fetched") {
  // Units of 4 have 2, 4 and 3 of 9 ranks.
  MeshTable meshes;
  REQUIRE(add_root(meshes, "mesh", 9, {2, 3, 4, 5, 6, 7, 8, 9, 10}, {{"a", 9}}).ok());
  Plan plan;
  plan.meshes = meshes;
  plan.topology.levels = {{"host", 4, 100'000, 0, 0}, {"all", 1'048'576, 10'000, 0, 0}};
  const RankTable ranks = make_rank_table(plan.meshes);
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{18, 4}, {7, 5}, {100}, {3, 1, 2}}) {
    PlannedRedistribution r;
    r.request.tensor = {shape, DType::float32};
    const std::vector<int64_t> sizes{9};
    r.request.src = *parse_state("S(0)", sizes, shape.size());
    r.request.dst = *parse_state("R", sizes, shape.size());
    Step step;
    step.op = Op::exchange;
    step.phases = 2;
    step.mesh_dims = {{0, 1, 9}};
    step.state = r.request.dst;
    r.steps.push_back(step);
    const std::vector<HeldBoxes> held = held_boxes_of(plan, r, ranks);
    const auto transfers = make_transfers({&held[0], &held[1], &r.steps[0], &ranks, &plan.topology, "here"});
    REQUIRE(transfers.ok());
    REQUIRE_FALSE(transfers->first_phase.empty());
    for (const int64_t parts : {1, 2, 3, 5}) {
      // By slot and index: how often it came so far.
      std::map<std::pair<size_t, std::vector<int64_t>>, int> came;
      for (int64_t part = 0; part < parts; ++part) {
        for (const int phase : {1, 2}) {
          const StepTransfers now = part_of_phase(*transfers, phase, part, parts);
          const auto before = came;
          for (size_t slot = 0; slot < now.slots.size(); ++slot) {
            for (const Transfer& t : now.slots[slot].transfers) {
              CHECK((phase == 2 || !t.fetched));
              for (int64_t i = 0; i < volume(t.box); ++i) {
                const std::vector<int64_t> index = index_at(t.box, i);
                ++came[{slot, index}];
                if (t.fetched) CHECK(before.contains({static_cast<size_t>(t.from), index}));
              }
            }
          }
          const auto cuts = cuts_of_phase(*transfers, phase, held[0], held[1]);
          Pairs listed;
          for (const PairElements& pair : pairs_of(now, held[0], held[1])) listed[{pair.from, pair.to}] += pair.elements;
          CHECK(counted(elements_of(cuts, part, parts)) == listed);
        }
      }
      size_t wanted = 0;
      for (int64_t slot = 0; slot < 9; ++slot) wanted += static_cast<size_t>(volume(box_of_slot(held[1], slot)));
      CHECK(came.size() == wanted);
      for (const auto& [where, times] : came) CHECK(times == 1);
    }
  }
}

TEST_CASE("two phases behind steps in pieces pass on what came in the same piece, and wait for nothing else") {
  // Units of 4 have 2, 4 and 3 of 9 ranks.
  MeshTable meshes;
  REQUIRE(add_root(meshes, "mesh", 9, {2, 3, 4, 5, 6, 7, 8, 9, 10}, {{"a", 9}}).ok());
  Plan plan;
  plan.meshes = meshes;
  plan.topology.levels = {{"host", 4, 100'000, 0, 0}, {"all", 1'048'576, 10'000, 0, 0}};
  const RankTable ranks = make_rank_table(plan.meshes);
  const std::vector<int64_t> sizes{9};
  using Place = std::pair<size_t, std::vector<int64_t>>;  // slot after the step, and index
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{18, 36}, {7, 5}, {3, 1, 11}}) {
    PlannedRedistribution r;
    r.request.tensor = {shape, DType::float32};
    r.request.src = *parse_state("S(" + std::to_string(shape.size() - 1) + ")", sizes, shape.size());
    for (const char* state : {"S(0)", "R"}) {
      Step step;
      step.op = Op::exchange;
      step.mesh_dims = {{0, 1, 9}};
      step.state = *parse_state(state, sizes, shape.size());
      r.steps.push_back(step);
    }
    CHECK_FALSE(phases_go_in_pieces(r, 1));
    r.steps[1].phases = 2;
    r.request.dst = std::as_const(r.steps).back().state;
    CHECK(phases_go_in_pieces(r, 1));
    CHECK_FALSE(phases_go_in_pieces(r, 0));
    CHECK_FALSE(phases_go_in_pieces(r, 2));
    const std::vector<HeldBoxes> held = held_boxes_of(plan, r, ranks);
    std::vector<StepTransfers> whole;
    for (size_t s = 0; s < 2; ++s) {
      const auto made = make_transfers({&held[s], &held[s + 1], &std::as_const(r.steps)[s], &ranks, &plan.topology, "here"});
      REQUIRE(made.ok());
      whole.push_back(*made);
    }
    const PieceCut cut = piece_cut(r);
    const GotBoxes got = got_in_first(cut, whole[0]);
    const StepTransfers fetching = phase_as_step(whole[1], 1);
    const StepTransfers passing = phase_as_step(whole[1], 2);
    const GotBoxes fetched = got_in_next(got, fetching);
    for (const int64_t pieces : {1, 2, 3, 5}) {
      std::map<Place, int> came;
      for (int64_t piece = 0; piece < pieces; ++piece) {
        std::map<Place, int> here;  // of this piece: before the step, then after it
        std::map<Place, int> now;
        const auto bring = [&](const StepTransfers& part, const std::map<Place, int>* had, std::map<Place, int>& to) {
          for (size_t slot = 0; slot < part.slots.size(); ++slot) {
            for (const Transfer& t : part.slots[slot].transfers) {
              for (int64_t i = 0; i < volume(t.box); ++i) {
                const std::vector<int64_t> index = index_at(t.box, i);
                if (had != nullptr) CHECK(had->contains({static_cast<size_t>(t.from), index}));
                ++to[{slot, index}];
              }
            }
          }
        };
        bring(piece_of_first(cut, whole[0], piece, pieces), nullptr, here);
        const StepTransfers first = piece_of_next(got, fetching, piece, pieces);
        bring(first, &here, now);
        const std::map<Place, int> before = now;
        const StepTransfers second = piece_of_next(fetched, passing, piece, pieces);
        bring(second, &before, now);
        for (const auto& [place, times] : now) came[place] += times;
        CHECK(counted(elements_of(cuts_of_next(got, fetching, held[1], held[2]), piece, pieces)) == counted(first, held[1], held[2]));
        CHECK(counted(elements_of(cuts_of_next(fetched, passing, held[2], held[2]), piece, pieces)) == counted(second, held[2], held[2]));
      }
      size_t wanted = 0;
      for (int64_t slot = 0; slot < 9; ++slot) wanted += static_cast<size_t>(volume(box_of_slot(held[2], slot)));
      CHECK(came.size() == wanted);
      for (const auto& [place, times] : came) CHECK(times == 1);
    }
  }
}

}  // namespace meshplan
