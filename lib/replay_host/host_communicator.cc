#include "replay_host/host_communicator.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/check.h"
#include "replay/arithmetic.h"

namespace meshplan {
namespace {

// Reductions run block by block, so that the accumulator stays in the cache.
constexpr int64_t block_bytes = int64_t{32} << 10;

const Chunk* chunk_for(const std::vector<Chunk>& chunks, int32_t peer) {
  auto at = std::lower_bound(chunks.begin(), chunks.end(), peer,
                             [](const Chunk& c, int32_t p) { return c.peer < p; });
  return at != chunks.end() && at->peer == peer ? &*at : nullptr;
}

}  // namespace

std::vector<int32_t> HostCommunicator::local_ranks() const {
  std::vector<int32_t> ranks(static_cast<size_t>(world_));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

Status HostCommunicator::prepare(const std::vector<std::vector<int32_t>>& /*groups*/,
                                 Deadline /*deadline*/) {
  return Done{};
}
Status HostCommunicator::barrier_with_deadline(const std::string& /*place*/,
                                               Deadline /*deadline*/) {
  return Done{};
}
Status HostCommunicator::barrier(const std::string& /*place*/, Deadline /*deadline*/) {
  return Done{};
}
Result<std::vector<std::string>> HostCommunicator::tell_all(const std::string& text,
                                                            Deadline /*deadline*/) {
  return std::vector<std::string>{text};
}
void HostCommunicator::abort(const Error& /*error*/) {}
Result<std::vector<std::pair<std::string, std::string>>> HostCommunicator::describe(
    Deadline /*deadline*/) {
  return std::vector<std::pair<std::string, std::string>>{
      {"backend", "host"}, {"ranks in this process", std::to_string(world_)}};
}

namespace {

void reduce_in_order(const Call& call, const Chunk& to,
                     const std::vector<const std::byte*>& parts) {
  const int64_t size = element_bytes(call.dtype);
  const int64_t block = block_bytes / size;
  for (int64_t at = 0; at < to.count; at += block) {
    const int64_t n = std::min(block, to.count - at);
    std::memcpy(to.data + at * size, parts[0] + at * size, static_cast<size_t>(n * size));
    for (size_t p = 1; p < parts.size(); ++p)
      combine(call.dtype, call.reduce_op, to.data + at * size, parts[p] + at * size, n);
  }
}

}  // namespace

Status HostCommunicator::run(const Call& call, Deadline /*deadline*/) {
  number_.assign(static_cast<size_t>(world_), -1);
  int64_t bytes = 0;
  const int64_t size = element_bytes(call.dtype);
  for (size_t i = 0; i < call.ranks.size(); ++i) {
    number_[call.ranks[i].rank] = static_cast<int32_t>(i);
    for (const Chunk& c : call.ranks[i].receives) bytes += c.count * size;
  }
  auto fail = [&](int32_t rank, int32_t peer, int64_t want, int64_t got) {
    return wrong_data(call.place + ": replay rank " + std::to_string(rank) + " expects " +
                      std::to_string(want) + " elements from replay rank " + std::to_string(peer) +
                      ", which sends " + std::to_string(got));
  };
  const OpRow& row = row_of(call.op);
  // The chunk from `peer` to `rank`, which is member `member` of their group.
  auto sent_by = [&](int32_t peer, size_t member, int32_t rank) -> const Chunk* {
    const int32_t n = number_[peer];
    if (n < 0) return nullptr;
    const std::vector<Chunk>& sends = call.ranks[n].sends;
    if (row.sends == CallChunks::one) return sends.empty() ? nullptr : &sends.front();
    if (row.sends == CallChunks::each) return member < sends.size() ? &sends[member] : nullptr;
    return chunk_for(sends, rank);
  };
  return device_.for_each(std::ssize(call.ranks), bytes, [&](int64_t i) -> Status {
    const RankCall& rank = call.ranks[i];
    size_t member = 0;
    if (rank.group != nullptr) {
      member =
          static_cast<size_t>(std::lower_bound(rank.group->begin(), rank.group->end(), rank.rank) -
                              rank.group->begin());
    }
    if (!row.reduces) {
      for (const Chunk& to : rank.receives) {
        const Chunk* from = sent_by(to.peer, member, rank.rank);
        if (from == nullptr || from->count != to.count)
          return fail(rank.rank, to.peer, to.count, from == nullptr ? 0 : from->count);
        if (to.count > 0) std::memcpy(to.data, from->data, static_cast<size_t>(to.count * size));
      }
      return Done{};
    }
    MESHPLAN_CHECK(rank.group != nullptr, "a reduction has a group");
    const Chunk& to = rank.receives.front();
    std::vector<const std::byte*> parts;
    for (int32_t peer : *rank.group) {
      const Chunk* from = sent_by(peer, member, rank.rank);
      if (from == nullptr || from->count != to.count)
        return fail(rank.rank, peer, to.count, from == nullptr ? 0 : from->count);
      parts.push_back(from->data);
    }
    reduce_in_order(call, to, parts);
    return Done{};
  });
}

}  // namespace meshplan
