// All ranks in one process: calls are loops of copies and reductions in rank order, so results are
// deterministic.
#pragma once

#include "replay/communicator.h"
#include "replay/device.h"

namespace meshplan {

class HostCommunicator final : public Communicator {
 public:
  // Loops run on the threads of the device.
  HostCommunicator(int64_t world, Device& device) : world_(world), device_(device) {}

  [[nodiscard]] std::string name() const override { return "host"; }
  [[nodiscard]] int64_t world() const override { return world_; }
  [[nodiscard]] std::vector<int32_t> local_ranks() const override;
  [[nodiscard]] bool is_root() const override { return true; }
  Status prepare(const std::vector<std::vector<int32_t>>& groups, Deadline deadline) override;
  Status run(const Call& call, Deadline deadline) override;
  Status barrier_with_deadline(const std::string& place, Deadline deadline) override;
  Status barrier(const std::string& place, Deadline deadline) override;
  Result<std::vector<std::string>> tell_all(const std::string& text, Deadline deadline) override;
  void abort(const Error& error) override;
  Result<std::vector<std::pair<std::string, std::string>>> describe(Deadline deadline) override;

 private:
  int64_t world_;
  Device& device_;
  // replay rank -> index into the ranks of the call; -1: not part of it
  std::vector<int32_t> number_;
};

}  // namespace meshplan
