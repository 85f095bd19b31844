#include "planner/bundle_choice.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "cost/topology.h"
#include "planner/small_bundle.h"
#include "search/exchange_plans.h"
#include "verify/verify.h"

namespace meshplan {
namespace {

// Kinds of one tensor each, of shapes that all differ, with every way that there is.
class ManyKinds {
 public:
  ManyKinds(size_t count, int64_t max_staging)
      : table_(two_roots({{"fsdp", 4}, {"tp", 2}}, {{"dp", 4}, {"tp", 2}}, 8)), topology_(hosts_of(4, 10'000)) {
    std::vector<Request> requests;
    for (size_t k = 0; k < count; ++k) {
      const auto odd = static_cast<int64_t>(k);
      const bool cut = k % 3 != 0;
      requests.push_back(
          request_of(table_, "w" + std::to_string(k), {96 + 8 * odd, 160 + 3 * odd}, cut ? "S(0)S(1)" : "S(0)R", cut ? "RS(1)" : "RR", 1));
    }
    plan_ = planned(table_, topology_, requests, {});
    ranks_ = make_rank_table(plan_.meshes);
    for (const Mesh& mesh : plan_.meshes.meshes) levels_.push_back(std::make_unique<LevelMap>(mesh, topology_));
    for (size_t k = 0; k < count; ++k) add_kind(k, requests[k]);
    counter_ = std::make_unique<FigureCounter>(plan_, ranks_, levels_);
    times_ = std::make_unique<ChoiceTimes>(plan_, ranks_, kinds_, levels_, *counter_, max_staging);
  }

  [[nodiscard]] const std::vector<Kind>& kinds() const { return kinds_; }
  [[nodiscard]] ChoiceTimes& times() { return *times_; }
  void list(Way& way) { list_way({&plan_, &ranks_, &levels_}, way); }
  void list_all() {
    for (Kind& kind : kinds_) {
      for (Way& way : kind.ways) list(way);
    }
  }
  [[nodiscard]] FigureCounter& counter() { return *counter_; }

 private:
  void add_kind(size_t k, const Request& request) {
    Kind& kind = kinds_.emplace_back();
    kind.members = {k};
    kind.firsts = {0};
    kind.tensors = 1;
    const PlanQuestion question{&plan_.meshes, &topology_, &request, &plan_.options};
    const auto add = [&](StepList list) {
      PlannedRedistribution& way = kind.ways.emplace_back().planned;
      way = plan_.redistributions[k];
      way.steps = std::move(list.steps);
    };
    for (const FamilyStops& family : stops_of(question, *levels_[0], *levels_[1])) add(exchanges_through(question, family.stops, false));
    for (const Stops& stops : gathered_stops(question, *levels_[1])) add(gathers_through(question, stops, false));
  }

  MeshTable table_;
  Topology topology_;
  Plan plan_;
  RankTable ranks_;
  std::vector<std::unique_ptr<LevelMap>> levels_;
  std::vector<Kind> kinds_;
  std::unique_ptr<FigureCounter> counter_;
  std::unique_ptr<ChoiceTimes> times_;
};

TEST_CASE("kinds are settled by what each choice takes, those before settled, those behind not") {
  for (const int64_t staging : {int64_t{0}, int64_t{20'000}}) {
    ManyKinds all(11, staging);
    for (const Messages messages : {Messages::shared, Messages::of_kinds}) {
      for (const Launches launches : {Launches::behind, Launches::beside}) {
        std::vector<size_t> chosen(all.kinds().size(), 0);
        std::vector<size_t> expected = chosen;
        size_t asked = 0;
        all.times().settle(chosen, messages, launches, [&](size_t k, const auto& about_ps) {
          CHECK(k == asked++);
          size_t slowest = 0;
          int64_t most_ps = -1;
          for (size_t way = 0; way < all.kinds()[k].ways.size(); ++way) {
            expected[k] = way;
            const int64_t ps = about_ps(way);
            CHECK(ps == all.times().about_ps(expected, messages, launches));
            if (ps > most_ps) slowest = way;
            most_ps = std::max(most_ps, ps);
          }
          expected[k] = slowest;
          return slowest;
        });
        CHECK(asked == all.kinds().size());
        CHECK(chosen == expected);
        // Not all by one way, or nothing was learned.
        CHECK(std::any_of(chosen.begin(), chosen.end(), [](size_t way) { return way != 0; }));
      }
    }
  }
}

TEST_CASE("settling n kinds adds up n log n of them, and one more for each way asked about") {
  ManyKinds all(64, 0);
  size_t ways = 0;
  std::vector<size_t> chosen(all.kinds().size(), 0);
  const int64_t before = all.times().added();
  all.times().settle(chosen, Messages::shared, Launches::behind, [&](size_t k, const auto& about_ps) {
    for (size_t way = 0; way < all.kinds()[k].ways.size(); ++way, ++ways) CHECK(about_ps(way) > 0);
    return size_t{0};
  });
  CHECK(ways > 64);
  CHECK(all.times().added() - before == 64 * 6 + static_cast<int64_t>(ways));
}

TEST_CASE("the messages of a way that goes whole are known before it is listed") {
  ManyKinds all(11, 0);
  size_t many = 0;
  for (size_t k = 0; k < all.kinds().size(); ++k) {
    for (size_t w = 0; w < all.kinds()[k].ways.size(); ++w) {
      Way way = all.kinds()[k].ways[w];
      all.list(way);
      int64_t most = 0;
      bool moves = true;  // in every exchange
      for (const WayStep& step : way.steps) {
        most = std::max(most, step.messages);
        moves = moves && (step.op != Op::exchange || step.messages > 0);
      }
      const int64_t known = all.times().whole_messages(k, w);
      CHECK(known == (moves ? most : INT64_MAX));
      if (moves && most > 2) ++many;
    }
  }
  CHECK(many > 0);
}

TEST_CASE("what counting rounds looks at is known before") {
  ManyKinds all(7, 0);
  all.list_all();
  std::vector<size_t> chosen(all.kinds().size(), 0);
  for (const size_t way : {size_t{0}, size_t{1}, size_t{3}}) {
    for (size_t k = 0; k < chosen.size(); ++k) chosen[k] = (way + k) % all.kinds()[k].ways.size();
    for (const int64_t buckets : {1, 2, 7}) {
      RoundLimits limits;
      limits.buckets = buckets;
      const std::vector<KindRound> rounds = make_rounds(all.kinds(), chosen, limits);
      const int64_t before = all.counter().looked_at();
      const BundleFigures figures = all.counter().count(all.kinds(), chosen, rounds);
      CHECK(figures.rounds.size() == rounds.size());
      CHECK(all.counter().looked_at() - before == all.counter().work_of(all.kinds(), chosen, rounds));
    }
  }
}

TEST_CASE("kinds that share no buckets go into as many as make these alike, evenly where that is near, or each into as many as said") {
  ManyKinds all(3, 0);
  all.list_all();
  std::vector<Kind> kinds = all.kinds();
  for (size_t k = 0; k < kinds.size(); ++k) kinds[k].tensors = std::vector<int64_t>{60, 20, 7}[k];
  const std::vector<size_t> chosen(kinds.size(), 0);  // at once: a round a bucket
  const auto buckets_of = [&](bool alike) {
    RoundLimits limits;
    limits.buckets = 12;
    limits.messages_a_round = 0;
    limits.alike = alike;
    std::map<size_t, int64_t> buckets;  // by kind
    std::map<size_t, int64_t> tensors;
    for (const KindRound& round : make_rounds(kinds, chosen, limits)) {
      for (const KindPart& part : round.parts) {
        CHECK(part.kind == round.parts.front().kind);
        if (part.piece == 0) tensors[part.kind] += part.to - part.from;
      }
      ++buckets[round.parts.front().kind];
    }
    for (size_t k = 0; k < kinds.size(); ++k) CHECK(tensors[k] == kinds[k].tensors);
    return buckets;
  };
  CHECK(buckets_of(false) == std::map<size_t, int64_t>{{0, 12}, {1, 12}, {2, 12}});
  // Their tensors have 96 x 160, 104 x 163 and 112 x 166 elements: 12, 4.4 and 1.7 buckets of 5 of the first.
  CHECK(buckets_of(true) == std::map<size_t, int64_t>{{0, 12}, {1, 5}, {2, 2}});
  kinds[1].tensors = 18;  // 3.97 buckets, and 6 are evenly
  CHECK(buckets_of(true) == std::map<size_t, int64_t>{{0, 12}, {1, 4}, {2, 2}});
  CHECK(evenly(5, 18) == 6);
  CHECK(evenly(7, 18) == 9);
  CHECK(evenly(19, 18) == 36);
}

TEST_CASE("a bundle of little staging whose kinds meet other ranks each: each goes through buckets of its own") {
  // Through the same buckets, of which there are 34 rounds, it takes 1.47 ms.
  const MeshTable table = two_roots({{"fsdp", 6}, {"tp", 2}}, {{"dp", 5}, {"tp", 2}}, 12);
  const std::vector<Request> requests{request_of(table, "w0", {5003, 4096}, "S(0)[0]S(0)[1]", "RS(0)", 12),
                                      request_of(table, "w1", {4096, 1024}, "S(0)S(1)", "RS(1)", 6),
                                      request_of(table, "w2", {5003, 1024}, "S(1)S(0)", "RS(0)", 12)};
  BundleRequest bundle;
  bundle.max_staging_bytes = 32 << 20;
  const Plan plan = planned(table, *topology_preset("gb200"), requests, bundle);
  for (const BundleRound& round : plan.bundles.front().rounds) {
    for (const RoundPart& part : round.parts) CHECK(part.member == round.parts.front().member);
  }
  CHECK(plan.bundles.front().totals.predicted_ps < 870'000'000);
}

TEST_CASE("a member that its bundle moves otherwise than planned alone is not compared with PyTorch's plan, nor with one of more memory") {
  const MeshTable table = one_root({{"a", 6}, {"b", 2}});
  PlanOptions options;
  options.audit = true;
  std::map<std::string, int64_t> compared;
  std::map<std::string, int64_t> dropped;
  const auto compare = [&](const PlannedRedistribution& alone, const PlannedRedistribution& together) {
    const auto says = [](const PlannedRedistribution& of, const std::string& code) {
      return std::any_of(of.audit.begin(), of.audit.end(), [&](const AuditFinding& f) { return f.code == code; });
    };
    for (const AuditFinding& found : together.audit) {
      ++compared[found.code];
      if (found.code >= "A0410") CHECK(found.predicted_ps == together.totals.predicted_ps);
      if (found.code != "A0408") continue;
      CHECK(found.better_trace == together.trace);
      CHECK(found.better_wire_bytes == together.totals.wire_bytes);
    }
    for (const std::string code : {"A0408", "A0410"}) {
      if (says(alone, code) && !says(together, code)) ++dropped[code];
    }
  };
  for (const Topology& topology : {hosts_of(8, 1'000), *topology_preset("h100")}) {
    for (const char* dst : {"RS(0)", "RR", "S(0)R", "S(0)[1]S(0)[0]"}) {
      for (const char* src : {"S(1)R", "S(0)[0]S(0)[1]", "S(1)[0]S(1)[1]", "RS(1)"}) {
        const std::vector<Request> requests{request_of(table, "x", {7, 16}, src, dst, 1), request_of(table, "y", {700, 16}, src, dst, 1)};
        const Plan alone = plan_requests(table, topology, requests, options, no_spec).plan;
        const Plan together = planned(table, topology, requests, {}, options);
        CHECK(verify_plan(together).ok());
        for (size_t i = 0; i < requests.size(); ++i) compare(alone.redistributions[i], together.redistributions[i]);
      }
    }
  }
  for (const std::string code : {"A0408", "A0410"}) {
    CAPTURE(code);
    CHECK(compared[code] > 0);
    CHECK(dropped[code] > 0);
  }
}

TEST_CASE("a collective of groups that hosts cut unevenly takes less by a protocol than its bytes as an exchange: it is not given up") {
  // Hosts of 3 have 3, 3 and 2 of the 8 ranks, and exchanges reach a hundredth of the links.
  const MeshTable table = one_root({{"a", 8}}, {3, 4, 5, 7, 0, 6, 1, 2});
  Topology topology = hosts_of(3, 0);
  topology.levels[0].mb_per_s = topology.levels[1].mb_per_s = 10;
  topology.levels[0].exchange_percent = topology.levels[1].exchange_percent = 1;
  topology.protocols = {{"rings", 1'000, false, 0, {{100}, {100}}}};
  const Plan plan = planned(table, topology, {request_of(table, "w", {8}, "P(max)", "R", 3)}, {});
  const PlannedBundle& bundle = plan.bundles.front();
  CHECK(plan.redistributions[0].steps.size() == 1);
  CHECK(bundle.totals.predicted_ps <= bundle.alone_ps);
}

TEST_CASE("what a tensor does by itself is tried however much was looked at, where it is soon listed") {
  // Ways that fetch all at once have 9 million pairs of ranks, and took all that may be looked at: the bundle took twice as long.
  const MeshTable table = one_root({{"a", 20}, {"b", 7}, {"c", 56}});
  const Plan plan = planned(table, *topology_preset("h100"), {request_of(table, "w", {700, 7000}, "S(0)RS(1)", "RS(1)R", 1)}, {});
  CHECK(plan.bundles.front().totals.predicted_ps <= plan.bundles.front().alone_ps);
}

TEST_CASE("where limits make rounds of what would overlap the ways are chosen by schedules") {
  // Two all_gathers behind an exchange load links least: of 6 messages a launch they are 13 rounds,
  // each with its peers. The vectors whole to every rank are few.
  const MeshTable table = two_roots({{"a", 3}, {"b", 3}}, {{"x", 2}, {"y", 5}}, 4);
  Topology topology = hosts_of(3, 0);
  topology.levels[0].per_peer_ns = 50;
  topology.levels[1].mb_per_s = 13'333;
  BundleRequest bundle;
  bundle.max_messages = 6;
  PlanOptions options;
  options.groups = GroupPolicy::any;
  const Plan plan = planned(table, topology, {request_of(table, "w", {32}, "S(0)R", "RR", 5)}, bundle, options);
  CHECK(plan.bundles.front().totals.predicted_ps < 2 * plan.bundles.front().alone_ps);
  CHECK(verify_plan(plan).ok());
}

TEST_CASE("a bundle of too little staging is refused, or planned right, whatever its member goes by and whoever planned it") {
  const MeshTable table = one_root({{"a", 2}, {"b", 2}});
  std::map<std::string, int64_t> answers;
  for (const PlannerKind planner : {PlannerKind::optimal, PlannerKind::greedy, PlannerKind::graph}) {
    PlanOptions options;
    options.planner = planner;
    if (planner != PlannerKind::optimal) options.rules = Rules::dtensor;
    for (const char* src : {"RR", "RS(0)", "RS(1)", "S(0)[0]S(0)[1]", "S(1)S(0)", "P(sum)S(0)", "P(sum)P(sum)", "S(0)P(sum)"}) {
      for (const char* dst : {"RR", "RS(0)", "RS(1)", "S(0)[0]S(0)[1]", "S(1)S(0)", "P(sum)R", "P(sum)S(1)", "RP(sum)"}) {
        for (const int64_t staging : {1, 8, 40, 100'000}) {
          CAPTURE(src);
          CAPTURE(dst);
          CAPTURE(staging);
          BundleRequest bundle;
          bundle.id = "s";
          bundle.max_staging_bytes = staging;
          bundle.members = {0};
          const Request request = request_of(table, "x", {6, 5}, src, dst, 3);
          if (request.src == request.dst) continue;
          const PlanOutcome outcome = plan_requests(table, hosts_of(2, 1'000), {request}, options, no_spec, {bundle});
          if (outcome.failures.empty()) {
            ++answers["planned"];
            CHECK(verify_plan(outcome.plan).ok());
            CHECK(outcome.plan.bundles.front().totals.staging_bytes <= staging);
          } else {
            ++answers["refused"];
            CHECK(outcome.failures.front().error.message.size() > 20);
          }
        }
      }
    }
  }
  CHECK(answers["planned"] > 200);
  CHECK(answers["refused"] > 200);
}

TEST_CASE("a gather with nothing before it is not said to share what an exchange brought") {
  const MeshTable table = one_root({{"a", 4}});
  const Plan plan = planned(table, uniform_topology(), {request_of(table, "w", {64, 64}, "S(0)", "R", 1)}, {});
  const auto& steps = plan.redistributions.front().steps;
  REQUIRE(steps.size() == 1);
  CHECK(steps[0].op == Op::all_gather);
  CHECK(steps[0].why.find("exchange") == std::string::npos);
}

}  // namespace
}  // namespace meshplan
