// What sets of ranks must take in and give away: of a rank alone the same as of a set of one.
#include "cost/set_needs.h"

#include <doctest/doctest.h>

#include "all_states.h"
#include "small_mesh.h"

using namespace meshplan;

TEST_CASE("a rank alone needs what a set of it needs") {
  int asked = 0;
  int crossed = 0;
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{2, 2}, {3, 2}, {2, 2, 2}}) {
    const Mesh mesh = test::mesh_of(sizes);
    const auto states = all_states(sizes, 2, {ReduceOp::sum});
    for (const std::vector<int64_t>& shape : {std::vector<int64_t>{12, 4}, {5, 7}, {1, 3}, {0, 4}}) {
      for (size_t i = 0; i < states.size(); ++i) {
        for (size_t j = i % 3; j < states.size(); j += 3) {
          const Participants all = list_participants(mesh, mesh, 0, shape, states[i], states[j]);
          SetNeeds alone(all);
          SetNeeds sets(all);
          for (int32_t rank = 0; rank < std::ssize(all.ranks); ++rank) {
            const SetNeed one = alone.of_rank(rank);
            const SetNeed set = sets.of({&rank, 1});
            ++asked;
            crossed += one.in > 0 && one.out > 0 ? 1 : 0;
            CAPTURE(to_text(states[i], sizes));
            CAPTURE(to_text(states[j], sizes));
            REQUIRE(one.in == set.in);
            REQUIRE(one.out == set.out);
            REQUIRE(one.contributions == set.contributions);
            REQUIRE(one.holds == set.holds);
            REQUIRE(one.wants == set.wants);
          }
          REQUIRE(alone.take_wanting() == sets.take_wanting());
        }
      }
    }
  }
  CHECK(asked > 10'000);
  CHECK(crossed > 1'000);
}
