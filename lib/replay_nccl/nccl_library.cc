#include "replay_nccl/nccl_library.h"

#include <dlfcn.h>
#include <nccl.h>

#include <cstdlib>
#include <cstring>

namespace meshplan {

static_assert(nccl_done.value == ncclSuccess && nccl_busy.value == ncclInProgress);
static_assert(sizeof(NcclId) == sizeof(ncclUniqueId));

struct NcclLibrary::Functions {
  decltype(&::ncclGetVersion) get_version = nullptr;
  decltype(&::ncclGetErrorString) error_string = nullptr;
  decltype(&::ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&::ncclCommInitRankConfig) init_rank = nullptr;
  decltype(&::ncclCommSplit) split = nullptr;
  decltype(&::ncclCommGetAsyncError) async_error = nullptr;
  decltype(&::ncclCommAbort) abort = nullptr;
  decltype(&::ncclCommDestroy) destroy = nullptr;
  decltype(&::ncclGroupStart) group_start = nullptr;
  decltype(&::ncclGroupEnd) group_end = nullptr;
  decltype(&::ncclAllGather) all_gather = nullptr;
  decltype(&::ncclReduceScatter) reduce_scatter = nullptr;
  decltype(&::ncclAllReduce) all_reduce = nullptr;
  decltype(&::ncclSend) send = nullptr;
  decltype(&::ncclRecv) receive = nullptr;
  // These may be missing: what needs them is then not offered.
  decltype(&::ncclAlltoAll) all_to_all = nullptr;
  decltype(&::ncclMemAlloc) allocate = nullptr;
  decltype(&::ncclMemFree) release = nullptr;
  decltype(&::ncclCommRegister) register_local = nullptr;
  decltype(&::ncclCommDeregister) deregister_local = nullptr;
  decltype(&::ncclCommWindowRegister) register_window = nullptr;
  decltype(&::ncclCommWindowDeregister) deregister_window = nullptr;
};

namespace {

ncclDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::float64:
      return ncclFloat64;
    case DType::float32:
      return ncclFloat32;
    case DType::bfloat16:
      return ncclBfloat16;
    case DType::float16:
      return ncclFloat16;
    case DType::int64:
      return ncclInt64;
    case DType::int32:
      return ncclInt32;
    case DType::int8:
      return ncclInt8;
    default:
      return ncclUint8;
  }
}

ncclRedOp_t op_of(DType dtype, ReduceOp op) {
  if (dtype == DType::boolean)
    return op == ReduceOp::product || op == ReduceOp::min ? ncclMin : ncclMax;
  switch (op) {
    case ReduceOp::min:
      return ncclMin;
    case ReduceOp::max:
      return ncclMax;
    case ReduceOp::product:
      return ncclProd;
    default:
      return ncclSum;
  }
}

NcclCode code(ncclResult_t result) { return {static_cast<int>(result)}; }
size_t size(int64_t n) { return static_cast<size_t>(n); }
cudaStream_t on(void* stream) { return static_cast<cudaStream_t>(stream); }

ncclConfig_t config_for(NcclLibrary::Calls calls) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = calls == NcclLibrary::Calls::block ? 1 : 0;
  return config;
}

}  // namespace

std::string nccl_version_text(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

Result<Registration> parse_registration(const std::string& text) {
  if (text == "none") return Registration::none;
  if (text == "local") return Registration::local;
  if (text == "symmetric") return Registration::symmetric;
  return bad_input("--register " + text + ": expected none, local or symmetric");
}

Result<NcclLibrary> NcclLibrary::load(std::string path) {
  if (path.empty()) {
    const char* named = std::getenv("MESHPLAN_NCCL_LIBRARY");
    path = named != nullptr && *named != '\0' ? named : "libnccl.so.2";
  }
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();  // NOLINT(concurrency-mt-unsafe)
    return environment(
        "backend nccl: cannot load " + path + ": " + (why == nullptr ? "no reason given" : why) +
        "; install NCCL 2.28 or newer (PyPI: nvidia-nccl-cu13) or name it in MESHPLAN_NCCL_LIBRARY");
  }
  auto functions = std::make_shared<Functions>();
  NcclLibrary out;
  out.path_ = path;
  std::string missing;
  auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    if (function == nullptr && missing.empty()) missing = name;
  };
  find(functions->get_version, "ncclGetVersion");
  if (functions->get_version != nullptr && functions->get_version(&out.version_) == ncclSuccess &&
      out.version_ < 22800) {
    return environment("backend nccl: " + path + " is NCCL " + nccl_version_text(out.version_) +
                       ", 2.28 or newer is required");
  }
  find(functions->error_string, "ncclGetErrorString");
  find(functions->get_unique_id, "ncclGetUniqueId");
  find(functions->init_rank, "ncclCommInitRankConfig");
  find(functions->split, "ncclCommSplit");
  find(functions->async_error, "ncclCommGetAsyncError");
  find(functions->abort, "ncclCommAbort");
  find(functions->destroy, "ncclCommDestroy");
  find(functions->group_start, "ncclGroupStart");
  find(functions->group_end, "ncclGroupEnd");
  find(functions->all_gather, "ncclAllGather");
  find(functions->reduce_scatter, "ncclReduceScatter");
  find(functions->all_reduce, "ncclAllReduce");
  find(functions->send, "ncclSend");
  find(functions->receive, "ncclRecv");
  if (!missing.empty())
    return environment("backend nccl: " + path + " lacks " + missing +
                       "; NCCL 2.28 or newer is required");
  find(functions->all_to_all, "ncclAlltoAll");
  find(functions->allocate, "ncclMemAlloc");
  find(functions->release, "ncclMemFree");
  find(functions->register_local, "ncclCommRegister");
  find(functions->deregister_local, "ncclCommDeregister");
  find(functions->register_window, "ncclCommWindowRegister");
  find(functions->deregister_window, "ncclCommWindowDeregister");
  out.call_ = std::move(functions);
  return out;
}

