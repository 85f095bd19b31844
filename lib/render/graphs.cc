#include "render/graphs.h"

#include <map>

#include "base/int_math.h"
#include "base/text.h"
#include "base/utf8.h"
#include "json/write.h"
#include "render/bundle_view.h"
#include "render/grid.h"

namespace meshplan {
namespace {

// A label within double quotes: Mermaid knows entities only.
std::string mermaid_label(const std::string& text) {
  std::string out = "\"";
  for (const char c : one_line(text)) {
    switch (c) {
      case '"':
        out += "#quot;";
        break;
      case '#':
        out += "#35;";
        break;
      case '<':
        out += "#lt;";
        break;
      case '>':
        out += "#gt;";
        break;
      case '`':
        out += "#96;";
        break;
      default:
        out += c;
    }
  }
  return out + "\"";
}

std::string dot_label(const std::string& text) {
  std::string out = "\"";
  for (const char c : one_line(text)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string node(size_t redistribution, size_t frame) {
  return "r" + std::to_string(redistribution) + "s" + std::to_string(frame);
}

// Nanoseconds as microseconds with three decimals.
std::string microseconds(int64_t ns) {
  const std::string rest = std::to_string(ns % 1000);
  return std::to_string(ns / 1000) + "." + std::string(3 - rest.size(), '0') + rest;
}

void write_track(JsonWriter& w, const char* what, std::optional<size_t> track,
                 const std::string& name) {
  w.open('{');
  w.fields({{"name", what}, {"ph", "M"}, {"pid", 1}});
  if (track) w.field("tid", *track);
  w.key("args");
  w.object({{"name", name}});
  w.close();
}

// " x32"; "" for once.
std::string times_text(const PlannedRedistribution& r) {
  return r.request.count > 1 ? " x" + with_commas(r.request.count) : "";
}

}  // namespace

std::string render_mermaid(const Plan& plan, const ShowOptions& options) {
  std::string out = "flowchart LR\n";
  for (const size_t index : chosen_redistributions(plan, options)) {
    const PlannedRedistribution& r = plan.redistributions[index];
    out += "  subgraph r" + std::to_string(index) + "[" + mermaid_label(r.request.id) + "]\n";
    const auto frames = frames_of(plan, r);
    for (size_t i = 0; i < frames.size(); ++i)
      out += "    " + node(index, i) + "[" + mermaid_label(frame_title(plan, frames[i])) + "]\n";
    for (size_t i = 1; i < frames.size(); ++i) {
      const char* arrow = is_local(frames[i].step->op) ? " -.->|" : " -->|";
      out += "    " + node(index, i - 1) + arrow +
             mermaid_label(arrow_text(plan, r, *frames[i].step, options.costs)) + "| " +
             node(index, i) + "\n";
    }
    out += "  end\n";
  }
  return out;
}

std::string render_dot(const Plan& plan, const ShowOptions& options) {
  std::string out =
      "digraph plan {\n  rankdir=LR;\n  node [shape=box, fontname=monospace];\n  edge [fontname=monospace];\n";
  for (const size_t index : chosen_redistributions(plan, options)) {
    const PlannedRedistribution& r = plan.redistributions[index];
    out += "  subgraph cluster_r" + std::to_string(index) +
           " {\n    label=" + dot_label(r.request.id) + ";\n";
    const auto frames = frames_of(plan, r);
    for (size_t i = 0; i < frames.size(); ++i)
      out +=
          "    " + node(index, i) + " [label=" + dot_label(frame_title(plan, frames[i])) + "];\n";
    for (size_t i = 1; i < frames.size(); ++i) {
      out += "    " + node(index, i - 1) + " -> " + node(index, i) +
             " [label=" + dot_label(arrow_text(plan, r, *frames[i].step, options.costs)) +
             (is_local(frames[i].step->op) ? ", style=dashed" : "") + "];\n";
    }
    out += "  }\n";
  }
  return out + "}\n";
}

namespace {

// The events of a timeline, one after the other.
class Timeline {
 public:
  explicit Timeline(const Plan& plan) : plan_(plan) {
    w_.open('{');
    w_.field("displayTimeUnit", "ns");
    w_.key("traceEvents");
    w_.open('[', Breaks::lines);
  }

  // Local steps take no time and are left out.
  void add(const PlannedRedistribution& r) {
    const int64_t start = now_;
    for (const Step& step : r.steps) {
      if (is_local(step.op)) continue;
      const int64_t once = ns_of_ps(step.predicted_ps);
      const int64_t took = saturating_mul(once, r.request.count);
      event(step_name(step) + times_text(r), "step", now_, took, track_of("group " + step.group));
      w_.fields({{"redistribution", r.request.id},
                 {"count", r.request.count},
                 {"each_ns", once},
                 {"wire_bytes", step.wire_bytes},
                 {"peak_bytes", step.peak_bytes},
                 {"why", step.why}});
      end();
      now_ = saturating_add(now_, took);
    }
    if (now_ == start) return;
    event(r.request.id + times_text(r), "redistribution", start, now_ - start, 0);
    w_.fields({{"count", r.request.count}, {"trace", r.trace}});
    if (const std::string notes = notes_text(plan_, r); !notes.empty()) w_.field("where", notes);
    end();
  }

  // Rounds on a track for each stream, each as long as it takes by itself (round_times).
  void add(const PlannedBundle& bundle) {
    const std::vector<int64_t> waves = waves_of(bundle.rounds);
    const std::vector<RoundTime> times = round_times(plan_, bundle, true);
    for (size_t r = 0; r < waves.size(); ++r) {
      const BundleRound& round = bundle.rounds[r];
      event("round " + std::to_string(r), "round", saturating_add(now_, times[r].start),
            times[r].length,
            track_of("bundle " + bundle.request.id + ", stream " + std::to_string(round.stream)));
      w_.fields({{"group", round.group},
                 {"messages", round.messages},
                 {"moves", parts_text(plan_, round)},
                 {"op", to_text(round.op)},
                 {"staging_bytes", round.staging_bytes},
                 {"wave", waves[r]},
                 {"wire_bytes", round.wire_bytes}});
      end();
    }
    const int64_t took = saturating_mul(ns_of_ps(bundle.totals.predicted_ps), bundle.request.count);
    event("bundle " + bundle.request.id, "bundle", now_, took, 0);
    w_.fields({{"count", bundle.request.count}, {"tensors", bundle.tensors}});
    end();
    now_ = saturating_add(now_, took);
  }

  std::string take() {
    write_track(w_, "process_name", std::nullopt, "a rank, predicted");
    write_track(w_, "thread_name", 0, "redistributions");
    for (size_t i = 0; i < names_.size(); ++i) write_track(w_, "thread_name", i + 1, names_[i]);
    w_.close();
    w_.close();
    return w_.take();
  }

 private:
  // In the order of first use.
  size_t track_of(const std::string& name) {
    const auto [track, added] = tracks_.try_emplace(name, names_.size() + 1);
    if (added) names_.push_back(name);
    return track->second;
  }
  // Left open at its args.
  void event(const std::string& name, const char* kind, int64_t from, int64_t took, size_t track) {
    w_.open('{');
    w_.fields({{"name", name}, {"cat", kind}, {"ph", "X"}});
    w_.key("ts");
    w_.number(microseconds(from));
    w_.key("dur");
    w_.number(microseconds(took));
    w_.fields({{"pid", 1}, {"tid", track}});
    w_.key("args");
    w_.open('{');
  }
  void end() {
    w_.close();
    w_.close();
  }

  const Plan& plan_;
  JsonWriter w_{0, Breaks::one_line};
  std::map<std::string, size_t> tracks_;
  std::vector<std::string> names_;
  int64_t now_ = 0;  // nanoseconds
};

}  // namespace

std::string render_perfetto(const Plan& plan, const ShowOptions& options) {
  std::vector<bool> bundled(plan.redistributions.size(), false);
  for (const PlannedBundle& bundle : plan.bundles) {
    for (const size_t member : bundle.request.members) bundled[member] = true;
  }
  Timeline timeline(plan);
  for (const size_t index : chosen_redistributions(plan, options)) {
    if (!bundled[index]) timeline.add(plan.redistributions[index]);
  }
  for (const PlannedBundle& bundle : plan.bundles) timeline.add(bundle);
  return timeline.take();
}

}  // namespace meshplan
