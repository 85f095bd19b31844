#include "transfer/exchange_digits.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "../cost/all_states.h"
#include "../verify/random_world.h"
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

// The same ranks in another order within each unit of so many.
Mesh mixed_within(const Mesh& mesh, int64_t unit_ranks, test::Random& random) {
  Mesh mixed = mesh;
  std::vector<int64_t> ranks(static_cast<size_t>(mesh.universe->world));
  std::iota(ranks.begin(), ranks.end(), int64_t{0});
  std::vector<int64_t> unit;
  for (size_t at = 0; at < ranks.size(); at += unit.size()) {
    const auto begin = ranks.begin() + static_cast<std::ptrdiff_t>(at);
    unit.assign(begin, begin + std::min<int64_t>(unit_ranks, ranks.end() - begin));
    random.shuffle(unit);
    std::copy(unit.begin(), unit.end(), begin);
  }
  mixed.universe = std::make_shared<const Universe>(Universe{mesh.universe->world, std::move(ranks)});
  return mixed;
}

Mesh transposed_mesh_of(std::vector<int64_t> sizes) {
  std::reverse(sizes.begin(), sizes.end());
  Mesh mesh = mesh_of(sizes);
  std::reverse(mesh.dims.begin(), mesh.dims.end());
  return mesh;
}

bool same_pending(const State& a, const State& b) { return a.partial == b.partial; }

// dst's pending sub-axes are pending in src, too.
bool reduces_to(const State& src, const State& dst) {
  for (const PendingSubAxis& p : dst.partial) {
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

// Both cuts. Whether whole pieces are told exactly without their turns.
bool check_one_phase(const DigitProblem& problem, const ListQuestion& q) {
  const auto listed = list_exchange(q);
  REQUIRE(listed);
  const int levels = q.levels->levels();
  check_same(digits_one_phase(problem.world, problem.change, levels, ExchangeCut::even), listed->even);
  const ExchangeTraffic whole = digits_one_phase(problem.world, problem.change, levels, ExchangeCut::whole);
  const ExchangeTraffic whole_listed = listed->whole.value_or(listed->even);
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
    return true;
  }
  for (size_t l = 0; l < max_levels; ++l) {
    REQUIRE(whole.phase[0].bytes[l] <= whole_listed.phase[0].bytes[l]);
    REQUIRE(whole.phase[0].peers[l] <= whole_listed.phase[0].peers[l]);
  }
  return false;
}

// Up to 512 ranks, of which a unit of each level has a part.
World random_world(test::Random& random) {
  World w;
  int64_t ranks = 1;
  for (int64_t dims = 1 + random.below(5); dims > 0; --dims) {
    int64_t size = random.pick(std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 18, 24, 32});
    if (ranks * size > 512) size = 1;
    ranks *= size;
    w.sizes.push_back(size);
  }
  int64_t unit = 1;
  for (int64_t level = random.below(3); level > 0; --level) {
    unit *= random.pick(std::vector<int64_t>{2, 3, 4, 5, 6, 7, 8, 12, 16});
    w.units.push_back(unit);
  }
  w.units.push_back(1024);
  w.transposed = random.one_in(3);
  return w;
}

}  // namespace

TEST_CASE("one phase in closed form equals the listing of every piece") {
  int64_t compared = 0;
  int64_t below = 0;
  for_each_pair({{48, 48}, {24, 12}}, 11, [&](const DigitProblem& problem, const ListQuestion& q) {
    ++compared;
    if (!check_one_phase(problem, q)) ++below;
  });
  MESSAGE(compared << " pairs compared, " << below << " of whole pieces only from below");
  CHECK(below * 10 < compared);
  CHECK(compared > 5000);
}

TEST_CASE("two phases in closed form equal the listing of every piece") {
  int64_t compared = 0;
  int64_t in_laps = 0;
  int64_t listed_only = 0;
  for_each_pair({{48, 48}, {24, 12}}, 11, [&](const DigitProblem& problem, const ListQuestion& q) {
    if (!same_pending(*q.src, *q.dst)) return;
    for (const Fetchers fetchers : {Fetchers::wanting, Fetchers::wanting_in_laps}) {
      const auto digits = digits_two_phases(problem.world, problem.change, q.levels->levels(), laps_of(fetchers));
      if (!digits) {
        ++listed_only;
        continue;
      }
      ListQuestion by = q;
      by.fetchers = fetchers;
      const auto listed = list_exchange_in_two_phases(by);
      REQUIRE(listed);
      check_same(*digits, *listed);
      ++(fetchers == Fetchers::wanting ? compared : in_laps);
    }
  });
  MESSAGE(compared << " pairs compared, " << in_laps << " in laps, " << listed_only << " have no closed form");
  CHECK(compared > 1000);
  CHECK(in_laps > 1000);
}

TEST_CASE("two phases that members share unevenly, in parts of two sizes") {
  const std::vector<World> many{{{32, 4}, {4, 1024}},    {{20, 3}, {3, 1024}},       {{2, 16, 4}, {4, 1024}},      {{18, 2, 2}, {4, 1024}},
                                {{2, 32, 4}, {8, 1024}}, {{4, 32}, {4, 1024}, true}, {{3, 2, 16}, {6, 1024}, true}};
  int64_t compared = 0;
  int64_t uneven = 0;
  for_each_pair(
      {{192, 640}, {360, 72}}, 7,
      [&](const DigitProblem& problem, const ListQuestion& q) {
        if (!same_pending(*q.src, *q.dst)) return;
        for (const Fetchers fetchers : {Fetchers::wanting, Fetchers::wanting_in_laps}) {
          const auto digits = digits_two_phases(problem.world, problem.change, q.levels->levels(), laps_of(fetchers));
          if (!digits) continue;
          ListQuestion by = q;
          by.fetchers = fetchers;
          const auto listed = list_exchange_in_two_phases(by);
          REQUIRE(listed);
          check_same(*digits, *listed);
          digits->sent_is_known ? ++compared : ++uneven;
        }
      },
      many);
  MESSAGE(compared << " pairs compared, and " << uneven << " shared unevenly");
  CHECK(uneven > 50);
}

