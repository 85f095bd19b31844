#include "render/diff_text.h"

#include <algorithm>

#include "base/text.h"
#include "base/utf8.h"
#include "render/html.h"
#include "render/page_parts.h"

namespace meshplan {
namespace {

// "12.0 MiB -> 16.0 MiB (+4.00 MiB, +33.3 %)"; one figure where nothing changed.
template <class Print>
std::string change(int64_t before, int64_t after, const Print& print) {
  if (before == after) return print(after);
  const std::string by =
      (after < before ? "-" : "+") + print(after < before ? before - after : after - before);
  return print(before) + " -> " + print(after) + " (" + by + ", " + percent_text(before, after) +
         ")";
}

std::string bytes_change(const Totals& a, const Totals& b) {
  return change(a.wire_bytes, b.wire_bytes, human_bytes);
}
std::string time_change(const Totals& a, const Totals& b) {
  return change(ns_of_ps(a.predicted_ps), ns_of_ps(b.predicted_ps), human_ns);
}
std::string collectives_change(const Totals& a, const Totals& b) {
  return change(a.collectives, b.collectives, [](int64_t n) { return with_commas(n); });
}

std::string headline(const PlanDiff& diff) {
  const size_t n = diff.redistributions.size();
  if (n == 0) return "no redistribution changes";
  return counted(static_cast<int64_t>(n), "redistribution") + (n == 1 ? " differs" : " differ") +
         " of " + std::to_string(std::max(diff.compared, n));
}

std::string total_lines(const PlanDiff& diff, bool costs) {
  const Totals& a = diff.old_totals;
  const Totals& b = diff.new_totals;
  std::string text = "TOTAL  collectives " + collectives_change(a, b) + "\n       wire bytes  " +
                     bytes_change(a, b) + "\n";
  if (costs) text += "       predicted   " + time_change(a, b) + "\n";
  return text + "       peak        " + change(a.peak_bytes, b.peak_bytes, human_bytes) + "\n";
}

std::string count_text(const RedistributionDiff& d) {
  const int64_t count = d.kind == DiffKind::removed ? d.old_count : d.new_count;
  return count > 1 ? " x" + with_commas(count) : "";
}

// What a bundle takes is not what its members take by themselves.
std::string severity_text(const RedistributionDiff& d) {
  const bool by_itself = !d.bundle.empty() && (d.severity == DiffSeverity::cheaper ||
                                               d.severity == DiffSeverity::dearer);
  return std::string(to_text(d.severity)) + (by_itself ? " by itself" : "");
}

char mark_of(DiffKind kind) {
  return kind == DiffKind::added ? '+' : kind == DiffKind::removed ? '-' : '~';
}
char mark_of(StepDiff::Kind kind) {
  switch (kind) {
    case StepDiff::Kind::added:
      return '+';
    case StepDiff::Kind::removed:
      return '-';
    case StepDiff::Kind::moved:
      return '>';
    case StepDiff::Kind::same:
      return ' ';
  }
  return ' ';
}

std::vector<const RedistributionDiff*> in_order(const PlanDiff& diff) {
  std::vector<const RedistributionDiff*> order;
  for (const RedistributionDiff& d : diff.redistributions) order.push_back(&d);
  return order;
}

// The most expensive changes first, since rows at the end may be omitted.
std::vector<const RedistributionDiff*> by_weight(const PlanDiff& diff) {
  std::vector<const RedistributionDiff*> order = in_order(diff);
  std::stable_sort(order.begin(), order.end(),
                   [&](const RedistributionDiff* a, const RedistributionDiff* b) {
                     return diff_weight(*a) > diff_weight(*b);
                   });
  return order;
}

class TextDiff {
 public:
  TextDiff(const PlanDiff& diff, const ShowOptions& options) : diff_(diff), options_(options) {}

  std::string run() {
    line(std::string(to_text(diff_.severity)) + ": " + headline(diff_), "1");
    for (const std::string& declaration : diff_.declarations) line("  " + declaration, "");
    if (options_.detail != Detail::summary) {
      // In the order of the plan; where only some are shown, those that change the most.
      const auto order = options_.top > 0 ? by_weight(diff_) : in_order(diff_);
      const size_t shown = options_.top > 0
                               ? std::min(order.size(), static_cast<size_t>(options_.top))
                               : order.size();
      for (size_t i = 0; i < shown; ++i) redistribution(*order[i]);
      if (shown < order.size())
        line(counted(static_cast<int64_t>(order.size() - shown), "more redistribution"), "");
    }
    for (const WarningDiff& w : diff_.new_warnings)
      line("new warning " + w.code + " of '" + w.id + "': " + w.message, "33");
    for (const WarningDiff& w : diff_.gone_warnings)
      line("no longer warned: " + w.code + " of '" + w.id + "'", "32");
    return out_ + total_lines(diff_, options_.costs);
  }

