#include "render/bundle_view.h"

#include <algorithm>

#include "base/int_math.h"
#include "base/text.h"
#include "base/utf8.h"
#include "cost/wave_times.h"

namespace meshplan {
namespace {

// Rounds that are shown without all detail.
constexpr size_t usual_rounds = 16;

std::string after_text(const BundleRound& round) {
  std::vector<std::string> numbers;
  for (const size_t before : round.after) numbers.push_back(std::to_string(before));
  return join(numbers, " ");
}

// " piece 1 of 4"; of two phases " phase 2" with the piece of all that the phase moves, where it is
// not all.
std::string piece_text(const Plan& plan, const RoundPart& part) {
  const auto& steps = plan.redistributions[part.member].steps;
  const auto step = static_cast<size_t>(part.step);
  const bool two_phases = step < steps.size() && steps[step].phases == 2 && part.pieces % 2 == 0;
  const int64_t each = two_phases ? 2 : 1;
  std::string text;
  if (two_phases) text += " phase " + std::to_string(1 + part.piece % 2);
  if (part.pieces > each) {
    text += " piece " + std::to_string(floor_div(part.piece, each)) + " of " +
            std::to_string(floor_div(part.pieces, each));
  }
  return text;
}

}  // namespace

std::string bundle_line(const PlannedBundle& bundle, const ShowOptions& options) {
  const BundleTotals& totals = bundle.totals;
  int64_t messages = 0;
  for (const BundleRound& round : bundle.rounds) messages = std::max(messages, round.messages);
  std::string text = "bundle " + bundle.request.id;
  if (bundle.request.count > 1) text += " x" + with_commas(bundle.request.count);
  text += ": " + counted(bundle.tensors, "tensor") + " in " + counted(totals.rounds, "round");
  if (options.costs) {
    text += ", " + time_text(totals.predicted_ps) + " predicted (at least " +
            time_text(totals.lower_bound_ps) + "; " + time_text(bundle.alone_ps) + " one by one)";
  }
  text += ", staging " + human_bytes(totals.staging_bytes);
  if (bundle.request.max_staging_bytes > 0)
    text += " of " + human_bytes(bundle.request.max_staging_bytes);
  return text + ", at most " + counted(messages, "message") + " of " +
         with_commas(bundle.request.max_messages);
}

std::string parts_text(const Plan& plan, const BundleRound& round) {
  std::vector<std::string> texts;
  for (const RoundPart& part : round.parts) {
    const Request& member = plan.redistributions[part.member].request;
    std::string text = member.id + " step " + std::to_string(part.step);
    if (part.to - part.from > 1) text += " x" + with_commas(part.to - part.from);
    texts.push_back(text + piece_text(plan, part));
  }
  return join(texts, ", ");
}

Table round_table(const Plan& plan, const PlannedBundle& bundle, const ShowOptions& options) {
  Table table;
  table.columns = {{"round", true},
                   {"wave", true},
                   {"stream", true, false, true},
                   {"after", false, false, true},
                   {"op"},
                   {"group"},
                   {"messages", true},
                   {"wire bytes", true},
                   {"staging", true},
                   {"predicted", true},
                   {"moves", false, true}};
  if (!options.costs) table.columns.erase(table.columns.begin() + 9);
  const std::vector<int64_t> waves = waves_of(bundle.rounds);
  const bool all = options.detail == Detail::full || bundle.rounds.size() <= usual_rounds;
  const size_t shown = all ? bundle.rounds.size() : usual_rounds;
  for (size_t r = 0; r < shown; ++r) {
    const BundleRound& round = bundle.rounds[r];
    std::vector<std::string> cells{std::to_string(r),
                                   std::to_string(waves[r]),
                                   std::to_string(round.stream),
                                   after_text(round),
                                   to_text(round.op),
                                   round.group.empty() ? "several" : round.group,
                                   with_commas(round.messages),
                                   human_bytes(round.wire_bytes),
                                   human_bytes(round.staging_bytes)};
    if (options.costs) cells.push_back(time_text(round.predicted_ps));
    cells.push_back(parts_text(plan, round));
    table.rows.push_back({std::move(cells), {}});
  }
  if (shown < bundle.rounds.size()) {
    const size_t more = bundle.rounds.size() - shown;
    table.rows.push_back(
        {{}, counted(static_cast<int64_t>(more), "more round") + " (--detail full)"});
  }
  return table;
}

namespace {

// When waves begin, and the last one ends, in nanoseconds.
std::vector<int64_t> wave_starts(const Plan& plan, const PlannedBundle& bundle,
                                 const std::vector<int64_t>& wave_of) {
  std::vector<int64_t> lengths;
  if (const auto times = wave_times_ps(plan, bundle)) {
    lengths = *times;
  } else {
    // A plan that nothing can run, and verify refuses: as if the rounds of a wave shared nothing.
    for (size_t r = 0; r < wave_of.size(); ++r) {
      const auto wave = static_cast<size_t>(wave_of[r]);
      if (lengths.size() <= wave) lengths.resize(wave + 1, 0);
      lengths[wave] = std::max(lengths[wave], bundle.rounds[r].predicted_ps);
    }
  }
  int64_t all = 0;
  for (const int64_t length : lengths) all = saturating_add(all, length);
  // A file has whole nanoseconds, so that they may be a few apart.
  const int64_t end = ns_of_ps(bundle.totals.predicted_ps);
  std::vector<int64_t> starts{0};
  int64_t at = 0;
  for (const int64_t length : lengths) {
    at = saturating_add(at, length);
    starts.push_back(all == 0 ? 0 : static_cast<int64_t>(int128{end} * at / all));
  }
  return starts;
}

}  // namespace

std::vector<RoundTime> round_times(const Plan& plan, const PlannedBundle& bundle, bool costs) {
  const std::vector<int64_t> wave_of = waves_of(bundle.rounds);
  std::vector<RoundTime> times;
  if (!costs) {
    for (const int64_t wave : wave_of) times.push_back({wave, 1});
    return times;
  }
  const std::vector<int64_t> starts = wave_starts(plan, bundle, wave_of);
  std::vector<int64_t> collectives = starts;  // by wave: when the next one begins
  std::vector<bool> has_collectives(starts.size(), false);
  for (size_t r = 0; r < wave_of.size(); ++r) {
    if (bundle.rounds[r].op != Op::exchange) has_collectives[wave_of[r]] = true;
  }
  for (size_t r = 0; r < wave_of.size(); ++r) {
    const auto wave = static_cast<size_t>(wave_of[r]);
    const int64_t room = starts[wave + 1] - starts[wave];
    const int64_t length = std::min(room, ns_of_ps(bundle.rounds[r].predicted_ps));
    if (bundle.rounds[r].op == Op::exchange) {
      times.push_back({has_collectives[wave] ? starts[wave + 1] - length : starts[wave], length});
    } else {
      times.push_back({std::min(collectives[wave], starts[wave + 1] - length), length});
      collectives[wave] = saturating_add(collectives[wave], length);
    }
  }
  return times;
}

std::string explain_bundle(const Plan& plan, const PlannedBundle& bundle) {
  ShowOptions options;
  options.detail = Detail::full;
  std::string text;
  const auto line = [&](const std::string& words) { text += one_line(words) + "\n"; };
  line(bundle_line(bundle, options));
  const std::vector<size_t> repeated = repeated_by(plan, bundle.request.members);
  for (size_t m = 0; m < repeated.size(); ++m) {
    const size_t member = bundle.request.members[m];
    const PlannedRedistribution& r = plan.redistributions[member];
    if (repeated[m] != member) {
      line("  " + r.request.id + " moves as " + plan.redistributions[repeated[m]].request.id);
      continue;
    }
    line("  " + redistribution_title(plan, r));
    for (size_t s = 0; s < r.steps.size(); ++s)
      line("    step " + std::to_string(s) + ": " + step_name(r.steps[s]) + ", " + r.steps[s].why);
  }
  text += "\n" + table_text(round_table(plan, bundle, options), TableStyle{0, true, false, 0});
  text +=
      "\nA round of exchanges takes the latency of the outermost level in use once, a message to "
      "each peer once, and the bytes of the busiest rank over each level, of all its parts "
      "together; rounds of one wave run at the same time and share what they use of a level: what "
      "exchanges move over the levels of a collective beside them comes behind it. The bundle takes "
      "the sum of its waves.\n";
  text += "No schedule takes less than " + time_text(bundle.totals.lower_bound_ps) +
          ": some rank, host or mesh must take in, or give away, so many bytes over its links, and "
          "what targets pass on came in an earlier wave. "
          "This one is at most " +
          time_text(bundle.proven_gap_ps) + " above the best.\n";
  return text;
}

}  // namespace meshplan
