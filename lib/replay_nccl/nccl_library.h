// The functions of NCCL that the backend uses, loaded at run time, with types of this project. A
// machine without NCCL can still report what is missing, and only nccl_library.cc includes the
// header of NCCL.
//
// Calls return NCCL's result codes. Of communicators that do not block, `busy` means in progress,
// and `state_of` returns the state.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "replay/communicator.h"

struct ncclComm;

namespace meshplan {

using NcclComm = ncclComm*;
using NcclId = std::array<char, 128>;

struct NcclCode {
  int value = 0;
  bool operator==(const NcclCode&) const = default;
};
inline constexpr NcclCode nccl_done{0};
inline constexpr NcclCode nccl_busy{7};

enum class Registration : uint8_t {
  none,
  local,      // each rank's buffers for itself
  symmetric,  // the same buffers on all ranks of a communicator, as one window
};
// Errors (bad_input): none of "none", "local", "symmetric".
[[nodiscard]] Result<Registration> parse_registration(const std::string& text);

class NcclLibrary {
 public:
  // `path` empty: the library that MESHPLAN_NCCL_LIBRARY names, or libnccl.so.2. Errors
  // (environment): not found, older than 2.28, a function missing.
  [[nodiscard]] static Result<NcclLibrary> load(std::string path = {});

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] int version() const { return version_; }  // loaded: 22807 is 2.28.7
  [[nodiscard]] static int version_compiled_for();
  [[nodiscard]] std::string error_text(NcclCode code) const;

  [[nodiscard]] NcclCode unique_id(NcclId& id) const;
  [[nodiscard]] NcclCode init_rank(NcclComm& comm, int ranks, const NcclId& id, int rank) const;
  // Colour -1: not a member; `out` becomes null. The calls on `out` return when NCCL has them on
  // their stream, or at once.
  enum class Calls { block, do_not_block };
  [[nodiscard]] NcclCode split(NcclComm comm, int colour, int key, NcclComm& out,
                               Calls calls) const;
  [[nodiscard]] NcclCode state_of(NcclComm comm, NcclCode& state) const;
  void abort(NcclComm comm) const;
  void destroy(NcclComm comm) const;
  [[nodiscard]] NcclCode group_start() const;
  [[nodiscard]] NcclCode group_end() const;

  // On a cudaStream_t. Moves count bytes, reductions count elements.
  [[nodiscard]] NcclCode all_gather(const std::byte* from, std::byte* to, int64_t bytes,
                                    NcclComm comm, void* stream) const;
  [[nodiscard]] NcclCode reduce_scatter(const std::byte* from, std::byte* to, int64_t count,
                                        DType dtype, ReduceOp op, NcclComm comm,
                                        void* stream) const;
  [[nodiscard]] NcclCode all_reduce(const std::byte* from, std::byte* to, int64_t count,
                                    DType dtype, ReduceOp op, NcclComm comm, void* stream) const;
  [[nodiscard]] NcclCode send(const std::byte* from, int64_t bytes, int peer, NcclComm comm,
                              void* stream) const;
  [[nodiscard]] NcclCode receive(std::byte* to, int64_t bytes, int peer, NcclComm comm,
                                 void* stream) const;
  // The loaded library has ncclAlltoAll: `bytes` for each pair.
  [[nodiscard]] bool has_all_to_all() const;
  [[nodiscard]] NcclCode all_to_all(const std::byte* from, std::byte* to, int64_t bytes,
                                    NcclComm comm, void* stream) const;

  // Whether the loaded library supports this registration.
  [[nodiscard]] bool can_register(Registration kind) const;
  // Allocates memory that can be registered.
  [[nodiscard]] NcclCode allocate(std::byte*& data, int64_t bytes) const;
  void release(std::byte* data) const;
  // `*handle` is written when the communicator is done with it, not before the call returns.
  [[nodiscard]] NcclCode register_buffer(Registration kind, NcclComm comm, std::byte* data,
                                         int64_t bytes, void** handle) const;
  void deregister(Registration kind, NcclComm comm, void* handle) const;

 private:
  struct Functions;
  std::shared_ptr<const Functions> call_;
  int version_ = 0;
  std::string path_;
};

// "2.28.7"
[[nodiscard]] std::string nccl_version_text(int version);

}  // namespace meshplan
