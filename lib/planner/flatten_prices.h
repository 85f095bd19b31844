// What the questions of a file would take if more sets of mesh dims were declared flattened.
//
//     question         planned   with a_b   with b_c   with both
//     P(sum) x 3 -> R   30 us     20 us      20 us      20 us
//
// A set counts wherever its ranks are: on every mesh of its universe of which some dims have the
// same ranks, in whatever order, and across meshes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "planner/flatten_sets.h"
#include "planner/widest_first.h"
#include "search/work.h"
#include "transfer/level_map.h"

namespace meshplan {

// A set of mesh dims that is not declared, and a name that is free for it.
struct FlattenCandidate {
  size_t mesh = 0;
  DimSet dims;
  std::string name;
};

// Candidates by number, as bits.
using FlattenSets = uint64_t;
constexpr FlattenSets set_of(size_t candidate) { return FlattenSets{1} << candidate; }

// A question with some sets declared.
struct FlattenedPlan {
  Totals totals;
  SharedList<Step> steps;
  bool settled = true;  // a search ended, or had as much work as the question's own
};

enum class Effort : uint8_t {
  rough,    // with what is left of the question's work
  settled,  // as the planner would look for it
};

// How a file with such meshes plans a request; nullopt where it does not, or nothing is known.
using PlanInFile =
    std::function<std::optional<FlattenedPlan>(const MeshTable& meshes, const Request& request)>;

class FlattenPrices {
 public:
  FlattenPrices(const MeshTable& meshes, const Topology& topology, const PlanOptions& options,
                PlanInFile plan_in_file = {});
  ~FlattenPrices();
  FlattenPrices(const FlattenPrices&) = delete;
  FlattenPrices& operator=(const FlattenPrices&) = delete;

  // One question of the file, as planned, which happens `times` in all; its number. Where its
  // problem is left its candidates are found now, and the problem is let go.
  size_t add(const PlannedRedistribution& planned, int64_t times, LeftForAdvice left);
  void set_times(size_t question, int64_t times);
  // After the last: finds the candidates, every set on which the best plan of some question with it
  // declared runs a collective and that makes that plan cheaper; at most 64, and of a question with
  // too many sets to try only those that its plan with all of them uses.
  void find_candidates();

  [[nodiscard]] const std::vector<FlattenCandidate>& candidates() const { return candidates_; }
  [[nodiscard]] size_t questions() const;
  [[nodiscard]] int64_t times(size_t question) const;
  // The best plan with these sets declared. Law: where it is settled, it takes what the question
  // takes in the file with these declarations. It is not where the work did not suffice.
  [[nodiscard]] const FlattenedPlan& plan_with(size_t question, FlattenSets sets,
                                               Effort effort = Effort::rough);
  // The same planned once more as a file with these declarations plans it: what it takes there,
  // settled or not. nullopt where these sets are none of its candidates', or that has no plan.
  [[nodiscard]] std::optional<FlattenedPlan> plan_in_file(size_t question, FlattenSets sets);
  // Whether the plan runs a collective on the candidate; then its first.
  [[nodiscard]] const Step* step_on(size_t question, const FlattenedPlan& plan,
                                    size_t candidate) const;
  // Units spent.
  [[nodiscard]] int64_t work() const { return work_; }

 private:
  struct Question;

  void find_candidates(Question& question);
  void find_once(Question& question);
  std::vector<DimSet> sets_to_try(Question& question);
  // The best plan with every set declared; whether it is known to be that.
  bool plan_with_all(Question& question, const std::vector<DimSet>& sets);
  FlattenedPlan priced(const Question& question, const MeshTable& meshes, std::vector<Step> steps);
  void add_candidate(Question& question, const DimSet& set, FlattenedPlan plan);
  std::optional<FlattenedPlan> search(Question& question, const std::vector<DimSet>& also_declared,
                                      FlattenSets sets, int64_t below_ps, work::Budget& budget);
  FlattenedPlan best_with(Question& question, FlattenSets sets, Effort effort);
  bool runs_with(const Question& question, const FlattenedPlan& plan, FlattenSets sets);
  // Whether it runs with this set of the question's mesh declared beside those that are.
  [[nodiscard]] bool runs_on_set(const Question& question, const FlattenedPlan& plan,
                                 const DimSet& set) const;
  [[nodiscard]] std::optional<DimSet> on_mesh(const FlattenCandidate& candidate, size_t mesh) const;
  const MeshTable& table_with(FlattenSets sets);
  const LevelMap& levels_of(size_t mesh);

  const MeshTable& meshes_;
  const Topology& topology_;
  const PlanOptions& options_;
  PlanInFile plan_in_file_;
  std::vector<FlattenCandidate> candidates_;
  std::vector<Question> questions_;
  std::map<size_t, std::unique_ptr<LevelMap>> levels_;  // by mesh
  std::map<FlattenSets, MeshTable> tables_;
  std::map<size_t, std::vector<DimSet>> undeclared_;  // by mesh
  int64_t work_ = 0;
};

}  // namespace meshplan
