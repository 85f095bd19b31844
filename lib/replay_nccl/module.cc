// The entry point of the module (replay/backend.h).
#include <cstdlib>
#include <numeric>

#include "replay/backend.h"
#include "replay_nccl/cuda_device.h"
#include "replay_nccl/nccl_communicator.h"
#include "replay_nccl/shared_gpus.h"

namespace meshplan {
namespace {

Result<Backend> open_nccl_backend(const BackendQuestion& question) {
  auto registration = parse_registration(question.register_buffers);
  if (!registration) return registration.error();
  auto nccl = NcclLibrary::load();
  if (!nccl) return nccl.error();
  auto rendezvous = find_rendezvous([](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  });
  if (!rendezvous) return rendezvous.error();
  std::vector<int32_t> ranks{static_cast<int32_t>(rendezvous->process)};
  if (rendezvous->processes == 1) {
    ranks.resize(static_cast<size_t>(question.world));
    std::iota(ranks.begin(), ranks.end(), 0);
  }
  auto device = open_cuda(ranks, rendezvous->processes == 1 ? 0 : rendezvous->local);
  if (!device) return device.error();
  const auto shared = variables_of_shared_gpus(
      {nccl->version(), *rendezvous, question.world, question.streams, (*device)->counts()});
  if (!shared) return shared.error();
  for (const auto& [name, value] : *shared)
    setenv(name.c_str(), value.c_str(), 0);  // NOLINT(concurrency-mt-unsafe)
  const auto calls =
      question.measures ? NcclLibrary::Calls::block : NcclLibrary::Calls::do_not_block;
  auto communicator =
      open_nccl({*nccl, device->get(), *rendezvous, question.world, question.global_ids,
                 question.deadline, *registration, question.streams, calls});
  if (!communicator) return communicator.error();
  Backend backend;
  backend.device = std::move(*device);
  backend.communicator = std::move(*communicator);
  return backend;
}

}  // namespace

const OpenBackend meshplan_open_backend_7 = open_nccl_backend;

}  // namespace meshplan
