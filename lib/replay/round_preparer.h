// Prepares one round of a bundle into its wave.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "replay/bundle_inside.h"

namespace meshplan {

class RoundPreparer {
 public:
  RoundPreparer(BundleRun::Inside& bundle, size_t round, PreparedWave& wave)
      : in_(bundle), round_(round), wave_(wave), facts_(bundle.rounds[round]) {}
  // Phase 0 of the wave packs and calls, the phases after it unpack.
  Status prepare();

 private:
  using Pair = std::pair<int32_t, int32_t>;  // local replay rank, peer
  // A box of a message, with its address at the local end.
  struct Boxed {
    const Box* box = nullptr;
    DType dtype = DType::float32;
    std::byte* data = nullptr;  // of the buffer that it is in, or goes to
    const Box* whole = nullptr;
    bool combines = false;  // with what an earlier contribution brought
    ReduceOp op = ReduceOp::sum;
    int32_t contribution = 0;
  };
  // A step of one tensor.
  struct Target {
    const BundleTensor* tensor = nullptr;
    size_t step = 0;
    const StepTransfers* transfers = nullptr;
    DType dtype = DType::float32;  // on the wire
    std::vector<std::byte*> from;  // by slot before, in that dtype
    std::vector<std::byte*> to;    // by slot after
  };
  struct Unpack {
    int32_t rank = 0;
    Boxed boxed;
    const std::byte* from = nullptr;
    const Box* from_box = nullptr;
  };

  Status prepare_exchange();
  Status prepare_collective();
  Result<Target> target_of(size_t tensor, size_t step, const StepTransfers& transfers);
  void add_boxes(const Target& target);
  void count_pairs(const RoundPart& part, const StepTransfers& transfers, int64_t tensors);
  void add_prepared(PreparedStep&& step);
  Status make_messages();
  void unpack_all();
  void finish(const Target& target);
  Result<std::byte*> stage(int32_t rank, int64_t bytes, StagingUse use);

  [[nodiscard]] int32_t number(int32_t rank) const { return in_.local_number[rank]; }
  WavePhase& phase(size_t at);
  void copy(size_t phase, int32_t rank, const Boxed& boxed, const std::byte* from,
            const Box& from_box, std::byte* to, const Box& to_box);
  void combine(int32_t rank, const Boxed& boxed, const std::byte* from, const Box& from_box);

  BundleRun::Inside& in_;
  size_t round_;
  PreparedWave& wave_;
  RoundFacts& facts_;
  std::map<Pair, std::vector<Boxed>> sends_;
  std::map<Pair, std::vector<Boxed>> receives_;
  std::vector<Unpack> unpacks_;
  std::map<Pair, int64_t> bytes_;  // of all ranks: sender, receiver
};

}  // namespace meshplan
