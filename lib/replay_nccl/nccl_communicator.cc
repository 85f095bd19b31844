#include "replay_nccl/nccl_communicator.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <numeric>
#include <thread>

namespace meshplan {
namespace {

// The dtype that a reduction runs in on the wire.
DType reduced_dtype(DType dtype) {
  switch (dtype) {
    case DType::int16:
      return DType::int32;
    case DType::float8_e4m3:
    case DType::float8_e5m2:
      return DType::float32;
    default:
      return dtype;
  }
}

ncclDataType_t nccl_type(DType dtype) {
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

ncclRedOp_t nccl_op(DType dtype, ReduceOp op) {
  if (dtype == DType::boolean) return op == ReduceOp::product || op == ReduceOp::min ? ncclMin : ncclMax;
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

// Scratch buffers of a rank.
enum Slot : int { slot_send, slot_receive, slot_wide_send, slot_wide_receive, slot_notes_send, slot_notes_receive };

LocalOp copy_bytes(const std::byte* from, std::byte* to, int64_t bytes) {
  LocalOp op;
  op.dtype = DType::uint8;
  op.from = from;
  op.to = to;
  op.region.run = bytes;
  return op;
}

LocalOp cast_op(DType from_dtype, const std::byte* from, DType dtype, std::byte* to, int64_t count) {
  LocalOp op;
  op.kind = LocalOp::Kind::cast;
  op.from_dtype = from_dtype;
  op.dtype = dtype;
  op.from = from;
  op.to = to;
  op.count = count;
  return op;
}

class NcclCommunicator final : public Communicator {
 public:
  explicit NcclCommunicator(const NcclQuestion& q) : q_(q), device_(*q.device) {
    if (q.rendezvous.processes > 1) {
      ranks_ = q.rendezvous.processes;
      locals_ = {static_cast<int32_t>(q.rendezvous.process)};
    } else {
      ranks_ = q.world;
      locals_.resize(static_cast<size_t>(q.world));
      std::iota(locals_.begin(), locals_.end(), 0);
    }
  }
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;
  ~NcclCommunicator() override {
    for (auto& [partition, comms] : split_) {
      for (auto& [rank, comm] : comms) close(comm);
    }
    for (auto& [rank, comm] : world_) close(comm);
  }

  Status open() {
    const Deadline deadline = std::chrono::steady_clock::now() + q_.deadline;
    if (!q_.rendezvous.address.empty()) setenv("NCCL_COMM_ID", q_.rendezvous.address.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
    ncclUniqueId id;
    if (auto done = good(q_.api.get_unique_id(&id), "starting"); !done) return done;
    if (auto done = good(q_.api.group_start(), "starting"); !done) return done;
    for (int32_t rank : locals_) {
      auto stream = device_.stream(rank);
      if (!stream) return stream.error();
      ncclConfig_t config = quiet_config();
      if (auto done = good(q_.api.init_rank(&world_[rank], static_cast<int>(ranks_), id, rank, &config), "starting"); !done) return done;
    }
    if (auto done = good(q_.api.group_end(), "starting"); !done) return done;
    return settle(world_, "starting", deadline);
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
  [[nodiscard]] bool speaks() const override { return q_.rendezvous.process == 0; }

  Status prepare(const std::vector<std::vector<int32_t>>& groups, Deadline deadline) override {
    if (split_.count(groups) != 0) return Done{};
    std::map<int32_t, ncclComm_t>& comms = split_[groups];
    const std::string place = "making communicators";
    if (auto done = good(q_.api.group_start(), place); !done) return done;
    for (int32_t rank : locals_) {
      int colour = NCCL_SPLIT_NOCOLOR;
      int key = 0;
      for (size_t g = 0; g < groups.size(); ++g) {
        const auto at = std::lower_bound(groups[g].begin(), groups[g].end(), rank);
        if (at == groups[g].end() || *at != rank) continue;
        colour = static_cast<int>(g);
        key = static_cast<int>(at - groups[g].begin());
      }
      ncclConfig_t config = quiet_config();
      ncclComm_t& comm = comms[rank];
      if (auto done = good(q_.api.split(world_.at(rank), colour, key, &comm, &config), place); !done) return done;
    }
    if (auto done = good(q_.api.group_end(), place); !done) return done;
    if (auto done = settle(world_, place, deadline); !done) return done;
    if (auto done = settle(comms, place, deadline); !done) return done;
    for (const auto& group : groups) {
      for (int32_t rank : group) {
        if (comms.count(rank) != 0) by_group_[{group, rank}] = comms.at(rank);
      }
    }
    return Done{};
  }

  Status run(const Call& call, Deadline deadline) override {
    std::vector<Enqueued> after;
    if (auto done = good(q_.api.group_start(), call.place); !done) return done;
    std::map<int32_t, ncclComm_t> used;
    Status status = Done{};
    for (const RankCall& rank : call.ranks) {
      auto stream = device_.stream(rank.rank);
      if (!stream) {
        status = stream.error();
        break;
      }
      ncclComm_t comm = world_.at(rank.rank);
      if (rank.group != nullptr) {
        const auto at = by_group_.find({*rank.group, rank.rank});
        if (at == by_group_.end()) {
          status = environment(call.place + ": no communicator was made for this group");
          break;
        }
        comm = at->second;
      }
      used[rank.rank] = comm;
      status = enqueue(call, rank, comm, static_cast<cudaStream_t>(*stream), after);
      if (!status) break;
    }
    // The group is closed in any case: an open one would hold every later call.
    Status closed = good(q_.api.group_end(), call.place);
    if (!status) return status;
    if (!closed) return closed;
    if (auto done = settle(used, call.place, deadline); !done) return done;
    for (const Enqueued& e : after) {
      if (auto done = device_.work(e.rank, e.ops); !done) return done;
    }
    return wait(call.place, deadline);
  }

  Status roll_call(const std::string& place, Deadline deadline) override {
    if (q_.rendezvous.processes == 1) return Done{};
    return meet(place, deadline);
  }
  Status barrier(Deadline deadline) override {
    if (q_.rendezvous.processes == 1) return wait("waiting for all ranks", deadline);
    return meet("waiting for all ranks", deadline);
  }

  Result<std::vector<std::string>> tell_all(const std::string& text, Deadline deadline) override {
    if (q_.rendezvous.processes == 1) return std::vector<std::string>{text};
    const int32_t rank = locals_.front();
    auto length = static_cast<int64_t>(text.size());
    std::string lengths(static_cast<size_t>(ranks_) * sizeof(int64_t), '\0');
    if (auto done = gather_bytes(rank, reinterpret_cast<const char*>(&length), sizeof(length), lengths.data(), deadline); !done)
      return done.error();
    std::vector<int64_t> each(static_cast<size_t>(ranks_));
    std::memcpy(each.data(), lengths.data(), lengths.size());
    const int64_t longest = std::max<int64_t>(1, *std::max_element(each.begin(), each.end()));
    std::string padded = text;
    padded.resize(static_cast<size_t>(longest), '\0');
    std::string all(static_cast<size_t>(longest * ranks_), '\0');
    if (auto done = gather_bytes(rank, padded.data(), longest, all.data(), deadline); !done) return done.error();
    std::vector<std::string> out;
    for (size_t p = 0; p < each.size(); ++p) out.push_back(all.substr(p * static_cast<size_t>(longest), static_cast<size_t>(each[p])));
    return out;
  }

  void abort(const Error& error) override {
    for (auto& [partition, comms] : split_) {
      for (auto& [rank, comm] : comms) abort_one(comm);
    }
    for (auto& [rank, comm] : world_) abort_one(comm);
    if (q_.rendezvous.processes == 1) return;
    std::fprintf(stderr, "meshplan: rank %s: %s\n", rank_text(locals_.front()).c_str(), error.message.c_str());
    std::_Exit(exit_code(error.fault));
  }

  Result<std::vector<std::pair<std::string, std::string>>> describe(Deadline /*deadline*/) override {
    std::vector<std::pair<std::string, std::string>> out{{"backend", "nccl"},
                                                         {"NCCL compiled for", nccl_version_text(NCCL_VERSION_CODE)},
                                                         {"NCCL loaded", nccl_version_text(q_.api.version) + " from " + q_.api.path},
                                                         {"processes", std::to_string(q_.rendezvous.processes)}};
    if (!q_.rendezvous.launcher.empty()) out.emplace_back("started by", q_.rendezvous.launcher);
    for (auto& fact : device_.facts()) out.push_back(std::move(fact));
    return out;
  }

 private:
  // Local work that follows the collective on the rank's stream.
  struct Enqueued {
    int32_t rank = 0;
    std::vector<LocalOp> ops;
  };

  static ncclConfig_t quiet_config() {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    return config;
  }

  [[nodiscard]] std::string rank_text(int32_t rank) const {
    const auto r = static_cast<size_t>(rank);
    return std::to_string(r < q_.global_ids.size() ? q_.global_ids[r] : rank);
  }

  Status good(ncclResult_t result, const std::string& place) const {
    if (result == ncclSuccess || result == ncclInProgress) return Done{};
    return environment(place + ": NCCL says: " + q_.api.error_string(result));
  }

  // Until no communicator is in progress any more.
  Status settle(const std::map<int32_t, ncclComm_t>& comms, const std::string& place, Deadline deadline) const {
    for (const auto& [rank, comm] : comms) {
      if (comm == nullptr) continue;
      ncclResult_t state = ncclInProgress;
      while (true) {
        if (auto done = good(q_.api.async_error(comm, &state), place); !done) return done;
        if (state != ncclInProgress) break;
        if (std::chrono::steady_clock::now() > deadline) return late(place, rank);
        std::this_thread::yield();
      }
      if (state != ncclSuccess) return environment(place + ": rank " + rank_text(rank) + ": NCCL says: " + q_.api.error_string(state));
    }
    return Done{};
  }

  // Until every local stream is idle; a communicator that fails meanwhile ends the wait.
  Status wait(const std::string& place, Deadline deadline) const {
    for (int32_t rank : locals_) {
      while (true) {
        auto idle = device_.idle(rank);
        if (!idle) return environment(place + ": " + idle.error().message);
        if (*idle) break;
        ncclResult_t state = ncclSuccess;
        if (auto done = good(q_.api.async_error(world_.at(rank), &state), place); !done) return done;
        if (state != ncclSuccess && state != ncclInProgress) {
          return environment(place + ": rank " + rank_text(rank) + ": NCCL says: " + q_.api.error_string(state));
        }
        if (std::chrono::steady_clock::now() > deadline) return late(place, rank);
        std::this_thread::yield();
      }
    }
    return Done{};
  }

  [[nodiscard]] Error late(const std::string& place, int32_t rank) const {
    return environment(place + ": rank " + rank_text(rank) +
                       " waited past its deadline; another rank hangs or has ended, or the deadline is too short");
  }

  void close(ncclComm_t& comm) const {
    if (comm != nullptr) q_.api.destroy(comm);
    comm = nullptr;
  }
  void abort_one(ncclComm_t& comm) const {
    if (comm != nullptr) q_.api.abort(comm);
    comm = nullptr;
  }

  // One rank's part of the call, on its stream, with what has to follow it.
  Status enqueue(const Call& call, const RankCall& rank, ncclComm_t comm, cudaStream_t stream, std::vector<Enqueued>& after) {
    switch (call.kind) {
      case CallKind::send_receive:
        return send_receive(call, rank, comm, stream);
      case CallKind::all_gather:
        return all_gather(call, rank, comm, stream, after);
      case CallKind::all_to_all:
        return all_to_all(call, rank, comm, stream);
      default:
        return reduce(call, rank, comm, stream, after);
    }
  }

  Status send_receive(const Call& call, const RankCall& rank, ncclComm_t comm, cudaStream_t stream) {
    const auto size = static_cast<size_t>(element_bytes(call.dtype));
    for (const Chunk& c : rank.sends) {
      if (auto done = good(q_.api.send(c.data, static_cast<size_t>(c.count) * size, ncclUint8, c.peer, comm, stream), call.place); !done)
        return done;
    }
    for (const Chunk& c : rank.receives) {
      if (auto done = good(q_.api.receive(c.data, static_cast<size_t>(c.count) * size, ncclUint8, c.peer, comm, stream), call.place); !done)
        return done;
    }
    return Done{};
  }

  // Chunks of one count, one behind the other.
  static bool equal_in_order(const std::vector<Chunk>& chunks, int64_t size) {
    for (size_t i = 0; i < chunks.size(); ++i) {
      if (chunks[i].count != chunks[0].count || chunks[i].data != chunks[0].data + static_cast<int64_t>(i) * chunks[0].count * size)
        return false;
    }
    return true;
  }

  static int64_t largest(const std::vector<Chunk>& chunks) {
    int64_t n = 0;
    for (const Chunk& c : chunks) n = std::max(n, c.count);
    return n;
  }

  Status all_gather(const Call& call, const RankCall& rank, ncclComm_t comm, cudaStream_t stream, std::vector<Enqueued>& after) {
    const int64_t size = element_bytes(call.dtype);
    const Chunk& mine = rank.sends.front();
    if (equal_in_order(rank.receives, size)) {
      return good(q_.api.all_gather(mine.data, rank.receives.front().data, static_cast<size_t>(mine.count * size), ncclUint8, comm, stream),
                  call.place);
    }
    const int64_t most = largest(rank.receives);
    auto arrival = device_.scratch(rank.rank, slot_receive, most * size * static_cast<int64_t>(rank.receives.size()));
    if (!arrival) return arrival.error();
    const std::byte* from = mine.data;
    if (mine.count < most) {
      auto padded = device_.scratch(rank.rank, slot_send, most * size);
      if (!padded) return padded.error();
      const std::vector<LocalOp> pack{copy_bytes(mine.data, *padded, mine.count * size)};
      if (auto done = device_.work(rank.rank, pack); !done) return done;
      from = *padded;
    }
    Enqueued then{rank.rank, {}};
    for (size_t i = 0; i < rank.receives.size(); ++i) {
      const Chunk& c = rank.receives[i];
      if (c.count > 0) then.ops.push_back(copy_bytes(*arrival + static_cast<int64_t>(i) * most * size, c.data, c.count * size));
    }
    after.push_back(std::move(then));
    return good(q_.api.all_gather(from, *arrival, static_cast<size_t>(most * size), ncclUint8, comm, stream), call.place);
  }

  Status all_to_all(const Call& call, const RankCall& rank, ncclComm_t comm, cudaStream_t stream) {
    const int64_t size = element_bytes(call.dtype);
    // Grouped sends and receives of exact counts. ncclAlltoAll needs every pair's part equal, which a member cannot tell from its own parts
    // alone, and members that chose differently would hang.
    for (size_t m = 0; m < rank.sends.size(); ++m) {
      const Chunk& to = rank.sends[m];
      const Chunk& from = rank.receives[m];
      if (to.count > 0) {
        if (auto done =
                good(q_.api.send(to.data, static_cast<size_t>(to.count * size), ncclUint8, static_cast<int>(m), comm, stream), call.place);
            !done) {
          return done;
        }
      }
      if (from.count > 0) {
        if (auto done =
                good(q_.api.receive(from.data, static_cast<size_t>(from.count * size), ncclUint8, static_cast<int>(m), comm, stream),
                     call.place);
            !done) {
          return done;
        }
      }
    }
    return Done{};
  }

  Status reduce(const Call& call, const RankCall& rank, ncclComm_t comm, cudaStream_t stream, std::vector<Enqueued>& after) {
    const DType wide = reduced_dtype(call.dtype);
    const int64_t size = element_bytes(wide);
    const int64_t narrow = element_bytes(call.dtype);
    const bool casts = wide != call.dtype;
    const Chunk& to = rank.receives.front();
    const bool scatters = call.kind == CallKind::reduce_scatter;
    const int64_t most = scatters ? largest(rank.sends) : rank.sends.front().count;
    const bool direct = !casts && (!scatters || equal_in_order(rank.sends, narrow));
    const std::byte* from = rank.sends.front().data;
    std::byte* into = to.data;
    if (!direct) {
      auto padded = device_.scratch(rank.rank, slot_wide_send, most * size * static_cast<int64_t>(rank.sends.size()));
      if (!padded) return padded.error();
      auto arrival = device_.scratch(rank.rank, slot_wide_receive, most * size);
      if (!arrival) return arrival.error();
      std::vector<LocalOp> pack;
      for (size_t m = 0; m < rank.sends.size(); ++m) {
        const Chunk& c = rank.sends[m];
        std::byte* at = *padded + static_cast<int64_t>(m) * most * size;
        if (c.count == 0) continue;
        pack.push_back(casts ? cast_op(call.dtype, c.data, wide, at, c.count) : copy_bytes(c.data, at, c.count * size));
      }
      if (auto done = device_.work(rank.rank, pack); !done) return done;
      from = *padded;
      into = *arrival;
      if (to.count > 0) {
        after.push_back(
            {rank.rank, {casts ? cast_op(wide, into, call.dtype, to.data, to.count) : copy_bytes(into, to.data, to.count * size)}});
      }
    }
    const ncclRedOp_t op = nccl_op(call.dtype, call.op);
    const auto n = static_cast<size_t>(most);
    if (scatters) return good(q_.api.reduce_scatter(from, into, n, nccl_type(wide), op, comm, stream), call.place);
    return good(q_.api.all_reduce(from, into, n, nccl_type(wide), op, comm, stream), call.place);
  }

  Status meet(const std::string& place, Deadline deadline) {
    char token = 0;
    std::string all(static_cast<size_t>(ranks_), '\0');
    Status done = gather_bytes(locals_.front(), &token, 1, all.data(), deadline);
    return done ? done : Status(Error{done.error().fault, place + ": " + done.error().message});
  }

  // The same number of bytes from every process, over the world communicator.
  Status gather_bytes(int32_t rank, const char* bytes, int64_t count, char* all, Deadline deadline) {
    const std::string place = "comparing notes";
    auto stream = device_.stream(rank);
    if (!stream) return stream.error();
    auto out = device_.scratch(rank, slot_notes_send, count);
    if (!out) return out.error();
    auto in = device_.scratch(rank, slot_notes_receive, count * ranks_);
    if (!in) return in.error();
    if (auto done = device_.write(rank, reinterpret_cast<const std::byte*>(bytes), *out, count); !done) return done;
    ncclComm_t comm = world_.at(rank);
    if (auto done =
            good(q_.api.all_gather(*out, *in, static_cast<size_t>(count), ncclUint8, comm, static_cast<cudaStream_t>(*stream)), place);
        !done) {
      return done;
    }
    if (auto done = settle(world_, place, deadline); !done) return done;
    if (auto done = wait(place, deadline); !done) return done;
    return device_.read(rank, *in, reinterpret_cast<std::byte*>(all), count * ranks_);
  }

  NcclQuestion q_;
  GpuDevice& device_;
  int64_t ranks_ = 1;
  std::vector<int32_t> locals_;
  std::map<int32_t, ncclComm_t> world_;                                               // by local rank
  std::map<std::vector<std::vector<int32_t>>, std::map<int32_t, ncclComm_t>> split_;  // by partition, then local rank
  std::map<std::pair<std::vector<int32_t>, int32_t>, ncclComm_t> by_group_;           // they belong to split_
};

}  // namespace

Result<std::unique_ptr<Communicator>> open_nccl(const NcclQuestion& question) {
  if (question.rendezvous.processes > 1 && question.rendezvous.processes < question.world) {
    return environment("the plan needs " + std::to_string(question.world) + " ranks and there are " +
                       std::to_string(question.rendezvous.processes) + "; start as many processes");
  }
  auto communicator = std::make_unique<NcclCommunicator>(question);
  if (auto done = communicator->open(); !done) return done.error();
  return std::unique_ptr<Communicator>(std::move(communicator));
}

}  // namespace meshplan
