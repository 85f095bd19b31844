#include "replay_mpi/mpi_communicator.h"

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <thread>

#include "base/check.h"
#include "base/text.h"
#include "base/utf8.h"
#include "replay/arithmetic.h"
#include "replay/watchdog.h"
#include "replay_mpi/mpi_parts.h"
#include "replay_mpi/neighbours.h"

namespace meshplan {
namespace {

constexpr int tag_data = 1;
constexpr int tag_alive = 2;
constexpr int tag_together = 16;  // and above: calls that run together

// How long processes wait for each other's messages after a missed deadline.
constexpr auto listening = std::chrono::milliseconds(1500);

std::string process_name(const std::vector<int64_t>& global_ids, int64_t process) {
  const auto p = static_cast<size_t>(process);
  return p < global_ids.size() ? "rank " + std::to_string(global_ids[p])
                               : "process " + std::to_string(process);
}

// The start of many processes takes longer than a step.
std::chrono::milliseconds start_limit(std::chrono::milliseconds step_limit) {
  return std::max<std::chrono::milliseconds>(10 * step_limit, std::chrono::seconds(20));
}

// As the launcher numbers it, before MPI says it.
std::string name_before_mpi(const std::vector<int64_t>& global_ids) {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"}) {
    const char* value = std::getenv(name);
    if (value == nullptr) continue;
    if (const auto number = parse_int(value)) return process_name(global_ids, *number);
  }
  return "a process";
}

class MpiCommunicator final : public Communicator {
 public:
  // `deadline`: until when all processes are here.
  MpiCommunicator(MPI_Comm world, int process, int processes, int64_t ranks,
                  std::vector<int64_t> global_ids, Deadline deadline)
      : world_(world),
        process_(process),
        processes_(processes),
        ranks_(ranks),
        global_ids_(std::move(global_ids)),
        watchdog_(rank_text(process)) {
    watchdog_.watch("joining the processes of this machine", deadline);
    join_neighbours(rank_text(process_));
    watchdog_.rest();
    Watchdog::name_ranks({name_gone_neighbours, name_late_neighbours, beat});
    Watchdog::report_termination();
  }
  MpiCommunicator(const MpiCommunicator&) = delete;
  MpiCommunicator& operator=(const MpiCommunicator&) = delete;
  ~MpiCommunicator() override {
    for (auto& [key, comm] : split_) {
      if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
    }
    MPI_Comm_free(&world_);
    mark_exit_expected();
  }

  [[nodiscard]] std::string name() const override { return "mpi"; }
  [[nodiscard]] int64_t world() const override { return processes_; }
  [[nodiscard]] std::vector<int32_t> local_ranks() const override {
    if (process_ >= ranks_) return {};
    return {process_};
  }
  [[nodiscard]] bool is_root() const override { return process_ == 0; }

  Status prepare(const std::vector<std::vector<int32_t>>& groups, Deadline deadline) override {
    if (split_.count(groups) != 0) return Done{};
    const Watch watch(*this, "creating communicators", deadline);
    int colour = MPI_UNDEFINED;
    for (size_t g = 0; g < groups.size(); ++g) {
      if (std::binary_search(groups[g].begin(), groups[g].end(), process_))
        colour = static_cast<int>(g);
    }
    MPI_Comm comm = MPI_COMM_NULL;
    if (auto done = good(MPI_Comm_split(world_, colour, process_, &comm), "creating communicators");
        !done)
      return done;
    if (comm != MPI_COMM_NULL) MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    split_.emplace(groups, comm);
    for (const auto& group : groups) {
      if (std::binary_search(group.begin(), group.end(), process_)) by_group_[group] = comm;
    }
    return Done{};
  }

  Status run(const Call& call, Deadline deadline) override {
    if (call.ranks.empty()) {
      pass_call();
      return Done{};
    }
    const Watch watch(*this, call.place, deadline);
    const RankCall& mine = call.ranks.front();
    if (auto fits = counts_fit(call, mine); !fits) return fits;
    if (call.op == Op::exchange) {
      if (auto done = exchange_.start(call, world_, tag_data); !done) return done;
      return exchange_.wait();
    }
    const auto comm = by_group_.find(*mine.group);
    if (comm == by_group_.end())
      return environment(call.place + ": no communicator was created for this group");
    switch (call.op) {
      case Op::all_gather:
        return all_gather(call, mine, comm->second);
      case Op::all_to_all:
        return all_to_all(call, mine, comm->second);
      case Op::reduce_scatter:
      case Op::all_reduce:
        return reduce(call, mine, comm->second);
      case Op::slice:
      case Op::to_partial:
      case Op::exchange:
        break;
    }
    MESHPLAN_CHECK(false, "no call of groups for an op without groups");
  }

