// The work of exchanges priced rank by rank on one mesh or across two: what was listed, not what
// was remembered.
#pragma once

#include <cstdint>

#include "search/work.h"
#include "transfer/level_map.h"
#include "transfer/list_exchange.h"

namespace meshplan {

class ListingWork {
 public:
  // `levels`: of the source mesh.
  explicit ListingWork(const LevelMap& levels) : levels_(levels), before_(counted()) {}
  // Units since then.
  [[nodiscard]] int64_t since() const { return counted() - before_; }

 private:
  [[nodiscard]] int64_t counted() const {
    const ListingMemory& listings = levels_.listings();
    return listings.ranks * work::listed_rank + listings.looked * work::listed;
  }
  const LevelMap& levels_;
  int64_t before_;
};

}  // namespace meshplan
