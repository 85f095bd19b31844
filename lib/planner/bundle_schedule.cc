#include "planner/bundle_schedule.h"

#include <algorithm>
#include <numeric>

#include "base/int_math.h"
#include "base/text.h"
#include "planner/bundle_shares.h"

namespace meshplan {
namespace {

// More buckets than this pipeline nothing better.
constexpr int64_t most_buckets = 4096;
// Rounds of exchanges ahead of collectives.
constexpr int64_t most_ahead = 8;
// Rounds of collectives: a plan of more could not be read.
constexpr int64_t most_launches = 100'000;
// A schedule whose last two tries so many times say that no number of buckets fits is given up.
constexpr int most_hopeless_tries = 2;
// And one that has too many messages, and no fewer in the last tries.
constexpr int most_tries_of_messages = 4;
// A kind of less than this part of all bytes is the same in all buckets, nearly.
constexpr int64_t small_part = 256;
// More buckets are worth having where they save one part in so many of the time.
constexpr int64_t least_gain = 200;
// A schedule is far from what is close where it takes one part in so many more.
constexpr int64_t far_part = 50;
// Where one part in so many of what is enough was looked at, only what is likely is tried.
constexpr int64_t short_part = 10;
// Whether kinds share buckets is then settled by a choice where one takes one part in so many more.
constexpr int64_t far_slower_part = 4;
// Uneven shares are tried of at most so many buckets.
constexpr int64_t most_uneven = 8;
// So many parts are moved from one share to another at most, ...
constexpr int64_t most_moved = 8;
// ... and so many moves tried.
constexpr int most_moves = 1000;

// What more buckets save of the staging: of b buckets it is about A + B / b, where B are messages,
// and A boxes between steps, which no number of buckets makes smaller.
class StagingTries {
 public:
  explicit StagingTries(int64_t limit) : limit_(limit) {}

  // More buckets each time.
  void add(int64_t buckets, int64_t staging) {
    const int64_t more = buckets - buckets_;
    in_messages_ = staging;
    if (buckets_ > 0 && more > 0) {
      const int64_t saved = std::max<int64_t>(0, staging_ - staging);
      in_messages_ = std::min(staging, saturating_mul(floor_div(saved, more), buckets_));
    }
    buckets_ = buckets;
    staging_ = staging;
    hopeless_ = limit_ > 0 && between() >= limit_ ? hopeless_ + 1 : 0;
  }

  [[nodiscard]] int hopeless() const { return hopeless_; }

  // The number to try next: what fits by the estimate and a sixteenth, and twice at most.
  [[nodiscard]] int64_t next() const {
    if (limit_ == 0 || between() >= limit_) return saturating_mul(buckets_, 2);
    const int64_t wanted =
        ceil_div(saturating_mul(in_messages_, buckets_), std::max<int64_t>(1, limit_ - between()));
    const int64_t enough = saturating_add(std::max(buckets_ + 1, wanted), wanted / 16);
    return between() == 0 ? enough : std::min(enough, saturating_mul(buckets_, 2));
  }

 private:
  [[nodiscard]] int64_t between() const { return staging_ - in_messages_; }

