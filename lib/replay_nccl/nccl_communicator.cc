#include "replay_nccl/nccl_communicator.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <set>
#include <span>
#include <thread>

#include "base/utf8.h"
#include "replay/watchdog.h"
#include "replay_nccl/control.h"
#include "replay_nccl/nccl_enqueue.h"
#include "replay_nccl/nccl_facts.h"
#include "replay_nccl/nccl_streams.h"
#include "replay_nccl/pause.h"
#include "replay_nccl/registered_buffers.h"

namespace meshplan {
namespace {

using Comms = NcclComms::ByRank;

// Time after its deadline that a call has to end by itself before the watchdog ends the process.
constexpr auto margin = std::chrono::seconds(6);

class NcclCommunicator final : public Communicator {
 public:
  explicit NcclCommunicator(const NcclQuestion& q)
      : q_(q),
        device_(*q.device),
        comms_(q.nccl, q.calls),
        registered_(q.nccl, q.registration),
        watchdog_(own_name(q)) {
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
  ~NcclCommunicator() override {
    const Watch watch(*this, "closing communicators", Deadline::clock::now() + q_.deadline);
    close_all();
  }

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
        auto stream = device_.stream(rank, GpuDevice::main_stream);
        if (!stream) return stream.error();
        NcclComm& comm = comms_.world()[rank];
        if (auto done = good(q_.nccl.init_rank(comm, static_cast<int>(ranks_), id, rank), place);
            !done)
          return done;
      }
      return Done{};
    });
    if (!begun) return begun;
    if (auto done = settle(comms_.world(), place, deadline); !done) return done;
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

  Status prepare(const NcclComms::Partition& groups, Deadline deadline) override {
    return create(groups, 1, deadline);
  }
  Status prepare_copies(const NcclComms::Partition& groups, int64_t copies,
                        Deadline deadline) override {
    return create(groups, std::min(copies, most_streams), deadline);
  }

