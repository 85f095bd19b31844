#include "render/html.h"

#include <algorithm>
#include <unordered_map>

#include "base/text.h"
#include "json/write.h"
#include "render/bundle_svg.h"
#include "render/bundle_view.h"
#include "render/frame_svg.h"
#include "render/page_parts.h"
#include "render/senders.h"

namespace meshplan {
namespace {

constexpr int64_t between_frames = 8;

// {"3": [[1, "[4:8]", "16 B"]]}: by receiver.
std::string senders_json(const StepSenders& senders) {
  JsonWriter w(0, Breaks::compact);
  w.open('{');
  for (const auto& [rank, list] : senders.into) {
    w.list(std::to_string(rank), list, [&](const Received& each) {
      w.open('[');
      w.value(each.from);
      w.value(each.box);
      w.value(human_bytes(each.bytes));
      w.close();
    });
  }
  w.close();
  return w.take("");
}

class PlanPage {
 public:
  PlanPage(const Plan& plan, const ShowOptions& options)
      : plan_(plan), options_(options), chosen_(chosen_redistributions(plan, options)) {}

  std::string run() {
    out_ = page_head("meshplan");
    out_ += "<svg width=\"0\" height=\"0\" style=\"position:absolute\">" + frame_definitions() +
            "</svg>\n<h1>Communication plan</h1>\n<p>" +
            escape_html(summary_line(plan_, options_)) + "</p>\n<p>" +
            escape_html(planning_line(plan_)) + "</p>\n";
    find_sections();
    for (const PlannedBundle& bundle : plan_.bundles) add_bundle(bundle);
    choosers();
    for (size_t i = 0; i < sections_.size(); ++i) add_section(i, chosen_[sections_[i]]);
    table();
    return out_ + plan_page_script() + "</body>\n</html>\n";
  }

 private:
  // Repeats share the section of the first that is chosen.
  void find_sections() {
    const std::vector<size_t> first = repeated_by(plan_, chosen_);
    std::unordered_map<size_t, size_t> section_of;  // by redistribution
    for (size_t i = 0; i < chosen_.size(); ++i) {
      const auto [at, is_new] = section_of.try_emplace(first[i], sections_.size());
      if (is_new) sections_.push_back(i);
      section_.push_back(at->second);
    }
  }

  void add_bundle(const PlannedBundle& bundle) {
    const FrameSize size = bundle_picture_size(bundle);
    out_ +=
        "<h2>Bundle " + escape_html(bundle.request.id) + "</h2>\n<p>" +
        escape_html(bundle_line(bundle, options_)) + "</p>\n<div class=\"picture\"><svg width=\"" +
        std::to_string(size.width) + "\" height=\"" + std::to_string(size.height) + "\">\n" +
        bundle_svg(plan_, bundle, options_) +
        "</svg></div>\n<details><summary>rounds</summary><pre>" +
        escape_html(table_text(round_table(plan_, bundle, options_), {})) + "</pre></details>\n";
  }

  void choosers() {
    out_ += "<p><label>Redistribution <select id=\"which\">\n";
    for (const size_t i : sections_) {
      out_ += "<option value=\"" + std::to_string(i) + "\">" +
              escape_html(redistribution_title(plan_, plan_.redistributions[chosen_[i]])) +
              "</option>\n";
    }
    out_ +=
        "</select></label></p>\n<p><label>Step <input type=\"range\" id=\"step\" min=\"0\" max=\"0\" "
        "value=\"0\"></label> <output id=\"at\"></output></p>\n";
  }

  void add_section(size_t at, size_t index) {
    const PlannedRedistribution& r = plan_.redistributions[index];
    const ShownDims shown = shown_dims(r);
    const std::vector<Frame> frames = frames_of(plan_, r);
    std::vector<Grid> grids;
    for (const Frame& frame : frames)
      grids.push_back(make_grid(*frame.mesh, *frame.state, r.request.tensor.shape));
    const std::vector<StepSenders> senders = senders_of(plan_, r, {grids.begin() + 1, grids.end()});
    out_ += "<section class=\"plan\" id=\"plan" + std::to_string(at) + "\">\n<p><code>" +
            escape_html(r.trace) + "</code></p>\n";
    list(notes_below(r, options_.detail));
    for (size_t i = 0; i < frames.size(); ++i) {
      const bool source = i == 0;
      const bool stays = source || frames[i].mesh == frames[i - 1].mesh;
      const StepSenders* from = source ? nullptr : &senders[i - 1];
      const std::string state = frame_title(plan_, frames[i]);
      add_frame(r, frames[i], from,
                stays ? state : frame_title(plan_, frames[i - 1]) + " -> " + state,
                stays ? picture({&grids[i]}, r.request.tensor.shape, shown, from)
                      : picture({&grids[i - 1], &grids[i]}, r.request.tensor.shape, shown, from));
    }
    out_ += "</section>\n";
  }

  // None where there is nothing to say.
  void list(const std::vector<std::string>& notes) {
    if (notes.empty()) return;
    out_ += "<ul>\n";
    for (const std::string& note : notes) out_ += "<li>" + escape_html(note) + "</li>\n";
    out_ += "</ul>\n";
  }

