#include "transfer/exchange_digits.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "../cost/all_states.h"
#include "transfer/list_exchange.h"

using namespace meshplan;

namespace {

Topology levels_of(const std::vector<int64_t>& ranks) {
  Topology t;
  int64_t speed = 400'000;
  for (int64_t r : ranks) {
    t.levels.push_back({"l", r, speed, 10'000, 500, 100});
    speed /= 8;
  }
  return t;
}

Mesh mesh_of(const std::vector<int64_t>& sizes) {
  std::vector<std::pair<std::string, int64_t>> dims;
  for (size_t i = 0; i < sizes.size(); ++i) dims.emplace_back(std::string(1, static_cast<char>('a' + i)), sizes[i]);
  auto mesh = make_mesh("mesh", dims);
  REQUIRE(mesh.ok());
  return *mesh;
}

Mesh transposed_mesh_of(std::vector<int64_t> sizes) {
  std::reverse(sizes.begin(), sizes.end());
  Mesh mesh = mesh_of(sizes);
  std::reverse(mesh.dims.begin(), mesh.dims.end());
  return mesh;
}

bool same_pending(const State& a, const State& b) { return a.partial == b.partial; }

// dst's pending atoms are pending in src, too.
bool reduces_to(const State& src, const State& dst) {
  for (const PendingAtom& p : dst.partial) {
    if (std::find(src.partial.begin(), src.partial.end(), p) == src.partial.end()) return false;
  }
  return true;
}

struct World {
  std::vector<int64_t> sizes;
  std::vector<int64_t> units;
  bool transposed = false;  // sizes from the dim of the smallest stride on: ids do not ascend with the mesh
};
const std::vector<World> worlds{{{2, 4}, {1024}},
                                {{2, 4}, {4, 1024}},
                                {{2, 4}, {2, 1024}},
                                {{4, 2}, {2, 1024}},
                                {{2, 2, 2}, {2, 1024}},
                                {{2, 2, 2}, {4, 1024}},
                                {{2, 2, 2}, {2, 4, 1024}},
                                {{4, 2, 2}, {4, 1024}},
                                {{4, 2, 2}, {2, 1024}},
                                {{2, 2, 4}, {4, 1024}},
                                {{2, 4, 2}, {4, 8, 1024}},
                                {{3, 2, 2}, {4, 1024}},
                                {{2, 3, 2}, {6, 1024}},
                                {{2, 3, 2}, {2, 1024}},
                                {{2, 2, 2}, {4, 1024}, true},
                                {{2, 2, 4}, {4, 1024}, true},
                                {{2, 2, 3}, {2, 4, 1024}, true}};

// Calls visit(problem, question) for pairs of states of every world and shape; every state takes
// part on either side.
template <class Visitor>
void for_each_pair(const std::vector<std::vector<int64_t>>& shapes, size_t step_of_many, Visitor&& visit,
                   const std::vector<World>& in = worlds) {
  for (const World& w : in) {
    const Mesh mesh = w.transposed ? transposed_mesh_of(w.sizes) : mesh_of(w.sizes);
    const Topology topology = levels_of(w.units);
    const LevelMap levels(mesh, topology);
    REQUIRE(levels.regular());
    const auto states = all_states(w.sizes, 2, {ReduceOp::sum});
    const size_t step = states.size() > 100 ? step_of_many : 3;
    for (const std::vector<int64_t>& shape : shapes) {
      for (size_t i = 0; i < states.size(); ++i) {
        for (size_t j = i % step; j < states.size(); j += step) {
          if (i == j || !reduces_to(states[i], states[j])) continue;
          const auto problem = align_digits(levels, shape, 4, states[i], states[j]);
          if (!problem) continue;
          CAPTURE(to_text(states[i], w.sizes));
          CAPTURE(to_text(states[j], w.sizes));
          CAPTURE(w.units[0]);
          CAPTURE(shape[0]);
          visit(*problem, ListQuestion{&levels, nullptr, shape, 4, &states[i], &states[j], 1 << 20});
        }
      }
    }
  }
}

void check_same(const ExchangeTraffic& digits, const ExchangeTraffic& listed) {
  REQUIRE(digits.wire_bytes == listed.wire_bytes);
  REQUIRE(digits.received == listed.received);
  for (size_t p = 0; p < 2; ++p) {
    CAPTURE(p);
    REQUIRE(digits.phase[p].bytes == listed.phase[p].bytes);
    REQUIRE(digits.phase[p].peers == listed.phase[p].peers);
  }
  if (digits.sent_is_known) REQUIRE(digits.sent_bytes == listed.sent_bytes);
}

// Of two phases: the same, or where not exact at most what is listed, and not far below.
void check_near(const ExchangeTraffic& digits, const ExchangeTraffic& listed) {
  if (digits.exact) return check_same(digits, listed);
  REQUIRE(digits.wire_bytes == listed.wire_bytes);
  REQUIRE(digits.sent_bytes <= listed.sent_bytes);
  for (size_t p = 0; p < 2; ++p) {
    CAPTURE(p);
    const Traffic& least = digits.phase[p];
    const Traffic& all = listed.phase[p];
    REQUIRE(digits.received[p] <= listed.received[p]);
    for (size_t l = 0; l < max_levels; ++l) {
      CAPTURE(l);
      REQUIRE(least.bytes[l] * all.denominator <= all.bytes[l] * least.denominator);
      REQUIRE(least.peers[l] <= all.peers[l]);
      REQUIRE(3 * least.bytes[l] * all.denominator >= 2 * all.bytes[l] * least.denominator);
    }
  }
}

}  // namespace

TEST_CASE("one phase in closed form equals the listing of every piece") {
  int64_t compared = 0;
  int64_t below = 0;
  for_each_pair({{48, 48}, {24, 12}}, 11, [&](const DigitProblem& problem, const ListQuestion& q) {
    const auto listed = list_exchange(q);
    REQUIRE(listed);
    const int levels = q.levels->levels();
    check_same(digits_one_phase(problem.world, problem.change, levels, ExchangeCut::even), listed->even);
    const ExchangeTraffic whole = digits_one_phase(problem.world, problem.change, levels, ExchangeCut::whole);
    const ExchangeTraffic whole_listed = listed->whole.value_or(listed->even);
    ++compared;
    TurnTable table;
    const MostTurns* turns = table.find(*q.levels, problem.world, problem.change, 1 << 20);
    REQUIRE(turns != nullptr);
    // What the mesh remembers saves no question its steps; what the question asked before does.
    TurnTable again;
    REQUIRE(again.find(*q.levels, problem.world, problem.change, 1 << 20) == turns);
    REQUIRE(again.steps() == table.steps());
    REQUIRE(again.find(*q.levels, problem.world, problem.change, 1 << 20) == turns);
    REQUIRE(again.steps() == table.steps());
    check_same(digits_whole_pieces(problem.world, problem.change, levels, *turns), whole_listed);
    if (whole.exact) {
      check_same(whole, whole_listed);
      return;
    }
    ++below;
    for (size_t l = 0; l < max_levels; ++l) {
      REQUIRE(whole.phase[0].bytes[l] <= whole_listed.phase[0].bytes[l]);
      REQUIRE(whole.phase[0].peers[l] <= whole_listed.phase[0].peers[l]);
    }
  });
  MESSAGE(compared << " pairs compared, " << below << " of whole pieces only from below");
  CHECK(below * 10 < compared);
  CHECK(compared > 5000);
}

TEST_CASE("two phases in closed form equal the listing of every piece") {
  int64_t compared = 0;
  int64_t below = 0;
  int64_t listed_only = 0;
  for_each_pair({{48, 48}, {24, 12}}, 11, [&](const DigitProblem& problem, const ListQuestion& q) {
    if (!same_pending(*q.src, *q.dst)) return;
    const auto digits = digits_two_phases(problem.world, problem.change, q.levels->levels());
    if (!digits) {
      ++listed_only;
      return;
    }
    const auto listed = list_exchange_in_two_phases(q);
    REQUIRE(listed);
    check_near(*digits, *listed);
    digits->exact ? ++compared : ++below;
  });
  MESSAGE(compared << " pairs compared, " << below << " only from below, " << listed_only << " have no closed form");
  CHECK(compared > 1000);
}

TEST_CASE("two phases that members share unevenly are told from below") {
  const std::vector<World> many{{{32, 4}, {4, 1024}},    {{20, 3}, {3, 1024}},       {{2, 16, 4}, {4, 1024}},      {{18, 2, 2}, {4, 1024}},
                                {{2, 32, 4}, {8, 1024}}, {{4, 32}, {4, 1024}, true}, {{3, 2, 16}, {6, 1024}, true}};
  int64_t compared = 0;
  int64_t below = 0;
  for_each_pair(
      {{192, 640}, {360, 72}}, 7,
      [&](const DigitProblem& problem, const ListQuestion& q) {
        if (!same_pending(*q.src, *q.dst)) return;
        const auto digits = digits_two_phases(problem.world, problem.change, q.levels->levels());
        if (!digits) return;
        const auto listed = list_exchange_in_two_phases(q);
        REQUIRE(listed);
        check_near(*digits, *listed);
        digits->exact ? ++compared : ++below;
      },
      many);
  MESSAGE(compared << " pairs compared, " << below << " only from below");
  CHECK(below > 50);
}

// lib/transfer/README.md, "Closed forms", and lib/transfer/exchange_digits.h, two_phase_digits.cc.
TEST_CASE("closed forms of hosts of 4, a 2 x b 4, 8 elements of 4 B") {
  const std::vector<int64_t> sizes{2, 4};
  const Mesh mesh = mesh_of(sizes);
  const Topology topology = levels_of({4, 1024});
  const LevelMap levels(mesh, topology);
  const std::vector<int64_t> shape{8};
  const auto aligned = [&](std::string_view from) {
    const auto src = parse_state(from, sizes, 1);
    const auto dst = parse_state("RR", sizes, 1);
    REQUIRE(src.ok());
    REQUIRE(dst.ok());
    return align_digits(levels, shape, 4, *src, *dst);
  };
  const auto inside = aligned("RS(0)");
  REQUIRE(inside);
  const auto on_b = digits_one_phase(inside->world, inside->change, 2, ExchangeCut::even);
  CHECK(on_b.phase[0].bytes[0] == 24);
  CHECK(on_b.phase[0].peers[0] == 3);
  CHECK(on_b.phase[0].bytes[1] == 0);
  const auto across = aligned("S(0)R");
  REQUIRE(across);
  const auto on_a = digits_one_phase(across->world, across->change, 2, ExchangeCut::even);
  CHECK(on_a.phase[0].bytes[0] == 0);
  CHECK(on_a.phase[0].bytes[1] == 16);
  CHECK(on_a.phase[0].peers[1] == 4);
  const auto two = digits_two_phases(across->world, across->change, 2);
  REQUIRE(two);
  CHECK(two->phase[0].bytes[1] == 4);
  CHECK(two->phase[0].peers[1] == 1);
  CHECK(two->phase[1].bytes[0] == 12);
  CHECK(two->phase[1].peers[0] == 3);
}