  Status run(const Call& call, Deadline deadline) override {
    const Watch watch(*this, call.place, deadline);
    return run_group(&call, 1, deadline);
  }
  // Of one stream: neighbouring exchanges are one group of NCCL, so that all their messages are in
  // flight at once; collectives share scratch buffers and follow one another.
  Status run_together(const std::vector<Call>& calls, Deadline deadline) override {
    std::set<int64_t> streams;
    for (const Call& call : calls) streams.insert(stream_of(call));
    if (streams.size() > 1) return run_on_streams(calls, streams, deadline);
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

  Status wait_for_recorded(const std::string& place, Deadline deadline) override {
    const Watch watch(*this, place, deadline);
    return wait(place, deadline);
  }
  Status barrier_with_deadline(const std::string& place, Deadline deadline) override {
    if (!several()) return Done{};
    const Watch watch(*this, place, deadline);
    auto all = compare(std::string(), place, deadline);
    return all ? Status(Done{}) : Status(all.error());
  }
  Status barrier(const std::string& place, Deadline deadline) override {
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
    const NcclFacts own = nccl_facts(q_);
    const auto places = tell_all(own.place, deadline);
    if (!places) return places.error();
    return facts_of_all(q_, own, *places);
  }

 private:
  Status create(const NcclComms::Partition& groups, int64_t copies, Deadline deadline) {
    const std::string place = "creating communicators";
    const Watch watch(*this, place, deadline);
    for (int64_t copy = 0; copy < copies; ++copy) {
      if (comms_.knows(groups, copy)) continue;
      auto begun =
          in_group(place, [&] { return good(comms_.split(groups, copy, locals_), place); });
      if (!begun) return begun;
      if (auto done = settle(comms_.world(), place, deadline); !done) return done;
      if (auto done = settle(comms_.begun(groups, copy), place, deadline); !done) return done;
      comms_.add(groups, copy);
    }
    return registered_.wanted() ? register_new(deadline) : Status(Done{});
  }

  Status run_group(const Call* calls, size_t n, Deadline deadline) {
    CopiesInUse copies;
    Running running;
    if (auto done = start({calls, n}, GpuDevice::main_stream, copies, running, deadline); !done)
      return done;
    return device_.recording() ? Status(Done{}) : wait(calls->place, deadline);
  }

  // Calls of several streams, each on its own stream and communicator. The streams begin after what
  // the main one has, and it goes on after all of them. Every process starts the calls in the same
  // order, one group of NCCL after the other: no kernel may keep one from starting that another
  // rank waits for (open_nccl).
  Status run_on_streams(const std::vector<Call>& calls, const std::set<int64_t>& streams,
                        Deadline deadline) {
    constexpr int64_t own = GpuDevice::main_stream;
    auto forked = for_each_beside(
        streams, [&](int32_t rank, int64_t stream) { return device_.order(rank, own, stream); });
    if (!forked) return broken(forked.error());
    CopiesInUse copies;
    Running running;
    std::map<int64_t, const Call*> last;  // by stream
    for (const Call& call : calls) {
      const Watch watch(*this, call.place, deadline);
      if (auto done = start({&call, 1}, stream_of(call), copies, running, deadline); !done)
        return done;
      last[stream_of(call)] = &call;
    }
    auto joined = for_each_beside(
        streams, [&](int32_t rank, int64_t stream) { return device_.order(rank, stream, own); });
    if (!joined) return broken(joined.error());
    if (device_.recording()) return Done{};
    // The main stream last: it waits for the others, and which of them is late has to be told.
    last.try_emplace(own, &calls.front());
    for (auto at = last.rbegin(); at != last.rend(); ++at) {
      const std::string& place = at->second->place;
      const Watch watch(*this, place, deadline);
      if (auto done = wait(place, deadline, at->first, running); !done) return done;
    }
    return Done{};
  }

  // Every local rank with every stream beside its main one.
  template <class Order>
  Status for_each_beside(const std::set<int64_t>& streams, Order&& order) {
    for (const int32_t rank : locals_) {
      for (const int64_t stream : streams) {
        if (stream == GpuDevice::main_stream) continue;
        if (auto done = order(rank, stream); !done) return done;
      }
    }
    return Done{};
  }

  // Enqueues calls as one group of NCCL, and what has to follow them.
  Status start(std::span<const Call> calls, int64_t stream, CopiesInUse& copies, Running& running,
               Deadline deadline) {
    const std::string& place = calls.front().place;
    std::vector<FollowUp> after;
    Comms used;
    auto begun = in_group(place, [&]() -> Status {
      for (const Call& call : calls) {
        // Of exchanges all processes know, those without a message too.
        if (call.op == Op::exchange) (void)copies.copy({}, stream);
        for (const RankCall& rank : call.ranks) {
          auto on = device_.stream(rank.rank, stream);
          if (!on) return on.error();
          const NcclComms::Group group = rank.group == nullptr ? NcclComms::Group{} : *rank.group;
          NcclComm comm = comms_.find(group, rank.rank, copies.copy(group, stream));
          if (comm == nullptr)
            return environment(place + ": no communicator was created for this group");
          used[rank.rank] = comm;
          running[comm] = &call;
          const EnqueueQuestion question{&q_.nccl, &device_, &call, &rank, comm, stream, *on};
          if (auto done = enqueue_call(question, after); !done) return done;
        }
      }
      return Done{};
    });
    if (!begun) return begun;
    if (auto done = settle(used, place, deadline); !done) return done;
    for (const FollowUp& e : after) {
      if (auto done = device_.work_on(e.rank, stream, e.ops); !done) return done;
    }
    return Done{};
  }

  [[nodiscard]] bool several() const { return q_.rendezvous.processes > 1; }

  [[nodiscard]] std::string rank_text(int32_t rank) const { return process_name(q_, rank); }

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
    return done ? done : Status(broken(named(done.error(), place)));
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
        if (state != nccl_busy) return broken(failed(place, rank, state));
        if (auto done = keep_waiting(pause, place, rank, deadline); !done) return done;
      }
    }
    return Done{};
  }

  // Waits until a stream of every local rank is idle or a communicator fails.
  Status wait(const std::string& place, Deadline deadline, int64_t stream = GpuDevice::main_stream,
              const Running& running = {}) {
    for (int32_t rank : locals_) {
      Pause pause;
      while (true) {
        auto idle = device_.idle(rank, stream);
        if (!idle) return broken(environment(place + ": " + idle.error().message));
        if (*idle) break;
        if (pause.every_so_often()) {
          if (auto done = check(place, rank, running); !done) return done;
        }
        if (auto done = keep_waiting(pause, place, rank, deadline); !done) return done;
      }
    }
    return Done{};
  }

  // Whether a communicator of the rank has failed: in what it runs, if that is known.
  Status check(const std::string& place, int32_t rank, const Running& running) {
    for (const Comms* comms : comms_.all()) {
      const auto at = comms->find(rank);
      if (at == comms->end() || at->second == nullptr) continue;
      NcclCode state = nccl_done;
      if (auto done = good(q_.nccl.state_of(at->second, state), place); !done) return done;
      if (state == nccl_done || state == nccl_busy) continue;
      const auto call = running.find(at->second);
      return broken(failed(call == running.end() ? place : call->second->place, rank, state));
    }
    return Done{};
  }

  [[nodiscard]] Error late(const std::string& place, int32_t rank) {
    if (auto wrong = control_ ? control_->missing(place) : std::nullopt) return *wrong;
    return environment(
        place + ": " + rank_text(rank) +
        " waited past its deadline; another rank hangs or has ended, or the deadline is too short");
  }
  // NCCL may report an error before the control connection does, which knows which rank has exited;
  // so wait a moment for it.
  [[nodiscard]] Error named(Error error, const std::string& place) const {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
    while (control_ && std::chrono::steady_clock::now() < until) {
      if (auto wrong = control_->trouble(place)) return *wrong;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return error;
  }
  [[nodiscard]] Error failed(const std::string& place, int32_t rank, NcclCode state) const {
    return named(
        environment(place + ": " + rank_text(rank) + ": NCCL says: " + q_.nccl.error_text(state)),
        place);
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
    constexpr int64_t own = GpuDevice::main_stream;
    auto stream = device_.stream(rank, own);
    if (!stream) return stream.error();
    auto out = device_.scratch(rank, scratch_slot(ScratchUse::notes_send, own), count);
    if (!out) return out.error();
    auto in = device_.scratch(rank, scratch_slot(ScratchUse::notes_receive, own), count * ranks_);
    if (!in) return in.error();
    if (auto done =
            device_.write(rank, reinterpret_cast<const std::byte*>(mine.data()), *out, count);
        !done)
      return done;
    if (auto done =
            good(q_.nccl.all_gather(*out, *in, count, comms_.world().at(rank), *stream), place);
        !done)
      return done;
    if (auto done = settle(comms_.world(), place, deadline); !done) return done;
    if (auto done = wait(place, deadline); !done) return done;
    return device_.read(rank, *in, reinterpret_cast<std::byte*>(all.data()), count * ranks_);
  }

  // Registers new slabs with every communicator. Collective.
  Status register_new(Deadline deadline) {
    const std::string place = "registering buffers";
    std::vector<std::string> sizes;  // by rank
    for (int32_t rank : locals_) sizes.push_back(slab_sizes(device_.slabs(rank)));
    if (several()) {
      auto all = compare(sizes.front(), place, deadline);
      if (!all) return all.error();
      sizes = std::move(*all);
    }
    const std::vector<size_t> slabs = registered_.common(slab_sizes(sizes));
    for (const Comms* comms : comms_.all()) {
      if (auto done =
              in_group(place, [&] { return registered_.add(*comms, device_, slabs, place); });
          !done)
        return done;
      if (auto done = settle(*comms, place, deadline); !done) return done;
    }
    return Done{};
  }

  void close_all() {
    device_.forget_recorded();
    comms_.close_all([this](NcclComm comm) {
      if (broken_) {
        q_.nccl.abort(comm);
      } else {
        registered_.drop(comm);
        q_.nccl.destroy(comm);
      }
    });
  }

  NcclQuestion q_;
  GpuDevice& device_;
  int64_t ranks_ = 1;
  std::vector<int32_t> locals_;
  NcclComms comms_;
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
  if (question.registration != Registration::none)
    question.device->take_memory_from(nccl_memory(question.nccl));
  // Kernels of several communicators in flight on one GPU deadlock where they cannot all run and
  // two GPUs begin with different ones. So NCCL lets each begin after those started before it,
  // unless the user says otherwise.
  if (question.streams > 1)
    setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", 0);  // NOLINT(concurrency-mt-unsafe)
  auto communicator = std::make_unique<NcclCommunicator>(question);
  if (auto done = communicator->open(); !done) return done.error();
  if (question.calls == NcclLibrary::Calls::block) {  // all ranks by a split, too
    const Deadline deadline = std::chrono::steady_clock::now() + question.deadline;
    if (auto done = communicator->prepare({}, deadline); !done) return done.error();
  }
  return std::unique_ptr<Communicator>(std::move(communicator));
}

}  // namespace meshplan
