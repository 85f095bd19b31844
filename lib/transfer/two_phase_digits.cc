// Two phases in closed form: what the members of a unit fetch for all of them, and what they pass
// on.
//
//     2 hosts of 4, mesh a 2 x b 4, 8 elements of 4 B, S(0)[a] -> R
//     a unit misses 1 shard of 16 B; its 4 members want one box and share it
//     first phase      each fetches a quarter, 4 B, from one of the 4 holders, who each serve one
//     second phase     each receives the other 3 quarters, 12 B, and sends its own to 3 members
//
// Where positions are crossed, ranks differ in what they match. Two values of every crossed digit
// make every kind of rank that there is: no kind needs more than two positions to differ. So the
// figures of one rank of each kind are worked out, and the most of them is kept.
//
// Where missing boxes are not shared evenly, as 63 among 8 members (8, 8, .. 7), or parts differ by
// a slice, members of every kind stand at every place among those that share a box: which digits
// before they match depends on what they want. So the most and the least of all places are those of
// every kind.
#include <algorithm>
#include <array>
#include <bitset>
#include <numeric>
#include <span>

#include "base/int_math.h"
#include "transfer/digit_counts.h"
#include "transfer/exchange_digits.h"
#include "transfer/two_phases.h"

namespace meshplan {
namespace {

// How one wanted box is fetched by the members of a unit that want it.
struct Fetching {
  int64_t parts = 1;       // that a missing box is cut into
  int64_t long_parts = 0;  // of these, one slice longer than the others
  int64_t part_bytes = 0;  // of those others
  int64_t slice_bytes = 0;
  int64_t run = 0;          // the most parts that a member fetches
  int64_t least_bytes = 0;  // of a member's run
  int64_t most_bytes = 0;
};
// nullopt: some member fetches nothing, or some part is empty.
std::optional<Fetching> fetching(int64_t missing, int64_t sharing, int64_t laps, int64_t longest,
                                 int64_t piece_bytes) {
  Fetching f;
  if (missing == 0) return f;
  f.parts = saturating_mul(parts_to_share(missing, sharing), laps);
  const int64_t shared = saturating_mul(missing, f.parts);
  if (longest < f.parts || shared < sharing) return std::nullopt;
  f.run = ceil_div(shared, sharing);
  f.slice_bytes = floor_div(piece_bytes, longest);
  f.long_parts = floor_mod(longest, f.parts);
  f.part_bytes = saturating_mul(floor_div(longest, f.parts), f.slice_bytes);
  if (f.long_parts == 0) {
    f.least_bytes = saturating_mul(floor_div(shared, sharing), f.part_bytes);
    f.most_bytes = saturating_mul(f.run, f.part_bytes);
    return f;
  }
  // Member j has the parts [j shared / sharing, (j + 1) shared / sharing) of the line, which begins
  // with the long ones.
  const int64_t long_ones = missing * f.long_parts;
  f.least_bytes = INT64_MAX;
  int64_t begin = 0;
  for (int64_t j = 1; j <= sharing; ++j) {
    const int64_t end = floor_div(saturating_mul(j, shared), sharing);
    const int64_t slices = std::min(end, long_ones) - std::min(begin, long_ones);
    const int64_t bytes = saturating_add(saturating_mul(end - begin, f.part_bytes),
                                         saturating_mul(slices, f.slice_bytes));
    f.least_bytes = std::min(f.least_bytes, bytes);
    f.most_bytes = std::max(f.most_bytes, bytes);
    begin = end;
  }
  return f;
}

// So many parts of one shard are asked of its holders in turn: box after box, each from its first
// part on.
//
//     3 parts of 2 1 1 slices, 2 holders, 2 boxes     2 1 1 2 1 1: the first sends 2 1 1, the
//                                                     other 1 2 1
struct Asked {
  int64_t times = 0;
  const Fetching* by = nullptr;

