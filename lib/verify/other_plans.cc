#include "verify/other_plans.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string_view>
#include <unordered_set>

#include "base/int_math.h"
#include "base/text.h"
#include "tensor/largest_elements.h"
#include "verify/claims.h"
#include "verify/sentences.h"

namespace meshplan::verification {
namespace {

// The ends that every plan of a redistribution has.
class Ends {
 public:
  Ends(const Plan& plan, const PlannedRedistribution& redistribution)
      : r_(redistribution),
        src_sizes_(mesh_shape(plan.meshes.meshes[r_.request.src_mesh])),
        dst_sizes_(mesh_shape(plan.meshes.meshes[r_.request.dst_mesh])) {}

  // `same_order`: of a target whose order was free, the one that the plan took.
  [[nodiscard]] Problem check(const std::vector<std::string_view>& states, bool same_order) const {
    if (const std::string source = to_text(r_.request.src, src_sizes_); states.front() != source)
      return "starts at '" + std::string(states.front()) + "', the source is '" + source + "'";
    if (!same_order && r_.request.any_dst_order) return std::nullopt;
    const auto end = parse_state(states.back(), dst_sizes_, r_.request.tensor.shape.size());
    // Over mesh dims of one rank a plan may shard or not.
    if (end && without_single_ranks(*end) == without_single_ranks(r_.dst)) return std::nullopt;
    return "ends at '" + std::string(states.back()) + "', the target is '" +
           to_text(r_.dst, dst_sizes_) + "'";
  }

 private:
  const PlannedRedistribution& r_;
  std::vector<int64_t> src_sizes_;
  std::vector<int64_t> dst_sizes_;
};

int64_t least_ns_of(const PlannedRedistribution& redistribution) {
  return ns_of_ps(redistribution.totals.predicted_ps) - ns_of_ps(redistribution.proven_gap_ps);
}

// What a rank has at least where a plan passes these states; an error where one is none.
Result<int64_t> bytes_on_the_way(const std::vector<std::string_view>& states,
                                 const Request& request, const std::vector<int64_t>& mesh_sizes) {
  int64_t element = element_bytes(request.tensor.dtype);
  if (request.reduce_dtype) element = std::min(element, element_bytes(*request.reduce_dtype));
  int64_t most = 0;
  for (const std::string_view text : states) {
    const auto state = parse_state(text, mesh_sizes, request.tensor.shape.size());
    if (!state) return wrong_data("'" + std::string(text) + "' is no state of its mesh");
    const int64_t elements = largest_elements(*state, request.tensor.shape, mesh_sizes);
    most = std::max(most, saturating_mul(element, elements));
  }
  return most;
}

Problem check_figures_of(const Alternative& other, const PlannedRedistribution& redistribution) {
  const Totals& totals = redistribution.totals;
  const Totals& its = other.totals;
  const int64_t ns = ns_of_ps(its.predicted_ps);
  // A plan that is not proven may be beaten, by its gap at most.
  if (ns < least_ns_of(redistribution))
    return numbers("predicted_ns", ns, "the plan itself, less its gap, takes",
                   least_ns_of(redistribution));
  if (its.lower_bound_bytes != totals.lower_bound_bytes)
    return numbers("lower_bound_bytes", its.lower_bound_bytes, "the plan's is",
                   totals.lower_bound_bytes);
  if (ns_of_ps(its.lower_bound_ps) != ns_of_ps(totals.lower_bound_ps))
    return numbers("lower_bound_ns", ns_of_ps(its.lower_bound_ps), "the plan's is",
                   ns_of_ps(totals.lower_bound_ps));
  if (its.wire_bytes < totals.lower_bound_bytes)
    return numbers("wire_bytes", its.wire_bytes, "no plan receives less than",
                   totals.lower_bound_bytes);
  const auto steps = std::ssize(texts_of_states(other.trace)) - 1;
  if (its.collectives > 2 * steps)
    return numbers("collectives", its.collectives, "its trace has room for", 2 * steps);
  if (its.collectives == 0 && (ns > 0 || its.wire_bytes > 0))
    return numbers("collectives", 0, "local steps take no time, and its predicted_ns is", ns);
  return std::nullopt;
}

}  // namespace

Problem check_alternatives(const Plan& plan, const PlannedRedistribution& redistribution) {
  if (redistribution.alternatives.empty()) return std::nullopt;
  const Request& request = redistribution.request;
  const Ends ends(plan, redistribution);
  const std::vector<int64_t> sizes = mesh_shape(plan.meshes.meshes[request.src_mesh]);
  std::unordered_set<std::string_view> traces;
  int64_t last_ns = 0;
  for (const Alternative& other : redistribution.alternatives) {
    const std::string name = "its alternative '" + other.trace + "'";
    if (other.trace == redistribution.trace) return name + " is the plan itself";
    if (!traces.insert(other.trace).second) return name + " is listed twice";
    const std::vector<std::string_view> states = texts_of_states(other.trace);
    if (auto problem = ends.check(states, true)) return name + " " + *problem;
    if (auto problem = check_figures_of(other, redistribution)) return name + ": " + *problem;
    if (request.src_mesh == request.dst_mesh) {
      const auto held = bytes_on_the_way(states, request, sizes);
      if (!held) return name + ": " + held.error().message;
      if (other.totals.peak_bytes < *held)
        return name + ": " +
               numbers("peak_bytes", other.totals.peak_bytes, "a state on its way takes", *held);
    }
    const int64_t ns = ns_of_ps(other.totals.predicted_ps);
    if (ns < last_ns)
      return name + ": " +
             numbers("predicted_ns", ns, "the best is the first, the one before it takes", last_ns);
    last_ns = ns;
  }
  return std::nullopt;
}

namespace {

struct KnownFinding {
  std::string_view code;
  std::string_view kind;
  bool of_a_step;  // else of the whole
};
constexpr std::array<KnownFinding, 11> known_findings = {{
    {"A0401", "merged_uneven_gather", true},
    {"A0402", "rank_dependent_merge", true},
    {"A0403", "not_executable", false},
    {"A0404", "unit_dim_traffic", false},
    {"A0405", "sequential_reductions", false},
    {"A0406", "whole_reduction", true},
    {"A0407", "merged_costs_more", true},
    {"A0408", "torch_moves_more", false},
    {"A0409", "split_saves", false},
    {"A0410", "limit_costs", false},
    {"A0411", "zeros_save", false},
}};

// A message that lacks one of these texts, in this order.
Problem check_says(const std::string& message, std::initializer_list<std::string> texts) {
  size_t from = 0;
  for (const std::string& text : texts) {
    const size_t at = message.find(text, from);
    if (at == std::string::npos) return "its message does not say '" + text + "' where it should";
    from = at + text.size();
  }
  return std::nullopt;
}

// The findings of one redistribution. `torch_`: the first that has figures of PyTorch's plan, which
// are the plan's own where it is that plan.
class FindingCheck {
 public:
  FindingCheck(const Plan& plan, const PlannedRedistribution& redistribution)
      : r_(redistribution),
        ends_(plan, redistribution),
        own_(redistribution.rules == Rules::dtensor) {}

