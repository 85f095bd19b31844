// Where the data of a picture comes from: per step, what each rank that is shown receives from
// which rank.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "render/grid.h"

namespace meshplan {

constexpr int64_t max_sender_ranks = 1024;     // of the plan; above, no step is listed
constexpr size_t max_sender_transfers = 4096;  // of a step; above, the step is not listed

struct Received {
  int64_t from = 0;  // global id
  std::string box;   // "[0:4]"
  int64_t bytes = 0;
  int64_t phase = 1;
};

struct StepSenders {
  // By receiver, in the order of transfer/listed_transfers.h; what a rank keeps is not among them.
  std::map<int64_t, std::vector<Received>> into;
  std::string left_out;  // why nothing is listed; "": it is
};

// One entry a step. `shown[i]`: the grid after step i.
[[nodiscard]] std::vector<StepSenders> senders_of(const Plan& plan, const PlannedRedistribution& r,
                                                  const std::vector<Grid>& shown);
// "receives [4:8] from rank 1 (16 B), ...", the first few; "" where it receives nothing.
[[nodiscard]] std::string received_text(const StepSenders& senders, int64_t rank);

}  // namespace meshplan
