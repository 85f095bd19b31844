// Backends: a device and a communicator, in this program or in a module that is loaded when asked for.
//
// A module is a shared library libmeshplan_replay_NAME.so beside the program (or in the folder that MESHPLAN_BACKENDS names), built from
// the same sources. It exports one object, meshplan_open_backend_N. The planner itself needs neither MPI nor a GPU library.
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
  // In this order: the communicator goes first, the device last.
  std::unique_ptr<Device> device;
  std::unique_ptr<Communicator> communicator;
};

struct BackendQuestion {
  int64_t world = 1;                           // replay ranks that the plan needs
  std::vector<int64_t> global_ids;             // of the replay ranks, ascending: for messages
  int64_t threads = 0;                         // of each process; 0: as many as are good
  std::chrono::milliseconds deadline{60'000};  // for starting
  std::string register_buffers = "none";       // nccl: none, local or symmetric
};

using OpenBackend = Result<Backend> (*)(const BackendQuestion& question);

// Defined by every module, found by its name. Only the name is C's: what it points to returns an object of C++.
// A change of any of these types changes the number.
extern "C" __attribute__((visibility("default"))) const OpenBackend meshplan_open_backend_3;
inline constexpr const char* open_backend_symbol = "meshplan_open_backend_3";

// The folders that a module may be in: the one named in the environment, or else the program's own and ../lib/meshplan beside it. None
// where the program does not know where it is: what lies in the current folder is not for it to run.
[[nodiscard]] std::vector<std::filesystem::path> module_folders(const char* named, const std::filesystem::path& program);

// Loads the module of that name ("mpi", "nccl") and opens it. Errors (environment) say what is missing and how to get it.
[[nodiscard]] Result<Backend> load_backend(const std::string& name, const BackendQuestion& question);

}  // namespace meshplan