  Problem check(const AuditFinding& found) {
    const auto* const known = std::find_if(known_findings.begin(), known_findings.end(),
                                           [&](const auto& k) { return k.code == found.code; });
    if (known == known_findings.end())
      return "no such finding exists, those from " + std::string(known_findings.front().code) +
             " to " + std::string(known_findings.back().code) + " do";
    if (known->kind != found.kind)
      return "its kind is '" + found.kind + "', expected '" + std::string(known->kind) + "'";
    // The steps of a plan that is not here have no numbers.
    const int64_t steps = own_ && known->of_a_step ? std::ssize(r_.steps) : 0;
    if (steps == 0 && found.step != -1)
      return numbers("step", found.step, "as it is of no step of the plan it should be", -1);
    if (steps > 0 && (found.step < 0 || found.step >= steps))
      return numbers("step", found.step, "expected from 0 to", steps - 1);
    Problem problem = check_worse(found);
    if (!problem) problem = check_better(found);
    if (!problem) problem = check_message(found);
    return problem;
  }

 private:
  // Of the plan that is found fault with. A time of 0 is not known.
  Problem check_worse(const AuditFinding& found) {
    const int64_t ns = ns_of_ps(found.predicted_ps);
    if (found.code == "A0403") {
      if (found.wire_bytes != 0)
        return numbers("wire_bytes", found.wire_bytes, "as it cannot run it should be", 0);
      if (ns != 0) return numbers("predicted_ns", ns, "as it cannot run it should be", 0);
      return std::nullopt;
    }
    if (found.code == "A0409") return std::nullopt;
    if (found.code == "A0410" || found.code == "A0411") return check_own(found);
    int64_t wire_bytes = found.wire_bytes;
    int64_t is_ns = ns;
    if (own_) {
      wire_bytes = r_.totals.wire_bytes;
      is_ns = ns_of_ps(r_.totals.predicted_ps);
    } else if (torch_ != nullptr) {
      wire_bytes = torch_->wire_bytes;
      is_ns = ns_of_ps(torch_->predicted_ps);
    }
    const char* const where = own_ ? "the plan has" : "another finding says of the same plan";
    if (found.wire_bytes != wire_bytes)
      return numbers("wire_bytes", found.wire_bytes, where, wire_bytes);
    if (ns != is_ns && ns != 0) return numbers("predicted_ns", ns, where, is_ns);
    torch_ = &found;
    return std::nullopt;
  }

  // The plan itself, which kept to a limit, or sums no shards.
  [[nodiscard]] Problem check_own(const AuditFinding& found) const {
    if (found.wire_bytes != r_.totals.wire_bytes)
      return numbers("wire_bytes", found.wire_bytes, "the plan has", r_.totals.wire_bytes);
    if (ns_of_ps(found.predicted_ps) != ns_of_ps(r_.totals.predicted_ps))
      return numbers("predicted_ns", ns_of_ps(found.predicted_ps), "the plan has",
                     ns_of_ps(r_.totals.predicted_ps));
    return std::nullopt;
  }

