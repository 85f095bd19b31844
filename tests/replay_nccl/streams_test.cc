// Rounds of a bundle in flight together over the fake NCCL and CUDA: each on a stream and a communicator of its own, whose streams run in
// the worst order that events allow (fake_cuda.cc).
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>
#include <numeric>
#include <optional>

#include "fake_cuda.h"
#include "hand_bundle.h"
#include "hand_made.h"
#include "replay/executor.h"
#include "replay_host/open_backend.h"
#include "replay_nccl/cuda_device.h"
#include "replay_nccl/nccl_communicator.h"
#include "variable.h"

using namespace meshplan;
using namespace meshplan::test;

namespace {

template <class Function>
Function* of_fake(const char* name) {
  (void)NcclLibrary::load(FAKE_NCCL);
  void* library = dlopen(FAKE_NCCL, RTLD_NOW | RTLD_NOLOAD);
  REQUIRE(library != nullptr);
  return reinterpret_cast<Function*>(dlsym(library, name));
}
void forget() { of_fake<void()>("fake_nccl_forget")(); }
int at_once() { return of_fake<int()>("fake_nccl_at_once")(); }
int all_alive() { return of_fake<int()>("fake_nccl_alive")() + static_cast<int>(alive_on_fake_cuda()); }

// A device and a communicator of so many ranks.
struct Ranks {
  std::unique_ptr<GpuDevice> device;
  std::unique_ptr<Communicator> communicator;

  explicit Ranks(int64_t world, std::vector<int64_t> ids = {}, int64_t streams = 1, int64_t deadline_ms = 20'000,
                 NcclLibrary::Calls calls = NcclLibrary::Calls::do_not_block) {
    std::vector<int32_t> ranks(static_cast<size_t>(world));
    std::iota(ranks.begin(), ranks.end(), 0);
    device = std::move(open_cuda(ranks, 0).value());
    NcclQuestion question;
    question.nccl = NcclLibrary::load(FAKE_NCCL).value();
    question.device = device.get();
    question.world = world;
    question.global_ids = std::move(ids);
    question.deadline = std::chrono::milliseconds(deadline_ms);
    question.streams = streams;
    question.calls = calls;
    communicator = std::move(open_nccl(question).value());
  }
};

Result<ReplayReport> replay_bundle(const Plan& plan, const ReplayOptions& options = {},
                                   NcclLibrary::Calls calls = NcclLibrary::Calls::do_not_block) {
  Ranks ranks(rank_count(plan.meshes), make_rank_table(plan.meshes).global_ids, most_in_flight(plan.bundles.front().rounds),
              options.step_deadline.count(), calls);
  return replay(plan, options, *ranks.communicator, *ranks.device);
}

// Two tensors in two rounds of one wave, between two meshes of 2 ranks.
Plan two_rounds(int64_t stream_of_second) {
  const MeshTable table = train_and_serve(2, 2);
  Plan plan = plan_of(member(table, "train", "serve", {12, 4}, DType::float32, "S(0)", {onto("serve", "y", "S(1)")}), "first", 1);
  add_member(plan, member(table, "train", "serve", {9, 5}, DType::bfloat16, "S(0)", {onto("serve", "y", "R")}), "second", 1);
  PlannedBundle bundle;
  bundle.request.id = "sync";
  bundle.request.members = {0, 1};
  bundle.tensors = 2;
  for (const size_t member : {size_t{0}, size_t{1}}) {
    BundleRound round;
    round.stream = member == 0 ? 0 : stream_of_second;
    round.parts.push_back({member, 0, 0, 1, 0, 1});
    bundle.rounds.push_back(round);
  }
  plan.bundles.push_back(bundle);
  return plan;
}

Deadline soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(20); }

