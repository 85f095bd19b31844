#include "replay_host/host.h"

#include <doctest/doctest.h>

#include <random>

#include "hand_made.h"
#include "replay/all_dtypes.h"
#include "replay_host/open_backend.h"

using namespace meshplan;
using namespace meshplan::test;

namespace {

ReplayReport replay_right(const Plan& plan, ReplayOptions options = {}) {
  options.threads = 2;
  auto report = replay_on_host(plan, options);
  REQUIRE_MESSAGE(report.ok(), (report.ok() ? "" : report.error().message));
  CHECK_MESSAGE(all_right(*report), to_text(*report));
  CHECK(checked_elements(*report) > 0);
  return *report;
}

}  // namespace

TEST_CASE("an exchange between more pairs of ranks than one process holds is refused before it is made") {
  HandPlan hand;
  (void)add_root(hand.table, "mesh", 8192, {}, {{"a", 64}, {"b", 128}}).value();
  hand.tensor = {{8192, 8192}, DType::float32};
  hand.host_ranks = 8;
  hand.src = "S(0)[0]S(0)[1]";
  hand.steps = {{Op::exchange, {"a", "b"}, "S(1)[0]S(1)[1]"}};
  const auto all_pairs = backend_question("host", make_plan(hand), {});
  REQUIRE(!all_pairs.ok());
  CAPTURE(all_pairs.error().message);
  CHECK(exit_code(all_pairs.error().fault) == 5);
  CHECK(all_pairs.error().message.find("redistribution 'hand', step 0: the exchange is between") == 0);
  CHECK(all_pairs.error().message.find("the host backend supports at most 16,777,216; ") != std::string::npos);
  // As many ranks with few pairs are played.
  hand.src = "S(0)R";
  hand.steps = {{Op::exchange, {"a", "b"}, "RS(0)"}};
  CHECK(backend_question("host", make_plan(hand), {}).ok());
}

TEST_CASE("every op moves every element, for even, uneven and empty shards") {
  struct Story {
    const char* src;
    std::vector<HandStep> steps;
  };
  const std::vector<Story> stories{
      {"S(0)[0]S(0)[1]", {{Op::all_gather, {"b"}, "S(0)R"}, {Op::all_gather, {"a"}, "RR"}}},
      {"S(0)[0]S(0)[1]", {{Op::all_gather, {"a", "b"}, "RR"}}},  // nested uneven shards gathered at once
      {"RS(1)", {{Op::all_gather, {"b"}, "RR"}, {Op::slice, {}, "S(1)R"}}},
      {"S(0)S(1)", {{Op::all_to_all, {"b"}, "S(0)[0]S(0)[1]"}, {Op::all_gather, {"a", "b"}, "RR"}}},
      {"S(0)[1]S(0)[0]", {{Op::all_to_all, {"a"}, "S(1)S(0)"}, {Op::all_to_all, {"b"}, "S(1)[0]S(1)[1]"}}},
      {"S(0)S(1)", {{Op::exchange, {"a", "b"}, "S(1)S(0)"}}},
      {"S(0)[0]S(0)[1]", {{Op::exchange, {"a", "b"}, "S(0)[1]S(0)[0]"}}},
      {"S(0)R", {{Op::exchange, {"a", "b"}, "RS(1)"}}},
      {"S(0)R", {{Op::exchange, {"a", "b"}, "RS(1)", std::nullopt, 1, 1, true}}},
      {"S(0)S(1)", {{Op::exchange, {"a", "b"}, "RR", std::nullopt, 1, 2}}},
      {"S(0)R", {{Op::exchange, {"a", "b"}, "S(1)S(0)", std::nullopt, 1, 2}}},
      {"RR", {{Op::slice, {}, "S(1)[0]S(1)[1]"}}},
      {"S(0)R", {}},
  };
  for (const Story& story : stories) {
    for (const std::vector<int64_t>& mesh : std::vector<std::vector<int64_t>>{{2, 2}, {2, 3}, {3, 2}, {1, 4}, {4, 1}}) {
      for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{{8, 12}, {10, 7}, {5, 3}, {3, 1}, {1, 1}, {12, 13, 4}}) {
        HandPlan hand;
        hand.table = one_mesh({{"a", mesh[0]}, {"b", mesh[1]}});
        hand.tensor = {shape, DType::int16};
        hand.src = story.src;
        hand.steps = story.steps;
        hand.host_ranks = 2;
        CAPTURE(story.src);
        CAPTURE(mesh);
        CAPTURE(shape);
        replay_right(make_plan(hand));
      }
    }
  }
}

