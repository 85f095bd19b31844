// The rounds of a bundle whose ways are chosen: in the fewest buckets that its limits allow, and in
// more, or in few of uneven shares, while that gains.
//
//     limits                     one bucket of 8 GB             fits in 5 buckets, next 10, 20 ..
//     a rank's staging 2 GB      needs 8 GB: does not fit       while each takes less than the last
#pragma once

#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "planner/bundle_figures.h"
#include "planner/bundle_rounds.h"

namespace meshplan {

// So many pairs of ranks of parts of rounds, and ranks in rounds, one schedule is counted of: it
// takes a second or two, and its proof several times as long (most_bundle_work in
// verify/bundle.cc).
constexpr int64_t most_counted = int64_t{1} << 28;

// Pairs of ranks that are looked at, and ranks in waves: seconds. Beyond it, or where weighing ways
// has looked at as many, no other choice of ways is tried.
constexpr int64_t most_looked_at = 100'000'000;

// What a bundle says whose rounds all need more staging than it allows; some need so many bytes.
[[nodiscard]] Error needs_staging(const BundleRequest& bundle, int64_t bytes);

// Or more messages; some have so many.
[[nodiscard]] Error needs_messages(const BundleRequest& bundle, int64_t messages);

// Tries one choice of ways after the other and keeps the best schedule.
class BundleSchedules {
 public:
  // `kinds` are listed where a choice has them. `close_ps`: a schedule that takes no longer is not
  // worth improving. `most`: that one schedule is counted of.
  BundleSchedules(const BundleRequest& bundle, std::vector<Kind>& kinds, FigureCounter& counter,
                  int64_t close_ps, int64_t most)
      : bundle_(bundle), kinds_(kinds), counter_(counter), close_ps_(close_ps), most_(most) {}

  // Kinds through the same buckets; where much was looked at also each through its own, whichever
  // is likely first. Fails where no number of buckets fits the limits. A choice that was considered
  // before is not counted again, nor does it fail again.
  Status consider(const WayQuestion& question, const std::vector<size_t>& chosen);
  // Each kind through its own buckets, by all choices that were not tried so: a rank meets fewer
  // others in each round, and messages share their staging with no other kind's.
  void consider_apart(const WayQuestion& question);
  // Another choice in the buckets of the best so far, shared or its kinds' own.
  void improve(const WayQuestion& question, const std::vector<size_t>& chosen);

  [[nodiscard]] bool found() const { return found_; }
  // Once something was found, it is to be taken then.
  [[nodiscard]] bool has_looked_enough() const;
  // It is not enough until so much more was looked at.
  void look_on(int64_t more);
  // Whether another choice of ways is worth trying: nothing was found, or what was is far from
  // close and not too much was looked at.
  [[nodiscard]] bool wants_more() const;
  // Of what was counted and keeps to the messages, bytes; nullopt: nothing does.
  [[nodiscard]] std::optional<int64_t> least_staging() const;
  // Finds what has that, where nothing was found and so many bytes are enough for it.
  [[nodiscard]] bool take_least(int64_t staging);
  [[nodiscard]] bool is_short() const;
  [[nodiscard]] bool is_far() const;  // of what was found; so where nothing was
  [[nodiscard]] BundleFigures& figures() { return best_; }
  [[nodiscard]] const std::vector<size_t>& chosen() const { return best_chosen_; }

 private:
  // Of kinds; of each its own, as many as fit or all of about as many bytes.
  enum class Buckets : uint8_t { shared, own, own_alike };
  Result<int64_t> consider_in(const WayQuestion& question, Buckets buckets,
                              const std::vector<size_t>& chosen);
  Result<int64_t> consider_within(const std::vector<size_t>& chosen, RoundLimits fitting);
  void consider_beside(const std::vector<size_t>& chosen, RoundLimits limits);
  void consider_ahead(const std::vector<size_t>& chosen, RoundLimits limits);
  void consider_fewer_behind(const std::vector<size_t>& chosen, RoundLimits limits);
  void consider_even_buckets(const std::vector<size_t>& chosen, RoundLimits limits, int64_t below);
  void consider_uneven_shares(const std::vector<size_t>& chosen, RoundLimits limits,
                              const BundleFigures& even);
  void move_shares(const std::vector<size_t>& chosen, RoundLimits limits,
                   std::vector<int64_t> shares, int64_t last_ps);
  [[nodiscard]] int64_t more_buckets(int64_t buckets, int64_t staging) const;
  struct Fitting {
    BundleFigures figures;
    bool more_take_longer = false;  // buckets: so does it than what was tried before, in fewer
  };
  // `once`: in one bucket, or not at all. `limits`: to begin with, and those that it is by.
  Result<Fitting> first_that_fits(const std::vector<size_t>& chosen, bool once,
                                  RoundLimits& limits);
  // nullopt: it takes too long.
  std::optional<BundleFigures> count(const std::vector<size_t>& chosen, const RoundLimits& limits);
  [[nodiscard]] bool is_hopeless(const std::vector<size_t>& chosen, const RoundLimits& limits,
                                 const BundleFigures& figures) const;
  [[nodiscard]] int64_t most_shared(const std::vector<size_t>& chosen,
                                    const RoundLimits& limits) const;
  [[nodiscard]] bool is_lone() const;  // one tensor by itself
  [[nodiscard]] bool fits(const BundleFigures& figures) const;
  [[nodiscard]] bool fits_staging(const BundleFigures& figures) const;
  [[nodiscard]] bool fits_messages(const BundleFigures& figures) const;
  [[nodiscard]] Error too_long_to_count() const;
  [[nodiscard]] Status too_many_launches(int64_t rounds) const;
  [[nodiscard]] Status does_not_fit(const BundleFigures& figures) const;
  void keep(const std::vector<size_t>& chosen, const BundleFigures& figures);

  const BundleRequest& bundle_;
  std::vector<Kind>& kinds_;
  FigureCounter& counter_;
  int64_t close_ps_;
  int64_t most_;
  int64_t enough_ = most_looked_at;
  std::set<std::pair<Buckets, std::vector<size_t>>> considered_;
  std::vector<std::vector<size_t>> apart_later_;
  std::optional<BundleFigures> least_;  // of staging
  std::vector<size_t> least_chosen_;
  bool found_ = false;
  BundleFigures best_;
  std::vector<size_t> best_chosen_;
  Buckets best_in_ = Buckets::shared;
  Buckets tried_in_ = Buckets::shared;  // what is counted at the moment
  int64_t worth_ps_ = 0;                // that another schedule must take less
  bool other_is_far_slower_ = false;    // than best_in_
};

}  // namespace meshplan