// Every rank packs one message a call, sends it to the next rank and unpacks what it gets: as the waves of a bundle do.
class Passing {
 public:
  static constexpr int64_t bytes = 48;
  Passing(Ranks& ranks, int64_t world, int64_t calls) : ranks_(ranks), world_(world) {
    const auto buffer = [&](int64_t rank) { return ranks_.device->allocate(static_cast<int32_t>(rank), bytes).value(); };
    for (int64_t c = 0; c < calls; ++c) {
      Call call;
      call.op = Op::exchange;
      call.dtype = DType::uint8;
      call.stream = c;
      call.place = "call " + std::to_string(c);
      for (int64_t rank = 0; rank < world; ++rank) {
        const auto r = static_cast<int32_t>(rank);
        own_.push_back({r, buffer(r), value(c, rank)});
        Held& target = got_.emplace_back(Held{r, buffer(r), value(c, (rank + world - 1) % world)});
        std::byte* const packed = buffer(r);
        std::byte* const arrived = buffer(r);
        pack_.push_back({r, copy_op(own_.back().data, packed, bytes)});
        unpack_.push_back({r, copy_op(arrived, target.data, bytes)});
        call.ranks.push_back({r,
                              nullptr,
                              {{static_cast<int32_t>((rank + 1) % world), packed, bytes}},
                              {{static_cast<int32_t>((rank + world - 1) % world), arrived, bytes}},
                              -1});
      }
      calls_.push_back(std::move(call));
    }
  }

  // Sources whole, everything else poison.
  void begin() {
    for (auto* list : {&pack_, &unpack_}) {
      for (const Work& w : *list) {
        REQUIRE(ranks_.device->poison(w.rank, w.op.to, bytes).ok());
        REQUIRE(ranks_.device->poison(w.rank, const_cast<std::byte*>(w.op.from), bytes).ok());
      }
    }
    for (const Held& held : own_) {
      const std::vector<std::byte> data(static_cast<size_t>(bytes), held.value);
      REQUIRE(ranks_.device->write(held.rank, data.data(), held.data, bytes).ok());
    }
  }
  Status run() {
    for (const Work& w : pack_) {
      if (auto done = ranks_.device->work(w.rank, {&w.op, 1}); !done) return done;
    }
    if (auto done = ranks_.communicator->run_together(calls_, soon()); !done) return done;
    for (const Work& w : unpack_) {
      if (auto done = ranks_.device->work(w.rank, {&w.op, 1}); !done) return done;
    }
    return Done{};
  }
  // Targets that hold what they should.
  int64_t right() {
    int64_t count = 0;
    for (const Held& held : got_) {
      std::vector<std::byte> data(static_cast<size_t>(bytes));
      REQUIRE(ranks_.device->read(held.rank, held.data, data.data(), bytes).ok());
      count += data == std::vector<std::byte>(static_cast<size_t>(bytes), held.value) ? 1 : 0;
    }
    return count;
  }
  [[nodiscard]] int64_t all() const { return std::ssize(got_); }

 private:
  struct Held {
    int32_t rank;
    std::byte* data;
    std::byte value;
  };
  struct Work {
    int32_t rank;
    LocalOp op;
  };
  std::byte value(int64_t call, int64_t rank) const { return static_cast<std::byte>(1 + call * world_ + rank); }

  Ranks& ranks_;
  int64_t world_;
  std::vector<Held> own_;
  std::vector<Held> got_;
  std::vector<Work> pack_;
  std::vector<Work> unpack_;
  std::vector<Call> calls_;
};

}  // namespace

TEST_CASE("bundles in any schedule: the rounds of a wave are in flight together, each on a stream and a communicator of its own") {
  std::mt19937 random(4711);
  int most = 0;
  for (int round = 0; round < 16; ++round) {
    CAPTURE(round);
    Plan plan = sync_plan(4, 3);
    const Scheduling how{1 + round % 7, 1 + round % 6, 1 + round % 4};
    plan.bundles.push_back(schedule(plan, "sync", all_members(plan), how, random));
    forget();
    auto report = replay_bundle(plan, {}, round % 2 == 0 ? NcclLibrary::Calls::do_not_block : NcclLibrary::Calls::block);
    REQUIRE_MESSAGE(report.ok(), (report.ok() ? "" : report.error().message));
    CHECK_MESSAGE(all_right(*report), to_text(*report));
    CHECK(report->bundles.size() == 1);
    // Of some rounds a rank has no part.
    CHECK(at_once() <= std::min<int64_t>(4, most_in_flight(plan.bundles[0].rounds)));
    most = std::max(most, at_once());
  }
  CHECK(most == 4);
  CHECK(all_alive() == 0);
}