TEST_CASE("every reduction in every dtype, merged and apart, completed and left pending") {
  for (DType dtype : test::all_dtypes) {
    for (const std::string op : {"sum", "avg", "min", "max", "product"}) {
      const std::string p = "P(" + op + ")";
      const ReduceOp reduce_op = *parse_reduce_op(op);
      struct Story {
        std::string src;
        std::vector<HandStep> steps;
      };
      const std::vector<Story> stories{
          {p + p, {{Op::all_reduce, {"a", "b"}, "RR", reduce_op}}},
          {p + p, {{Op::all_reduce, {"b"}, p + "R", reduce_op}, {Op::all_reduce, {"a"}, "RR", reduce_op}}},
          {p + p, {{Op::reduce_scatter, {"a", "b"}, "S(0)[0]S(0)[1]", reduce_op}}},
          {p + "S(0)", {{Op::reduce_scatter, {"a"}, "S(0)[1]S(0)[0]", reduce_op}, {Op::all_gather, {"a"}, "RS(0)"}}},
          {p + "R", {{Op::slice, {}, p + "S(1)"}, {Op::reduce_scatter, {"a"}, "S(0)S(1)", reduce_op}}},
          {p + "S(0)", {{Op::exchange, {"a", "b"}, p + "S(1)"}}},
          {p + "S(0)", {{Op::exchange, {"a", "b"}, "S(1)R", reduce_op}}},
          {p + p, {{Op::exchange, {"a", "b"}, "RS(0)", reduce_op}}},
          {p + "R", {{Op::to_partial, {"b"}, p + p}, {Op::all_reduce, {"a"}, "R" + p, reduce_op}}},
          {"RR", {{Op::to_partial, {"a", "b"}, p + p}}},
          {"RR", {{Op::to_partial, {"a"}, p + "R"}, {Op::all_reduce, {"a"}, "RR", reduce_op}}},
      };
      for (const Story& story : stories) {
        HandPlan hand;
        hand.table = one_mesh({{"a", 2}, {"b", 3}});
        hand.tensor = {{7, 5}, dtype};
        hand.src = story.src;
        hand.steps = story.steps;
        CAPTURE(to_text(dtype));
        CAPTURE(op);
        CAPTURE(story.src);
        CAPTURE(story.steps.front().state);
        replay_right(make_plan(hand));
      }
    }
  }
}

TEST_CASE("sum with avg merges into a sum and one scale") {
  HandPlan hand;
  hand.table = one_mesh({{"a", 3}, {"b", 2}});
  hand.tensor = {{6, 4}, DType::bfloat16};
  hand.src = "P(avg)P(sum)";
  hand.steps = {{Op::all_reduce, {"a", "b"}, "RR", ReduceOp::sum, 3}};
  replay_right(make_plan(hand));
  // A forgotten scale is found.
  hand.steps[0].divisor = 1;
  auto report = replay_on_host(make_plan(hand), {});
  REQUIRE(report.ok());
  CHECK(wrong_elements(*report) > 0);
  CHECK(report->redistributions[0].differences[0].step == 0);
}

TEST_CASE("a shard becomes a pending sum by zero filling") {
  HandPlan hand;
  hand.table = one_mesh({{"a", 2}, {"b", 3}});
  hand.tensor = {{7, 5}, DType::float32};
  hand.src = "S(0)S(1)";
  hand.steps = {
      {Op::to_partial, {"b"}, "S(0)P(sum)"}, {Op::to_partial, {"a"}, "P(sum)P(sum)"}, {Op::all_reduce, {"a"}, "RP(sum)", ReduceOp::sum}};
  replay_right(make_plan(hand));
}

