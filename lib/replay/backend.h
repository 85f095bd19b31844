// Communication backends: a device and a communicator, built in or loaded from a module on request.
//
// A module is a shared library libmeshplan_replay_NAME.so next to the program (or in the folder
// named by MESHPLAN_BACKENDS), built from the same sources. It exports one symbol,
// meshplan_open_backend_N. The planner itself needs neither MPI nor a GPU library.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "replay/communicator.h"
#include "replay/device.h"

namespace meshplan {

struct Backend {
  // In this order, so that the communicator is destroyed before the device.
  std::unique_ptr<Device> device;
  std::unique_ptr<Communicator> communicator;
};

struct BackendQuestion {
  int64_t world = 1;                           // replay ranks that the plan needs
  std::vector<int64_t> global_ids;             // of the replay ranks, ascending: for messages
  int64_t threads = 0;                         // per process; 0: chosen by the backend
  std::chrono::milliseconds deadline{60'000};  // for startup
  std::string register_buffers = "none";       // nccl: none, local or symmetric
  int64_t streams = 1;                         // rounds of a bundle at most in flight together
  bool measures = false;                       // nccl: calls then block, as other programs' do
};

using OpenBackend = Result<Backend> (*)(const BackendQuestion& question);

// Defined by every module and looked up by name. Only the name has C linkage: the function returns
// a C++ object. The number changes with any of these types.
extern "C" __attribute__((visibility("default"))) const OpenBackend meshplan_open_backend_7;
inline constexpr const char* open_backend_symbol = "meshplan_open_backend_7";

// The folders searched for modules: MESHPLAN_BACKENDS if set, else the folder of the program and
// ../lib/meshplan next to it. Empty if the program does not know its own path: modules are never
// loaded from the current folder.
[[nodiscard]] std::vector<std::filesystem::path> module_folders(
    const char* named, const std::filesystem::path& program);

// Loads and opens the module ("mpi", "nccl"). Errors (environment) say what is missing and how to
// install it.
[[nodiscard]] Result<Backend> load_backend(const std::string& name,
                                           const BackendQuestion& question);

}  // namespace meshplan
