#include "verify/stages.h"

#include <algorithm>
#include <compare>

#include "base/int_math.h"
#include "verify/shifts.h"

namespace meshplan::verification {
namespace {

struct SentInStage {
  size_t from = 0;
  size_t to = 0;
  size_t level = 0;
  auto operator<=>(const SentInStage&) const = default;
};

// Stage by stage what each rank receives and sends over levels 0 to `levels` - 1.
class StageTally {
 public:
  StageTally(size_t ranks, size_t levels, int64_t stages)
      : levels_(levels), stages_(stages), received_(ranks * levels), sent_(ranks * levels) {}

  void add_to_all_stages(const SentInStage& sent, int64_t bytes) {
    add(sent, bytes, &Share::bytes_in_all);
    in_all_.push_back(sent);
  }
  // No more is added to all.
  void begin() {
    keep_one_each(in_all_);
    count_peers(in_all_, 1);
    for (const SentInStage& sent : in_all_) fold(sent);
  }

  void add(const SentInStage& sent, int64_t bytes) {
    add(sent, bytes, &Share::bytes);
    in_stage_.push_back(sent);
  }
  void end_stage() {
    keep_one_each(in_stage_);
    std::vector<SentInStage> others;
    std::set_difference(in_stage_.begin(), in_stage_.end(), in_all_.begin(), in_all_.end(),
                        std::back_inserter(others));
    count_peers(others, 1);
    for (const SentInStage& sent : in_stage_) fold(sent);
    count_peers(others, -1);
    for (const SentInStage& sent : in_stage_) {
      received_[place(sent.to, sent)].bytes = 0;
      sent_[place(sent.from, sent)].bytes = 0;
    }
    in_stage_.clear();
  }

  [[nodiscard]] const LevelTraffic& most() const { return most_; }

 private:
  struct Share {
    int64_t bytes_in_all = 0;
    int64_t bytes = 0;
    int64_t peers = 0;
  };

  [[nodiscard]] size_t place(size_t rank, const SentInStage& sent) const {
    return rank * levels_ + sent.level;
  }
  void add(const SentInStage& sent, int64_t bytes, int64_t Share::*to) {
    for (Share* share : {&received_[place(sent.to, sent)], &sent_[place(sent.from, sent)]})
      share->*to = saturating_add(share->*to, bytes);
  }
  static void keep_one_each(std::vector<SentInStage>& list) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  void count_peers(const std::vector<SentInStage>& pairs, int64_t by) {
    for (const SentInStage& sent : pairs) {
      received_[place(sent.to, sent)].peers += by;
      sent_[place(sent.from, sent)].peers += by;
    }
  }
  void fold(const SentInStage& sent) {
    for (const Share* share : {&received_[place(sent.to, sent)], &sent_[place(sent.from, sent)]}) {
      int64_t& bytes = most_.bytes[sent.level];
      bytes = std::max(bytes,
                       saturating_add(share->bytes_in_all, saturating_mul(stages_, share->bytes)));
      most_.peers[sent.level] = std::max(most_.peers[sent.level], share->peers);
    }
  }

  size_t levels_;
  int64_t stages_;
  std::vector<Share> received_;  // by rank, then level
  std::vector<Share> sent_;
  std::vector<SentInStage> in_all_;
  std::vector<SentInStage> in_stage_;
  LevelTraffic most_;
};

}  // namespace

std::optional<StagedTraffic> traffic_in_stages(const ListedPhases& listed, int64_t at_once) {
  std::vector<FetchingPair> pairs;
  size_t levels = 1;
  for (const FetchedPart& part : listed.fetched) {
    pairs.push_back({part.to, part.from});
    levels = std::max(levels, part.level + 1);
  }
  const auto shifts = shifts_of(pairs, listed.ranks);
  if (!shifts) return std::nullopt;
  StagedTraffic staged;
  staged.stages = std::max<int64_t>(1, ceil_div(shifts->count, at_once));
  std::vector<std::vector<size_t>> parts_of(static_cast<size_t>(staged.stages));
  for (size_t i = 0; i < pairs.size(); ++i)
    parts_of[static_cast<size_t>(shifts->of[i] * staged.stages / shifts->count)].push_back(i);

  StageTally fetching(listed.ranks, levels, staged.stages);
  StageTally inside(listed.ranks, 1, staged.stages);
  for (const HeldPart& part : listed.held)
    inside.add_to_all_stages({part.from, part.to, 0}, part.bytes);
  inside.begin();
  for (const std::vector<size_t>& parts : parts_of) {
    for (const size_t i : parts) {
      const FetchedPart& part = listed.fetched[i];
      fetching.add({part.from, part.to, part.level}, part.bytes);
      for (const size_t rank : listed.wanting[part.wanting]) {
        if (rank != part.to) inside.add({part.to, rank, 0}, part.bytes);
      }
    }
    fetching.end_stage();
    inside.end_stage();
  }
  staged.phase = {fetching.most(), inside.most()};
  return staged;
}

}  // namespace meshplan::verification
