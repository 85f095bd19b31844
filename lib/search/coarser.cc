#include "search/coarser.h"

#include <algorithm>
#include <array>

#include "search/work.h"

namespace meshplan {
namespace {

// Steps of the coarser form as steps of the whole question.
class IntoParts {
 public:
  IntoParts(const PlanProblem& coarse, const PlanProblem& whole) : coarse_(coarse), whole_(whole) {
    for (int i = 0; i < coarse.sub_axes; ++i)
      parts_[as_index(i)] = sub_axes_within(whole, coarse.sub_axis[as_index(i)]);
    // Fewer tensor dims may take part, where the coarser cuts are even: one of extent 1 does not.
    for (int d = 0; d < coarse.dims; ++d) {
      const auto* const end = whole.tensor_dim.begin() + whole.dims;
      const auto* const at =
          std::find(whole.tensor_dim.begin(), end, coarse.tensor_dim[as_index(d)]);
      MESHPLAN_CHECK(at != end, "every tensor dim of the coarser form is one of the question's");
      dims_[as_index(d)] = static_cast<int>(at - whole.tensor_dim.begin());
    }
  }

  [[nodiscard]] uint16_t mask(uint16_t joined) const {
    uint16_t parts = 0;
    for (unsigned left = joined; left != 0; left &= left - 1)
      parts = static_cast<uint16_t>(parts | parts_[as_index(__builtin_ctz(left))]);
    return parts;
  }
  [[nodiscard]] Edge edge(const Edge& edge) const {
    Edge whole = edge;
    whole.group = mask(edge.group);
    whole.reduced = mask(edge.reduced);
    whole.to = state(edge.to);
    return whole;
  }

 private:
  [[nodiscard]] SearchState state(const SearchState& joined) const {
    SearchState s;
    for (int d = 0; d < coarse_.dims; ++d) {
      for (int i = joined.begin_of(d); i < joined.end_of(d); ++i) {
        // Major first, as sub-axes are numbered.
        for (unsigned left = parts_[joined.sub_axis[as_index(i)]]; left != 0; left &= left - 1)
          append(s, whole_.dims, dims_[as_index(d)], static_cast<uint8_t>(__builtin_ctz(left)));
      }
    }
    s.pending = mask(joined.pending);
    s.made = mask(joined.made);
    return s;
  }

  const PlanProblem& coarse_;
  const PlanProblem& whole_;
  std::array<uint16_t, max_sub_axes> parts_{};
  std::array<int, max_search_dims> dims_{};  // of the question, by those of the coarser form
};

}  // namespace

PlanProblem CoarserForm::form_of(const PlanProblem& whole) const {
  auto coarse = make_problem(levels_, question_, *question_.request, target_, Cuts::of_ends);
  MESHPLAN_CHECK(coarse.has_value(), "a question fits with more sub-axes, but not with fewer");
  const IntoParts into(*coarse, whole);
  for (size_t group = 0; group < coarse->allowed.size(); ++group)
    coarse->allowed[group] = whole.allowed[into.mask(static_cast<uint16_t>(group))];
  return *std::move(coarse);
}

Found CoarserForm::find(const PlanProblem& whole, int64_t below_ps, int64_t work_budget) const {
  if (!whole.cut_at_levels) return {};
  const PlanProblem coarse = form_of(whole);
  SearchOptions options;
  options.below_ps = below_ps;
  options.work_budget = work_budget;
  Found found = find_cheapest(coarse, options);
  const IntoParts into(coarse, whole);
  for (Edge& edge : found.edges) edge = into.edge(edge);
  found.least_ps = 0;
  found.work += work::problem;
  return found;
}

LeastPeak CoarserForm::least_peak(const PlanProblem& whole, int64_t work_budget) const {
  if (!whole.cut_at_levels) return {};
  const PlanProblem coarse = form_of(whole);
  LeastPeak least = meshplan::least_peak(coarse, work_budget);
  whole.work += coarse.work + work::problem;
  const IntoParts into(coarse, whole);
  for (Edge& edge : least.edges) edge = into.edge(edge);
  return least;
}

}  // namespace meshplan