TEST_CASE("a wave of two rounds takes a second stream and a second world, one round at a time neither") {
  for (const auto& [stream, streams] : std::vector<std::pair<int64_t, int>>{{0, 1}, {1, 2}, {7, 2}}) {
    CAPTURE(stream);
    const Plan plan = two_rounds(stream);
    forget();
    Ranks ranks(4, make_rank_table(plan.meshes).global_ids);
    auto report = replay(plan, {}, *ranks.communicator, *ranks.device);
    REQUIRE_MESSAGE(report.ok(), (report.ok() ? "" : report.error().message));
    CHECK_MESSAGE(all_right(*report), to_text(*report));
    CHECK(at_once() == streams);
    CHECK(streams_on_fake_cuda() == 4 * streams);
    CHECK(of_fake<int()>("fake_nccl_alive")() == 4 * streams);
  }
  CHECK(all_alive() == 0);
}

TEST_CASE("an exchange beside a collective: two streams, and no communicator that they would not have one by one") {
  const MeshTable table = train_and_serve(2, 2);
  const HandStep gather{Op::all_gather, {"y"}, "R", std::nullopt, 1, 1, false, "serve"};
  for (const int64_t stream : {0, 3}) {
    CAPTURE(stream);
    Plan plan = plan_of(member(table, "serve", "", {9, 2}, DType::float32, "S(0)", {gather}), "inside", 2);
    add_member(plan, member(table, "train", "serve", {12, 4}, DType::float32, "S(0)", {onto("serve", "y", "S(1)")}), "across", 1);
    PlannedBundle bundle;
    bundle.request.id = "sync";
    bundle.request.members = {0, 1};
    bundle.tensors = 3;
    bundle.rounds.resize(2);
    bundle.rounds[0].op = Op::all_gather;
    bundle.rounds[0].stream = stream;
    bundle.rounds[0].parts.push_back({0, 0, 0, 2, 0, 1});
    bundle.rounds[1].stream = 0;
    bundle.rounds[1].parts.push_back({1, 0, 0, 1, 0, 1});
    plan.bundles.push_back(bundle);
    forget();
    Ranks ranks(4, make_rank_table(plan.meshes).global_ids);
    auto report = replay(plan, {}, *ranks.communicator, *ranks.device);
    REQUIRE_MESSAGE(report.ok(), (report.ok() ? "" : report.error().message));
    CHECK_MESSAGE(all_right(*report), to_text(*report));
    // With the same stream the second waits for the first.
    CHECK(at_once() == (stream == 0 ? 1 : 2));
    CHECK(of_fake<int()>("fake_nccl_alive")() == 4 + 2);
  }
  CHECK(all_alive() == 0);
}

TEST_CASE("calls of several streams begin after the packing and end before the unpacking, run at once or as a graph") {
  for (const int64_t calls : {1, 2, 3, 4, 7}) {
    for (const bool graph : {false, true}) {
      CAPTURE(calls);
      CAPTURE(graph);
      Ranks ranks(3);
      REQUIRE(ranks.communicator->prepare_copies({}, calls, soon()).ok());
      Passing passing(ranks, 3, calls);
      passing.begin();
      int64_t recording = 0;
      if (graph) {
        auto made = ranks.device->record([&] { return passing.run(); });
        REQUIRE_MESSAGE(made.ok(), (made.ok() ? "" : made.error().message));
        recording = made->value();
        CHECK(passing.right() == 0);
      }
      // A graph runs any number of times.
      for (int time = 0; time < (graph ? 3 : 2); ++time) {
        passing.begin();
        auto done = graph ? ranks.device->run_recorded(recording) : passing.run();
        REQUIRE_MESSAGE(done.ok(), (done.ok() ? "" : done.error().message));
        CHECK(passing.right() == passing.all());
      }
    }
  }
  CHECK(all_alive() == 0);
}