TEST_CASE("reductions run in the dtype that is asked for") {
  for (DType reduce_dtype : {DType::float32, DType::float64, DType::bfloat16, DType::float16}) {
    HandPlan hand;
    hand.table = one_mesh({{"a", 2}, {"b", 4}});
    hand.tensor = {{9, 6}, DType::bfloat16};
    hand.src = "P(sum)P(avg)";
    hand.reduce_dtype = reduce_dtype;
    for (const HandStep& step : std::vector<HandStep>{{Op::all_reduce, {"a", "b"}, "RR", ReduceOp::sum, 4},
                                                      {Op::reduce_scatter, {"a", "b"}, "S(0)[0]S(0)[1]", ReduceOp::sum, 4},
                                                      {Op::reduce_scatter, {"a", "b"}, "S(1)[1]S(1)[0]", ReduceOp::sum, 4},
                                                      {Op::exchange, {"a", "b"}, "S(1)R", ReduceOp::sum, 4}}) {
      hand.steps = {step};
      CAPTURE(to_text(reduce_dtype));
      CAPTURE(step.state);
      replay_right(make_plan(hand));
    }
  }
  // Random data: float32 sums of bfloat16 values are off by less.
  HandPlan hand;
  hand.table = one_mesh({{"a", 8}});
  hand.tensor = {{4096}, DType::bfloat16};
  hand.src = "P(sum)";
  hand.steps = {{Op::all_reduce, {"a"}, "R", ReduceOp::sum}};
  ReplayOptions random;
  random.data = DataKind::random;
  const double narrow = replay_right(make_plan(hand), random).redistributions[0].largest_ulp;
  hand.reduce_dtype = DType::float32;
  const double wide = replay_right(make_plan(hand), random).redistributions[0].largest_ulp;
  CHECK(wide <= 0.51);
  CHECK(narrow > 1);
}

TEST_CASE("parts of mesh dims, permuted ranks and copies of a mesh") {
  HandPlan hand;
  hand.table = one_mesh({{"a", 2}, {"b", 4}}, {7, 3, 12, 0, 21, 5, 6, 9});
  hand.tensor = {{10, 6}, DType::float32};
  hand.host_ranks = 4;
  hand.src = "S(0)[0]S(0)[1]";
  hand.steps = {{Op::all_gather, {"b:(2)2"}, "S(0)[0]{S(0)[1]:2,R:2}"},
                {Op::all_to_all, {"b:(1)2"}, "S(0){S(1):2,R:2}"},
                {Op::exchange, {"a", "b"}, "R{S(0):2,S(1):2}"},
                {Op::exchange, {"a", "b"}, "S(1)R", std::nullopt, 1, 2},
                {Op::all_gather, {"a"}, "RR"}};
  const ReplayReport report = replay_right(make_plan(hand));
  CHECK(report.ranks == 8);
  CHECK(report.redistributions[0].ranks == 8);
  CHECK(checked_elements(report) == 8 * 60);

  MeshTable table;
  REQUIRE(add_root(table, "root", 12, {}, {{"x", 3}, {"a", 2}, {"b", 2}}).ok());
  REQUIRE(add_slice(table, "inner", "root", {"a", "b"}).ok());
  REQUIRE(add_slice(table, "outer", "root", {"x"}).ok());
  HandPlan sliced;
  sliced.table = table;
  sliced.src_mesh = "inner";
  sliced.tensor = {{9, 4}, DType::int32};
  sliced.src = "P(sum)S(0)";
  sliced.steps = {{Op::all_reduce, {"a"}, "RS(0)", ReduceOp::sum}, {Op::all_gather, {"b"}, "RR"}};
  // Three copies of four ranks each.
  CHECK(checked_elements(replay_right(make_plan(sliced))) == 12 * 36);
}

