// Runs the cases on this machine's GPU; exits with 77 where there is none.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>

#include "replay_nccl/cuda_device.h"

int main(int argc, char** argv) {
  const auto device = meshplan::open_cuda({0}, 0);
  if (!device) {
    std::printf("test_gpu_kernels: NOT RUN, %s\n", device.error().message.c_str());
    return 77;
  }
  for (const auto& [name, value] : (*device)->facts()) std::printf("%s: %s\n", name.c_str(), value.c_str());
  doctest::Context context(argc, argv);
  return context.run();
}