  [[nodiscard]] Problem check_better(const AuditFinding& found) const {
    const int64_t ns = ns_of_ps(found.better_predicted_ps);
    if (found.better_trace.empty()) {
      if (found.better_wire_bytes == 0 && ns == 0 && found.code < "A0408") return std::nullopt;
      return std::string("its better_trace is empty");
    }
    if (auto problem = ends_.check(texts_of_states(found.better_trace), found.code == "A0408"))
      return "its better_trace " + *problem;
    const Totals& totals = r_.totals;
    const int64_t own_ns = ns_of_ps(totals.predicted_ps);
    if (found.code == "A0408") {
      if (found.better_trace != r_.trace)
        return "its better_trace is '" + found.better_trace + "', the plan's is '" + r_.trace + "'";
      if (found.better_wire_bytes != totals.wire_bytes)
        return numbers("better_wire_bytes", found.better_wire_bytes, "the plan has",
                       totals.wire_bytes);
      if (ns != own_ns && ns != 0)
        return numbers("better_predicted_ns", ns, "the plan has", own_ns);
    }
    if (found.code >= "A0408" && found.predicted_ps != 0 && ns > ns_of_ps(found.predicted_ps))
      return numbers("better_predicted_ns", ns, "the other plan takes no more, its predicted_ns is",
                     ns_of_ps(found.predicted_ps));
    // Of another order of the target less may be to do.
    if (r_.request.any_dst_order) return std::nullopt;
    if (found.better_wire_bytes < totals.lower_bound_bytes)
      return numbers("better_wire_bytes", found.better_wire_bytes, "no plan receives less than",
                     totals.lower_bound_bytes);
    // Bounds on time are of plans that make no sums of shards.
    if (found.code == "A0411") return std::nullopt;
    // What is planned natively on the same groups within the same limit is as good, less its gap. A
    // time of 0 is not known.
    const bool same_question = r_.planner == PlannerKind::optimal && found.code < "A0409";
    const int64_t least = same_question ? least_ns_of(r_) : ns_of_ps(totals.lower_bound_ps);
    if (ns < least && ns != 0)
      return numbers("better_predicted_ns", ns, "such a plan takes at least", least);
    return std::nullopt;
  }

  // The figures that it says.
  [[nodiscard]] Problem check_message(const AuditFinding& found) const {
    const auto bytes = [](int64_t n) { return "moves " + human_bytes(n) + " a rank in "; };
    const auto time = [](int64_t ps) { return ", " + human_ns(ns_of_ps(ps)); };
    if (found.message.empty()) return std::string("its message is empty");
    if (found.code == "A0408" && found.predicted_ps != 0) {
      return check_says(found.message, {bytes(found.wire_bytes), time(found.predicted_ps) + ";",
                                        human_bytes(r_.totals.wire_bytes) + " a rank in " +
                                            with_commas(r_.totals.collectives) + " collective",
                                        time(r_.totals.predicted_ps)});
    }
    if ((found.code == "A0409" && found.predicted_ps != 0) || found.code == "A0411") {
      return check_says(found.message, {human_ns(ns_of_ps(found.better_predicted_ps)),
                                        human_ns(ns_of_ps(found.predicted_ps))});
    }
    if (found.code == "A0410") {
      return check_says(found.message, {human_ns(ns_of_ps(found.better_predicted_ps)),
                                        human_ns(ns_of_ps(found.predicted_ps)),
                                        human_bytes(r_.totals.peak_bytes)});
    }
    if (found.code == "A0404")
      return check_says(found.message, {std::to_string(found.wire_bytes) + " bytes a rank"});
    if (found.code == "A0405" && own_) return check_reductions_told(found);
    if (found.code == "A0405")
      return check_says(found.message, {"the reduction over ", " passes through "});
    if (found.step < 0) return std::nullopt;
    const Step& step = r_.steps[static_cast<size_t>(found.step)];
    if (found.code == "A0406") {
      return check_says(found.message,
                        {to_text(step.op), std::to_string(step.wire_bytes) + " bytes a rank"});
    }
    if (found.code == "A0407")
      return check_says(found.message, {to_text(step.op), human_ns(ns_of_ps(step.predicted_ps))});
    return std::nullopt;
  }

  // Of the plan's own steps the reductions are noted in it, too.
  [[nodiscard]] Problem check_reductions_told(const AuditFinding& found) const {
    std::vector<std::string> said;
    for (const ReductionNote& note : r_.reductions) {
      said.push_back("over " + join(note.dims, ", ") + " passes through " +
                     std::to_string(note.collectives) + " collectives (" + note.nesting + ")");
    }
    return check_numbers(found.message, said);
  }

  const PlannedRedistribution& r_;
  Ends ends_;
  bool own_;
  const AuditFinding* torch_ = nullptr;
};

}  // namespace

Problem check_audit(const Plan& plan, const PlannedRedistribution& redistribution) {
  if (redistribution.audit.empty()) return std::nullopt;
  FindingCheck check(plan, redistribution);
  for (const AuditFinding& found : redistribution.audit) {
    if (auto problem = check.check(found))
      return "its audit finding '" + found.code + "': " + *problem;
  }
  return std::nullopt;
}

}  // namespace meshplan::verification