// A tensor of up to three dims that both states cut evenly, into pieces of any extents.
std::vector<int64_t> even_shape(test::Random& random, const State& src, const State& dst) {
  std::vector<int64_t> shape;
  for (size_t d = 0; d < src.shards.size(); ++d) {
    int64_t parts = 1;
    for (const State* state : {&src, &dst}) {
      int64_t product = 1;
      for (const SubAxis& sub_axis : state->shards[d]) product *= sub_axis.size;
      parts = std::lcm(parts, product);
    }
    shape.push_back(parts * (1 + random.below(12)));
  }
  return shape;
}

// What is pending in src is so in dst, too.
void stay_pending(const State& src, State& dst) {
  dst.partial = src.partial;
  for (auto& list : dst.shards) {
    std::erase_if(list, [&](const SubAxis& sub_axis) {
      return std::any_of(dst.partial.begin(), dst.partial.end(), [&](const PendingSubAxis& p) { return p.sub_axis == sub_axis; });
    });
  }
}

// Every closed form equals the listing, or, of whole pieces, is at most it where it says so.
TEST_CASE("random worlds in closed form: dims of size 1, odd pieces, one to three levels, ranks in any order within units") {
  test::Random random(22);
  int64_t even = 0;
  int64_t uneven = 0;
  for (int64_t tried = 0; tried < 60'000; ++tried) {
    const World w = random_world(random);
    Mesh mesh = w.transposed ? transposed_mesh_of(w.sizes) : mesh_of(w.sizes);
    if (random.one_in(3)) mesh = mixed_within(mesh, w.units.front(), random);
    const Topology topology = levels_of(w.units);
    const LevelMap levels(mesh, topology);
    if (!levels.regular()) continue;
    const size_t rank = 1 + static_cast<size_t>(random.below(3));
    const std::vector<int64_t> sizes = mesh_shape(mesh);
    const State src = test::random_state(random, sizes, rank, 0, 2);
    State dst = test::random_state(random, sizes, rank, 0, 2);
    if (random.one_in(2)) stay_pending(src, dst);
    if (!reduces_to(src, dst)) continue;
    const std::vector<int64_t> shape = even_shape(random, src, dst);
    const auto problem = align_digits(levels, shape, 4, src, dst);
    if (!problem) continue;
    CAPTURE(tried);
    CAPTURE(to_text(src, sizes));
    CAPTURE(to_text(dst, sizes));
    const ListQuestion q{&levels, nullptr, shape, 4, &src, &dst, 1 << 20};
    check_one_phase(*problem, q);
    if (!same_pending(src, dst)) continue;
    ListQuestion by = q;
    by.fetchers = random.one_in(2) ? Fetchers::wanting : Fetchers::wanting_in_laps;
    if (const auto digits = digits_two_phases(problem->world, problem->change, levels.levels(), laps_of(*by.fetchers))) {
      const auto listed = list_exchange_in_two_phases(by);
      REQUIRE(listed);
      check_same(*digits, *listed);
      digits->sent_is_known ? ++even : ++uneven;
    }
  }
  MESSAGE(even << " two phases the same, and " << uneven << " shared unevenly");
  CHECK(even > 2000);
  CHECK(uneven > 20);
}

// Many digits that change places, in paths and in cycles of any length.
TEST_CASE("two phases in closed form where up to twelve digits are crossed") {
  test::Random random(29);
  const std::vector<int64_t> sizes(12, 2);
  const Mesh mesh = mesh_of(sizes);
  int known = 0;
  int many = 0;
  for (int tried = 0; tried < 150; ++tried) {
    const Topology topology = levels_of({int64_t{2} << random.below(5), 1 << 20});
    const LevelMap levels(mesh, topology);
    // Every dim shards before and after, but for some that do so on one side only.
    std::vector<int32_t> dims(sizes.size());
    std::iota(dims.begin(), dims.end(), 0);
    State src;
    State dst;
    for (State* state : {&src, &dst}) {
      state->shards.resize(2);
      for (size_t i = dims.size() - 1; i > 0; --i) std::swap(dims[i], dims[static_cast<size_t>(random.below(static_cast<int64_t>(i) + 1))]);
      const auto left_out = static_cast<size_t>(random.below(3));
      for (size_t i = left_out; i < dims.size(); ++i) state->shards[i % 2].push_back({dims[i], 1, 2});
    }
    const std::vector<int64_t> shape = even_shape(random, src, dst);
    const auto problem = align_digits(levels, shape, 4, src, dst);
    if (!problem) continue;
    const auto digits = digits_two_phases(problem->world, problem->change, levels.levels(), 1);
    if (!digits) continue;
    ListQuestion by{&levels, nullptr, shape, 4, &src, &dst, 1 << 24};
    by.fetchers = Fetchers::wanting;
    const auto listed = list_exchange_in_two_phases(by);
    REQUIRE(listed);
    CAPTURE(to_text(src, sizes));
    CAPTURE(to_text(dst, sizes));
    check_same(*digits, *listed);
    ++known;
    many += problem->change.crossed > 5 ? 1 : 0;
  }
  CHECK(known > 50);
  CHECK(many > 30);
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