  Status run_together(const std::vector<Call>& calls, Deadline deadline) override {
    if (calls.size() == 1) return run(calls.front(), deadline);
    if (calls.empty()) return Done{};
    const Watch watch(*this, calls.front().place, deadline);
    StartedCalls started(world_);
    for (size_t i = 0; i < calls.size(); ++i) {
      if (calls[i].ranks.empty()) continue;
      const RankCall& mine = calls[i].ranks.front();
      MPI_Comm comm = world_;
      if (mine.group != nullptr) {
        const auto found = by_group_.find(*mine.group);
        if (found == by_group_.end())
          return environment(calls[i].place + ": no communicator was created for this group");
        comm = found->second;
      }
      if (auto done = started.start(calls[i], comm, tag_together + static_cast<int>(i)); !done)
        return done;
    }
    return started.wait();
  }

  Status barrier_with_deadline(const std::string& place, Deadline deadline) override {
    // The deadline is checked here; the watchdog is for a library call that hangs.
    const Watch watch(*this, place, deadline + 4 * listening);
    MPI_Request request = MPI_REQUEST_NULL;
    if (auto done = good(MPI_Ibarrier(world_, &request), place); !done) return done;
    int arrived = 0;
    for (int turn = 0;; ++turn) {
      if (auto done = good(MPI_Test(&request, &arrived, MPI_STATUS_IGNORE), place); !done)
        return done;
      if (arrived != 0) return Done{};
      if (std::chrono::steady_clock::now() > deadline) return name_missing(place);
      if (turn > 200) std::this_thread::yield();
    }
  }

  Status barrier(const std::string& place, Deadline deadline) override {
    const Watch watch(*this, place, deadline);
    return good(MPI_Barrier(world_), place);
  }

  Result<std::vector<std::string>> tell_all(const std::string& text, Deadline deadline) override {
    const std::string place = "exchanging status";
    const Watch watch(*this, place, deadline);
    const int length = static_cast<int>(text.size());
    std::vector<int> lengths(static_cast<size_t>(processes_));
    if (auto done =
            good(MPI_Allgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, world_), place);
        !done)
      return done.error();
    std::vector<int> starts(lengths.size());
    int total = 0;
    for (size_t i = 0; i < lengths.size(); ++i) {
      starts[i] = total;
      total += lengths[i];
    }
    std::string all(static_cast<size_t>(total), '\0');
    if (auto done = good(MPI_Allgatherv(text.data(), length, MPI_CHAR, all.data(), lengths.data(),
                                        starts.data(), MPI_CHAR, world_),
                         place);
        !done) {
      return done.error();
    }
    std::vector<std::string> out;
    for (size_t i = 0; i < lengths.size(); ++i)
      out.push_back(all.substr(static_cast<size_t>(starts[i]), static_cast<size_t>(lengths[i])));
    return out;
  }

  void abort(const Error& error) override {
    if (processes_ == 1) return;
    std::fprintf(stderr, "meshplan: %s: %s\n", rank_text(process_).c_str(),
                 one_line(error.message).c_str());
    std::fflush(stderr);
    mark_exit_expected();
    MPI_Abort(world_, exit_code(error.fault));
  }

  Result<std::vector<std::pair<std::string, std::string>>> describe(Deadline deadline) override {
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    MPI_Get_library_version(version, &length);
    std::string loaded(version, static_cast<size_t>(length));
    loaded = loaded.substr(0, loaded.find(','));
    char host[MPI_MAX_PROCESSOR_NAME] = "";
    MPI_Get_processor_name(host, &length);
    auto hosts = tell_all({host, static_cast<size_t>(length)}, deadline);
    if (!hosts) return hosts.error();
    std::vector<std::pair<std::string, std::string>> out{{"backend", "mpi"},
                                                         {"library loaded", loaded}};
#ifdef OMPI_MAJOR_VERSION
    out.emplace_back("library compiled for", "Open MPI " + std::to_string(OMPI_MAJOR_VERSION) +
                                                 "." + std::to_string(OMPI_MINOR_VERSION) + "." +
                                                 std::to_string(OMPI_RELEASE_VERSION));
#endif
    for (size_t i = 0; i < hosts->size(); ++i)
      out.emplace_back("process " + std::to_string(i), (*hosts)[i]);
    return out;
  }

