#include "render/svg.h"

#include <algorithm>
#include <unordered_map>

#include "base/text.h"
#include "base/utf8.h"
#include "render/bundle_svg.h"
#include "render/bundle_view.h"
#include "render/frame_svg.h"

namespace meshplan {
namespace {

constexpr int64_t margin = 16;
constexpr int64_t between = 36;  // of two frames, for the arrow
constexpr int64_t title_height = 26;
constexpr int64_t text_height = 18;
constexpr int64_t character = 8;
constexpr size_t most_strips = 64;  // a picture of more is too tall to be looked at
constexpr size_t named_repeats = 4;

// The first receiver of a step has its arrows until another is pointed at.
constexpr const char* pointing =
    "<style>.to:hover .arrow,.to:focus .arrow,.first .arrow{display:inline}"
    ".ranks:hover .first:not(:hover) .arrow,.ranks:focus-within .first:not(:focus) .arrow{display:none}"
    ".to:hover .hit,.to:focus .hit,.first .hit{stroke:#c00;stroke-width:2}"
    ".ranks:hover .first:not(:hover) .hit,.ranks:focus-within .first:not(:focus) .hit{stroke:none}"
    ".to:focus{outline:none}</style>\n";

std::string text_at(int64_t x, int64_t y, const std::string& kind, const std::string& text) {
  return "<text class=\"" + kind + "\" x=\"" + std::to_string(x) + "\" y=\"" + std::to_string(y) +
         "\">" + escape_html(text) + "</text>\n";
}

// A strip of frames with its height and width.
struct Strip {
  std::string svg;
  FrameSize size;
};

// The frames from left to right, each with what led there; then what is pointed at, so that arrows
// lie above all frames.
Strip make_strip(const Plan& plan, const PlannedRedistribution& r, const std::string& repeats,
                 bool costs) {
  Strip strip;
  const ShownDims shown = shown_dims(r);
  const std::string title = redistribution_title(plan, r);
  strip.svg = text_at(0, 14, "title", title);
  const int64_t top = title_height + (repeats.empty() ? 0 : text_height);
  if (!repeats.empty()) strip.svg += text_at(0, title_height + 8, "axis", repeats);
  const std::vector<Frame> frames = frames_of(plan, r);
  std::vector<Grid> grids;
  for (const Frame& frame : frames)
    grids.push_back(make_grid(*frame.mesh, *frame.state, r.request.tensor.shape));
  const std::vector<StepSenders> senders = senders_of(plan, r, {grids.begin() + 1, grids.end()});
  std::vector<PlacedFrame> places;
  int64_t x = 0;
  for (size_t i = 0; i < frames.size(); ++i) {
    const Frame& frame = frames[i];
    const FrameSize size = frame_size(grids[i]);
    const std::string state = frame_title(plan, frame);
    const std::string step =
        frame.step == nullptr ? "source" : "-> " + arrow_text(plan, r, *frame.step, costs);
    strip.svg +=
        text_at(x, top + 12, "step", step) + text_at(x, top + text_height + 12, "state", state);
    places.push_back({&grids[i], x, top + 2 * text_height});
    strip.svg += "<g transform=\"translate(" + std::to_string(x) + "," +
                 std::to_string(places[i].y) + ")\">\n" +
                 frame_svg(grids[i], r.request.tensor.shape, shown) + "</g>\n";
    const auto words =
        static_cast<int64_t>(std::max(display_width(step), display_width(state))) * character;
    x += std::max(size.width, words) + between;
    strip.size.height = std::max(strip.size.height, places[i].y + size.height);
  }
  for (size_t i = 0; i < frames.size(); ++i) {
    const bool stays = i == 0 || frames[i].mesh == frames[i - 1].mesh;
    strip.svg +=
        ranks_svg(places[stays ? i : i - 1], places[i], i == 0 ? nullptr : &senders[i - 1]);
  }
  strip.size.width =
      std::max({x - between, static_cast<int64_t>(display_width(title)) * (character + 1),
                static_cast<int64_t>(display_width(repeats)) * character});
  return strip;
}

Strip make_strip(const Plan& plan, const PlannedBundle& bundle, const ShowOptions& options) {
  const std::string title = bundle_line(bundle, options);
  const FrameSize size = bundle_picture_size(bundle);
  Strip strip;
  strip.svg = text_at(0, 14, "title", title) + "<g transform=\"translate(0," +
              std::to_string(title_height) + ")\">\n" + bundle_svg(plan, bundle, options) +
              "</g>\n";
  strip.size = {std::max(size.width, static_cast<int64_t>(display_width(title)) * (character + 1)),
                title_height + size.height};
  return strip;
}

// "also layers.1.wq, layers.2.wq and 29 more": those that repeat what a strip shows.
std::string repeats_text(const Plan& plan, const std::vector<size_t>& repeats) {
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(named_repeats, repeats.size()); ++i)
    names.push_back(one_line(plan.redistributions[repeats[i]].request.id));
  if (names.empty()) return {};
  const std::string rest = with_commas(static_cast<int64_t>(repeats.size() - names.size()));
  return "also " + join(names, ", ") +
         (repeats.size() > names.size() ? " and " + rest + " more" : std::string());
}

// What is drawn: the first of those that repeat one another, with the others.
std::vector<std::pair<size_t, std::vector<size_t>>> strips_of(const Plan& plan,
                                                              const std::vector<size_t>& chosen) {
  const std::vector<size_t> first = repeated_by(plan, chosen);
  std::vector<std::pair<size_t, std::vector<size_t>>> strips;
  std::unordered_map<size_t, size_t> strip_of;
  for (size_t i = 0; i < chosen.size(); ++i) {
    const auto [at, is_new] = strip_of.try_emplace(first[i], strips.size());
    if (is_new) {
      strips.push_back({chosen[i], {}});
    } else {
      strips[at->second].second.push_back(chosen[i]);
    }
  }
  return strips;
}

}  // namespace

