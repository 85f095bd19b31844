#include "replay_nccl/nccl_enqueue.h"

#include <algorithm>

#include "base/check.h"

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

// Chunks of one count, one behind the other.
bool equal_in_order(const std::vector<Chunk>& chunks, int64_t size) {
  for (size_t i = 0; i < chunks.size(); ++i) {
    if (chunks[i].count != chunks[0].count ||
        chunks[i].data != chunks[0].data + static_cast<int64_t>(i) * chunks[0].count * size)
      return false;
  }
  return true;
}

int64_t largest(const std::vector<Chunk>& chunks) {
  int64_t n = 0;
  for (const Chunk& c : chunks) n = std::max(n, c.count);
  return n;
}

class Enqueuer {
 public:
  Enqueuer(const EnqueueQuestion& q, std::vector<FollowUp>& after)
      : q_(q), call_(*q.call), rank_(*q.rank), after_(after) {}

  Status enqueue() {
    switch (call_.op) {
      case Op::exchange:
        return send_receive();
      case Op::all_gather:
        return all_gather();
      case Op::all_to_all:
        return all_to_all();
      case Op::reduce_scatter:
      case Op::all_reduce:
        return reduce();
      case Op::slice:
      case Op::to_partial:
        break;
    }
    MESHPLAN_CHECK(false, "no call for an op without communication");
  }

 private:
  [[nodiscard]] Status good(NcclCode code) const { return nccl_good(*q_.nccl, code, call_.place); }
  Result<std::byte*> scratch(ScratchUse use, int64_t bytes) {
    return q_.device->scratch(rank_.rank, scratch_slot(use, q_.number), bytes);
  }

  Status send(const Chunk& c, int peer) {
    return good(
        q_.nccl->send(c.data, c.count * element_bytes(call_.dtype), peer, q_.comm, q_.stream));
  }
  Status receive(const Chunk& c, int peer) {
    return good(
        q_.nccl->receive(c.data, c.count * element_bytes(call_.dtype), peer, q_.comm, q_.stream));
  }

  Status send_receive() {
    for (const Chunk& c : rank_.sends) {
      if (auto done = send(c, c.peer); !done) return done;
    }
    for (const Chunk& c : rank_.receives) {
      if (auto done = receive(c, c.peer); !done) return done;
    }
    return Done{};
  }

  Status all_gather() {
    const int64_t size = element_bytes(call_.dtype);
    const Chunk& mine = rank_.sends.front();
    if (equal_in_order(rank_.receives, size)) {
      return good(q_.nccl->all_gather(mine.data, rank_.receives.front().data, mine.count * size,
                                      q_.comm, q_.stream));
    }
    const int64_t most = largest(rank_.receives);
    auto arrival = scratch(ScratchUse::receive, most * size * std::ssize(rank_.receives));
    if (!arrival) return arrival.error();
    const std::byte* from = mine.data;
    if (mine.count < most) {
      auto padded = scratch(ScratchUse::send, most * size);
      if (!padded) return padded.error();
      const std::vector<LocalOp> pack{copy_op(mine.data, *padded, mine.count * size)};
      if (auto done = q_.device->work_on(rank_.rank, q_.number, pack); !done) return done;
      from = *padded;
    }
    unpack(*arrival, most * size);
    return good(q_.nccl->all_gather(from, *arrival, most * size, q_.comm, q_.stream));
  }

  // What arrives in parts of so many bytes goes to its chunks.
  void unpack(const std::byte* arrival, int64_t part_bytes) {
    const int64_t size = element_bytes(call_.dtype);
    FollowUp then{rank_.rank, {}};
    for (size_t i = 0; i < rank_.receives.size(); ++i) {
      const Chunk& c = rank_.receives[i];
      if (c.count > 0)
        then.ops.push_back(
            copy_op(arrival + static_cast<int64_t>(i) * part_bytes, c.data, c.count * size));
    }
    after_.push_back(std::move(then));
  }

