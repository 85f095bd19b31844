#include "transfer/passed_on.h"

#include <algorithm>

#include "base/int_math.h"

namespace meshplan {

PassedOn::PassedOn(const ExchangeRanks& ranks, Nearest& nearest, Tally& inner)
    : ranks_(ranks),
      nearest_(nearest),
      inner_(inner),
      wanting_too_(ranks.size(), 0),
      fetched_(ranks.size(), 0),
      giving_(ranks.shards(), 0),
      sharing_(ranks.shards(), 0) {}

void PassedOn::pass(std::span<const int32_t> wanting, std::span<const FetchedPart> fetched,
                    int64_t element_bytes) {
  const int32_t w = fetched.front().wanted;
  wanting_ = wanting;
  for (const int32_t m : wanting) wanting_too_[static_cast<size_t>(m)] = 1;
  const int128 all = send(fetched, element_bytes);
  const int64_t strangers = count_peers_out(w);
  receive(all, strangers);
  forget();
}

int128 PassedOn::send(std::span<const FetchedPart> fetched, int64_t element_bytes) {
  int128 all = 0;
  fetchers_.clear();
  for (const FetchedPart& f : fetched) {
    const int64_t bytes = saturating_mul(f.elements, element_bytes);
    all += bytes;
    add_up(inner_.at(f.fetcher, 0).sent, saturating_mul(bytes, others(f.fetcher)));
    int128& own = fetched_[static_cast<size_t>(f.fetcher)];
    if (own == 0) fetchers_.push_back(f.fetcher);
    own += bytes;
  }
  return all;
}

int64_t PassedOn::count_peers_out(int32_t w) {
  for (const int32_t m : wanting_) {
    if (const int32_t shard = ranks_.shard[static_cast<size_t>(m)]; shard >= 0)
      ++sharing_[static_cast<size_t>(shard)];
  }
  int64_t strangers = 0;
  for (const int32_t f : fetchers_) {
    const int32_t shard = ranks_.shard[static_cast<size_t>(f)];
    if (gives_own(f, w)) {
      ++giving_[static_cast<size_t>(shard)];
      inner_.at(f, 0).peers_out +=
          sharing_[static_cast<size_t>(shard)] - wanting_too_[static_cast<size_t>(f)];
    } else {
      ++strangers;
      inner_.at(f, 0).peers_out += others(f);
    }
  }
  return strangers;
}

void PassedOn::receive(int128 all, int64_t strangers) {
  for (const int32_t m : wanting_) {
    const int32_t shard = ranks_.shard[static_cast<size_t>(m)];
    auto& cell = inner_.at(m, 0);
    const int128 own = fetched_[static_cast<size_t>(m)];
    add_up(cell.received, saturated(all - own));
    cell.peers_in +=
        strangers + (shard >= 0 ? giving_[static_cast<size_t>(shard)] : 0) - (own > 0 ? 1 : 0);
  }
}

void PassedOn::forget() {
  for (const auto& members : {wanting_, std::span<const int32_t>(fetchers_)}) {
    for (const int32_t m : members) {
      const auto at = static_cast<size_t>(m);
      if (const int32_t shard = ranks_.shard[at]; shard >= 0) {
        sharing_[static_cast<size_t>(shard)] = 0;
        giving_[static_cast<size_t>(shard)] = 0;
      }
      fetched_[at] = 0;
      wanting_too_[at] = 0;
    }
  }
}

bool PassedOn::gives_own(int32_t rank, int32_t w) {
  const int32_t shard = ranks_.shard[static_cast<size_t>(rank)];
  if (shard < 0) return false;
  const Overlap* overlap = overlap_with(ranks_, w, shard);
  if (overlap == nullptr) return false;
  const NearestHolders& near = nearest_.of(shard, rank);
  const auto holders = ranks_.holders_of(shard).subspan(static_cast<size_t>(near.begin),
                                                        static_cast<size_t>(near.count));
  return std::lower_bound(holders.begin(), holders.end(), rank) - holders.begin() <
         overlap->longest;
}

}  // namespace meshplan
