#include "render/graphs.h"

#include <map>

#include "base/int_math.h"
#include "base/text.h"
#include "base/utf8.h"
#include "json/write.h"
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

std::string render_perfetto(const Plan& plan, const ShowOptions& options) {
  // One track a group, in order of first use; local steps take no time and are left out.
  std::map<std::string, size_t> tracks;
  std::vector<std::string> names;
  int64_t now = 0;
  JsonWriter w(0, Breaks::one_line);
  w.open('{');
  w.field("displayTimeUnit", "ns");
  w.key("traceEvents");
  w.open('[', Breaks::lines);
  // The event is left open at its args.
  const auto event = [&](const std::string& name, const char* kind, int64_t from, int64_t took,
                         size_t track) {
    w.open('{');
    w.fields({{"name", name}, {"cat", kind}, {"ph", "X"}});
    w.key("ts");
    w.number(microseconds(from));
    w.key("dur");
    w.number(microseconds(took));
    w.fields({{"pid", 1}, {"tid", track}});
    w.key("args");
    w.open('{');
  };
  for (const size_t index : chosen_redistributions(plan, options)) {
    const PlannedRedistribution& r = plan.redistributions[index];
    const int64_t start = now;
    for (const Step& step : r.steps) {
      if (is_local(step.op)) continue;
      const auto [track, added] = tracks.try_emplace(step.group, names.size() + 1);
      if (added) names.push_back(step.group);
      const int64_t once = ns_of_ps(step.predicted_ps);
      const int64_t took = saturating_mul(once, r.request.count);
      event(step_name(step) + times_text(r), "step", now, took, track->second);
      w.fields({{"redistribution", r.request.id},
                {"count", r.request.count},
                {"each_ns", once},
                {"wire_bytes", step.wire_bytes},
                {"peak_bytes", step.peak_bytes},
                {"why", step.why}});
      w.close();
      w.close();
      now = saturating_add(now, took);
    }
    if (now == start) continue;
    event(r.request.id + times_text(r), "redistribution", start, now - start, 0);
    w.fields({{"count", r.request.count}, {"trace", r.trace}});
    if (const std::string notes = notes_text(plan, r); !notes.empty()) w.field("where", notes);
    w.close();
    w.close();
  }
  write_track(w, "process_name", std::nullopt, "a rank, predicted");
  write_track(w, "thread_name", 0, "redistributions");
  for (size_t i = 0; i < names.size(); ++i)
    write_track(w, "thread_name", i + 1, "group " + names[i]);
  w.close();
  w.close();
  return w.take();
}

}  // namespace meshplan
