// A prepared step: buffers, packing, calls (two or more in two phases), unpacking. Running it
// allocates nothing and makes no decisions.
//
// A part that is contiguous in its box is sent from and received into the box directly; all others
// go through staging buffers.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "replay/communicator.h"
#include "replay/device.h"
#include "transfer/step_transfers.h"

namespace meshplan {

// Local work of every local rank, then a call.
struct Phase {
  std::vector<std::vector<LocalOp>> work;  // by local rank number
  std::optional<Call> call;
};

struct PreparedStep {
  std::vector<Phase> phases;  // the last may have no call
  // by slot: the new box of local ranks; null for others
  std::vector<std::byte*> after;
  std::vector<std::unique_ptr<const std::vector<int32_t>>> groups;  // owns the groups of the calls
  // size of the new local boxes, an estimate of the work
  int64_t local_bytes = 0;
};

// What a staging buffer holds.
enum class StagingUse : uint8_t {
  packed,  // what is sent or was received
  cast,    // data in the dtype of the reduction
};

struct PrepareQuestion {
  const HeldBoxes* before = nullptr;
  const HeldBoxes* after = nullptr;
  const StepTransfers* transfers = nullptr;
  DType dtype = DType::float32;
  std::optional<DType> reduce_dtype;
  const std::vector<std::byte*>* held = nullptr;  // by slot before; null where not local
  // replay rank -> number among the local ranks; -1: elsewhere
  const std::vector<int32_t>* local_number = nullptr;
  int64_t locals = 0;
  Device* device = nullptr;
  std::string place;
  // Where given, by slot after: the new boxes, which are then not allocated.
  const std::vector<std::byte*>* into = nullptr;
  // Where given, staging comes from here, else from the device.
  std::function<Result<std::byte*>(int32_t rank, int64_t bytes, StagingUse use)> stage;
};
[[nodiscard]] Result<PreparedStep> prepare_step(const PrepareQuestion& question);

}  // namespace meshplan