TEST_CASE("collectives that pad on several streams have scratch buffers of their own, and each stream unpacks by itself") {
  Ranks ranks(4);
  const std::vector<std::vector<int32_t>> groups{{0, 1}, {2, 3}};
  REQUIRE(ranks.communicator->prepare(groups, soon()).ok());
  REQUIRE(ranks.communicator->prepare_copies(groups, 2, soon()).ok());
  // 3 and 2 elements of each rank's own value, so that every gather is padded; three in a row on each of two streams.
  std::vector<Call> calls;
  std::vector<std::pair<int32_t, std::byte*>> targets;
  std::vector<std::vector<std::byte>> expected;
  for (int64_t c = 0; c < 6; ++c) {
    Call call;
    call.op = Op::all_gather;
    call.dtype = DType::uint8;
    call.stream = c % 2;
    call.place = "gather " + std::to_string(c);
    const auto of = [c](int32_t rank) { return static_cast<std::byte>(1 + c * 4 + rank); };
    for (int32_t rank = 0; rank < 4; ++rank) {
      const std::vector<int32_t>& group = groups[static_cast<size_t>(rank / 2)];
      const int64_t mine = rank % 2 == 0 ? 3 : 2;
      std::byte* const from = ranks.device->allocate(rank, mine).value();
      const std::vector<std::byte> data(static_cast<size_t>(mine), of(rank));
      REQUIRE(ranks.device->write(rank, data.data(), from, mine).ok());
      std::byte* const to = ranks.device->allocate(rank, 5).value();
      REQUIRE(ranks.device->poison(rank, to, 5).ok());
      call.ranks.push_back({rank, &group, {{rank, from, mine}}, {{group[0], to, 3}, {group[1], to + 3, 2}}, -1});
      targets.emplace_back(rank, to);
      expected.push_back({of(group[0]), of(group[0]), of(group[0]), of(group[1]), of(group[1])});
    }
    calls.push_back(std::move(call));
  }
  forget();
  const auto ran = ranks.communicator->run_together(calls, soon());
  REQUIRE_MESSAGE(ran.ok(), (ran.ok() ? "" : ran.error().message));
  CHECK(at_once() == 2);
  for (size_t i = 0; i < targets.size(); ++i) {
    std::vector<std::byte> data(5);
    REQUIRE(ranks.device->read(targets[i].first, targets[i].second, data.data(), 5).ok());
    CAPTURE(i);
    CHECK(data == expected[i]);
  }
}

TEST_CASE("an all_to_all of scattered parts packs and unpacks on its own stream") {
  Ranks ranks(2);
  const std::vector<std::vector<int32_t>> groups{{0, 1}};
  REQUIRE(ranks.communicator->prepare(groups, soon()).ok());
  REQUIRE(ranks.communicator->prepare_copies(groups, 2, soon()).ok());
  std::vector<Call> calls;
  std::vector<std::tuple<int32_t, std::byte*, std::byte>> targets;
  for (int64_t c = 0; c < 4; ++c) {
    Call call;
    call.op = Op::all_to_all;
    call.dtype = DType::uint8;
    call.stream = c % 2;
    call.place = "turn " + std::to_string(c);
    const auto of = [c](int32_t from, int32_t to) { return static_cast<std::byte>(1 + c * 4 + from * 2 + to); };
    for (int32_t rank = 0; rank < 2; ++rank) {
      RankCall& own = call.ranks.emplace_back(RankCall{rank, &groups[0], {}, {}, 3});
      for (int32_t peer = 0; peer < 2; ++peer) {
        std::byte* const from = ranks.device->allocate(rank, 3).value();
        const std::vector<std::byte> data(3, of(rank, peer));
        REQUIRE(ranks.device->write(rank, data.data(), from, 3).ok());
        std::byte* const to = ranks.device->allocate(rank, 3).value();
        REQUIRE(ranks.device->poison(rank, to, 3).ok());
        own.sends.push_back({peer, from, 3});
        own.receives.push_back({peer, to, 3});
        targets.emplace_back(rank, to, of(peer, rank));
      }
    }
    calls.push_back(std::move(call));
  }
  const auto ran = ranks.communicator->run_together(calls, soon());
  REQUIRE_MESSAGE(ran.ok(), (ran.ok() ? "" : ran.error().message));
  for (const auto& [rank, data, value] : targets) {
    std::vector<std::byte> found(3);
    REQUIRE(ranks.device->read(rank, data, found.data(), 3).ok());
    CHECK(found == std::vector<std::byte>(3, value));
  }
}

TEST_CASE("NCCL is told to keep the order of starts where several streams are used, unless the user says otherwise") {
  const char* const name = "NCCL_LAUNCH_ORDER_IMPLICIT";
  const auto now = [&] { return std::getenv(name) == nullptr ? std::string("unset") : std::string(std::getenv(name)); };
  unsetenv(name);
  // What the plan of `meshplan run` asks for, then what comes of it.
  CHECK(backend_question("nccl", two_rounds(0), {}).value().streams == 1);
  CHECK(backend_question("nccl", two_rounds(1), {}).value().streams == 2);
  { const Ranks one(2); }
  CHECK(now() == "unset");
  { const Ranks two(2, {}, 2); }
  CHECK(now() == "1");
  setenv(name, "0", 1);
  { const Ranks two(2, {}, 2); }
  CHECK(now() == "0");
  unsetenv(name);
}