TEST_CASE("an exchange across meshes is between copy 0 of each") {
  MeshTable table;
  REQUIRE(add_root(table, "root", 8, {}, {{"h", 2}, {"a", 2}, {"b", 2}}).ok());
  REQUIRE(add_slice(table, "train", "root", {"h", "a"}).ok());
  REQUIRE(add_slice(table, "serve", "root", {"b"}).ok());
  HandPlan hand;
  hand.table = table;
  hand.src_mesh = "train";
  hand.dst_mesh = "serve";
  hand.tensor = {{10, 6}, DType::float16};
  hand.src = "S(0)S(1)";
  hand.steps = {{Op::exchange, {"b"}, "S(0)", std::nullopt, 1, 1, false, "serve"},
                {Op::all_gather, {"b"}, "R", std::nullopt, 1, 1, false, "serve"}};
  const ReplayReport report = replay_right(make_plan(hand));
  CHECK(report.redistributions[0].ranks == 5);  // 0 2 4 6 and 0 1
  hand.src = "P(sum)S(1)";
  hand.steps = {{Op::exchange, {"b"}, "S(1)", ReduceOp::sum, 1, 1, false, "serve"}};
  replay_right(make_plan(hand));
}

TEST_CASE("scalars and tensors without elements") {
  for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{{}, {0}, {0, 5}}) {
    for (const HandStep& step :
         std::vector<HandStep>{{Op::all_reduce, {"a", "b"}, "RR", ReduceOp::sum}, {Op::exchange, {"a", "b"}, "RR", ReduceOp::sum}}) {
      HandPlan hand;
      hand.table = one_mesh({{"a", 2}, {"b", 2}});
      hand.tensor = {shape, DType::float32};
      hand.src = "P(sum)P(sum)";
      hand.steps = {step};
      auto report = replay_on_host(make_plan(hand), {});
      REQUIRE(report.ok());
      CHECK(all_right(*report));
      CHECK(checked_elements(*report) == (shape.empty() ? 4 : 0));
    }
  }
}

TEST_CASE("an injected fault is found and named by rank, step and index") {
  HandPlan hand;
  hand.table = one_mesh({{"a", 2}, {"b", 2}}, {10, 11, 12, 13});
  hand.tensor = {{8, 4}, DType::float32};
  hand.src = "P(sum)S(0)";
  hand.steps = {
      {Op::exchange, {"a", "b"}, "P(sum)S(1)"}, {Op::reduce_scatter, {"a"}, "S(0)S(1)", ReduceOp::sum}, {Op::all_gather, {"b"}, "S(0)R"}};
  const Plan plan = make_plan(hand);
  for (int64_t step = 0; step < 3; ++step) {
    for (FaultKind kind : {FaultKind::flip, FaultKind::drop, FaultKind::swap}) {
      ReplayOptions options;
      options.faults = {{step, 12, kind}};
      CAPTURE(to_text(options.faults[0]));
      auto report = replay_on_host(plan, options);
      REQUIRE(report.ok());
      CHECK_FALSE(all_right(*report));
      REQUIRE_FALSE(report->redistributions[0].differences.empty());
      for (const Difference& d : report->redistributions[0].differences) {
        CHECK(d.rank == 12);
        CHECK(d.step == step);
        CHECK(d.expected != d.found);
      }
      CHECK(to_text(*report).find("WRONG  hand") != std::string::npos);
    }
    ReplayOptions options;
    options.faults = {{step, 13, FaultKind::overrun}};
    auto report = replay_on_host(plan, options);
    REQUIRE(report.ok());
    CHECK(report->redistributions[0].overruns == std::vector<Overrun>{{13, step}});
    CHECK_FALSE(all_right(*report));
  }
  ReplayOptions options;
  options.faults = {{1, 11, FaultKind::memory}};
  auto report = replay_on_host(plan, options);
  REQUIRE_FALSE(report.ok());
  CHECK(report.error().fault == Fault::environment);
  CHECK(report.error().message == "redistribution 'hand', step 1: rank 11 cannot allocate its buffers (injected)");
  for (const auto& [fault, part] :
       std::vector<std::pair<InjectedFault, std::string>>{{{3, 11, FaultKind::flip}, "no remaining redistribution has a step 3"},
                                                          {{0, 1, FaultKind::flip}, "has no rank 1"},
                                                          {{0, 11, FaultKind::hang}, "one process for all ranks"}}) {
    options.faults = {fault};
    auto refused = replay_on_host(plan, options);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().fault == Fault::bad_input);
    CHECK(refused.error().message.find(part) != std::string::npos);
  }
}