 private:
  void line(const std::string& text, const std::string& color) {
    const std::string shown = one_line(text);
    out_ += options_.color && !color.empty() ? "\x1b[" + color + "m" + shown + "\x1b[0m\n"
                                             : shown + "\n";
  }
  void redistribution(const RedistributionDiff& d) {
    static constexpr const char* colors[] = {"", "", "32", "31", "35"};
    std::string head =
        std::string(1, mark_of(d.kind)) + " " + d.id + count_text(d) + "  " + severity_text(d);
    if (!d.old_id.empty()) head += ", " + std::string(to_text(d.kind)) + " from " + d.old_id;
    const std::string place = diff_place(d);
    if (!place.empty()) head += "  [" + place + "]";
    line(head + "  " + diff_figures(d, options_.costs), colors[static_cast<size_t>(d.severity)]);
    for (const std::string& cause : d.causes) line("    because " + cause, "");
    if (!d.numerics.empty()) line("    " + d.numerics, "");
    for (const StepDiff& step : d.steps) {
      if (step.kind == StepDiff::Kind::same && options_.detail != Detail::full) continue;
      line(std::string("    ") + mark_of(step.kind) + " " + step.text,
           step.kind == StepDiff::Kind::added     ? "32"
           : step.kind == StepDiff::Kind::removed ? "31"
                                                  : "");
    }
  }

