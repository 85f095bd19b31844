#include "transfer/far_share_traffic.h"

#include "base/int_math.h"
#include "transfer/far_share.h"
#include "transfer/tally.h"

namespace meshplan {

ExchangeTraffic list_far_share(const ExchangeRanks& ranks, const LevelUnits& units,
                               int64_t element_bytes, int64_t far_64ths) {
  ExchangeTraffic out;
  out.work = static_cast<int64_t>(ranks.size());
  Tally tally(ranks.size(), units.levels());
  FarShares shares(ranks, units, far_64ths);
  for (size_t r = 0; r < ranks.size(); ++r) {
    const auto rank = static_cast<int32_t>(r);
    if (ranks.wanted[r] < 0) continue;
    for (const Overlap& overlap : ranks.overlaps_of(ranks.wanted[r])) {
      ++out.work;
      if (overlap.shard == ranks.shard[r]) continue;
      const int64_t slice =
          saturating_mul(floor_div(overlap.elements, overlap.longest), element_bytes);
      // A rank has one shard, so whoever sends a share is another peer.
      shares.for_each_share(rank, overlap, [&](const Share& share) {
        const int64_t bytes = saturating_mul(slice, share.slices);
        Tally::Cell& in = tally.at(rank, share.level);
        Tally::Cell& from = tally.at(share.holder, share.level);
        add_up(in.received, bytes);
        add_up(from.sent, bytes);
        ++in.peers_in;
        ++from.peers_out;
      });
    }
  }
  out.phase[0] = tally.most();
  for (size_t r = 0; r < ranks.size(); ++r) {
    raise(out.wire_bytes, tally.received(r));
    raise(out.sent_bytes, tally.sent(r));
  }
  out.received[0] = out.wire_bytes;
  return out;
}

int64_t overlaps_by_rank(const ExchangeRanks& ranks) {
  auto all = static_cast<int64_t>(ranks.size());
  for (const int32_t wanted : ranks.wanted) {
    if (wanted >= 0) all += static_cast<int64_t>(ranks.overlaps_of(wanted).size());
  }
  return all;
}

}  // namespace meshplan
