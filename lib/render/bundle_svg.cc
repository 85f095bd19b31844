#include "render/bundle_svg.h"

#include <algorithm>

#include "base/int_math.h"
#include "base/text.h"
#include "render/bundle_view.h"

namespace meshplan {
namespace {

constexpr int64_t stream_label_width = 80;
constexpr int64_t chart_width = 960;
constexpr int64_t row_height = 30;
constexpr int64_t bar_height = 24;
constexpr int64_t axis_height = 20;
constexpr int64_t width_of_number = 34;  // a narrower bar has no number on it
// Beyond it rounds are not drawn: bars would be thinner than a pixel.
constexpr size_t most_bars = 960;
// Parts named when pointing at a round.
constexpr size_t named_parts = 8;

int64_t streams_of(const PlannedBundle& bundle) {
  int64_t streams = 1;
  for (const BundleRound& round : bundle.rounds) streams = std::max(streams, round.stream + 1);
  return streams;
}

std::string round_title(const Plan& plan, const BundleRound& round, size_t index, bool costs) {
  std::string text = "round " + std::to_string(index) + ": " + to_text(round.op) +
                     (round.group.empty() ? "" : " over " + round.group) + ", " +
                     human_bytes(round.wire_bytes) + " received by a rank, " +
                     human_bytes(round.staging_bytes) + " staged";
  if (costs) text += ", " + human_ns(ns_of_ps(round.predicted_ps));
  BundleRound first = round;
  first.parts.resize(std::min(named_parts, round.parts.size()));
  text += "; " + parts_text(plan, first);
  if (round.parts.size() > named_parts)
    text += " and " + std::to_string(round.parts.size() - named_parts) + " more";
  return text;
}

}  // namespace

FrameSize bundle_picture_size(const PlannedBundle& bundle) {
  return {stream_label_width + chart_width, streams_of(bundle) * row_height + axis_height};
}

std::string bundle_svg(const Plan& plan, const PlannedBundle& bundle, const ShowOptions& options) {
  const std::vector<RoundTime> times = round_times(plan, bundle, options.costs);
  int64_t end = 1;
  for (const RoundTime& time : times) end = std::max(end, saturating_add(time.start, time.length));
  const auto place = [&](int64_t time) {
    return stream_label_width + floor_div(saturating_mul(time, chart_width), end);
  };
  std::string out;
  for (int64_t stream = 0; stream < streams_of(bundle); ++stream) {
    out += "<text class=\"axis\" x=\"0\" y=\"" + std::to_string(stream * row_height + 16) +
           "\">stream " + std::to_string(stream) + "</text>\n";
  }
  const size_t drawn = std::min(most_bars, bundle.rounds.size());
  for (size_t r = 0; r < drawn; ++r) {
    const BundleRound& round = bundle.rounds[r];
    const int64_t x = place(times[r].start);
    const int64_t width = std::max<int64_t>(1, place(times[r].start + times[r].length) - x);
    const int64_t y = round.stream * row_height;
    out += "<g tabindex=\"0\"><title>" + escape_html(round_title(plan, round, r, options.costs)) +
           "</title><rect class=\"round\" x=\"" + std::to_string(x) + "\" y=\"" +
           std::to_string(y) + "\" width=\"" + std::to_string(width) + "\" height=\"" +
           std::to_string(bar_height) + "\" fill=\"" +
           (round.op == Op::exchange ? "#9ec5ef" : "#f2c891") + "\"/>";
    if (width >= width_of_number)
      out += "<text class=\"rank\" x=\"" + std::to_string(x + 4) + "\" y=\"" +
             std::to_string(y + 16) + "\">" + std::to_string(r) + "</text>";
    out += "</g>\n";
  }
  const int64_t below = streams_of(bundle) * row_height + 12;
  std::string axis = options.costs ? "0 to " + human_ns(end) : "one column a wave";
  if (drawn < bundle.rounds.size()) {
    axis += ", the first " + with_commas(static_cast<int64_t>(drawn)) + " of " +
            with_commas(std::ssize(bundle.rounds)) + " rounds";
  }
  return out + "<text class=\"axis\" x=\"" + std::to_string(stream_label_width) + "\" y=\"" +
         std::to_string(below) + "\">" + axis + "</text>\n";
}

}  // namespace meshplan