  // So many places on, or turns later, the numbers of a holder's parts are the same.
  [[nodiscard]] int64_t period() const { return by->long_parts == 0 ? 1 : by->parts; }
  // Of the holder at this place.
  [[nodiscard]] int64_t turns_of(int64_t place, int64_t holders) const {
    return place < times ? ceil_div(times - place, holders) : 0;
  }
  [[nodiscard]] int64_t bytes_of(int64_t place, int64_t holders) const {
    const int64_t turns = turns_of(place, holders);
    int64_t slices = 0;
    for (int64_t t = 0; t < std::min(period(), turns) && by->long_parts > 0; ++t) {
      const int64_t again = ceil_div(turns - t, period());
      if (floor_mod(place + t * holders, by->parts) < by->long_parts) slices += again;
    }
    return saturating_add(saturating_mul(turns, by->part_bytes),
                          saturating_mul(slices, by->slice_bytes));
  }
};

// Which crossed positions a rank's coordinates match, by where their digits lie: each is true where
// all positions of its kind match. It decides how much the rank fetches, sends and receives.
struct Matches {
  // the digit before outside of units: the unit holds shards of what the rank wants
  bool from_outside = true;
  // the digit after outside of units: others of the unit want what the rank holds
  bool to_outside = true;
  bool own = true;            // all: the rank wants part of what it holds
  bool source_inside = true;  // the digit after inside of units, of those that shard before
  bool after_inside = true;   // the digit after inside of units
  bool wanted_inside = true;  // the digit before inside of units, of those that shard after
  // the digit after outside of units, of those that shard before: some unit both holds and wants
  // part of the rank's shard
  bool outside_holds = true;
  // the digit after outside of units and before somewhere: some unit that wants part of the rank's
  // shard holds others of what its members want
  bool outside_matches = true;
};

// Kinds of ranks by what they mismatch, as bits in the order of Matches.
class Kinds {
 public:
  void add(unsigned kind) {
    if (known_[kind]) return;
    known_.set(kind);
    kinds_[count_++] = static_cast<uint8_t>(kind);
  }
  // Those of others that mismatch so much more; the others may be these.
  void add(const Kinds& others, unsigned mismatches) {
    const size_t count = others.count_;
    for (size_t i = 0; i < count; ++i) add(others.kinds_[i] | mismatches);
  }
  [[nodiscard]] std::span<const uint8_t> list() const { return std::span(kinds_).first(count_); }

 private:
  std::bitset<256> known_;
  std::array<uint8_t, 256> kinds_;  // written up to count_
  size_t count_ = 0;
};

class TwoPhaseDigits {
 public:
  TwoPhaseDigits(const DigitWorld& world, const DigitChange& change, int64_t laps)
      : world_(world), p_(change), laps_(laps) {}

  // False: no closed form.
  bool set_up(int levels);
  ExchangeTraffic most_of_all_kinds();

 private:
  void sort_digits();
  [[nodiscard]] unsigned mismatches_at(size_t position) const;
  [[nodiscard]] Kinds kinds_of_ranks() const;
  void add_kind(const Matches& m);
  int64_t add_first_phase(const Matches& m, const Fetching& f);
  int64_t add_second_phase(const Matches& m, const Fetching& f);
  [[nodiscard]] int64_t heard(const Matches& m, int64_t others) const;

