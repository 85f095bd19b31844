#include "replay_nccl/nccl_communicator.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <numeric>
#include <sstream>
#include <thread>

#include "base/utf8.h"
#include "replay/watchdog.h"
#include "replay_nccl/control.h"
#include "replay_nccl/nccl_enqueue.h"
#include "replay_nccl/pause.h"
#include "replay_nccl/registered_buffers.h"

namespace meshplan {
namespace {

using Comms = std::map<int32_t, NcclComm>;  // by local rank

// Time after its deadline that a call has to end by itself before the watchdog ends the process.
constexpr auto margin = std::chrono::seconds(6);

class NcclCommunicator final : public Communicator {
 public:
  explicit NcclCommunicator(const NcclQuestion& q)
      : q_(q), device_(*q.device), registered_(q.nccl, q.registration), watchdog_(own_name(q)) {
    if (several()) {
      ranks_ = q.rendezvous.processes;
      locals_ = {static_cast<int32_t>(q.rendezvous.process)};
      Watchdog::report_termination();
    } else {
      ranks_ = q.world;
      locals_.resize(static_cast<size_t>(q.world));
      std::iota(locals_.begin(), locals_.end(), 0);
    }
  }
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;
  ~NcclCommunicator() override { close_all(); }

  Status open() {
    const Deadline deadline = std::chrono::steady_clock::now() + q_.deadline;
    const std::string place = "starting";
    const Watch watch(*this, place, deadline);
    if (!q_.rendezvous.address.empty())
      setenv("NCCL_COMM_ID", q_.rendezvous.address.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
    NcclId id{};
    if (auto done = good(q_.nccl.unique_id(id), place); !done) return done;
    auto begun = in_group(place, [&]() -> Status {
      for (int32_t rank : locals_) {
        auto stream = device_.stream(rank);
        if (!stream) return stream.error();
        if (auto done =
                good(q_.nccl.init_rank(world_[rank], static_cast<int>(ranks_), id, rank), place);
            !done)
          return done;
      }
      return Done{};
    });
    if (!begun) return begun;
    if (auto done = settle(world_, place, deadline); !done) return done;
    if (!several()) return Done{};
    Control::Question line;
    line.process = q_.rendezvous.process;
    line.processes = ranks_;
    line.host = q_.rendezvous.address.substr(0, q_.rendezvous.address.rfind(':'));
    line.rank_text = [this](int64_t process) { return rank_text(static_cast<int32_t>(process)); };
    line.deadline = deadline;
    line.share = [&](const std::string& word) -> Result<std::string> {
      std::string all(word.size() * static_cast<size_t>(ranks_), '\0');
      if (auto done = gather_bytes(word, all, place, deadline); !done) return done.error();
      return all.substr(0, word.size());
    };
    auto control = Control::open(line);
    if (!control) return broken(control.error());
    control_ = std::move(*control);
    return Done{};
  }

  [[nodiscard]] std::string name() const override { return "nccl"; }
  [[nodiscard]] int64_t world() const override { return ranks_; }
  [[nodiscard]] std::vector<int32_t> local_ranks() const override {
    std::vector<int32_t> mine;
    for (int32_t r : locals_) {
      if (r < q_.world) mine.push_back(r);
    }
    return mine;
  }
  [[nodiscard]] bool is_root() const override { return q_.rendezvous.process == 0; }

  Status prepare(const std::vector<std::vector<int32_t>>& groups, Deadline deadline) override {
    const std::string place = "creating communicators";
    const Watch watch(*this, place, deadline);
    if (split_.count(groups) == 0) {
      Comms& comms = split_[groups];
      auto begun = in_group(place, [&]() -> Status {
        for (int32_t rank : locals_) {
          int colour = -1;
          int key = 0;
          for (size_t g = 0; g < groups.size(); ++g) {
            const auto at = std::lower_bound(groups[g].begin(), groups[g].end(), rank);
            if (at == groups[g].end() || *at != rank) continue;
            colour = static_cast<int>(g);
            key = static_cast<int>(at - groups[g].begin());
          }
          if (auto done = good(q_.nccl.split(world_.at(rank), colour, key, comms[rank]), place);
              !done)
            return done;
        }
        return Done{};
      });
      if (!begun) return begun;
      if (auto done = settle(world_, place, deadline); !done) return done;
      if (auto done = settle(comms, place, deadline); !done) return done;
      for (const auto& group : groups) {
        for (int32_t rank : group) {
          if (comms.count(rank) != 0) by_group_[{group, rank}] = comms.at(rank);
        }
      }
      in_order_.push_back(&comms);
    }
    return registered_.wanted() ? register_new(deadline) : Status(Done{});
  }

  Status run(const Call& call, Deadline deadline) override {
    const Watch watch(*this, call.place, deadline);
    return run_group(&call, 1, deadline);
  }
  // Neighbouring exchanges are one group of NCCL, so that all their messages are in flight at once;
  // collectives share scratch buffers and follow one another.
  Status run_together(const std::vector<Call>& calls, Deadline deadline) override {
    for (size_t i = 0; i < calls.size();) {
      size_t end = i + 1;
      while (calls[i].op == Op::exchange && end < calls.size() && calls[end].op == Op::exchange)
        ++end;
      const Watch watch(*this, calls[i].place, deadline);
      if (auto done = run_group(&calls[i], end - i, deadline); !done) return done;
      i = end;
    }
    return Done{};
  }

  Status barrier_with_deadline(const std::string& place, Deadline deadline) override {
    if (!several()) return Done{};
    const Watch watch(*this, place, deadline);
    auto all = compare(std::string(), place, deadline);
    return all ? Status(Done{}) : Status(all.error());
  }
  Status barrier(Deadline deadline) override {
    const std::string place = "waiting for all ranks";
    const Watch watch(*this, place, deadline);
    if (!several()) return wait(place, deadline);
    std::string all(static_cast<size_t>(ranks_), '\0');
    return gather_bytes(std::string(1, '\0'), all, place, deadline);
  }
  Result<std::vector<std::string>> tell_all(const std::string& text, Deadline deadline) override {
    if (!several()) return std::vector<std::string>{text};
    const std::string place = "exchanging status";
    const Watch watch(*this, place, deadline);
    return compare(text, place, deadline);
  }

  void abort(const Error& error) override {
    const Watch watch(*this, "ending after: " + error.message, std::chrono::steady_clock::now());
    if (several()) {
      std::fprintf(stderr, "meshplan: %s: %s\n", rank_text(locals_.front()).c_str(),
                   one_line(error.message).c_str());
      std::fflush(stderr);
      if (control_)
        control_->report({error.fault, rank_text(locals_.front()) + " stopped: " + error.message});
    }
    broken_ = true;
    close_all();
    if (several()) std::_Exit(exit_code(error.fault));
  }

  Result<std::vector<std::pair<std::string, std::string>>> describe(Deadline deadline) override {
    std::vector<std::pair<std::string, std::string>> out{
        {"backend", "nccl"},
        {"NCCL compiled for", nccl_version_text(NcclLibrary::version_compiled_for())},
        {"NCCL loaded", nccl_version_text(q_.nccl.version()) + " from " + q_.nccl.path()},
        {"processes", std::to_string(q_.rendezvous.processes)}};
    if (!q_.rendezvous.launcher.empty()) out.emplace_back("started by", q_.rendezvous.launcher);
    if (q_.registration != Registration::none) {
      out.emplace_back("registered buffers",
                       q_.registration == Registration::local ? "local" : "symmetric");
    }
    char host[256] = "";
    (void)gethostname(host, sizeof(host) - 1);
    std::string mine = host;
    for (auto& [key, value] : device_.facts()) {
      if (key.rfind("rank number ", 0) == 0) {
        mine += (several() ? ", " : "; ") + (several() ? value : key + ": " + value);
      } else {
        out.emplace_back(key, value);
      }
    }
    auto places = tell_all(mine, deadline);
    if (!places) return places.error();
    for (size_t p = 0; p < places->size(); ++p)
      out.emplace_back("process " + std::to_string(p), (*places)[p]);
    return out;
  }

 private:
  Status run_group(const Call* calls, size_t n, Deadline deadline) {
    const std::string& place = calls->place;
    std::vector<FollowUp> after;
    Comms used;
    auto begun = in_group(place, [&]() -> Status {
      for (size_t i = 0; i < n; ++i) {
        for (const RankCall& rank : calls[i].ranks) {
          auto stream = device_.stream(rank.rank);
          if (!stream) return stream.error();
          NcclComm comm = world_.at(rank.rank);
          if (rank.group != nullptr) {
            const auto at = by_group_.find({*rank.group, rank.rank});
            if (at == by_group_.end())
              return environment(place + ": no communicator was created for this group");
            comm = at->second;
          }
          used[rank.rank] = comm;
          const EnqueueQuestion question{&q_.nccl, &device_, calls + i, &rank, comm, *stream};
          if (auto done = enqueue_call(question, after); !done) return done;
        }
      }
      return Done{};
    });
    if (!begun) return begun;
    if (auto done = settle(used, place, deadline); !done) return done;
    for (const FollowUp& e : after) {
      if (auto done = device_.work(e.rank, e.ops); !done) return done;
    }
    return device_.recording() ? Status(Done{}) : wait(place, deadline);
  }

  [[nodiscard]] bool several() const { return q_.rendezvous.processes > 1; }

  static std::string own_name(const NcclQuestion& q) {
    if (q.rendezvous.processes == 1) return "all ranks";
    const auto p = static_cast<size_t>(q.rendezvous.process);
    return p < q.global_ids.size() ? "rank " + std::to_string(q.global_ids[p])
                                   : "process " + std::to_string(p);
  }
  [[nodiscard]] std::string rank_text(int32_t rank) const {
    const auto r = static_cast<size_t>(rank);
    return r < q_.global_ids.size() ? "rank " + std::to_string(q_.global_ids[r])
                                    : "process " + std::to_string(rank);
  }

  // A watched section; not nested.
  struct Watch {
    NcclCommunicator& owner;
    Watch(NcclCommunicator& who, const std::string& place, Deadline deadline) : owner(who) {
      owner.watchdog_.watch(place, deadline + margin);
    }
    ~Watch() { owner.watchdog_.rest(); }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
  };

  // After this error communicators are aborted, not closed: closing may wait for ranks that are
  // gone.
  Error broken(Error error) {
    broken_ = true;
    return error;
  }
  Status good(NcclCode code, const std::string& place) {
    auto done = nccl_good(q_.nccl, code, place);
    return done ? done : Status(broken(done.error()));
  }

  // Always close the group: an open one would defer every later call.
  template <class Body>
  Status in_group(const std::string& place, Body&& body) {
    if (auto done = good(q_.nccl.group_start(), place); !done) return done;
    Status status = body();
    Status closed = good(q_.nccl.group_end(), place);
    if (!status) return broken(status.error());
    return closed;
  }

  // One iteration of a wait: checks for errors of other processes and for the deadline.
  Status keep_waiting(Pause& pause, const std::string& place, int32_t rank, Deadline deadline) {
    if (control_ && pause.every_so_often()) {
      if (auto wrong = control_->trouble(place);
          wrong && pause.worried_for(std::chrono::milliseconds(300)))
        return broken(*wrong);
    }
    if (std::chrono::steady_clock::now() > deadline) return broken(late(place, rank));
    pause.rest();
    return Done{};
  }

  // Waits until no communicator is in progress.
  Status settle(const Comms& comms, const std::string& place, Deadline deadline) {
    for (const auto& [rank, comm] : comms) {
      if (comm == nullptr) continue;
      Pause pause;
      while (true) {
        NcclCode state = nccl_busy;
        if (auto done = good(q_.nccl.state_of(comm, state), place); !done) return done;
        if (state == nccl_done) break;
        if (state != nccl_busy) return broken(failed(place, rank, state, deadline));
        if (auto done = keep_waiting(pause, place, rank, deadline); !done) return done;
      }
    }
    return Done{};
  }

  // Waits until every local stream is idle or a communicator fails.
  Status wait(const std::string& place, Deadline deadline) {
    for (int32_t rank : locals_) {
      Pause pause;
      while (true) {
        auto idle = device_.idle(rank);
        if (!idle) return broken(environment(place + ": " + idle.error().message));
        if (*idle) break;
        if (pause.every_so_often()) {
          for (const Comms* comms : all_comms()) {
            const auto at = comms->find(rank);
            if (at == comms->end() || at->second == nullptr) continue;
            NcclCode state = nccl_done;
            if (auto done = good(q_.nccl.state_of(at->second, state), place); !done) return done;
            if (state != nccl_done && state != nccl_busy)
              return broken(failed(place, rank, state, deadline));
          }
        }
        if (auto done = keep_waiting(pause, place, rank, deadline); !done) return done;
      }
    }
    return Done{};
  }

  [[nodiscard]] std::vector<const Comms*> all_comms() const {
    std::vector<const Comms*> out{&world_};
    out.insert(out.end(), in_order_.begin(), in_order_.end());
    return out;
  }

  [[nodiscard]] Error late(const std::string& place, int32_t rank) const {
    return environment(
        place + ": " + rank_text(rank) +
        " waited past its deadline; another rank hangs or has ended, or the deadline is too short");
  }
  // NCCL may report an error before the control connection does, which knows which rank has exited;
  // so wait a moment for it.
  [[nodiscard]] Error failed(const std::string& place, int32_t rank, NcclCode state,
                             Deadline deadline) const {
    const auto until =
        std::min(deadline, std::chrono::steady_clock::now() + std::chrono::milliseconds(500));
    while (control_ && std::chrono::steady_clock::now() < until) {
      if (auto wrong = control_->trouble(place)) return *wrong;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return environment(place + ": " + rank_text(rank) +
                       ": NCCL says: " + q_.nccl.error_text(state));
  }

  Result<std::vector<std::string>> compare(const std::string& text, const std::string& place,
                                           Deadline deadline) {
    auto all = control_->gather(text, place, deadline);
    if (!all) return broken(all.error());
    return all;
  }

  // All-gather of equal sizes over the world communicator.
  Status gather_bytes(const std::string& mine, std::string& all, const std::string& place,
                      Deadline deadline) {
    const int32_t rank = locals_.front();
    const auto count = std::ssize(mine);
    auto stream = device_.stream(rank);
    if (!stream) return stream.error();
    auto out = device_.scratch(rank, static_cast<int>(ScratchUse::notes_send), count);
    if (!out) return out.error();
    auto in = device_.scratch(rank, static_cast<int>(ScratchUse::notes_receive), count * ranks_);
    if (!in) return in.error();
    if (auto done =
            device_.write(rank, reinterpret_cast<const std::byte*>(mine.data()), *out, count);
        !done)
      return done;
    if (auto done = good(q_.nccl.all_gather(*out, *in, count, world_.at(rank), *stream), place);
        !done)
      return done;
    if (auto done = settle(world_, place, deadline); !done) return done;
    if (auto done = wait(place, deadline); !done) return done;
    return device_.read(rank, *in, reinterpret_cast<std::byte*>(all.data()), count * ranks_);
  }

  // Registers new slabs with every communicator. Collective.
  Status register_new(Deadline deadline) {
    const std::string place = "registering buffers";
    std::vector<std::vector<int64_t>> sizes;
    std::string mine;
    for (int32_t rank : locals_) {
      std::vector<int64_t> list;
      for (const GpuSlab& slab : device_.slabs(rank)) {
        list.push_back(slab.bytes);
        mine += std::to_string(slab.bytes) + " ";
      }
      sizes.push_back(std::move(list));
    }
    if (several()) {
      auto all = compare(mine, place, deadline);
      if (!all) return all.error();
      sizes.clear();
      for (const std::string& text : *all) {
        std::istringstream words(text);
        sizes.emplace_back();
        for (int64_t bytes = 0; words >> bytes;) sizes.back().push_back(bytes);
      }
    }
    const std::vector<size_t> slabs = registered_.common(sizes);
    for (const Comms* comms : all_comms()) {
      if (auto done =
              in_group(place, [&] { return registered_.add(*comms, device_, slabs, place); });
          !done)
        return done;
      if (auto done = settle(*comms, place, deadline); !done) return done;
    }
    return Done{};
  }

  void close(NcclComm& comm) {
    if (comm == nullptr) return;
    if (broken_) {
      q_.nccl.abort(comm);
    } else {
      registered_.drop(comm);
      q_.nccl.destroy(comm);
    }
    comm = nullptr;
  }
  void close_all() {
    for (auto& [partition, comms] : split_) {
      for (auto& [rank, comm] : comms) close(comm);
    }
    for (auto& [rank, comm] : world_) close(comm);
  }

  NcclQuestion q_;
  GpuDevice& device_;
  int64_t ranks_ = 1;
  std::vector<int32_t> locals_;
  Comms world_;
  std::map<std::vector<std::vector<int32_t>>, Comms> split_;  // by partition
  // communicators in order of creation
  std::vector<const Comms*> in_order_;
  std::map<std::pair<std::vector<int32_t>, int32_t>, NcclComm> by_group_;  // they belong to split_
  RegisteredBuffers registered_;
  std::unique_ptr<Control> control_;
  Watchdog watchdog_;
  bool broken_ = false;
};

}  // namespace

Result<std::unique_ptr<Communicator>> open_nccl(const NcclQuestion& question) {
  if (question.rendezvous.processes > 1 && question.rendezvous.processes < question.world) {
    return environment("the plan needs " + std::to_string(question.world) + " ranks, there are " +
                       std::to_string(question.rendezvous.processes) + "; start as many processes");
  }
  if (!question.nccl.can_register(question.registration)) {
    return environment("--register: " + question.nccl.path() + " is NCCL " +
                       nccl_version_text(question.nccl.version()) +
                       ", which does not support this; omit it or install a newer version");
  }
  if (question.registration != Registration::none) {
    const NcclLibrary nccl = question.nccl;
    question.device->take_memory_from(
        {[nccl](int64_t bytes) -> Result<std::byte*> {
           std::byte* data = nullptr;
           const NcclCode code = nccl.allocate(data, bytes);
           if (code == nccl_done) return data;
           return environment("NCCL has no memory for " + std::to_string(bytes) + " bytes: " +
                              nccl.error_text(code) + "; replay a smaller shape with --shrink");
         },
         [nccl](std::byte* data) { nccl.release(data); }});
  }
  auto communicator = std::make_unique<NcclCommunicator>(question);
  if (auto done = communicator->open(); !done) return done.error();
  return std::unique_ptr<Communicator>(std::move(communicator));
}

}  // namespace meshplan
