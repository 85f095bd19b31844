#include "render/svg.h"

#include <algorithm>

#include "base/text.h"
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

std::string number(int64_t value) { return std::to_string(value); }

std::string text_at(int64_t x, int64_t y, const std::string& kind, const std::string& text) {
  return "<text class=\"" + kind + "\" x=\"" + number(x) + "\" y=\"" + number(y) + "\">" +
         escape_html(text) + "</text>\n";
}

// A strip of frames with its height and width.
struct Strip {
  std::string svg;
  FrameSize size;
};

Strip make_strip(const Plan& plan, const PlannedRedistribution& r, bool costs) {
  Strip strip;
  const ShownDims shown = shown_dims(r);
  const std::string title = redistribution_title(plan, r);
  strip.svg = text_at(0, 14, "title", title);
  int64_t x = 0;
  int64_t height = 0;
  const std::vector<Frame> frames = frames_of(plan, r);
  std::vector<Grid> grids;
  for (const Frame& frame : frames)
    grids.push_back(make_grid(*frame.mesh, *frame.state, r.request.tensor.shape));
  const std::vector<StepSenders> senders = senders_of(plan, r, {grids.begin() + 1, grids.end()});
  for (size_t i = 0; i < frames.size(); ++i) {
    const Frame& frame = frames[i];
    const FrameSize size = frame_size(grids[i]);
    const std::string state = frame_title(plan, frame);
    const std::string step =
        frame.step == nullptr ? "source" : "-> " + arrow_text(plan, r, *frame.step, costs);
    strip.svg += text_at(x, title_height + 12, "step", step) +
                 text_at(x, title_height + text_height + 12, "state", state);
    strip.svg +=
        "<g transform=\"translate(" + number(x) + "," + number(title_height + 2 * text_height) +
        ")\">\n" +
        frame_svg(grids[i], r.request.tensor.shape, shown, i == 0 ? nullptr : &senders[i - 1]) +
        "</g>\n";
    const auto words =
        static_cast<int64_t>(std::max(display_width(step), display_width(state))) * character;
    x += std::max(size.width, words) + between;
    height = std::max(height, size.height);
  }
  strip.size.width =
      std::max(x - between, static_cast<int64_t>(display_width(title)) * (character + 1));
  strip.size.height = title_height + 2 * text_height + height;
  return strip;
}

Strip make_strip(const Plan& plan, const PlannedBundle& bundle, const ShowOptions& options) {
  const std::string title = bundle_line(bundle, options);
  const FrameSize size = bundle_picture_size(bundle);
  Strip strip;
  strip.svg = text_at(0, 14, "title", title) + "<g transform=\"translate(0," +
              number(title_height) + ")\">\n" + bundle_svg(plan, bundle, options) + "</g>\n";
  strip.size = {std::max(size.width, static_cast<int64_t>(display_width(title)) * (character + 1)),
                title_height + size.height};
  return strip;
}

}  // namespace

std::string render_svg(const Plan& plan, const ShowOptions& options) {
  std::string body;
  int64_t y = margin;
  int64_t width = 0;
  const auto add = [&](const Strip& strip) {
    body += "<g transform=\"translate(" + number(margin) + "," + number(y) + ")\">\n" + strip.svg +
            "</g>\n";
    y += strip.size.height + 2 * margin;
    width = std::max(width, strip.size.width);
  };
  for (const PlannedBundle& bundle : plan.bundles) add(make_strip(plan, bundle, options));
  for (const size_t index : chosen_redistributions(plan, options)) {
    add(make_strip(plan, plan.redistributions[index], options.costs));
  }
  const std::string summary = summary_line(plan, options);
  body += text_at(margin, y, "state", summary);
  width = std::max(width, static_cast<int64_t>(display_width(summary)) * character);
  y += margin;
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + number(width + 2 * margin) +
         "\" height=\"" + number(y) + "\" viewBox=\"0 0 " + number(width + 2 * margin) + " " +
         number(y) + "\">\n" + frame_definitions() +
         "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n" + body + "</svg>\n";
}

}  // namespace meshplan