  // One frame, or that before a step and that after it: above one another where they are low.
  static std::string picture(const std::vector<const Grid*>& grids,
                             const std::vector<int64_t>& shape, const ShownDims& shown,
                             const StepSenders* senders) {
    const bool low = std::all_of(grids.begin(), grids.end(),
                                 [](const Grid* grid) { return grid->rows.size() <= 2; });
    std::vector<PlacedFrame> places;
    std::string frames;
    FrameSize whole;
    for (const Grid* grid : grids) {
      const FrameSize size = frame_size(*grid);
      places.push_back({grid, low ? 0 : whole.width, low ? whole.height : 0});
      whole.width = std::max(whole.width, places.back().x + size.width + between_frames);
      whole.height = std::max(whole.height, places.back().y + size.height + between_frames);
      frames += "<g transform=\"translate(" + std::to_string(places.back().x) + "," +
                std::to_string(places.back().y) + ")\">\n" + frame_svg(*grid, shape, shown) +
                "</g>\n";
    }
    return "<svg width=\"" + std::to_string(whole.width) + "\" height=\"" +
           std::to_string(whole.height) + "\">\n" + frames +
           ranks_svg(places.front(), places.back(), senders) + "</svg>";
  }

  void add_frame(const PlannedRedistribution& r, const Frame& frame, const StepSenders* senders,
                 const std::string& state, const std::string& drawn) {
    const bool source = frame.step == nullptr;
    const std::string step = source ? "source" : arrow_text(plan_, r, *frame.step, options_.costs);
    const std::string missing = source ? "the source: nothing is received yet" : senders->left_out;
    out_ += "<div class=\"frame\" data-senders=\"" +
            escape_html(source ? "{}" : senders_json(*senders)) + "\"" +
            (missing.empty() ? "" : " data-missing=\"" + escape_html(missing) + "\"") +
            "><p class=\"step\">" + escape_html(step) + "</p><p class=\"why\">" +
            escape_html(source ? "" : frame.step->why) + "</p><p class=\"state\">" +
            escape_html(state) + "</p>\n<div class=\"picture\">" + drawn +
            "</div><p class=\"from\"></p></div>\n";
  }

  // A row for each that is chosen, in their order, of a repeat a short one that leads to the first;
  // what is left out, and the total, below.
  void table() {
    out_ +=
        "<h2>All redistributions</h2>\n<p><label>Search <input type=\"search\" id=\"find\"></label></p>\n"
        "<div class=\"list\"><table id=\"all\">\n<thead><tr>";
    for (const char* name : {"redistribution", "count", "tensor", "change", "collectives",
                             "wire bytes", "predicted", "where"}) {
      if (!options_.costs && std::string_view(name) == "predicted") continue;
      out_ += std::string("<th><button>") + name + "</button></th>";
    }
    out_ += "</tr></thead>\n<tbody>\n";
    for (size_t i = 0; i < chosen_.size(); ++i) {
      out_ += "<tr data-section=\"" + std::to_string(section_[i]) + "\"";
      if (sections_[section_[i]] == i) {
        row(plan_.redistributions[chosen_[i]]);
      } else {
        repeat(plan_.redistributions[chosen_[i]], sections_[section_[i]]);
      }
      out_ += "</tr>\n";
    }
    out_ += "</tbody></table></div>\n";
    list(audit_lines(plan_, options_));
    if (chosen_.size() < plan_.redistributions.size()) {
      const auto more = static_cast<int64_t>(plan_.redistributions.size() - chosen_.size());
      out_ += "<p>" + with_commas(more) +
              (more == 1 ? " more redistribution is" : " more redistributions are") +
              " in the plan</p>\n";
    }
  }
  void row(const PlannedRedistribution& r) {
    const Totals totals = weighted(r);
    out_ += '>';
    words(r.request.id);
    figure(r.request.count, with_commas(r.request.count));
    words(tensor_text(r.request.tensor));
    words(change_text(plan_, r));
    figure(totals.collectives, with_commas(totals.collectives));
    figure(totals.wire_bytes, human_bytes(totals.wire_bytes));
    const int64_t ns = ns_of_ps(totals.predicted_ps);
    if (options_.costs) figure(ns, human_ns(ns));
    words(notes_text(plan_, r));
  }
  // `first`: the row of the first.
  void repeat(const PlannedRedistribution& r, size_t first) {
    const std::string number = std::to_string(first);
    out_ += " data-as=\"" + number + "\">";
    words(r.request.id);
    figure(r.request.count, with_commas(r.request.count));
    const std::string notes = notes_text(plan_, r);
    out_ += std::string("<td colspan=\"") + (options_.costs ? '6' : '5') +
            "\">the same as <a href=\"#" + number + "\">" +
            escape_html(plan_.redistributions[chosen_[first]].request.id) + "</a>" +
            (notes.empty() ? "" : ", " + escape_html(notes)) + "</td>";
  }
  void words(const std::string& text) { out_ += "<td>" + escape_html(text) + "</td>"; }
  void figure(int64_t value, const std::string& text) {
    out_ += "<td class=\"n\" data-value=\"" + std::to_string(value) + "\">" + escape_html(text) +
            "</td>";
  }

  const Plan& plan_;
  const ShowOptions& options_;
  std::vector<size_t> chosen_;
  std::vector<size_t> section_;   // by row the section that shows it
  std::vector<size_t> sections_;  // by section the row of the first that it shows
  std::string out_;
};

}  // namespace

std::string render_html(const Plan& plan, const ShowOptions& options) {
  return PlanPage(plan, options).run();
}

}  // namespace meshplan