  int64_t limit_;
  int64_t buckets_ = 0;
  int64_t staging_ = 0;
  int64_t in_messages_ = 0;  // B / buckets_
  int hopeless_ = 0;
};

}  // namespace

Error needs_staging(const BundleRequest& bundle, int64_t bytes) {
  return no_plan("bundle '" + bundle.id + "' has no rounds within max_staging_bytes " +
                 std::to_string(bundle.max_staging_bytes) +
                 " of those that were tried: some take " + std::to_string(bytes) +
                 " bytes of staging per rank; raise it to that");
}

Error needs_messages(const BundleRequest& bundle, int64_t messages) {
  return no_plan("bundle '" + bundle.id + "' has no rounds within max_messages " +
                 with_commas(bundle.max_messages) + " of those that were tried: some have " +
                 with_commas(messages) + " messages of one rank; raise it to that");
}

Status BundleSchedules::consider(const WayQuestion& question, const std::vector<size_t>& chosen) {
  const Buckets likely = best_in_;
  const auto first = consider_in(question, likely, chosen);
  Status considered = first ? Status(Done{}) : first.error();
  if (kinds_.size() == 1) return considered;
  if (!is_short()) {
    apart_later_.push_back(chosen);
    return considered;
  }
  const Buckets other = likely == Buckets::shared ? Buckets::own_alike : Buckets::shared;
  if (!wants_more() || other_is_far_slower_) return considered;
  const auto second = consider_in(question, other, chosen);
  if (!second) return considered;
  if (first && std::max(*first, *second) < INT64_MAX) {
    const auto [less, more] = std::minmax(*first, *second);
    other_is_far_slower_ = more - less > less / far_slower_part;
  }
  return Done{};
}

void BundleSchedules::consider_apart(const WayQuestion& question) {
  for (const std::vector<size_t>& chosen : apart_later_) {
    bool listed = true;  // and still so: long lists are forgotten
    for (size_t k = 0; k < kinds_.size(); ++k) listed = listed && kinds_[k].ways[chosen[k]].listed;
    for (const Buckets own : {Buckets::own_alike, Buckets::own}) {
      if (!wants_more()) return;
      if (listed) (void)consider_in(question, own, chosen);
    }
  }
}

void BundleSchedules::improve(const WayQuestion& question, const std::vector<size_t>& chosen) {
  (void)consider_in(question, best_in_, chosen);
}

// Gives what the first that fits takes, in ps; INT64_MAX where it was considered before.
Result<int64_t> BundleSchedules::consider_in(const WayQuestion& question, Buckets buckets,
                                             const std::vector<size_t>& chosen) {
  if (!considered_.insert({buckets, chosen}).second) return INT64_MAX;
  for (size_t k = 0; k < kinds_.size(); ++k) list_way(question, kinds_[k].ways[chosen[k]]);
  RoundLimits limits;
  if (buckets != Buckets::shared) limits.messages_a_round = 0;
  limits.alike = buckets == Buckets::own_alike;
  // Other rounds, and as a rule more, are worth having where they save some.
  worth_ps_ = found_ && buckets != best_in_ ? floor_div(best_.totals.predicted_ps, least_gain) : 0;
  tried_in_ = buckets;
  return consider_within(chosen, limits);
}

// The first that fits, and others from there on. Gives what the first takes, in ps.
Result<int64_t> BundleSchedules::consider_within(const std::vector<size_t>& chosen,
                                                 RoundLimits fitting) {
  const bool once = found_ && has_looked_enough();
  auto fits_first = first_that_fits(chosen, once, fitting);
  if (!fits_first) return fits_first.error();
  const BundleFigures& first = fits_first->figures;
  RoundLimits limits = fitting;
  keep(chosen, first);
  consider_ahead(chosen, limits);
  if (has_looked_enough()) return first.totals.predicted_ps;
  const std::vector<BundleRound>& rounds = first.rounds;
  const bool overlaps = std::any_of(rounds.begin(), rounds.end(),
                                    [](const BundleRound& round) { return round.stream > 0; });
  int64_t last_ps = first.totals.predicted_ps;
  const auto gains = [&] {
    const auto figures = count(chosen, limits);
    const int64_t worth_ps = last_ps - floor_div(last_ps, least_gain);
    if (!figures || figures->totals.predicted_ps >= worth_ps || !fits(*figures)) return false;
    last_ps = figures->totals.predicted_ps;
    keep(chosen, *figures);
    return true;
  };
  size_t heaviest = 0;
  for (size_t k = 1; k < kinds_.size(); ++k) {
    if (bytes_of(kinds_[k], chosen[k]) > bytes_of(kinds_[heaviest], chosen[heaviest])) heaviest = k;
  }
  // So many buckets, and more, are not tried.
  const int64_t many = saturating_add(limits.buckets, limits.buckets / 3 + 1);
  int64_t below = fits_first->more_take_longer && is_short() ? many : INT64_MAX;
  const int64_t fewest = limits.buckets;
  const int64_t even = std::min(most_buckets, evenly(fewest, kinds_[heaviest].tensors));
  if (fewest > 1 && even > fewest && even < below && last_ps > close_ps_) {
    limits.buckets = even;
    if (!gains()) {
      limits.buckets = fewest;
      if (even >= many && is_short()) below = even;
    }
  }
  while (overlaps && limits.buckets < most_buckets && 2 * limits.buckets < below &&
         last_ps > close_ps_) {
    limits.buckets *= 2;
    if (gains()) continue;
    limits.buckets /= 2;
    break;
  }
  if (overlaps && is_far()) consider_even_buckets(chosen, limits, below);
  consider_fewer_behind(chosen, limits);
  if (best_.totals.predicted_ps > close_ps_) consider_beside(chosen, fitting);
  if (overlaps) consider_uneven_shares(chosen, fitting, first);
  return first.totals.predicted_ps;
}

// Collectives of a bucket beside the exchanges of the next: in more buckets while that gains, or
// what does not fit could still be the best.
void BundleSchedules::consider_beside(const std::vector<size_t>& chosen, RoundLimits limits) {
  if (limits.by_messages() || most_behind(kinds_, chosen) == 0) return;
  limits.beside = true;
  limits.buckets_behind = limits.tensors_a_round = INT64_MAX;
  int64_t last_ps = INT64_MAX;
  std::optional<BundleFigures> first;
  limits.buckets = std::max<int64_t>(2, limits.buckets);
  while (limits.buckets <= most_buckets) {
    const auto figures = count(chosen, limits);
    if (!figures) break;
    const int64_t worth_ps = last_ps - floor_div(last_ps, least_gain);
    const bool gains = figures->totals.predicted_ps < worth_ps;
    last_ps = figures->totals.predicted_ps;
    const bool is_behind = found_ && last_ps >= best_.totals.predicted_ps;
    if (fits(*figures)) keep(chosen, *figures);
    if (!first) first = figures;
    if (!gains && (fits(*figures) || is_behind)) break;
    limits.buckets = more_buckets(limits.buckets, figures->totals.staging_bytes);
  }
  if (first) consider_uneven_shares(chosen, limits, *first);
}

// As many buckets or more, or more than half of them, into which kinds of many tensors go evenly: a
// wave waits for the largest of the buckets that it has a step of.
void BundleSchedules::consider_even_buckets(const std::vector<size_t>& chosen, RoundLimits limits,
                                            int64_t below) {
  int64_t bytes = 0;
  for (size_t k = 0; k < kinds_.size(); ++k)
    bytes = saturating_add(bytes, bytes_of(kinds_[k], chosen[k]));
  int64_t common = 0;  // divisor of their numbers
  for (size_t k = 0; k < kinds_.size(); ++k) {
    const bool is_small = saturating_mul(bytes_of(kinds_[k], chosen[k]), small_part) < bytes;
    if (kinds_[k].tensors >= limits.buckets && !is_small)
      common = std::gcd(common, kinds_[k].tensors);
  }
  const int64_t most = limits.buckets;
  if (common <= 1 || common % most == 0) return;
  for (const int64_t least : {most, most / 2 + 1}) {
    limits.buckets = evenly(least, common);
    if (limits.buckets > most_buckets || limits.buckets >= below) continue;
    const auto figures = count(chosen, limits);
    if (figures && fits(*figures)) keep(chosen, *figures);
  }
}

// Kinds with collectives in fewer buckets than the others need.
void BundleSchedules::consider_fewer_behind(const std::vector<size_t>& chosen, RoundLimits limits) {
  const int64_t most = std::min(limits.buckets, most_behind(kinds_, chosen));
  for (limits.buckets_behind = 1; limits.buckets_behind < most; limits.buckets_behind *= 2) {
    const auto figures = count(chosen, limits);
    if (figures && fits(*figures)) return keep(chosen, *figures);
  }
}

// Exchanges before collectives for as many buckets as the staging holds what they bring, in a few
// rounds: they pay their peers less often, and there is less to count.
void BundleSchedules::consider_ahead(const std::vector<size_t>& chosen, RoundLimits limits) {
  if (limits.tensors_a_round != INT64_MAX) return;  // its rounds have no room for more
  const int64_t buckets = std::min(limits.buckets, most_behind(kinds_, chosen));
  for (int64_t parts = 1; parts < std::min(buckets, most_ahead) && is_far(); parts *= 2) {
    limits.buckets_ahead = ceil_div(buckets, parts);
    const auto figures = count(chosen, limits);
    if (figures && fits(*figures)) return keep(chosen, *figures);
  }
}

// Uneven shares. What they gain is a part of one bucket's time, so few are enough.
void BundleSchedules::consider_uneven_shares(const std::vector<size_t>& chosen, RoundLimits limits,
                                             const BundleFigures& even) {
  if (limits.by_messages() || !is_far()) return;
  for (const ShareRatio& ratio : share_ratios(even.rounds)) {
    std::vector<int64_t> best;
    int64_t last_ps = INT64_MAX;
    for (limits.buckets = 2; limits.buckets <= most_uneven; ++limits.buckets) {
      limits.shares = finest_shares(limits.buckets, ratio);
      if (limits.shares.empty()) break;
      const auto figures = count(chosen, limits);
      if (!figures || figures->totals.predicted_ps >= last_ps) break;
      last_ps = figures->totals.predicted_ps;
      if (fits(*figures)) keep(chosen, *figures);
      best = limits.shares;
    }
    if (is_lone() && !best.empty()) move_shares(chosen, limits, std::move(best), last_ps);
  }
}

bool BundleSchedules::is_lone() const { return kinds_.size() == 1 && kinds_.front().tensors == 1; }

// Parts go from one bucket to another, many at once, then fewer and half ones, while that gains: of
// a tensor by itself, whose waves have latencies to make up for.
void BundleSchedules::move_shares(const std::vector<size_t>& chosen, RoundLimits limits,
                                  std::vector<int64_t> shares, int64_t last_ps) {
  limits.buckets = static_cast<int64_t>(shares.size());
  const int64_t parts = std::accumulate(shares.begin(), shares.end(), int64_t{0});
  for (int64_t& share : shares) share *= floor_div(most_share_parts, parts);
  int tries = 0;
  const auto gains = [&](size_t from, size_t to, int64_t moved) {
    if (from == to || shares[from] <= moved || tries++ >= most_moves) return false;
    limits.shares = shares;
    limits.shares[from] -= moved;
    limits.shares[to] += moved;
    const auto figures = count(chosen, limits);
    if (!figures || figures->totals.predicted_ps >= last_ps || !fits(*figures)) return false;
    last_ps = figures->totals.predicted_ps;
    shares = limits.shares;
    keep(chosen, *figures);
    return true;
  };
  const auto move_all = [&](int64_t moved) {
    for (bool gained = true; gained && is_far();) {
      gained = false;
      for (size_t from = 0; from < shares.size(); ++from) {
        for (size_t to = 0; to < shares.size(); ++to) gained = gains(from, to, moved) || gained;
      }
    }
  };
  for (int64_t moved = most_moved; moved > 0; moved /= 2) move_all(moved);
  for (int64_t& share : shares) share *= 2;
  move_all(1);
}

// Twice as many; fewer where these need less than twice what the staging allows.
int64_t BundleSchedules::more_buckets(int64_t buckets, int64_t staging) const {
  const int64_t limit = bundle_.max_staging_bytes;
  if (limit == 0 || staging <= limit) return saturating_mul(buckets, 2);
  const int64_t enough = ceil_div(saturating_mul(buckets, staging), limit);
  return std::clamp(enough, buckets + 1, saturating_mul(buckets, 2));
}

Result<BundleSchedules::Fitting> BundleSchedules::first_that_fits(const std::vector<size_t>& chosen,
                                                                  bool once, RoundLimits& limits) {
  const int64_t most_tensors = most_behind(kinds_, chosen);
  const int64_t tensors_a_launch = std::max<int64_t>(1, floor_div(bundle_.max_messages, 2));
  limits.tensors_a_launch = tensors_a_launch;
  StagingTries tries(bundle_.max_staging_bytes);
  int64_t fewest = INT64_MAX;   // messages of all tries
  int no_fewer = 0;             // of the last tries, those with too many and no fewer than that
  int64_t last_ps = INT64_MAX;  // of the try before, in fewer buckets
  // Thousands of buckets, each with all pairs of ranks, would be counted before it is given up.
  int64_t least = 0;
  for (size_t k = 0; k < kinds_.size(); ++k)
    least = std::max(least, least_messages(kinds_[k].ways[chosen[k]]));
  for (;;) {
    const int64_t rounds = launches_of_collectives(kinds_, chosen, limits);
    if (rounds > most_launches) return too_many_launches(rounds).error();
    if (least > bundle_.max_messages) return needs_messages(bundle_, least);
    const auto counted = count(chosen, limits);
    if (!counted) return too_long_to_count();
    const BundleFigures& figures = *counted;
    if (fits(figures)) return Fitting{figures, last_ps < figures.totals.predicted_ps};
    last_ps = figures.totals.predicted_ps;
    if (once) return does_not_fit(figures).error();
    // Kinds that meet in every bucket add up their messages: they share buckets as far as those
    // allow.
    if (!limits.by_messages() && !fits_messages(figures)) {
      limits = {};
      limits.tensors_a_launch = tensors_a_launch;
      limits.messages_a_round = bundle_.max_messages;
      last_ps = INT64_MAX;
      continue;
    }
    tries.add(limits.buckets, figures.totals.staging_bytes);
    no_fewer = figures.most_messages() < fewest || fits_messages(figures) ? 0 : no_fewer + 1;
    fewest = std::min(fewest, figures.most_messages());
    const bool has_most = limits.buckets >= most_buckets && limits.tensors_a_round == 1;
    const bool hopeless = is_hopeless(chosen, limits, figures);
    const bool is_stuck = has_most || hopeless || tries.hopeless() >= most_hopeless_tries ||
                          no_fewer >= most_tries_of_messages;
    const int64_t between = fits_staging(figures) ? 0 : most_shared(chosen, limits);
    if (is_stuck && between > 0 && is_far()) {
      limits.most_between = between - 1;
      limits.buckets = 1;
      tries = StagingTries(bundle_.max_staging_bytes);
      no_fewer = 0;
      last_ps = INT64_MAX;
      continue;
    }
    if (has_most || hopeless || (is_stuck && found_)) return does_not_fit(figures).error();
    // Where every bucket has one tensor of a kind at most, or no more buckets are made, rounds have
    // fewer kinds.
    if (limits.buckets >= std::min(most_tensors, most_buckets)) {
      const int64_t now = std::min(limits.tensors_a_round, static_cast<int64_t>(kinds_.size()));
      limits.tensors_a_round = std::max<int64_t>(1, now / 2);
    }
    const int64_t twice = saturating_mul(limits.buckets, 2);
    limits.buckets = std::min(most_buckets, fits_staging(figures) ? twice : tries.next());
  }
}

// Buckets share what a rank sends and receives in a step, so one of them has its part or more: if
// that is too much in as many as there may be, nothing fits. What is looked at first is counted to
// the end all the same, to say what is enough.
bool BundleSchedules::is_hopeless(const std::vector<size_t>& chosen, const RoundLimits& limits,
                                  const BundleFigures& figures) const {
  if (limits.buckets > 1 || fits_staging(figures) || !least_ || !has_looked_enough()) return false;
  const bool in_fewer = most_behind(kinds_, chosen) > 0;  // kinds to a round
  const int64_t parts = saturating_mul(most_buckets, in_fewer ? std::ssize(kinds_) : 1);
  return std::any_of(figures.rounds.begin(), figures.rounds.end(), [&](const BundleRound& round) {
    return round.op == Op::exchange &&
           ceil_div(round.staging_bytes, parts) > bundle_.max_staging_bytes;
  });
}

std::optional<BundleFigures> BundleSchedules::count(const std::vector<size_t>& chosen,
                                                    const RoundLimits& limits) {
  const std::vector<KindRound> rounds = make_rounds(kinds_, chosen, limits);
  if (counter_.work_of(kinds_, chosen, rounds) > most_) return std::nullopt;
  BundleFigures figures = counter_.count(kinds_, chosen, rounds);
  const auto least = least_staging();
  if (!found_ && fits_messages(figures) && (!least || figures.totals.staging_bytes < *least)) {
    least_ = figures;
    least_chosen_ = chosen;
  }
  return figures;
}

// What a tensor of those that share buckets has between its steps, at most.
int64_t BundleSchedules::most_shared(const std::vector<size_t>& chosen,
                                     const RoundLimits& limits) const {
  int64_t most = 0;
  for (size_t k = 0; k < kinds_.size(); ++k) {
    const Way& way = kinds_[k].ways[chosen[k]];
    const int64_t bytes = way.only_exchanges() && may_go_alone(kinds_[k]) ? bytes_between(way) : 0;
    if (bytes <= limits.most_between) most = std::max(most, bytes);
  }
  return most;
}

bool BundleSchedules::has_looked_enough() const {
  return counter_.looked_at() >= enough_ || counter_.weighed() >= most_looked_at;
}

bool BundleSchedules::is_short() const {
  return counter_.looked_at() >= floor_div(enough_, short_part) || has_looked_enough();
}

void BundleSchedules::look_on(int64_t more) {
  enough_ = std::max(enough_, saturating_add(counter_.looked_at(), more));
}

bool BundleSchedules::wants_more() const { return !found_ || (is_far() && !has_looked_enough()); }

bool BundleSchedules::is_far() const {
  if (!found_) return true;
  return best_.totals.predicted_ps > saturating_add(close_ps_, floor_div(close_ps_, far_part));
}

bool BundleSchedules::fits(const BundleFigures& figures) const {
  return fits_staging(figures) && fits_messages(figures);
}

bool BundleSchedules::fits_staging(const BundleFigures& figures) const {
  const int64_t staging = bundle_.max_staging_bytes;
  return staging == 0 || figures.totals.staging_bytes <= staging;
}

bool BundleSchedules::fits_messages(const BundleFigures& figures) const {
  return figures.most_messages() <= bundle_.max_messages;
}

Status BundleSchedules::does_not_fit(const BundleFigures& figures) const {
  if (!fits_messages(figures)) return needs_messages(bundle_, figures.most_messages());
  return needs_staging(bundle_, figures.totals.staging_bytes);
}

std::optional<int64_t> BundleSchedules::least_staging() const {
  return least_ ? std::optional(least_->totals.staging_bytes) : std::nullopt;
}

bool BundleSchedules::take_least(int64_t staging) {
  if (found_ || !least_ || *least_staging() > staging) return false;
  keep(least_chosen_, *least_);
  return true;
}

Error BundleSchedules::too_long_to_count() const {
  return no_plan("bundle '" + bundle_.id + "' has rounds of more ranks, and parts between ranks, " +
                 "than are looked at one by one, " + with_commas(most_) +
                 " in all: make several bundles of it");
}

Status BundleSchedules::too_many_launches(int64_t rounds) const {
  return no_plan("bundle '" + bundle_.id + "' needs " + with_commas(rounds) +
                 " rounds of collectives, at most " + with_commas(most_launches) +
                 " are planned; raise max_messages (" + with_commas(bundle_.max_messages) +
                 ") or split its counts");
}

void BundleSchedules::keep(const std::vector<size_t>& chosen, const BundleFigures& figures) {
  if (found_ && figures.totals.predicted_ps >= best_.totals.predicted_ps - worth_ps_) return;
  found_ = true;
  best_ = figures;
  best_chosen_ = chosen;
  best_in_ = tried_in_;
}

}  // namespace meshplan