  Status all_to_all() {
    // Every member must choose alike: whether all pairs of the group are equal is known to all of
    // them (RankCall::equal_parts).
    if (rank_.equal_parts > 0 && q_.nccl->has_all_to_all()) return equal_all_to_all();
    for (size_t m = 0; m < rank_.sends.size(); ++m) {
      if (rank_.sends[m].count > 0) {
        if (auto done = send(rank_.sends[m], static_cast<int>(m)); !done) return done;
      }
      if (rank_.receives[m].count > 0) {
        if (auto done = receive(rank_.receives[m], static_cast<int>(m)); !done) return done;
      }
    }
    return Done{};
  }

  Status equal_all_to_all() {
    const int64_t size = element_bytes(call_.dtype);
    const int64_t part = rank_.equal_parts * size;
    const auto members = std::ssize(rank_.sends);
    const std::byte* from = rank_.sends.front().data;
    if (!equal_in_order(rank_.sends, size)) {
      auto packed = scratch(ScratchUse::send, members * part);
      if (!packed) return packed.error();
      std::vector<LocalOp> pack;
      for (int64_t m = 0; m < members; ++m)
        pack.push_back(copy_op(rank_.sends[m].data, *packed + m * part, part));
      if (auto done = q_.device->work_on(rank_.rank, q_.number, pack); !done) return done;
      from = *packed;
    }
    std::byte* to = rank_.receives.front().data;
    if (!equal_in_order(rank_.receives, size)) {
      auto arrival = scratch(ScratchUse::receive, members * part);
      if (!arrival) return arrival.error();
      to = *arrival;
      unpack(to, part);
    }
    return good(q_.nccl->all_to_all(from, to, part, q_.comm, q_.stream));
  }

  Status reduce() {
    const DType wide = reduced_dtype(call_.dtype);
    const int64_t size = element_bytes(wide);
    const int64_t narrow = element_bytes(call_.dtype);
    const bool casts = wide != call_.dtype;
    const Chunk& to = rank_.receives.front();
    const bool scatters = call_.op == Op::reduce_scatter;
    const int64_t most = scatters ? largest(rank_.sends) : rank_.sends.front().count;
    const bool direct = !casts && (!scatters || equal_in_order(rank_.sends, narrow));
    const std::byte* from = rank_.sends.front().data;
    std::byte* into = to.data;
    if (!direct) {
      auto padded = scratch(ScratchUse::wide_send, most * size * std::ssize(rank_.sends));
      if (!padded) return padded.error();
      auto arrival = scratch(ScratchUse::wide_receive, most * size);
      if (!arrival) return arrival.error();
      std::vector<LocalOp> pack;
      for (size_t m = 0; m < rank_.sends.size(); ++m) {
        const Chunk& c = rank_.sends[m];
        std::byte* at = *padded + static_cast<int64_t>(m) * most * size;
        if (c.count == 0) continue;
        pack.push_back(casts ? cast_op(call_.dtype, c.data, wide, at, c.count)
                             : copy_op(c.data, at, c.count * size));
      }
      if (auto done = q_.device->work_on(rank_.rank, q_.number, pack); !done) return done;
      from = *padded;
      into = *arrival;
      if (to.count > 0) {
        after_.push_back({rank_.rank,
                          {casts ? cast_op(wide, into, call_.dtype, to.data, to.count)
                                 : copy_op(into, to.data, to.count * size)}});
      }
    }
    if (scatters)
      return good(q_.nccl->reduce_scatter(from, into, most, reduction_type(wide), call_.reduce_op,
                                          q_.comm, q_.stream));
    return good(q_.nccl->all_reduce(from, into, most, reduction_type(wide), call_.reduce_op,
                                    q_.comm, q_.stream));
  }

  // Booleans keep their name, by which the library picks the op.
  [[nodiscard]] DType reduction_type(DType wide) const {
    return call_.dtype == DType::boolean ? DType::boolean : wide;
  }

  const EnqueueQuestion& q_;
  const Call& call_;
  const RankCall& rank_;
  std::vector<FollowUp>& after_;
};

}  // namespace

Status nccl_good(const NcclLibrary& nccl, NcclCode code, const std::string& place) {
  if (code == nccl_done || code == nccl_busy) return Done{};
  return environment(place + ": NCCL says: " + nccl.error_text(code));
}

Status enqueue_call(const EnqueueQuestion& question, std::vector<FollowUp>& after) {
  return Enqueuer(question, after).enqueue();
}

}  // namespace meshplan