int NcclLibrary::version_compiled_for() { return NCCL_VERSION_CODE; }
std::string NcclLibrary::error_text(NcclCode result) const {
  return call_->error_string(static_cast<ncclResult_t>(result.value));
}

NcclCode NcclLibrary::unique_id(NcclId& id) const {
  ncclUniqueId made;
  const NcclCode result = code(call_->get_unique_id(&made));
  std::memcpy(id.data(), &made, sizeof(made));
  return result;
}

NcclCode NcclLibrary::init_rank(NcclComm& comm, int ranks, const NcclId& id, int rank) const {
  ncclUniqueId given;
  std::memcpy(&given, id.data(), sizeof(given));
  ncclConfig_t config = config_for(Calls::do_not_block);
  return code(call_->init_rank(&comm, ranks, given, rank, &config));
}

NcclCode NcclLibrary::split(NcclComm comm, int colour, int key, NcclComm& out, Calls calls) const {
  ncclConfig_t config = config_for(calls);
  return code(call_->split(comm, colour < 0 ? NCCL_SPLIT_NOCOLOR : colour, key, &out, &config));
}

NcclCode NcclLibrary::state_of(NcclComm comm, NcclCode& state) const {
  ncclResult_t is = ncclInProgress;
  const NcclCode result = code(call_->async_error(comm, &is));
  state = code(is);
  return result;
}

void NcclLibrary::abort(NcclComm comm) const { (void)call_->abort(comm); }
void NcclLibrary::destroy(NcclComm comm) const { (void)call_->destroy(comm); }
NcclCode NcclLibrary::group_start() const { return code(call_->group_start()); }
NcclCode NcclLibrary::group_end() const { return code(call_->group_end()); }

NcclCode NcclLibrary::all_gather(const std::byte* from, std::byte* to, int64_t bytes, NcclComm comm,
                                 void* stream) const {
  return code(call_->all_gather(from, to, size(bytes), ncclUint8, comm, on(stream)));
}
NcclCode NcclLibrary::reduce_scatter(const std::byte* from, std::byte* to, int64_t count,
                                     DType dtype, ReduceOp op, NcclComm comm, void* stream) const {
  return code(call_->reduce_scatter(from, to, size(count), type_of(dtype), op_of(dtype, op), comm,
                                    on(stream)));
}
NcclCode NcclLibrary::all_reduce(const std::byte* from, std::byte* to, int64_t count, DType dtype,
                                 ReduceOp op, NcclComm comm, void* stream) const {
  return code(
      call_->all_reduce(from, to, size(count), type_of(dtype), op_of(dtype, op), comm, on(stream)));
}
NcclCode NcclLibrary::send(const std::byte* from, int64_t bytes, int peer, NcclComm comm,
                           void* stream) const {
  return code(call_->send(from, size(bytes), ncclUint8, peer, comm, on(stream)));
}
NcclCode NcclLibrary::receive(std::byte* to, int64_t bytes, int peer, NcclComm comm,
                              void* stream) const {
  return code(call_->receive(to, size(bytes), ncclUint8, peer, comm, on(stream)));
}
bool NcclLibrary::has_all_to_all() const { return call_->all_to_all != nullptr; }
NcclCode NcclLibrary::all_to_all(const std::byte* from, std::byte* to, int64_t bytes, NcclComm comm,
                                 void* stream) const {
  return code(call_->all_to_all(from, to, size(bytes), ncclUint8, comm, on(stream)));
}

bool NcclLibrary::can_register(Registration kind) const {
  if (kind == Registration::none) return true;
  if (call_->allocate == nullptr || call_->release == nullptr) return false;
  if (kind == Registration::local)
    return call_->register_local != nullptr && call_->deregister_local != nullptr;
  return call_->register_window != nullptr && call_->deregister_window != nullptr;
}
NcclCode NcclLibrary::allocate(std::byte*& data, int64_t bytes) const {
  void* made = nullptr;
  const NcclCode result = code(call_->allocate(&made, size(bytes)));
  data = static_cast<std::byte*>(made);
  return result;
}
void NcclLibrary::release(std::byte* data) const { (void)call_->release(data); }

NcclCode NcclLibrary::register_buffer(Registration kind, NcclComm comm, std::byte* data,
                                      int64_t bytes, void** handle) const {
  if (kind == Registration::local)
    return code(call_->register_local(comm, data, size(bytes), handle));
  return code(call_->register_window(
      comm, data, size(bytes), reinterpret_cast<ncclWindow_t*>(handle), NCCL_WIN_COLL_SYMMETRIC));
}
void NcclLibrary::deregister(Registration kind, NcclComm comm, void* handle) const {
  if (kind == Registration::local) {
    (void)call_->deregister_local(comm, handle);
  } else {
    (void)call_->deregister_window(comm, static_cast<ncclWindow_t>(handle));
  }
}

}  // namespace meshplan
