#include <algorithm>

#include "replay/arithmetic.h"
#include "replay/number.h"
#include "replay/run_inside.h"
#include "transfer/sub_axes.h"

namespace meshplan {

void RedistributionRun::Inside::add_difference(RedistributionReport& report, int64_t rank,
                                               int64_t step, const Box& box, int64_t at,
                                               const std::byte* expected,
                                               const std::byte* found) const {
  if (report.differences.size() >= q.options->keep_differences) return;
  report.differences.push_back(
      {rank, step, index_at(box, at), element_text(dtype, expected), element_text(dtype, found)});
}

Status RedistributionRun::Inside::check_guards(size_t state, RedistributionReport& report) const {
  const HeldBoxes& at = held_boxes[state];
  for (size_t s : local_slots[state]) {
    auto whole = q.device->guards_whole(at.ranks[s], held(state)[s],
                                        volume(box_of_slot(at, static_cast<int64_t>(s))) * size);
    if (!whole) return whole.error();
    if (!*whole)
      report.overruns.push_back({global_id(at.ranks[s]), static_cast<int64_t>(state) - 1});
  }
  return Done{};
}

// Compares every element of boxes without pending reductions with the correct result.
Status RedistributionRun::Inside::check_state(size_t state, int64_t step,
                                              RedistributionReport& report) const {
  const HeldBoxes& at = held_boxes[state];
  const size_t n = local_slots[state].size();
  std::vector<Comparison> found(n);
  std::vector<ErrorMeasure> errors(n);
  int64_t bytes = 0;
  for (size_t s : local_slots[state])
    bytes += volume(box_of_slot(at, static_cast<int64_t>(s))) * size;
  const bool random = q.options->data == DataKind::random;
  auto done = q.device->for_each(static_cast<int64_t>(n), bytes, [&](int64_t i) -> Status {
    const size_t s = local_slots[state][i];
    const Box& box = box_of_slot(at, static_cast<int64_t>(s));
    if (!random) {
      auto compared = q.device->compare(at.ranks[s], held(state)[s], box, shape, *table,
                                        shift_of(at, s), q.options->keep_differences);
      if (!compared) return compared.error();
      found[i] = std::move(*compared);
      return Done{};
    }
    std::vector<std::byte> copy(static_cast<size_t>(volume(box) * size));
    if (auto read = q.device->read(at.ranks[s], held(state)[s], copy.data(), std::ssize(copy));
        !read)
      return read;
    errors[i] = measure_error(copy.data(), box, shape, *table, shift_of(at, s),
                              q.options->keep_differences);
    found[i] = errors[i].beyond;
    return Done{};
  });
  if (!done) return done;
  for (size_t i = 0; i < n; ++i) {
    const size_t s = local_slots[state][i];
    const Box& box = box_of_slot(at, static_cast<int64_t>(s));
    report.checked += volume(box);
    report.wrong += found[i].wrong;
    report.largest_ulp = std::max(report.largest_ulp, errors[i].ulp);
    report.largest_relative = std::max(report.largest_relative, errors[i].relative);
    for (int64_t element : found[i].first) {
      std::byte value[8];
      if (auto read = q.device->read(at.ranks[s], held(state)[s] + element * size, value, size);
          !read)
        return read;
      const int64_t number = offset_in(
          [&] {
            Box one;
            for (int64_t x : index_at(box, element)) one.push_back({x, x + 1});
            return one;
          }(),
          full_box(shape));
      const int64_t position = (shift_of(at, s) + number) % table->period();
      add_difference(report, global_id(at.ranks[s]), step, box, element,
                     table->answer() + position * size, value);
    }
  }
  return Done{};
}

// An intermediate state: the expected data of each rank from the contributions of the source;
// `known` is false after a step that creates new partials.
Status RedistributionRun::Inside::check_middle(size_t state, RedistributionReport& report,
                                               bool& known) const {
  const HeldBoxes& at = held_boxes[state];
  const HeldBoxes& first = held_boxes[0];
  known = true;
  if (at.state.partial.empty()) return check_state(state, static_cast<int64_t>(state) - 1, report);
  auto added =
      sub_axes_without(partial_sub_axes(at.state), partial_sub_axes(r->request.src), at.mesh_shape);
  if (at.mesh != first.mesh || !added || !added->empty() || q.options->data == DataKind::random) {
    known = false;
    return Done{};
  }
  auto reduced =
      sub_axes_without(partial_sub_axes(r->request.src), partial_sub_axes(at.state), at.mesh_shape);
  if (!reduced) return reduced.error();
  int64_t divisor = 1;
  for (const SubAxis& a : *reduced) {
    for (const PendingSubAxis& p : r->request.src.partial) {
      if (p.sub_axis.mesh_dim == a.mesh_dim && p.op == ReduceOp::avg) divisor *= a.size;
    }
  }
  const CoordinatesOn free(*reduced, at.mesh_shape);
  const CoordinatesOn contributions(partial_sub_axes(r->request.src), at.mesh_shape);
  const ReduceOp op = table->question().op;
  for (size_t s : local_slots[state]) {
    const Box& box = box_of_slot(at, static_cast<int64_t>(s));
    const int64_t n = volume(box);
    const int64_t index = static_cast<int64_t>(s) % at.size;
    std::vector<std::byte> expected(static_cast<size_t>(n * size));
    std::vector<std::byte> one(expected.size());
    bool begun = false;
    // Contributions of the ranks that differ only in coordinates that are reduced, in row-major
    // order.
    for (int64_t other = 0; other < at.size; ++other) {
      if (other - free.part(other) != index - free.part(index)) continue;
      const int64_t k = contributions.number(other);
      fill_box(begun ? one.data() : expected.data(), box, shape, table->source(), table->period(),
               table->source_start(k, shift_of(at, s)), size);
      if (begun) combine(dtype, op, expected.data(), one.data(), n);
      begun = true;
    }
    divide_by(dtype, expected.data(), n, divisor);
    std::vector<std::byte> found(expected.size());
    if (auto read = q.device->read(at.ranks[s], held(state)[s], found.data(), n * size); !read)
      return read;
    for (int64_t i = 0; i < n; ++i) {
      const std::byte* a = expected.data() + i * size;
      const std::byte* b = found.data() + i * size;
      if (std::equal(a, a + size, b)) continue;
      ++report.wrong;
      add_difference(report, global_id(at.ranks[s]), static_cast<int64_t>(state) - 1, box, i, a, b);
    }
  }
  return Done{};
}

}  // namespace meshplan