std::string render_svg(const Plan& plan, const ShowOptions& options) {
  std::string body;
  int64_t y = margin;
  int64_t width = 0;
  const auto add = [&](const Strip& strip) {
    body += "<g transform=\"translate(" + std::to_string(margin) + "," + std::to_string(y) +
            ")\">\n" + strip.svg + "</g>\n";
    y += strip.size.height + 2 * margin;
    width = std::max(width, strip.size.width);
  };
  for (const PlannedBundle& bundle : plan.bundles) add(make_strip(plan, bundle, options));
  const auto line = [&](const std::string& text) {
    body += text_at(margin, y, "state", text);
    width = std::max(width, static_cast<int64_t>(display_width(text)) * character);
    y += margin + 4;
  };
  const auto strips = strips_of(plan, chosen_redistributions(plan, options));
  for (size_t i = 0; i < std::min(most_strips, strips.size()); ++i) {
    const auto& [index, repeats] = strips[i];
    add(make_strip(plan, plan.redistributions[index], repeats_text(plan, repeats), options.costs));
  }
  if (strips.size() > most_strips) {
    const auto more = static_cast<int64_t>(strips.size() - most_strips);
    line(with_commas(more) + (more == 1 ? " more is" : " more are") +
         " not drawn: --top N draws the most expensive, --format html all of them");
  }
  if (body.find("class=\"arrow\"") != std::string::npos)
    line("arrows: whom the red rank receives from; point at another for its own");
  line(summary_line(plan, options));
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + std::to_string(width + 2 * margin) +
         "\" height=\"" + std::to_string(y) + "\" viewBox=\"0 0 " +
         std::to_string(width + 2 * margin) + " " + std::to_string(y) + "\">\n" +
         frame_definitions() + pointing + "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n" +
         body + "</svg>\n";
}

}  // namespace meshplan
