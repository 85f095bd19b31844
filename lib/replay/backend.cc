#include "replay/backend.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

namespace meshplan {
namespace {

std::string needs_of(const std::string& name) {
  if (name == "mpi")
    return "install an MPI library (Debian: libopenmpi-dev openmpi-bin) and build meshplan again";
  return "install the CUDA toolkit and NCCL 2.28 or newer and build meshplan again";
}

}  // namespace

std::vector<std::filesystem::path> module_folders(const char* named,
                                                  const std::filesystem::path& program) {
  if (named != nullptr && *named != '\0') return {named};
  if (!program.is_absolute()) return {};
  return {program.parent_path(), program.parent_path() / ".." / "lib" / "meshplan"};
}

Result<Backend> load_backend(const std::string& name, const BackendQuestion& question) {
  const std::string file = "libmeshplan_replay_" + name + ".so";
  std::filesystem::path found;
  std::error_code error;
  const auto folders = module_folders(std::getenv("MESHPLAN_BACKENDS"),
                                      std::filesystem::read_symlink("/proc/self/exe", error));
  if (folders.empty()) {
    return environment("backend " + name +
                       ": cannot find the path of the program (/proc/self/exe: " + error.message() +
                       "); set MESHPLAN_BACKENDS to the folder of " + file);
  }
  for (const std::filesystem::path& folder : folders) {
    if (std::filesystem::exists(folder / file, error)) {
      found = folder / file;
      break;
    }
  }
  if (found.empty())
    return environment("backend " + name + ": " + file + " is not next to the program; " +
                       needs_of(name));
  // Never unloaded: threads and exit handlers of its library may outlive the run.
  void* module = dlopen(found.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) {
    const char* why = dlerror();  // NOLINT(concurrency-mt-unsafe)
    return environment("backend " + name + ": cannot load " + file + ": " +
                       (why == nullptr ? "no reason given" : why) + "; " + needs_of(name));
  }
  void* symbol = dlsym(module, open_backend_symbol);
  if (symbol == nullptr)
    return environment("backend " + name + ": " + found.string() +
                       " belongs to another version of meshplan; build both together");
  return (*static_cast<const OpenBackend*>(symbol))(question);
}

}  // namespace meshplan