 private:
  [[nodiscard]] std::string rank_text(int process) const {
    return process_name(global_ids_, process);
  }

  // A call that every process makes, in the same order (replay_mpi/neighbours.h).
  struct Watch {
    MpiCommunicator& owner;
    Watch(MpiCommunicator& who, const std::string& place, Deadline deadline) : owner(who) {
      owner.watchdog_.watch(place, deadline);
      enter_call();
    }
    ~Watch() {
      leave_call();
      owner.watchdog_.rest();
    }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
  };

  static Status good(int code, const std::string& place) { return mpi_good(code, place); }

  Status all_gather(const Call& call, const RankCall& mine, MPI_Comm comm) const {
    const int64_t size = element_bytes(call.dtype);
    const Spread to = spread(mine.receives, size);
    const Chunk& from = mine.sends.front();
    MPI_Datatype type = moved_type(size);
    // Equal parts in order: use the plain collective, which is faster.
    const auto n = to.counts.front();
    bool equal = n > 0;
    for (size_t i = 0; i < to.counts.size(); ++i)
      equal = equal && to.counts[i] == n && to.starts[i] == static_cast<int>(i) * n;
    if (equal) return good(MPI_Allgather(from.data, n, type, to.base, n, type, comm), call.place);
    return good(MPI_Allgatherv(from.data, static_cast<int>(from.count), type, to.base,
                               to.counts.data(), to.starts.data(), type, comm),
                call.place);
  }

  Status all_to_all(const Call& call, const RankCall& mine, MPI_Comm comm) const {
    const int64_t size = element_bytes(call.dtype);
    const Spread from = spread(mine.sends, size);
    const Spread to = spread(mine.receives, size);
    MPI_Datatype type = moved_type(size);
    return good(MPI_Alltoallv(from.base, from.counts.data(), from.starts.data(), type, to.base,
                              to.counts.data(), to.starts.data(), type, comm),
                call.place);
  }

  Status reduce(const Call& call, const RankCall& mine, MPI_Comm comm) {
    const DType wide = reduced_dtype(call.dtype);
    const Chunk& to = mine.receives.front();
    int64_t total = 0;
    std::vector<int> counts;
    for (const Chunk& c : mine.sends) {
      counts.push_back(static_cast<int>(c.count));
      total += c.count;
    }
    // Chunks are contiguous (replay/communicator.h), so the first is the start of the buffer.
    const std::byte* from = mine.sends.front().data;
    std::byte* into = to.data;
    if (wide != call.dtype) {
      const auto bytes = static_cast<size_t>(element_bytes(wide));
      wide_from_.resize(std::max(wide_from_.size(), static_cast<size_t>(total) * bytes));
      wide_to_.resize(std::max(wide_to_.size(), static_cast<size_t>(to.count) * bytes));
      cast_elements(call.dtype, from, wide, wide_from_.data(), total);
      from = wide_from_.data();
      into = wide_to_.data();
    }
    MPI_Datatype type = reduced_type(wide);
    MPI_Op op = op_of(call.dtype, call.reduce_op);
    Status done = Done{};
    if (call.op == Op::all_reduce) {
      done =
          good(MPI_Allreduce(from, into, static_cast<int>(to.count), type, op, comm), call.place);
    } else if (std::all_of(counts.begin(), counts.end(),
                           [&](int n) { return n == counts.front(); })) {
      done = good(MPI_Reduce_scatter_block(from, into, counts.front(), type, op, comm), call.place);
    } else {
      done = good(MPI_Reduce_scatter(from, into, counts.data(), type, op, comm), call.place);
    }
    if (done && wide != call.dtype) cast_elements(wide, into, call.dtype, to.data, to.count);
    return done;
  }