  const DigitWorld& world_;
  const DigitChange& p_;
  int64_t laps_;
  size_t outer_ = 0;  // the one level outside of units
  // Digits, but for those that stay pending: ranks that differ on them do not talk.
  DigitMask all_ = 0;
  DigitMask inside_ = 0;        // units
  DigitMask outside_ = 0;       // of units
  DigitMask from_outside_ = 0;  // before at crossed positions, outside of units
  DigitMask before_both_ = 0;   // before at positions that both states cut
  DigitMask after_both_ = 0;    // after at positions that both states cut
  DigitCounts c_;
  int64_t sharing_ = 0;         // members of a unit that want one box
  int64_t holders_ = 0;         // of a shard
  int64_t holders_inside_ = 0;  // of a shard that a unit holds
  int64_t wanting_units_ = 0;   // units that want part of one shard
  int64_t askers_ = 0;          // wanted boxes of such a unit
  Fetching matched_;            // where the unit holds shards of what is wanted
  Fetching mismatched_;         // where it holds none
  // What the holder of a shard serves that does most.
  struct Served {
    int64_t turns = 0;
    int64_t bytes = 0;
  };
  [[nodiscard]] Served most_served(const Asked& first, const Asked& second) const;
  ExchangeTraffic out_;
};

void TwoPhaseDigits::sort_digits() {
  all_ = world_.all() & ~p_.kept;
  inside_ = world_.at_level(0) & all_;
  outside_ = all_ & ~inside_;
  before_both_ = p_.src & ~p_.src_only;
  after_both_ = p_.dst & ~p_.dst_only;
  for (size_t i = 0; i < static_cast<size_t>(p_.crossed); ++i)
    from_outside_ |= outside_ & DigitMask{1} << p_.before[i];
}

bool TwoPhaseDigits::set_up(int levels) {
  sort_digits();
  for (int l = 1; l < levels; ++l) {
    if ((world_.at_level(l) & all_) == 0) continue;
    if (outer_ != 0) return false;
    outer_ = static_cast<size_t>(l);
  }
  c_ = count_pieces(world_, p_, levels);
  sharing_ = world_.product(inside_ & ~p_.dst);
  holders_ = world_.product(all_ & ~p_.src);
  holders_inside_ = world_.product(inside_ & ~p_.src);
  if (floor_mod(p_.longest, holders_inside_) != 0) return false;
  const int64_t shards_met = world_.product(p_.src_only);  // by a wanted box
  const int64_t shards_inside = world_.product(p_.src_only & inside_);
  const auto matched =
      fetching(shards_met - shards_inside, sharing_, laps_, p_.longest, c_.piece_bytes);
  const auto mismatched = fetching(shards_met, sharing_, laps_, p_.longest, c_.piece_bytes);
  if (!matched || (from_outside_ != 0 && !mismatched)) return false;
  // Parts of one shard that a member fetches stand in a row: each is asked of another holder, and
  // holders serve no member twice, where there are as many holders.
  const auto is_from_one = [&](const Fetching& f, int64_t missing) {
    return missing > 0 && ceil_div(f.run, missing) > holders_;
  };
  if (is_from_one(*matched, shards_met - shards_inside)) return false;
  if (mismatched && is_from_one(*mismatched, shards_met)) return false;
  matched_ = *matched;
  if (mismatched) mismatched_ = *mismatched;
  // The member that fetches most need not be the holder that serves most.
  const auto is_even = [](const Fetching& f) {
    return f.least_bytes == f.most_bytes && f.long_parts == 0;
  };
  out_.sent_is_known = is_even(matched_) && (from_outside_ == 0 || is_even(mismatched_));
  wanting_units_ = world_.product(outside_ & ~after_both_);
  askers_ = world_.product(p_.dst_only & inside_);
  return true;
}

// A kind is told by what it mismatches, as bits in the order of Matches.
unsigned TwoPhaseDigits::mismatches_at(size_t position) const {
  const int a = p_.before[position];
  const int b = p_.after[position];
  const std::array<bool, 8> mismatches = {
      has_digit(outside_, a),          has_digit(outside_, b),     true,
      has_digit(inside_ & p_.src, b),  has_digit(inside_, b),      has_digit(inside_ & p_.dst, a),
      has_digit(outside_ & p_.src, b), has_digit(from_outside_, b)};
  unsigned bits = 0;
  for (size_t i = 0; i < mismatches.size(); ++i) bits |= (mismatches[i] ? 1U : 0U) << i;
  return bits;
}

// Of two values of every crossed digit. A digit may cut before at one position and after at
// another: so positions make paths, at any of which a rank may mismatch, and cycles, at an even
// number of which it does, as a value that changes on the way around changes back. More values let
// an odd number of a cycle's mismatch, which makes no other kind: its digits all cut before and
// after, so what a position mismatches is told by which of its two lie inside of units, and of any
// such positions two make what all of them do.
Kinds TwoPhaseDigits::kinds_of_ranks() const {
  std::array<size_t, max_digits> position{};  // by its digit before
  DigitMask befores = 0;
  DigitMask afters = 0;
  for (size_t i = 0; i < static_cast<size_t>(p_.crossed); ++i) {
    position[static_cast<size_t>(p_.before[i])] = i;
    befores |= DigitMask{1} << p_.before[i];
    afters |= DigitMask{1} << p_.after[i];
  }
  DigitMask left = befores;
  // Visits what the positions mismatch from that of this digit on, each once.
  const auto walk = [&](int digit, auto&& visit) {
    while (has_digit(left, digit)) {
      left &= ~(DigitMask{1} << digit);
      const size_t at = position[static_cast<size_t>(digit)];
      visit(mismatches_at(at));
      digit = p_.after[at];
    }
  };
  Kinds kinds;
  kinds.add(0);
  for (DigitMask firsts = befores & ~afters; firsts != 0; firsts &= firsts - 1)
    walk(__builtin_ctz(firsts), [&](unsigned mismatches) { kinds.add(kinds, mismatches); });
  while (left != 0) {
    Kinds odd;
    walk(__builtin_ctz(left), [&](unsigned mismatches) {
      const Kinds even = kinds;
      kinds.add(odd, mismatches);
      odd.add(even, mismatches);
    });
  }
  return kinds;
}

ExchangeTraffic TwoPhaseDigits::most_of_all_kinds() {
  const Kinds kinds = kinds_of_ranks();
  for (const unsigned kind : kinds.list()) {
    const std::bitset<8> m = kind;
    add_kind({!m[0], !m[1], !m[2], !m[3], !m[4], !m[5], !m[6], !m[7]});
  }
  return out_;
}

void TwoPhaseDigits::add_kind(const Matches& m) {
  const Fetching& f = m.from_outside ? matched_ : mismatched_;
  const int64_t served = add_first_phase(m, f);
  const int64_t sent = add_second_phase(m, f);
  out_.sent_bytes = std::max(out_.sent_bytes, saturating_add(served, sent));
}

// Holders have as many turns up to the places where a last round ends, and of those the same parts
// that are as far apart as the numbers of parts come again.
TwoPhaseDigits::Served TwoPhaseDigits::most_served(const Asked& first, const Asked& second) const {
  std::array<int64_t, 4> ends{0, floor_mod(first.times, holders_),
                              floor_mod(second.times, holders_), holders_};
  std::sort(ends.begin(), ends.end());
  const int64_t apart = std::lcm(first.period(), second.period());
  Served most{first.turns_of(0, holders_) + second.turns_of(0, holders_), 0};
  for (size_t i = 0; i + 1 < ends.size(); ++i) {
    const int64_t end = std::min(ends[i + 1], ends[i] + apart);
    for (int64_t place = ends[i]; place < end; ++place) {
      most.bytes = std::max(most.bytes, saturating_add(first.bytes_of(place, holders_),
                                                       second.bytes_of(place, holders_)));
    }
  }
  return most;
}

// Gives how many bytes the rank serves. Units that want part of the shard and do not hold it are
// those that match and those that do not; holders take turns over the parts of each apart, where
// they are cut differently.
int64_t TwoPhaseDigits::add_first_phase(const Matches& m, const Fetching& f) {
  const int64_t holding = m.outside_holds ? world_.product(outside_ & ~(p_.src | after_both_)) : 0;
  const int64_t matching =
      m.outside_matches ? world_.product(outside_ & ~(from_outside_ | after_both_)) : 0;
  const auto asked = [&](int64_t units, const Fetching& by) {
    return Asked{saturating_mul(saturating_mul(units, askers_), by.parts), &by};
  };
  Served served;
  if (from_outside_ != 0 && matched_.parts != mismatched_.parts) {
    served = most_served(asked(matching - holding, matched_),
                         asked(wanting_units_ - matching, mismatched_));
  } else {
    const Fetching& by = matched_.run > 0 ? matched_ : mismatched_;
    served = most_served(asked(wanting_units_ - holding, by), asked(0, by));
  }
  Traffic& phase = out_.phase[0];
  phase.bytes[outer_] = std::max({phase.bytes[outer_], f.most_bytes, served.bytes});
  phase.peers[outer_] = std::max({phase.peers[outer_], f.run, served.turns});
  out_.received[0] = std::max(out_.received[0], f.most_bytes);
  return served.bytes;
}

// Gives how many bytes the rank sends: what it fetched to the others that want its box, and what it
// holds to those of the unit that want it.
int64_t TwoPhaseDigits::add_second_phase(const Matches& m, const Fetching& f) {
  const int64_t received = c_.target_bytes - (m.own ? c_.piece_bytes : 0);  // in both phases
  const int64_t rest = received - f.least_bytes;
  const int64_t others = f.run > 0 ? sharing_ - 1 : 0;
  int64_t told = others;
  int64_t sent = saturating_mul(f.most_bytes, sharing_ - 1);
  if (m.to_outside) {
    int64_t asking = world_.product(inside_ & ~after_both_);
    if (m.source_inside) asking -= world_.product(inside_ & ~(p_.src | after_both_));
    sent = saturating_add(sent, saturating_mul(asking, floor_div(c_.piece_bytes, holders_inside_)));
    told += asking;
    if (others > 0 && m.after_inside) {
      told -= world_.product(inside_ & ~p_.dst);
      told += world_.product(inside_ & ~(p_.src | p_.dst));
    }
  }
  Traffic& phase = out_.phase[1];
  phase.bytes[0] = std::max({phase.bytes[0], rest, sent});
  phase.peers[0] = std::max({phase.peers[0], heard(m, others), told});
  out_.received[1] = std::max(out_.received[1], rest);
  out_.wire_bytes = std::max(out_.wire_bytes, received);
  return sent;
}

// From how many members the rank receives: holders of other shards of the unit, and others that
// want its box; those that are both once.
int64_t TwoPhaseDigits::heard(const Matches& m, int64_t others) const {
  int64_t heard = others;
  if (!m.from_outside) return heard;
  heard += world_.product(inside_ & ~before_both_);
  if (m.own) heard -= world_.product(inside_ & ~p_.src);
  if (others > 0 && m.wanted_inside) {
    heard -= world_.product(inside_ & ~(before_both_ | p_.dst));
    if (m.own) heard += world_.product(inside_ & ~(p_.src | p_.dst));
  }
  return heard;
}

}  // namespace

std::optional<ExchangeTraffic> digits_two_phases(const DigitWorld& world, const DigitChange& change,
                                                 int levels, int64_t laps) {
  if (change.reduced != 0) return std::nullopt;
  if (change.total_bytes == 0) return ExchangeTraffic{};
  TwoPhaseDigits digits(world, change, laps);
  if (!digits.set_up(levels)) return std::nullopt;
  return digits.most_of_all_kinds();
}

}  // namespace meshplan