TEST_CASE("a round that hangs beside another one is named with its rank at the deadline, and everything is closed") {
  for (const int hangs : {0, 1}) {
    CAPTURE(hangs);
    forget();
    const Variable hang("FAKE_NCCL_HANG", std::to_string(hangs));
    ReplayOptions options;
    options.step_deadline = std::chrono::milliseconds(200);
    auto report = replay_bundle(two_rounds(1), options);
    REQUIRE_FALSE(report.ok());
    CHECK(report.error().fault == Fault::environment);
    const std::string part = "bundle 'sync', round " + std::to_string(hangs) + ": rank 0 waited past its deadline";
    CHECK_MESSAGE(report.error().message.find(part) != std::string::npos, report.error().message);
    CHECK(all_alive() == 0);
  }
}

TEST_CASE("a round whose communicator fails is named, whichever round is waited for") {
  for (const int breaks : {0, 1}) {
    CAPTURE(breaks);
    forget();
    const Variable broken("FAKE_NCCL_BREAK", std::to_string(breaks));
    const Variable hang("FAKE_NCCL_HANG", std::to_string(1 - breaks));
    ReplayOptions options;
    options.step_deadline = std::chrono::milliseconds(5000);
    auto report = replay_bundle(two_rounds(1), options);
    REQUIRE_FALSE(report.ok());
    const std::string part = "bundle 'sync', round " + std::to_string(breaks) + ": rank 0: NCCL says: ";
    CHECK_MESSAGE(report.error().message.find(part) != std::string::npos, report.error().message);
    CHECK(all_alive() == 0);
  }
}

TEST_CASE("streams wait for each other only where they are told to") {
  {
    auto device = std::move(open_cuda({0}, 0).value());
    std::byte* const a = device->allocate(0, 8).value();
    std::byte* const b = device->allocate(0, 8).value();
    const std::vector<std::byte> ones(8, std::byte{1});
    const std::vector<std::byte> twos(8, std::byte{2});
    const auto held = [&](const std::byte* data) {
      std::vector<std::byte> out(8);
      REQUIRE(device->read(0, data, out.data(), 8).ok());
      return out;
    };
    for (const bool ordered : {false, true}) {
      REQUIRE(device->write(0, ones.data(), a, 8).ok());
      REQUIRE(device->write(0, twos.data(), b, 8).ok());
      REQUIRE(device->stream(0, 1).ok());
      // a to b on the main stream, b to a on the other.
      const LocalOp there = copy_op(a, b, 8);
      const LocalOp back = copy_op(b, a, 8);
      REQUIRE(device->work(0, {&there, 1}).ok());
      if (ordered) REQUIRE(device->order(0, GpuDevice::main_stream, 1).ok());
      REQUIRE(device->work_on(0, 1, {&back, 1}).ok());
      REQUIRE(device->synchronise().ok());
      CHECK(device->idle(0, 1).value());
      CHECK(held(a) == (ordered ? ones : twos));
    }
    // The device waits for all of them.
    REQUIRE(device->write(0, ones.data(), a, 8).ok());
    REQUIRE(device->write(0, twos.data(), b, 8).ok());
    const LocalOp alone = copy_op(a, b, 8);
    REQUIRE(device->work_on(0, 1, {&alone, 1}).ok());
    REQUIRE(device->synchronise().ok());
    CHECK(std::memcmp(b, ones.data(), 8) == 0);
    // A stream that is forked into a graph and not joined is refused, as CUDA does.
    const LocalOp back = copy_op(b, a, 8);
    auto unjoined = device->record([&]() -> Status {
      if (auto done = device->order(0, GpuDevice::main_stream, 1); !done) return done;
      return device->work_on(0, 1, {&back, 1});
    });
    REQUIRE_FALSE(unjoined.ok());
    CHECK(unjoined.error().message.find("CUDA cannot end a graph") == 0);
  }
  CHECK(alive_on_fake_cuda() == 0);
}
