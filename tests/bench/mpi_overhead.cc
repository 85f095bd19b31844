// What replaying a single collective over MPI costs beside a bare loop of the same MPI call, in turns, in one run:
//
//     mpirun -n 4 build/tests/bench/mpi_overhead [repetitions] [MiB a rank]
//
// Prints, for each op, the shortest time of each on the slowest rank, their ratio, and the ratio of the medians. The bare loop uses the
// buffers of the replayed step and a communicator of its own.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "one_step.h"
#include "replay/executor.h"
#include "replay_host/open_backend.h"

namespace {

using namespace meshplan;
using Clock = std::chrono::steady_clock;

// The MPI call that the backend makes for this call, by itself. Chunks of these steps lie one behind the other.
std::function<void()> bare(const Call& call, MPI_Comm comm) {
  const RankCall& mine = call.ranks.front();
  const void* from = mine.sends.front().data;
  void* to = mine.receives.front().data;
  const int sent = static_cast<int>(mine.sends.front().count);
  const int received = static_cast<int>(mine.receives.front().count);
  switch (call.op) {
    case Op::all_gather:
      return [=] { MPI_Allgather(from, sent, MPI_UINT32_T, to, received, MPI_UINT32_T, comm); };
    case Op::reduce_scatter:
      return [=] { MPI_Reduce_scatter_block(from, to, received, MPI_FLOAT, MPI_SUM, comm); };
    case Op::all_reduce:
      return [=] { MPI_Allreduce(from, to, received, MPI_FLOAT, MPI_SUM, comm); };
    default: {
      std::vector<int> counts(mine.sends.size(), sent);
      std::vector<int> starts;
      for (size_t i = 0; i < counts.size(); ++i) starts.push_back(static_cast<int>(i) * sent);
      return [=] { MPI_Alltoallv(from, counts.data(), starts.data(), MPI_UINT32_T, to, counts.data(), starts.data(), MPI_UINT32_T, comm); };
    }
  }
}

double slowest(const std::function<void()>& run, MPI_Comm comm) {
  MPI_Barrier(comm);
  const auto start = Clock::now();
  run();
  const double mine = std::chrono::duration<double>(Clock::now() - start).count();
  double all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, comm);
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t repetitions = argc > 1 ? std::atoll(argv[1]) : 200;
  const int64_t elements = (argc > 2 ? std::atoll(argv[2]) : 4) << 18;  // float32 a rank
  const char* text = std::getenv("OMPI_COMM_WORLD_SIZE");
  const int64_t ranks = text == nullptr ? 1 : std::atoll(text);
  std::vector<int64_t> ids;
  for (int64_t r = 0; r < ranks; ++r) ids.push_back(r);
  auto backend = open_backend("mpi", {ranks, ids, 1});
  if (!backend) {
    std::fprintf(stderr, "%s\n", backend.error().message.c_str());
    return exit_code(backend.error().fault);
  }
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  const bool is_root = backend->communicator->is_root();
  if (is_root) {
    std::printf("%lld ranks, %lld KiB a rank, %lld repetitions in turns\n%-16s %12s %12s %8s %8s\n", static_cast<long long>(ranks),
                static_cast<long long>(elements / 256), static_cast<long long>(repetitions), "op", "replayed us", "bare us", "ratio",
                "medians");
  }
  for (const OneStep& s : collectives_to_measure(ranks, elements)) {
    const Plan plan = one_step(ranks, s.shape, s.before, s.after, s.op);
    ReplayOptions options;
    options.full_size = true;
    const RankTable table = make_rank_table(plan.meshes);
    backend->device->reset();
    const RedistributionRun::Question question{
        &plan, plan.redistributions.data(), &options, &table, backend->communicator.get(), backend->device.get(), nullptr};
    auto run = RedistributionRun::prepare(question);
    (void)RedistributionRun::agree(run, question).value();
    const std::function<void()> alone = bare(*run->bare_call(0), comm);
    const std::function<void()> replayed = [&] { (void)run->run_step(0).value(); };
    std::vector<double> with;
    std::vector<double> without;
    for (int64_t turn = -5; turn < repetitions; ++turn) {
      double first = 0;
      double second = 0;
      if (turn % 2 == 0) first = slowest(replayed, comm);
      second = slowest(alone, comm);
      if (turn % 2 != 0) first = slowest(replayed, comm);
      if (turn < 0) continue;
      with.push_back(first);
      without.push_back(second);
    }
    const double a = *std::min_element(with.begin(), with.end());
    const double b = *std::min_element(without.begin(), without.end());
    if (is_root) {
      std::printf("%-16s %12.1f %12.1f %8.3f %8.3f\n", to_text(s.op), a * 1e6, b * 1e6, a / b, median(with) / median(without));
      std::fflush(stdout);
    }
  }
  MPI_Comm_free(&comm);
  return 0;
}
