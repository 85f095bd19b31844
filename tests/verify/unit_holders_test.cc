// What is looked up of a unit against the search among all holders.
#include "verify/unit_holders.h"

#include <doctest/doctest.h>

#include <array>
#include <vector>

#include "base/seed.h"
#include "verify/random_levels.h"
#include "verify/random_world.h"

namespace meshplan {
namespace {

using test::Random;
using verification::ListedRank;
using verification::Listing;
using verification::NearestHolders;
using verification::UnitHolders;

TEST_CASE("holders looked up in a unit are the nearest ones to each of its ranks") {
  Random random(test::seed_or(20261127));
  std::array<int64_t, 3> at_level{};
  for (int64_t round = 0; round < test::rounds_or(1'000); ++round) {
    test::WorldOptions options;
    options.dim_sizes = {2, 3, 4, 5, 8};
    options.max_world = 96;
    options.permuted_ranks = random.one_in(3);
    const MeshTable table = test::random_table(random, options);
    const Mesh& mesh = table.meshes.front();
    const Request request = test::random_request(random, table, 2);
    const Topology topology = test::random_levels(random, 400'000);
    verification::ExchangeView view;
    view.topology = &topology;
    view.src_mesh = view.dst_mesh = &mesh;
    view.shape = request.tensor.shape;
    view.src = &request.src;
    view.dst = &request.dst;
    auto listing = Listing::of(view);
    if (!listing) continue;
    listing->list_copy(0);
    UnitHolders holders(*listing);
    std::vector<size_t> order;
    for (size_t i = 0; i < listing->ranks().size(); ++i) order.push_back(i);
    if (random.one_in(2)) random.shuffle(order);
    for (const size_t i : order) {
      const ListedRank& rank = listing->ranks()[i];
      holders.enter(i);
      listing->each_part(rank, [&](size_t shard, int64_t, int64_t) {
        const NearestHolders right = listing->nearest(shard, rank.id);
        const NearestHolders found = holders.nearest(shard);
        if (found.level != right.level || found.first != right.first || found.count != right.count)
          FAIL_CHECK("round " << round << ", rank " << rank.id << ", shard " << shard << ": level " << found.level << ", " << found.count
                              << " from place " << found.first << "; really level " << right.level << ", " << right.count << " from "
                              << right.first);
        if (right.level < at_level.size()) ++at_level[right.level];
      });
    }
  }
  for (const int64_t looked : at_level) CHECK(looked > test::rounds_or(1'000));
}

}  // namespace
}  // namespace meshplan
