// Renderings of plans: laws of the tables and pictures. What they look like is in testdata/cli.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "cost/topology.h"
#include "cost/wave_times.h"
#include "planner/planner.h"
#include "planner/small_bundle.h"
#include "render/bundle_view.h"
#include "render/diff_text.h"
#include "render/graphs.h"
#include "render/grid.h"
#include "render/html.h"
#include "render/plan_text.h"
#include "render/plan_view.h"
#include "render/senders.h"
#include "render/svg.h"

namespace meshplan {
namespace {

// `n` redistributions with ids that every format must escape.
Plan hostile_plan(size_t n) {
  MeshTable meshes;
  MESHPLAN_CHECK(add_root(meshes, "mesh", 12, {}, {{"a\"<b>|", 3}, {"b`&*", 2}, {"c", 2}}).ok(), "the mesh is valid");
  std::vector<Request> requests;
  for (size_t i = 0; i < n; ++i) {
    Request r;
    r.id = "x</script><img>\"|`_*\n" + std::to_string(i);
    r.count = 1 + static_cast<int64_t>(i) * 40;
    r.tensor = {{10, 7 + static_cast<int64_t>(i)}, DType::float32};
    r.src = *parse_state("S(0)P(sum)R", std::vector<int64_t>{3, 2, 2}, 2);
    r.dst = *parse_state("RS(1)S(0)", std::vector<int64_t>{3, 2, 2}, 2);
    requests.push_back(r);
  }
  const PlanOutcome outcome = plan_requests(meshes, uniform_topology(), requests, {}, "sha256:" + std::string(64, '0'));
  MESHPLAN_CHECK(outcome.failures.empty(), "every request can be planned");
  return outcome.plan;
}

size_t count_of(const std::string& text, const std::string& word) {
  size_t n = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

TEST_CASE("the grid holds the boxes of all ranks") {
  const Plan plan = hostile_plan(1);
  for (const Frame& frame : frames_of(plan, plan.redistributions[0])) {
    const Grid grid = make_grid(*frame.mesh, *frame.state, {10, 7});
    const std::vector<int64_t> ranks = materialise(*frame.mesh);
    const std::vector<int64_t> shape = mesh_shape(*frame.mesh);
    size_t index = 0;
    for (const auto& row : grid.rows) {
      for (const GridCell& cell : row) {
        CHECK(cell.rank == ranks[index]);
        CHECK(cell.box == box_of(*frame.state, std::vector<int64_t>{10, 7}, shape, coordinates_of(static_cast<int64_t>(index), shape)));
        ++index;
      }
    }
    CHECK(index == 12);
    CHECK(grid.gap_before == std::vector<bool>{false, false, true, false, true, false});
  }
}

TEST_CASE("of a large mesh the corner is shown and the rest counted") {
  MeshTable meshes;
  REQUIRE(add_root(meshes, "mesh", 1 << 20, {}, {{"dp", 1 << 10}, {"tp", 1 << 10}}).ok());
  const Grid grid = make_grid(meshes.meshes[0], *parse_state("S(0)R", std::vector<int64_t>{1 << 10, 1 << 10}, 1), {1 << 20});
  CHECK(grid.shown == 64);
  CHECK(grid_text(grid).find("(1,048,512 of 1,048,576 ranks are not shown)") != std::string::npos);
}

TEST_CASE("a table leaves out columns before it is wider than the terminal") {
  Table table;
  table.columns = {{"op"}, {"ranks", true, false, true}, {"bytes", true}, {"peak", true, false, true}, {"why", false, true}};
  table.rows = {{{"all_gather", "8", "112 MiB", "272 MiB", "gathers the shards over tp into one collective"}, {}}};
  const auto at = [&](int64_t width) { return table_text(table, {width, false, false, 2}); };
  CHECK(at(0) ==
        "  op          ranks    bytes     peak  why\n  all_gather      8  112 MiB  272 MiB  gathers the shards over tp into one "
        "collective\n");
  CHECK(at(60) == "  op          ranks    bytes     peak  why\n  all_gather      8  112 MiB  272 MiB  gathers the shards...\n");
  CHECK(at(58) == "  op          ranks    bytes     peak\n  all_gather      8  112 MiB  272 MiB\n(no room for why)\n");
  CHECK(at(37) == at(58));
  CHECK(at(36) == "  op          ranks    bytes\n  all_gather      8  112 MiB\n(no room for peak, why)\n");
  CHECK(at(27) == "  op            bytes\n  all_gather  112 MiB\n(no room for ranks, peak, why)\n");
  CHECK(at(10) == at(27));
  table.rows[0].cells[4] = "short";  // prose that fits is shown however little room it has
  CHECK(at(44) == "  op          ranks    bytes     peak  why\n  all_gather      8  112 MiB  272 MiB  short\n");
}

TEST_CASE("ids cannot break out of any format") {
  const Plan plan = hostile_plan(2);
  const std::string html = render_html(plan, {});
  CHECK(count_of(html, "<script>") == 1);
  CHECK(count_of(html, "</script>") == 1);
  CHECK(html.find("<img>") == std::string::npos);
  CHECK(html.find("http://") == std::string::npos);  // the page needs nothing else
  CHECK(html.find("https://") == std::string::npos);
  const std::string svg = render_svg(plan, {});
  CHECK(svg.find("<img>") == std::string::npos);
  CHECK(count_of(svg, "<g") == count_of(svg, "</g>"));
  const auto trace = nlohmann::json::parse(render_perfetto(plan, {}));
  CHECK(trace["traceEvents"].size() > 4);
  const std::string mermaid = render_mermaid(plan, {});
  CHECK(count_of(mermaid, "subgraph") == 2);
  CHECK(mermaid.find("<img>") == std::string::npos);
  CHECK(count_of(render_dot(plan, {}), "subgraph") == 2);
  for (const std::string& line : {render_plan_markdown(plan, {})}) CHECK(line.find("<img>") == std::string::npos);
}

TEST_CASE("the timeline adds up to the predicted time") {
  const Plan plan = hostile_plan(3);
  const auto trace = nlohmann::json::parse(render_perfetto(plan, {}));
  double steps = 0;
  double whole = 0;
  for (const auto& event : trace["traceEvents"]) {
    if (event.value("cat", "") == "step") steps += event["dur"].get<double>();
    if (event.value("cat", "") == "redistribution") whole += event["dur"].get<double>();
  }
  CHECK(steps == doctest::Approx(whole));
  // As often as each happens; a step's nanoseconds are rounded up.
  const auto predicted = static_cast<double>(ns_of_ps(plan.totals.predicted_ps)) / 1000;
  CHECK(whole >= predicted);
  CHECK(whole <= predicted * 1.01);
}

TEST_CASE("a picture says from whom each rank received what, and of many ranks where to look") {
  const Plan plan = hostile_plan(1);
  const PlannedRedistribution& r = plan.redistributions[0];
  std::vector<Grid> grids;
  for (const Step& step : r.steps) grids.push_back(make_grid(plan.meshes.meshes[0], step.state, {10, 7}));
  const std::vector<StepSenders> senders = senders_of(plan, r, grids);
  REQUIRE(senders.size() == r.steps.size());
  size_t received = 0;
  for (const StepSenders& step : senders) {
    CHECK(step.left_out.empty());
    for (const auto& [rank, list] : step.into) {
      for (const Received& each : list) {
        CHECK(each.from != rank);
        CHECK(received_text(step, rank).rfind("receives ", 0) == 0);
        ++received;
      }
    }
  }
  CHECK(received > 0);
  CHECK(received_text({}, 3).empty());
  CHECK(render_svg(plan, {}).find("; receives [") != std::string::npos);

  MeshTable meshes;
  REQUIRE(add_root(meshes, "mesh", 2048, {}, {{"a", 2048}}).ok());
  Request large;
  large.id = "large";
  large.tensor = {{4096}, DType::float32};
  large.src = *parse_state("S(0)", std::vector<int64_t>{2048}, 1);
  large.dst = *parse_state("R", std::vector<int64_t>{2048}, 1);
  const PlanOutcome outcome = plan_requests(meshes, uniform_topology(), {large}, {}, "sha256:" + std::string(64, '0'));
  REQUIRE(outcome.failures.empty());
  CHECK(render_html(outcome.plan, {}).find("meshplan transfers lists them") != std::string::npos);
}

TEST_CASE("a picture draws equal redistributions once, and says how many are too many to draw") {
  MeshTable meshes;
  REQUIRE(add_root(meshes, "mesh", 12, {}, {{"a", 12}}).ok());
  std::vector<Request> requests;
  for (int64_t i = 0; i < 80; ++i) {
    Request& weight = requests.emplace_back();
    weight.id = "w" + std::to_string(i);
    weight.tensor = {{i < 10 ? 41 : 41 + i}, DType::float32};
    weight.src = *parse_state("S(0)", std::vector<int64_t>{12}, 1);
    weight.dst = *parse_state("R", std::vector<int64_t>{12}, 1);
  }
  const PlanOutcome outcome = plan_requests(meshes, uniform_topology(), requests, {}, "sha256:" + std::string(64, '0'));
  REQUIRE(outcome.failures.empty());
  const std::string svg = render_svg(outcome.plan, {});
  CHECK(count_of(svg, "class=\"title\"") == 64);
  CHECK(svg.find(">also w1, w2, w3, w4 and 5 more<") != std::string::npos);
  CHECK(svg.find(">7 more are not drawn: ") != std::string::npos);
  // Each of the 8 that are shown receives from the other 7 of them; 4 more have no place.
  CHECK(count_of(svg, "class=\"arrow\"") == 64 * 8 * 7);
  ShowOptions few;
  few.top = 3;
  CHECK(count_of(render_svg(outcome.plan, few), "class=\"title\"") == 3);
}

TEST_CASE("a plan says which topology it is for") {
  Plan plan;
  plan.topology = uniform_topology();
  CHECK(planning_line(plan).ends_with(", topology uniform"));
  plan.topology.name.clear();
  plan.topology.source = "calibrated by meshplan from 30 measured rows";
  CHECK(planning_line(plan).ends_with(", topology calibrated by meshplan from 30 measured rows"));
  plan.topology.source.clear();
  CHECK(planning_line(plan).ends_with(", topology of its own"));
}

int64_t end_of(const RoundTime& time) { return time.start + time.length; }

// Rounds by wave, collectives first.
struct Wave {
  std::vector<RoundTime> collectives;
  std::vector<RoundTime> exchanges;
};
std::vector<Wave> waves_in(const PlannedBundle& bundle, const std::vector<RoundTime>& times) {
  const std::vector<int64_t> wave_of = waves_of(bundle.rounds);
  std::vector<Wave> waves;
  for (size_t r = 0; r < wave_of.size(); ++r) {
    const auto wave = static_cast<size_t>(wave_of[r]);
    if (waves.size() <= wave) waves.resize(wave + 1);
    (bundle.rounds[r].op == Op::exchange ? waves[wave].exchanges : waves[wave].collectives).push_back(times[r]);
  }
  return waves;
}

int64_t mixed_waves(const PlannedBundle& bundle) {
  int64_t mixed = 0;
  for (const Wave& wave : waves_in(bundle, std::vector<RoundTime>(bundle.rounds.size())))
    mixed += !wave.collectives.empty() && !wave.exchanges.empty();
  return mixed;
}

// Every round is as long as it takes by itself, waves follow one another without a gap, and the last ends with the bundle.
void check_times(const Plan& plan, const PlannedBundle& bundle) {
  const std::vector<RoundTime> times = round_times(plan, bundle, true);
  REQUIRE(times.size() == bundle.rounds.size());
  const auto lengths = wave_times_ps(plan, bundle);
  REQUIRE(lengths.ok());
  const auto rounding = static_cast<int64_t>(bundle.rounds.size()) + 1;  // nanoseconds that a file may be off
  for (size_t r = 0; r < times.size(); ++r) CHECK(std::abs(times[r].length - ns_of_ps(bundle.rounds[r].predicted_ps)) <= rounding);
  int64_t end_ps = 0;
  int64_t begin = 0;
  const std::vector<Wave> waves = waves_in(bundle, times);
  REQUIRE(waves.size() == lengths->size());
  for (size_t w = 0; w < waves.size(); ++w) {
    const Wave& wave = waves[w];
    end_ps += (*lengths)[w];
    const int64_t end = ns_of_ps(end_ps);
    int64_t at = begin;
    for (const RoundTime& time : wave.collectives) {
      CHECK(std::abs(time.start - at) <= rounding);
      at = end_of(time);
    }
    CHECK(end >= at - rounding);
    for (const RoundTime& time : wave.exchanges) {
      if (wave.collectives.empty()) CHECK(std::abs(time.start - begin) <= rounding);
      if (!wave.collectives.empty()) CHECK(std::abs(end_of(time) - end) <= rounding);
      CHECK(time.start >= begin - rounding);
      CHECK(end_of(time) <= end + rounding);
    }
    begin = end;
  }
  CHECK(std::abs(begin - ns_of_ps(bundle.totals.predicted_ps)) <= rounding);
}

TEST_CASE("a bundle's picture has a bar for every round, each when its wave runs") {
  MeshTable meshes;
  REQUIRE(add_root(meshes, "train", 4, {}, {{"dp", 4}}).ok());
  std::vector<int64_t> ranks;
  for (int64_t i = 8; i < 24; ++i) ranks.push_back(i);
  REQUIRE(add_root(meshes, "serve", 16, ranks, {{"dp", 16}}).ok());
  Request weight;
  weight.id = "</title><script>";
  weight.dst_mesh = 1;
  weight.count = 3;
  weight.tensor = {{96, 64}, DType::bfloat16};
  weight.src = *parse_state("R", std::vector<int64_t>{4}, 2);
  weight.dst = *parse_state("R", std::vector<int64_t>{16}, 2);
  BundleRequest sync;
  sync.id = "<sync>";
  sync.members = {0};
  sync.max_staging_bytes = 20'000;
  Topology topology;
  topology.levels = {{"inside", 8, 370'000, 0, 0}, {"across", 1'048'576, 45'000, 0, 0}};
  const PlanOutcome outcome = plan_requests(meshes, topology, {weight}, {}, "sha256:" + std::string(64, '0'), {sync});
  REQUIRE(outcome.failures.empty());
  const PlannedBundle& bundle = outcome.plan.bundles.front();
  REQUIRE(bundle.rounds.size() > 2);
  const std::string picture = render_svg(outcome.plan, {});
  CHECK(count_of(picture, "class=\"round\"") == bundle.rounds.size());
  CHECK(count_of(render_html(outcome.plan, {}), "class=\"round\"") == bundle.rounds.size());
  for (const std::string& text : {picture, render_html(outcome.plan, {})}) {
    CHECK(text.find("bundle &lt;sync&gt;") != std::string::npos);
    CHECK(text.find("</title><script>") == std::string::npos);
  }
  check_times(outcome.plan, bundle);
  for (const RoundTime& time : round_times(outcome.plan, bundle, false)) CHECK(time.length == 1);
}

TEST_CASE("rounds of two phases say which phase they run, and begin with their wave") {
  const MeshTable table = two_roots({{"fsdp", 12}}, {{"dp", 5}, {"tp", 2}}, 14);
  const std::vector<Request> one{request_of(table, "w", {3600, 3600}, "S(0)", "RS(0)", 1)};
  const Plan plan = planned(table, hosts_of(6, 0), one, {});
  const PlannedBundle& bundle = plan.bundles.front();
  REQUIRE(std::as_const(plan.redistributions[0].steps).back().phases == 2);
  const int64_t pieces = bundle.rounds.front().parts.front().pieces;
  REQUIRE(pieces > 2);
  const std::string of = " of " + std::to_string(pieces / 2);
  CHECK(parts_text(plan, bundle.rounds.front()).starts_with("w step 0 phase 1 piece 0" + of));
  std::string all;
  for (const BundleRound& round : bundle.rounds) all += parts_text(plan, round) + "\n";
  for (const char* phase : {"1", "2"}) {
    for (int64_t piece = 0; piece < pieces / 2; ++piece)
      CHECK(count_of(all, "w step 0 phase " + std::string(phase) + " piece " + std::to_string(piece) + of) == 1);
  }
  check_times(plan, bundle);
  // In one piece a phase.
  Plan whole = plan;
  RoundPart part = bundle.rounds.front().parts.front();
  part.piece = 1;
  part.pieces = 2;
  BundleRound round;
  round.parts = {part};
  CHECK(parts_text(whole, round) == "w step 0 phase 2");
}

TEST_CASE("a collective beside exchanges is drawn from the begin of its wave, they up to its end") {
  // Exchanges inside of hosts reach a tenth of the links: copies gather there, while the next bucket is fetched.
  Topology slower = hosts_of(4, 1000);
  slower.levels[0].mb_per_s = 90'000;
  slower.levels[0].exchange_percent = 10;
  const MeshTable table = two_roots({{"dp", 2}}, {{"dp", 2}, {"tp", 2}}, 4);
  const std::vector<Request> requests{request_of(table, "w", {4096, 4096}, "S(0)", "RS(0)", 12),
                                      request_of(table, "v", {8192, 1024}, "S(0)", "RS(1)", 3)};
  const Plan plan = planned(table, slower, requests, {});
  REQUIRE(mixed_waves(plan.bundles.front()) > 0);
  check_times(plan, plan.bundles.front());
  const auto again = read_plan(write_plan(plan));
  REQUIRE(again.ok());
  check_times(*again, again->bundles.front());
}

TEST_CASE("states that stay the same stand once in a diff") {
  Plan counted = hostile_plan(1);
  counted.redistributions[0].request.count = 5;
  const PlanDiff diff = diff_plans(hostile_plan(1), counted);
  REQUIRE(diff.redistributions.size() == 1);
  const std::string trace = diff.redistributions[0].new_trace;
  CHECK(diff.redistributions[0].old_trace == trace);
  for (const std::string& text : {render_diff_markdown(diff, {}), render_diff_html(diff, {})}) {
    CHECK(text.find("\n- " + escape_html(trace)) == std::string::npos);
    CHECK(text.find("\n- " + trace) == std::string::npos);
    CHECK(count_of(text, trace) + count_of(text, escape_html(trace)) == 1);
  }
}

TEST_CASE("the page of a diff escapes what it shows and says it where nothing changes") {
  const PlanDiff diff = diff_plans(hostile_plan(1), hostile_plan(2));
  const std::string html = render_diff_html(diff, {});
  CHECK(html.find("<img>") == std::string::npos);
  CHECK(html.find("<script>") == std::string::npos);
  CHECK(count_of(html, "<details>") == diff.redistributions.size());
  CHECK(count_of(html, "<details>") == count_of(html, "</details>"));
  CHECK(render_diff_html(diff_plans(hostile_plan(1), hostile_plan(1)), {}).find("Nothing changes.") != std::string::npos);
}

TEST_CASE("the summary's rows add up, whatever is folded into Others") {
  const Plan plan = hostile_plan(6);
  for (int64_t top : {0, 1, 3, 6, 9}) {
    ShowOptions options;
    options.top = top;
    const Table table = summary_table(plan, options);
    const size_t shown = top == 0 || top >= 6 ? 6 : static_cast<size_t>(top) + 1;
    CHECK(table.rows.size() == shown + 1);
    CHECK(table.rows.back().cells[0] == "TOTAL");
    int64_t collectives = 0;
    for (size_t i = 0; i + 1 < table.rows.size(); ++i) collectives += std::stoll(table.rows[i].cells[2]);
    CHECK(std::to_string(collectives) == table.rows.back().cells[2]);
  }
}

TEST_CASE("the summary has a row for each bundle, and its members no share of the time") {
  Plan plan = hostile_plan(6);
  PlannedBundle& bundle = plan.bundles.emplace_back();
  bundle.request = {"sync", {1, 2, 4}, 3};
  bundle.totals.rounds = 2;
  bundle.totals.wire_bytes = 4'096;
  bundle.totals.predicted_ps = 7'000'000;
  plan.totals = totals_of_file(plan);
  for (int64_t top : {0, 1, 4, 6}) {
    ShowOptions options;
    options.top = top;
    const Table table = summary_table(plan, options);
    int64_t collectives = 0;
    int64_t members = 0;
    for (size_t i = 0; i + 1 < table.rows.size(); ++i) {
      const std::vector<std::string>& cells = table.rows[i].cells;
      if (cells[7] == "in bundle") {
        ++members;
      } else {
        collectives += std::stoll(cells[2]);
      }
    }
    CHECK(members <= 3);
    CHECK((members == 3 || top == 1 || top == 4));
    const std::vector<std::string>& cells = table.rows[table.rows.size() - 2].cells;
    CHECK(cells[0] == "bundle sync");
    CHECK(cells[1] == "3");
    CHECK(cells[2] == "6");
    CHECK(cells[4].empty());
    CHECK(std::to_string(collectives) == table.rows.back().cells[2]);
  }
}

TEST_CASE("text is cut to a width by characters, not bytes") {
  CHECK(cut_to("abcdef", 6, true) == "abcdef");
  CHECK(cut_to("abcdef", 5, true) == "abcd\xe2\x80\xa6");
  CHECK(cut_to("abcdef", 5, false) == "ab...");
  CHECK(cut_to("\xc3\xa9\xc3\xa9\xc3\xa9", 2, true) == "\xc3\xa9\xe2\x80\xa6");
  CHECK(display_width("\xc3\xa9\xe2\x80\xa6") == 2);
}

TEST_CASE("a comment for a pull request never exceeds its limit and never ends inside a table or a block") {
  const Plan before = hostile_plan(120);
  Plan after = before;
  for (PlannedRedistribution& r : after.redistributions) {
    r.totals.predicted_ps *= 2;
    r.steps[0].predicted_ps *= 2;
    r.steps[0].why = "another reason";
  }
  after.totals.predicted_ps *= 2;
  const PlanDiff diff = diff_plans(before, after);
  REQUIRE(diff.redistributions.size() == 120);
  for (size_t limit : {size_t{1'500}, size_t{5'000}, size_t{20'000}, markdown_limit}) {
    const std::string text = render_diff_markdown(diff, {}, limit);
    CHECK(text.size() <= limit);
    CHECK(text.rfind(markdown_marker, 0) == 0);
    CHECK(count_of(text, "<details>") == count_of(text, "</details>"));
    CHECK(count_of(text, "```") % 2 == 0);
    CHECK(count_of(text, "| TOTAL |") == 1);
    CHECK((limit == markdown_limit || text.find("The rest was omitted") != std::string::npos));
  }
}

TEST_CASE("a diff says of what moves with a bundle that it is dearer by itself") {
  PlanDiff diff;
  diff.compared = 1;
  diff.severity = DiffSeverity::dearer;
  RedistributionDiff& d = diff.redistributions.emplace_back();
  d.id = "weights";
  d.old_count = d.new_count = 1;
  d.severity = DiffSeverity::dearer;
  d.old_totals = d.new_totals = Totals{};
  d.new_totals->predicted_ps = 1'000'000;
  const auto says = [&](const std::string& text) {
    return render_diff_text(diff, {}).find(text) != std::string::npos && render_diff_markdown(diff, {}).find(text) != std::string::npos;
  };
  CHECK_FALSE(says("by itself"));
  CHECK(says("weights"));
  d.bundle = "sync";
  CHECK(says("dearer by itself"));
  d.severity = DiffSeverity::numerics;
  CHECK_FALSE(says("by itself"));
}

}  // namespace
}  // namespace meshplan