  // After a missed deadline every running process notifies all others; those that do not are named.
  Status name_missing(const std::string& place) const {
    std::vector<bool> heard(static_cast<size_t>(processes_), false);
    heard[process_] = true;
    std::vector<MPI_Request> requests(static_cast<size_t>(processes_), MPI_REQUEST_NULL);
    for (int p = 0; p < processes_; ++p) {
      if (p != process_) MPI_Isend(nullptr, 0, MPI_CHAR, p, tag_alive, world_, &requests[p]);
    }
    const auto until = std::chrono::steady_clock::now() + listening;
    while (std::chrono::steady_clock::now() < until) {
      int ready = 0;
      MPI_Status status;
      MPI_Iprobe(MPI_ANY_SOURCE, tag_alive, world_, &ready, &status);
      if (ready != 0) {
        MPI_Recv(nullptr, 0, MPI_CHAR, status.MPI_SOURCE, tag_alive, world_, MPI_STATUS_IGNORE);
        heard[status.MPI_SOURCE] = true;
      } else {
        std::this_thread::yield();
      }
    }
    std::string missing;
    int count = 0;
    for (int p = 0; p < processes_; ++p) {
      if (heard[p]) continue;
      missing += (count++ == 0 ? "" : ", ") + rank_text(p);
    }
    if (count == 0)
      return environment(place + ": some rank arrived after the deadline; increase --deadline");
    return environment(place + ": " + missing + " did not arrive within the deadline");
  }

  MPI_Comm world_;
  int process_;
  int processes_;
  int64_t ranks_;
  std::vector<int64_t> global_ids_;
  Watchdog watchdog_;
  std::map<std::vector<std::vector<int32_t>>, MPI_Comm> split_;  // by partition
  // groups of this process; owned by split_
  std::map<std::vector<int32_t>, MPI_Comm> by_group_;
  std::vector<std::byte> wide_from_;
  std::vector<std::byte> wide_to_;
  StartedCalls exchange_{world_};  // one at a time, in memory that is kept
};

// What keeps a call of the start from ending: `missing`, or a limit that is too short.
std::string reason_of_start(const std::string& missing, std::chrono::milliseconds limit) {
  return missing + ", or " + std::to_string(limit.count() / 1000) +
         " s, ten times --deadline, are too short";
}

Status start_mpi(const std::vector<int64_t>& global_ids, std::chrono::milliseconds limit) {
  Watchdog watchdog(
      name_before_mpi(global_ids),
      reason_of_start("a process that was started with it does not call MPI_Init", limit));
  watchdog.watch("MPI_Init", std::chrono::steady_clock::now() + limit);
  int provided = 0;
  const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  if (code != MPI_SUCCESS)
    return environment("backend mpi: MPI initialization failed: " + error_text(code));
  // The program may exit anywhere, but MPI must be finalized.
  std::atexit([] {
    int ended = 0;
    MPI_Finalized(&ended);
    if (ended == 0) MPI_Finalize();
  });
  return Done{};
}

// A communicator of all processes for meshplan alone.
Result<MPI_Comm> copy_of_world(const std::vector<int64_t>& global_ids,
                               std::chrono::milliseconds limit) {
  int process = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &process);
  Watchdog watchdog(
      process_name(global_ids, process),
      reason_of_start("a process that MPI_Init was done with does not call MPI_Comm_dup, "
                      "as another program or one that hangs",
                      limit));
  watchdog.watch("MPI_Comm_dup of all processes", std::chrono::steady_clock::now() + limit);
  MPI_Comm comm = MPI_COMM_NULL;
  if (auto done = mpi_good(MPI_Comm_dup(MPI_COMM_WORLD, &comm), "MPI_Comm_dup"); !done)
    return done.error();
  return comm;
}

}  // namespace

Result<std::unique_ptr<Communicator>> open_mpi(int64_t world, std::vector<int64_t> global_ids,
                                               std::chrono::milliseconds step_limit) {
  const std::chrono::milliseconds limit = start_limit(step_limit);
  int started = 0;
  MPI_Initialized(&started);
  if (started == 0) {
    if (auto done = start_mpi(global_ids, limit); !done) return done.error();
  }
  auto world_comm = copy_of_world(global_ids, limit);
  if (!world_comm) return world_comm.error();
  MPI_Comm comm = *world_comm;
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  int process = 0;
  int processes = 1;
  MPI_Comm_rank(comm, &process);
  MPI_Comm_size(comm, &processes);
  if (processes < world) {
    MPI_Comm_free(&comm);
    return environment("the plan needs " + std::to_string(world) + " ranks, MPI has started " +
                       std::to_string(processes) + "; run: mpirun -n " + std::to_string(world) +
                       " meshplan run PLAN --backend mpi");
  }
  return std::unique_ptr<Communicator>(
      std::make_unique<MpiCommunicator>(comm, process, processes, world, std::move(global_ids),
                                        std::chrono::steady_clock::now() + limit));
}

}  // namespace meshplan