  const PlanDiff& diff_;
  const ShowOptions& options_;
  std::string out_;
};

Table diff_table(const PlanDiff& diff, const std::vector<const RedistributionDiff*>& order,
                 size_t rows, bool costs) {
  Table table;
  table.columns = {{"redistribution"},   {"count", true},     {"change"}, {"collectives", true},
                   {"wire bytes", true}, {"predicted", true}, {"because"}};
  if (!costs) table.columns.erase(table.columns.begin() + 5);
  const auto cell = [](const std::optional<Totals>& a, const std::optional<Totals>& b, auto print) {
    if (a && b) return print(*a, *b);
    return b ? "+" + print(*b, *b) : "-" + print(*a, *a);
  };
  for (size_t i = 0; i < std::min(rows, order.size()); ++i) {
    const RedistributionDiff& d = *order[i];
    const std::string kind = d.kind == DiffKind::changed ? "" : std::string(to_text(d.kind)) + ", ";
    std::vector<std::string> cells = {
        diff_place(d).empty() ? d.id : d.id + " [" + diff_place(d) + "]",
        with_commas(d.kind == DiffKind::removed ? d.old_count : d.new_count),
        kind + severity_text(d),
        cell(d.old_totals, d.new_totals, collectives_change),
        cell(d.old_totals, d.new_totals, bytes_change),
        cell(d.old_totals, d.new_totals, time_change),
        join(d.causes, "; ")};
    if (!costs) cells.erase(cells.begin() + 5);
    table.rows.push_back({std::move(cells), {}});
  }
  if (rows < order.size())
    table.rows.push_back({{}, std::to_string(order.size() - rows) + " more"});
  std::vector<std::string> total = {"TOTAL",
                                    "",
                                    to_text(diff.severity),
                                    collectives_change(diff.old_totals, diff.new_totals),
                                    bytes_change(diff.old_totals, diff.new_totals),
                                    time_change(diff.old_totals, diff.new_totals),
                                    ""};
  if (!costs) total.erase(total.begin() + 5);
  table.rows.push_back({std::move(total), {}});
  return table;
}

// The states that it passes through, before and now; once where they are the same.
std::vector<std::pair<char, std::string>> trace_lines(const RedistributionDiff& d) {
  if (d.old_trace == d.new_trace) return {{' ', d.new_trace}};
  std::vector<std::pair<char, std::string>> lines;
  if (!d.old_trace.empty()) lines.emplace_back('-', d.old_trace);
  if (!d.new_trace.empty()) lines.emplace_back('+', d.new_trace);
  return lines;
}

std::string folded(const RedistributionDiff& d) {
  std::string text =
      "<details>\n<summary>" + escape_html(one_line(d.id)) + "</summary>\n\n```diff\n";
  const auto plain = [](const std::string& from) {
    std::string line = one_line(from);
    std::replace(line.begin(), line.end(), '`', '\'');
    return line;
  };
  for (const auto& [mark, trace] : trace_lines(d))
    text += std::string(1, mark) + " " + plain(trace) + "\n";
  for (const StepDiff& step : d.steps)
    text += std::string(1, mark_of(step.kind)) + " " + plain(step.text) + "\n";
  if (!d.numerics.empty()) text += "! " + plain(d.numerics) + "\n";
  return text + "```\n</details>\n";
}

std::string folded_html(const RedistributionDiff& d) {
  std::string text = "<details>\n<summary>" + escape_html(one_line(d.id)) + "</summary>\n<pre>";
  const auto line = [&](char mark, const std::string& what) {
    const char* kind = mark == '+' ? " class=\"ins\"" : mark == '-' ? " class=\"del\"" : "";
    text +=
        std::string("<span") + kind + ">" + mark + " " + escape_html(one_line(what)) + "</span>\n";
  };
  for (const auto& [mark, trace] : trace_lines(d)) line(mark, trace);
  for (const StepDiff& step : d.steps) line(mark_of(step.kind), step.text);
  if (!d.numerics.empty()) line('!', d.numerics);
  return text + "</pre>\n</details>\n";
}

}  // namespace

std::string diff_figures(const RedistributionDiff& d, bool costs) {
  if (d.kind == DiffKind::added || d.kind == DiffKind::removed) {
    const Totals& t = d.kind == DiffKind::added ? *d.new_totals : *d.old_totals;
    return human_bytes(t.wire_bytes) + (costs ? ", " + human_ns(ns_of_ps(t.predicted_ps)) : "");
  }
  return bytes_change(*d.old_totals, *d.new_totals) +
         (costs ? ", " + time_change(*d.old_totals, *d.new_totals) : "");
}

std::string diff_place(const RedistributionDiff& d) {
  return one_line(d.module + (d.module.empty() || d.source.empty() ? "" : ", ") + d.source);
}

int64_t diff_weight(const RedistributionDiff& d) {
  const int64_t before = d.old_totals ? d.old_totals->predicted_ps : 0;
  const int64_t after = d.new_totals ? d.new_totals->predicted_ps : 0;
  return after > before ? after - before : before - after;
}

std::string render_diff_html(const PlanDiff& diff, const ShowOptions& options) {
  std::string out = page_head("meshplan diff") +
                    "<h1>Communication plan: " + escape_html(to_text(diff.severity)) + "</h1>\n";
  if (same(diff)) return out + "<p>Nothing changes.</p>\n</body>\n</html>\n";
  const auto order = by_weight(diff);
  out += "<p>" + escape_html(headline(diff)) + ": " +
         escape_html(bytes_change(diff.old_totals, diff.new_totals)) + " received by a rank";
  if (options.costs)
    out += ", " + escape_html(time_change(diff.old_totals, diff.new_totals)) + " predicted";
  out += ".</p>\n";
  std::string notes;
  const auto note = [&](const std::string& text) {
    notes += "<li>" + escape_html(one_line(text)) + "</li>\n";
  };
  for (const std::string& declaration : diff.declarations) note(declaration);
  for (const WarningDiff& w : diff.new_warnings)
    note("new warning " + w.code + " of " + w.id + ": " + w.message);
  for (const WarningDiff& w : diff.gone_warnings)
    note("no longer warned: " + w.code + " of " + w.id);
  if (!notes.empty()) out += "<ul>\n" + notes + "</ul>\n";
  const size_t rows =
      options.top > 0 ? std::min(order.size(), static_cast<size_t>(options.top)) : order.size();
  out += "<div class=\"list\">" + table_html(diff_table(diff, order, rows, options.costs)) +
         "</div>\n";
  for (size_t i = 0; i < rows && options.detail != Detail::summary; ++i)
    out += folded_html(*order[i]);
  return out + "</body>\n</html>\n";
}

std::string render_diff_text(const PlanDiff& diff, const ShowOptions& options) {
  if (same(diff)) return {};
  return TextDiff(diff, options).run();
}

std::string render_diff_markdown(const PlanDiff& diff, const ShowOptions& options, size_t limit) {
  std::string head = std::string(markdown_marker) +
                     "\n### Communication plan: " + escape_markdown(to_text(diff.severity)) +
                     "\n\n";
  if (same(diff)) return head + "Nothing changes.\n";
  const auto order = by_weight(diff);
  head += escape_markdown(headline(diff)) + ": " + bytes_change(diff.old_totals, diff.new_totals) +
          " received by a rank";
  if (options.costs) head += ", " + time_change(diff.old_totals, diff.new_totals) + " predicted";
  head += ".\n";
  std::string notes;
  for (const std::string& declaration : diff.declarations)
    notes += "- " + escape_markdown(declaration) + "\n";
  for (const WarningDiff& w : diff.new_warnings)
    notes += "- new warning " + escape_markdown(w.code) + " of " +
             escape_markdown(w.id + ": " + w.message) + "\n";
  const std::string left_out =
      "\nThe rest was omitted, since comments have a size limit. `meshplan diff` prints all changes.\n";
  if (notes.size() > limit / 4)
    notes = "- " +
            counted(std::ssize(diff.declarations) + std::ssize(diff.new_warnings),
                    "declaration or warning") +
            " differ\n";
  head += "\n" + notes + "\n";
  // As many rows as fit, then as many details as fit behind them; a row or a block is whole or
  // absent.
  size_t rows =
      options.top > 0 ? std::min(order.size(), static_cast<size_t>(options.top)) : order.size();
  std::string table = table_markdown(diff_table(diff, order, rows, options.costs));
  while (head.size() + table.size() + left_out.size() > limit && rows > 0) {
    rows = rows > 16 ? rows / 2 : rows - 1;
    table = table_markdown(diff_table(diff, order, rows, options.costs));
  }
  std::string out = head + table;
  bool cut = rows < order.size();
  if (options.detail != Detail::summary) {
    out += "\n";
    for (size_t i = 0; i < rows; ++i) {
      const std::string block = folded(*order[i]);
      if (out.size() + block.size() + left_out.size() > limit) {
        cut = true;
        break;
      }
      out += block;
    }
  }
  return cut ? out + left_out : out;
}

}  // namespace meshplan
