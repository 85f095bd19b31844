#include "render/svg.h"

#include <algorithm>

#include "base/text.h"
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

std::string title_of(const Plan& plan, const PlannedRedistribution& r) {
  return r.request.id + (r.request.count > 1 ? " x" + with_commas(r.request.count) : "") + "  " +
         tensor_text(r.request.tensor) + "  " + change_text(plan, r);
}

// A strip of frames with its height and width.
struct Strip {
  std::string svg;
  FrameSize size;
};

Strip make_strip(const Plan& plan, const PlannedRedistribution& r, bool costs) {
  Strip strip;
  const ShownDims shown = shown_dims(r);
  const std::string title = title_of(plan, r);
  strip.svg = text_at(0, 14, "title", title);
  int64_t x = 0;
  int64_t height = 0;
  for (const Frame& frame : frames_of(plan, r)) {
    const Grid grid = make_grid(*frame.mesh, *frame.state, r.request.tensor.shape);
    const FrameSize size = frame_size(grid);
    const std::string state = frame_title(plan, frame);
    const std::string step =
        frame.step == nullptr ? "source" : "-> " + arrow_text(plan, r, *frame.step, costs);
    strip.svg += text_at(x, title_height + 12, "step", step) +
                 text_at(x, title_height + text_height + 12, "state", state);
    strip.svg += "<g transform=\"translate(" + number(x) + "," +
                 number(title_height + 2 * text_height) + ")\">\n" +
                 frame_svg(grid, r.request.tensor.shape, shown) + "</g>\n";
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

}  // namespace

std::string render_svg(const Plan& plan, const ShowOptions& options) {
  std::string body;
  int64_t y = margin;
  int64_t width = 0;
  for (const size_t index : chosen_redistributions(plan, options)) {
    const Strip strip = make_strip(plan, plan.redistributions[index], options.costs);
    body += "<g transform=\"translate(" + number(margin) + "," + number(y) + ")\">\n" + strip.svg +
            "</g>\n";
    y += strip.size.height + 2 * margin;
    width = std::max(width, strip.size.width);
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

namespace {

constexpr const char* page_head =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>meshplan</title>\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n"
    "<style>body{font-family:system-ui,sans-serif;margin:1.5em;color:#222}select,input{font-size:1em}.plan{display:none}.plan.on{display:"
    "block}"
    ".frame{display:none}.frame.on{display:block}.step{color:#0b57a4;min-height:1.4em}.why{color:#555;min-height:1.4em}"
    "code,.state{font-family:ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace}table{border-collapse:collapse;font-size:.9em}"
    "td,th{padding:.2em .7em;text-align:left;border-bottom:1px solid "
    "#ddd}.n{text-align:right;white-space:nowrap}input[type=range]{width:24em}"
    "tr.on td{background:#eaf2fb}</style>\n</head>\n<body>\n<svg width=\"0\" height=\"0\" style=\"position:absolute\">";

constexpr const char* page_script =
    "<script>\n"
    "const which = document.getElementById('which'), step = document.getElementById('step'), at = document.getElementById('at');\n"
    "function draw() {\n"
    "  document.querySelectorAll('.plan').forEach((plan, i) => plan.classList.toggle('on', i === +which.value));\n"
    "  const frames = document.querySelectorAll('#plan' + which.value + ' .frame');\n"
    "  step.max = Math.max(frames.length - 1, 0);\n"
    "  frames.forEach((frame, i) => frame.classList.toggle('on', i === +step.value));\n"
    "  at.textContent = step.value + ' of ' + step.max;\n"
    "  location.replace('#' + which.value + '.' + step.value);\n"
    "}\n"
    "which.addEventListener('change', () => { step.value = 0; draw(); });\n"
    "step.addEventListener('input', draw);\n"
    "const hash = location.hash.slice(1).split('.');\n"
    "if (hash[0] && +hash[0] < which.options.length) which.value = hash[0];\n"
    "step.max = 1000;\n"
    "step.value = hash[1] || 0;\n"
    "draw();\n"
    "</script>\n</body>\n</html>\n";

}  // namespace

std::string render_html(const Plan& plan, const ShowOptions& options) {
  std::string page =
      std::string(page_head) + frame_definitions() + "</svg>\n<h1>Communication plan</h1>\n<p>" +
      escape_html(summary_line(plan, options)) + "</p>\n<p>" + escape_html(planning_line(plan)) +
      "</p>\n<p><label>Redistribution <select id=\"which\">\n";
  const auto chosen = chosen_redistributions(plan, options);
  for (size_t i = 0; i < chosen.size(); ++i) {
    page += "<option value=\"" + std::to_string(i) + "\">" +
            escape_html(title_of(plan, plan.redistributions[chosen[i]])) + "</option>\n";
  }
  page +=
      "</select></label></p>\n<p><label>Step <input type=\"range\" id=\"step\" min=\"0\" max=\"0\" value=\"0\"></label> <output "
      "id=\"at\"></output></p>\n";
  for (size_t i = 0; i < chosen.size(); ++i) {
    const PlannedRedistribution& r = plan.redistributions[chosen[i]];
    const ShownDims shown = shown_dims(r);
    page += "<section class=\"plan\" id=\"plan" + std::to_string(i) + "\">\n<p><code>" +
            escape_html(r.trace) + "</code></p>\n";
    for (const Frame& frame : frames_of(plan, r)) {
      const Grid grid = make_grid(*frame.mesh, *frame.state, r.request.tensor.shape);
      const FrameSize size = frame_size(grid);
      const std::string step =
          frame.step == nullptr ? "source" : arrow_text(plan, r, *frame.step, options.costs);
      page += "<div class=\"frame\"><p class=\"step\">" + escape_html(step) +
              "</p><p class=\"why\">" + escape_html(frame.step == nullptr ? "" : frame.step->why) +
              "</p><p class=\"state\">" + escape_html(frame_title(plan, frame)) +
              "</p>\n<svg width=\"" + number(size.width) + "\" height=\"" + number(size.height) +
              "\">\n" + frame_svg(grid, r.request.tensor.shape, shown) + "</svg></div>\n";
    }
    page += "</section>\n";
  }
  page += "<h2>All redistributions</h2>\n" + table_html(summary_table(plan, options));
  page += page_script;
  return page;
}

}  // namespace meshplan