TEST_CASE("a fault of a rank that has nothing after the step is refused, not passed over") {
  HandPlan hand;
  REQUIRE(add_root(hand.table, "train", 2, {}, {{"a", 2}}).ok());
  REQUIRE(add_root(hand.table, "serve", 2, {2, 3}, {{"b", 2}}).ok());
  hand.src_mesh = "train";
  hand.dst_mesh = "serve";
  hand.tensor = {{8}, DType::float32};
  hand.src = "S(0)";
  hand.steps = {{Op::exchange, {"b"}, "R", std::nullopt, 1, 1, false, "serve"}};
  ReplayOptions options;
  options.faults = {{0, 1, FaultKind::flip}};
  const auto refused = replay_on_host(make_plan(hand), options);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().fault == Fault::bad_input);
  CHECK(refused.error().message == "--inject 0:1:flip: rank 1 has no data after redistribution 'hand', step 0; choose another rank");
  options.faults = {{0, 2, FaultKind::flip}};
  const auto found = replay_on_host(make_plan(hand), options);
  REQUIRE(found.ok());
  CHECK_FALSE(all_right(*found));
}

TEST_CASE("a plan whose data would be wrong is found wrong") {
  // The second reduction of the same contribution: the plan reduces over a, calls it still pending over b, and stops there.
  HandPlan hand;
  hand.table = one_mesh({{"a", 2}, {"b", 2}});
  hand.tensor = {{8}, DType::float32};
  hand.src = "P(sum)P(sum)";
  hand.steps = {{Op::all_reduce, {"a"}, "RP(sum)", ReduceOp::max}};
  auto report = replay_on_host(make_plan(hand), {});
  REQUIRE(report.ok());
  CHECK(wrong_elements(*report) > 16);
  CHECK(report->redistributions[0].differences[0].step == 0);
}

TEST_CASE("big tensors shrink by themselves and small ones on request") {
  HandPlan hand;
  hand.table = one_mesh({{"a", 8}, {"b", 8}});
  hand.tensor = {{16, 8192, 4096}, DType::bfloat16};
  hand.src = "S(0)S(1)";
  hand.steps = {{Op::all_gather, {"b"}, "S(0)R"}};
  const ReplayReport report = replay_right(make_plan(hand));
  CHECK(report.redistributions[0].shrunk);
  int64_t bytes = 2;
  for (int64_t extent : report.redistributions[0].replay_shape) bytes *= extent;
  CHECK(bytes * 9 <= int64_t{32} << 20);
  CHECK(bytes * 9 > int64_t{4} << 20);
  hand.tensor.shape = {16, 64, 64};
  CHECK_FALSE(replay_right(make_plan(hand)).redistributions[0].shrunk);
  ReplayOptions options;
  options.shrink = true;
  CHECK(replay_right(make_plan(hand), options).redistributions[0].replay_shape == std::vector<int64_t>{16, 16, 1});
}

// Parts of a third of the small shape's few rows lie with other holders than those of the large one: 4 stages, which do not divide 6.
TEST_CASE("an exchange in shifts is replayed at a small shape with as many stages as planned") {
  HandPlan hand;
  REQUIRE(add_root(hand.table, "train", 4, {}, {{"dp", 2}, {"tp", 2}}).ok());
  REQUIRE(add_root(hand.table, "serve", 4, {6, 4, 7, 5}, {{"serve", 4}}).ok());
  hand.src_mesh = "train";
  hand.dst_mesh = "serve";
  hand.host_ranks = 4;
  hand.tensor = {{3, 65536, 4099}, DType::bfloat16};
  hand.src = "S(1)S(2)";
  HandStep exchange{Op::exchange, {"serve"}, "S(0)"};
  exchange.mesh = "serve";
  exchange.phases = 2;
  exchange.fetched_by_all = true;
  exchange.chunks = 6;
  exchange.at_once = 1;
  hand.steps = {exchange};
  ReplayOptions options;
  options.shrink = true;
  const ReplayReport report = replay_right(make_plan(hand), options);
  CHECK(report.redistributions[0].shrunk);
  // Chunks that no shape's stages divide are told as they are at the planned one.
  hand.steps[0].chunks = 7;
  const auto refused = replay_on_host(make_plan(hand), options);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message.find("7 chunks, 1 at once, of 3 stages") != std::string::npos);
}

