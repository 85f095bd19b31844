#include "planner/bundle_schedule.h"

#include <algorithm>

#include "base/int_math.h"
#include "base/text.h"

namespace meshplan {
namespace {

// More buckets than this pipeline nothing better.
constexpr int64_t most_buckets = 4096;
// A schedule that so many times needs no less staging in more buckets needs it for the boxes
// between its steps.
constexpr int most_idle_tries = 3;
// More buckets are worth having where they save one part in so many of the time.
constexpr int64_t least_gain = 200;

// The next number of buckets, not below `buckets`, into which the kind's tensors go evenly: where
// some buckets have one tensor more than others, waves wait for the largest.
int64_t evenly(int64_t buckets, int64_t tensors) {
  if (buckets >= tensors) return saturating_mul(ceil_div(buckets, tensors), tensors);
  while (tensors % buckets != 0) ++buckets;
  return buckets;
}

}  // namespace

Status BundleSchedules::consider(const WayQuestion& question, const std::vector<size_t>& chosen) {
  for (size_t k = 0; k < kinds_.size(); ++k) list_way(question, kinds_[k].ways[chosen[k]]);
  auto first = first_that_fits(chosen);
  if (!first) return first.error();
  RoundLimits limits = first->limits;
  keep(chosen, first->figures);
  int64_t last_ps = first->figures.totals.predicted_ps;
  const auto gains = [&] {
    const BundleFigures figures = count(chosen, limits);
    const int64_t worth_ps = last_ps - floor_div(last_ps, least_gain);
    if (figures.totals.predicted_ps >= worth_ps || !fits(figures)) return false;
    last_ps = figures.totals.predicted_ps;
    keep(chosen, figures);
    return true;
  };
  size_t heaviest = 0;
  for (size_t k = 1; k < kinds_.size(); ++k) {
    if (bytes_of(kinds_[k], chosen[k]) > bytes_of(kinds_[heaviest], chosen[heaviest])) heaviest = k;
  }
  const int64_t fewest = limits.buckets;
  if (fewest > 1 && last_ps > close_ps_) {
    limits.buckets = std::min(most_buckets, evenly(fewest, kinds_[heaviest].tensors));
    if (!gains()) limits.buckets = fewest;
  }
  const bool overlaps = std::any_of(best_.rounds.begin(), best_.rounds.end(),
                                    [](const BundleRound& round) { return round.stream > 0; });
  while (overlaps && limits.buckets < most_buckets && last_ps > close_ps_) {
    limits.buckets *= 2;
    if (!gains()) break;
  }
  return Done{};
}

Result<BundleSchedules::Tried> BundleSchedules::first_that_fits(const std::vector<size_t>& chosen) {
  const int64_t tensors_a_round = std::max<int64_t>(1, floor_div(bundle_.max_messages, 2));
  RoundLimits limits;
  limits.tensors_a_round = tensors_a_round;
  const int64_t between = most_between(chosen);
  int64_t last_staging = INT64_MAX;
  int idle_tries = 0;
  for (;;) {
    BundleFigures figures = count(chosen, limits);
    if (fits(figures)) return Tried{limits, std::move(figures)};
    // Kinds that meet in every bucket add up their messages; buckets of their own do not.
    if (!limits.apart && !fits_messages(figures)) {
      limits.buckets = 1;
      limits.tensors_a_round = tensors_a_round;
      limits.apart = true;
      continue;
    }
    idle_tries = figures.totals.staging_bytes < last_staging ? 0 : idle_tries + 1;
    last_staging = figures.totals.staging_bytes;
    const bool is_stuck = idle_tries >= most_idle_tries;
    if (is_stuck && between < limits.most_between) {
      limits.most_between = between;
      idle_tries = 0;
      continue;
    }
    const bool has_most = limits.buckets >= most_buckets && limits.tensors_a_round == 1;
    if ((is_stuck && found_) || has_most) return does_not_fit(figures).error();
    const int64_t wanted = idle_tries > 0 ? saturating_mul(limits.buckets, 2)
                                          : wanted_buckets(figures, limits.buckets);
    limits.buckets = std::min(most_buckets, wanted);
    limits.tensors_a_round = std::max<int64_t>(1, limits.tensors_a_round / 2);
  }
}

BundleFigures BundleSchedules::count(const std::vector<size_t>& chosen, const RoundLimits& limits) {
  return counter_.count(kinds_, chosen, make_rounds(kinds_, chosen, limits));
}

// Tensors that share buckets may have half of the staging there, where two of each kind can be on
// the way at a time.
int64_t BundleSchedules::most_between(const std::vector<size_t>& chosen) const {
  if (bundle_.max_staging_bytes == 0) return INT64_MAX;
  std::vector<int64_t> between;
  for (size_t k = 0; k < kinds_.size(); ++k) {
    const Way& way = kinds_[k].ways[chosen[k]];
    if (way.only_exchanges()) between.push_back(bytes_between(way));
  }
  std::sort(between.begin(), between.end());
  int64_t room = floor_div(bundle_.max_staging_bytes, 4);
  for (const int64_t bytes : between) {
    if (bytes > room) return bytes - 1;
    room -= bytes;
  }
  return INT64_MAX;
}

bool BundleSchedules::fits(const BundleFigures& figures) const {
  const int64_t staging = bundle_.max_staging_bytes;
  if (staging > 0 && figures.totals.staging_bytes > staging) return false;
  return fits_messages(figures);
}

bool BundleSchedules::fits_messages(const BundleFigures& figures) const {
  return std::all_of(figures.rounds.begin(), figures.rounds.end(), [&](const BundleRound& round) {
    return round.messages <= bundle_.max_messages;
  });
}

int64_t BundleSchedules::wanted_buckets(const BundleFigures& figures, int64_t now) const {
  int64_t wanted = now + 1;
  if (bundle_.max_staging_bytes > 0) {
    wanted = std::max(wanted, ceil_div(saturating_mul(figures.totals.staging_bytes, now),
                                       bundle_.max_staging_bytes));
  }
  return wanted + wanted / 16;
}

Status BundleSchedules::does_not_fit(const BundleFigures& figures) const {
  const std::string name = "bundle '" + bundle_.id + "' ";
  for (const BundleRound& round : figures.rounds) {
    if (round.messages > bundle_.max_messages) {
      return no_plan(name + "has " + with_commas(round.messages) +
                     " messages of one rank in a round, max_messages allows " +
                     with_commas(bundle_.max_messages) + "; raise it");
    }
  }
  return no_plan(name + "needs " + std::to_string(figures.totals.staging_bytes) +
                 " bytes of staging per rank, max_staging_bytes allows " +
                 std::to_string(bundle_.max_staging_bytes) + "; raise it");
}

void BundleSchedules::keep(const std::vector<size_t>& chosen, const BundleFigures& figures) {
  if (found_ && figures.totals.predicted_ps >= best_.totals.predicted_ps) return;
  found_ = true;
  best_ = figures;
  best_chosen_ = chosen;
}

}  // namespace meshplan