TEST_CASE("only the ids that are asked for run, and unknown ones are named") {
  HandPlan hand;
  hand.table = one_mesh({{"a", 2}});
  hand.tensor = {{8}, DType::float32};
  hand.src = "S(0)";
  hand.steps = {{Op::all_gather, {"a"}, "R"}};
  Plan plan = make_plan(hand);
  plan.redistributions.push_back(plan.redistributions[0]);
  plan.redistributions[1].request.id = "foot";
  ReplayOptions options;
  options.only_ids = {"foot"};
  const ReplayReport report = replay_right(plan, options);
  REQUIRE(report.redistributions.size() == 1);
  CHECK(report.redistributions[0].id == "foot");
  options.only_ids = {"hnd"};
  auto unknown = replay_on_host(plan, options);
  REQUIRE_FALSE(unknown.ok());
  CHECK(unknown.error().message == "the plan has no redistribution 'hnd'; did you mean 'hand'?");
}

TEST_CASE("a graph needs streams: asked for without them, it is refused") {
  HandPlan hand;
  hand.table = one_mesh({{"a", 2}, {"b", 2}});
  hand.tensor = {{4, 4}, DType::float32};
  hand.src = "S(0)R";
  hand.steps = {{Op::all_to_all, {"a"}, "S(1)R"}};
  ReplayOptions options;
  options.graph = true;
  auto report = replay_on_host(make_plan(hand), options);
  REQUIRE_FALSE(report.ok());
  CHECK(report.error().message.find("does not support graphs") != std::string::npos);
}

TEST_CASE("random chains of exchanges and gathers on random meshes") {
  constexpr unsigned seed = 4711;
  std::mt19937 random(seed);
  CAPTURE(seed);
  for (int round = 0; round < 60; ++round) {
    const std::vector<int64_t> sizes{static_cast<int64_t>(1 + random() % 3), static_cast<int64_t>(1 + random() % 3),
                                     static_cast<int64_t>(1 + random() % 3)};
    HandPlan hand;
    hand.table = one_mesh({{"a", sizes[0]}, {"b", sizes[1]}, {"c", sizes[2]}});
    hand.tensor = {{static_cast<int64_t>(random() % 14), static_cast<int64_t>(1 + random() % 9)}, DType::bfloat16};
    hand.host_ranks = static_cast<int64_t>(1 + random() % 6);
    auto state = [&] {
      std::vector<int> dims;
      std::vector<int> counts(2, 0);
      for (int m = 0; m < 3; ++m) {
        dims.push_back(static_cast<int>(random() % 3));
        if (dims.back() < 2) ++counts[static_cast<size_t>(dims.back())];
      }
      std::vector<int> next(2, 0);
      const bool reversed = random() % 2 == 0;
      std::string text;
      for (int d : dims) {
        if (d == 2) {
          text += "R";
          continue;
        }
        text += "S(" + std::to_string(d) + ")";
        const auto i = static_cast<size_t>(d);
        if (counts[i] > 1) text += "[" + std::to_string(reversed ? counts[i] - 1 - next[i] : next[i]) + "]";
        ++next[i];
      }
      return text;
    };
    hand.src = state();
    const size_t steps = 1 + random() % 4;
    for (size_t i = 0; i < steps; ++i) {
      HandStep step{Op::exchange, {"a", "b", "c"}, state()};
      step.phases = static_cast<int64_t>(1 + random() % 2);
      if (step.phases == 2) step.chunks = static_cast<int64_t>(1 + random() % 4);
      step.fetched_by_all = step.phases == 2 && random() % 2 == 0;
      if (step.phases == 2) step.laps = static_cast<int64_t>(1 + random() % 2);
      step.whole_pieces = random() % 2 == 0;
      hand.steps.push_back(step);
    }
    CAPTURE(round);
    auto report = replay_on_host(make_plan(hand), {});
    REQUIRE_MESSAGE(report.ok(), (report.ok() ? "" : report.error().message));
    CHECK_MESSAGE(all_right(*report), to_text(*report));
  }
}
