#include "measure/compare_ran.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/int_math.h"
#include "base/text.h"
#include "base/utf8.h"
#include "plan/step_mesh.h"
#include "tensor/box.h"
#include "tensor/largest_elements.h"

namespace meshplan {
namespace {

// The communicators of a step, by ascending ranks.
std::set<std::vector<int64_t>> communicators_of(const Mesh& mesh,
                                                const std::vector<SubAxis>& mesh_dims) {
  const std::vector<int64_t> shape = mesh_shape(mesh);
  const std::vector<int64_t>& global = mesh.universe->ranks;
  std::map<std::vector<int64_t>, std::vector<int64_t>> by_rest;
  for (int64_t copy = 0; copy < mesh_copies(mesh); ++copy) {
    for (int64_t index = 0; index < mesh_size(mesh); ++index) {
      std::vector<int64_t> rest = coordinates_of(index, shape);
      for (const SubAxis& sub_axis : mesh_dims) {
        const auto dim = static_cast<size_t>(sub_axis.mesh_dim);
        const int64_t tail = shape[dim] / (sub_axis.before * sub_axis.size);
        rest[dim] -= rest[dim] / tail % sub_axis.size * tail;
      }
      rest.push_back(copy);
      const int64_t position = position_of(mesh, copy, index);
      by_rest[rest].push_back(global.empty() ? position : global[position]);
    }
  }
  std::set<std::vector<int64_t>> found;
  for (auto& [rest, ranks] : by_rest) {
    std::sort(ranks.begin(), ranks.end());
    found.insert(std::move(ranks));
  }
  return found;
}

// A communicating step of the plan.
struct Expected {
  size_t row = 0;
  int64_t left = 0;
  std::set<int64_t> in_bytes;  // what a rank may give to it
};

class Comparer {
 public:
  Comparer(const Plan& plan, int64_t times) : plan_(plan), times_(times) {
    for (const PlannedRedistribution& r : plan.redistributions) {
      const State* before = &r.request.src;
      for (const Step& step : r.steps) {
        if (!is_local(step.op)) expect(r, *before, step);
        before = &step.state;
      }
    }
  }

  RanComparison compare(RanDump dump) {
    std::vector<RanCollective> ran = std::move(dump.collectives);
    dump.collectives.clear();
    out_.dump = std::move(dump);
    out_.rows = rows_;
    std::map<std::string, int64_t> others;
    std::vector<std::pair<std::string, const RanCollective*>> left;
    for (const RanCollective& each : ran) {
      if (!each.op) {
        ++others[each.name];
        continue;
      }
      const std::string group = group_of(each);
      if (!take(group, each, *each.op) && !take_whole(group, each)) left.emplace_back(group, &each);
    }
    for (const auto& [group, each] : left) place_left_over(group, *each);
    for (RanRow& row : out_.rows) {
      row.missing = row.planned - row.ran - std::ssize(row.other_sizes);
      if (row.planned == 0) row.missing = 0;
    }
    mark_order();
    out_.not_compared.assign(others.begin(), others.end());
    return std::move(out_);
  }

 private:
  void expect(const PlannedRedistribution& r, const State& before, const Step& step) {
    const Request& request = r.request;
    const bool crosses = request.src_mesh != request.dst_mesh;
    const Mesh& mesh = mesh_after(plan_.meshes, request, step);
    const bool wide = step.reduce_op && request.reduce_dtype;
    const int64_t element = element_bytes(wide ? *request.reduce_dtype : request.tensor.dtype);
    const std::vector<int64_t> shape = mesh_shape(mesh);
    const std::vector<int64_t>& tensor = request.tensor.shape;
    Expected expected;
    expected.left = saturating_mul(request.count, times_);
    // Padded to the largest shard; a reduce_scatter gives one of its largest for each rank.
    const int64_t largest = step.op == Op::reduce_scatter
                                ? saturating_mul(step_ranks(plan_, r, step),
                                                 largest_elements(step.state, tensor, shape))
                                : largest_elements(before, tensor, shape);
    const int64_t bytes = saturating_mul(largest, element);
    expected.in_bytes.insert(bytes);
    if (!crosses && mesh_size(mesh) <= 65'536) {
      for (int64_t index = 0; index < mesh_size(mesh); ++index) {
        expected.in_bytes.insert(
            volume(box_of(before, tensor, shape, coordinates_of(index, shape))) * element);
      }
    }
    expected.row = row_for(step.group, step.op, bytes);
    RanRow& row = rows_[expected.row];
    row.planned = saturating_add(row.planned, expected.left);
    row.predicted_ns = ns_of_ps(step.predicted_ps);
    if (std::find(row.ids.begin(), row.ids.end(), request.id) == row.ids.end())
      row.ids.push_back(request.id);
    if (!crosses) {
      for (const std::vector<int64_t>& each : known(mesh, step))
        group_of_.emplace(each, step.group);
    }
    expected_[{step.group, step.op}].push_back(std::move(expected));
  }

  const std::set<std::vector<int64_t>>& known(const Mesh& mesh, const Step& step) {
    const auto [at, is_new] = communicators_.try_emplace(mesh.name + " " + step.group);
    if (is_new) at->second = communicators_of(mesh, step.mesh_dims);
    return at->second;
  }

  size_t row_for(const std::string& group, Op op, int64_t bytes) {
    const auto [at, is_new] = row_at_.try_emplace({group, op, bytes}, rows_.size());
    if (is_new) {
      RanRow& row = rows_.emplace_back();
      row.group = group;
      row.op = op;
      row.in_bytes = bytes;
    }
    return at->second;
  }

  [[nodiscard]] std::string group_of(const RanCollective& ran) const {
    const auto found = group_of_.find(ran.ranks);
    if (found != group_of_.end()) return found->second;
    if (ran.ranks.empty() && !ran.group_name.empty()) return group_named(ran.group_name);
    if (ran.ranks.empty()) {  // only the size is known: the one group of that size
      std::set<std::string> fitting;
      for (const auto& [ranks, group] : group_of_) {
        if (std::ssize(ranks) == ran.group_size) fitting.insert(group);
      }
      if (fitting.size() == 1) return *fitting.begin();
      return "of " + with_commas(ran.group_size) + " ranks";
    }
    std::vector<std::string> texts;
    for (const int64_t rank : ran.ranks) texts.push_back(std::to_string(rank));
    constexpr size_t most = 8;
    const bool cut = texts.size() > most;
    if (cut) texts.resize(most);
    return "ranks " + join(texts, " ") + (cut ? " ..." : "");
  }

  // "mesh_tp" is what PyTorch calls the groups of dim tp, "default_pg" the one of everybody.
  [[nodiscard]] std::string group_named(const std::string& name) const {
    const std::string dim = name.rfind("mesh_", 0) == 0 ? name.substr(5) : name;
    const size_t all = static_cast<size_t>(rank_count(plan_.meshes));
    for (const auto& [ranks, group] : group_of_) {
      if (group == dim || (name == "default_pg" && ranks.size() == all)) return group;
    }
    return name;
  }

  // As planned: the first step of the group with this op and size that has not run often enough.
  bool take(const std::string& group, const RanCollective& ran, Op op) {
    const auto found = expected_.find({group, op});
    if (found == expected_.end()) return false;
    for (Expected& expected : found->second) {
      if (expected.left == 0 || expected.in_bytes.count(ran.in_bytes) == 0) continue;
      --expected.left;
      RanRow& row = out_.rows[expected.row];
      ++row.ran;
      if (op != *ran.op) ++row.whole;
      if (ran.took_ns) row.took_ns.push_back(*ran.took_ns);
      first_runs_[group].push_back(expected.row);
      return true;
    }
    return false;
  }

  // gloo's all_to_all of shards gathers them, and its reduce_scatter reduces all of them.
  bool take_whole(const std::string& group, const RanCollective& ran) {
    if (!ran.by_gloo) return false;
    if (ran.op == Op::all_gather) return take(group, ran, Op::all_to_all);
    return ran.op == Op::all_reduce && take(group, ran, Op::reduce_scatter);
  }

  void place_left_over(const std::string& group, const RanCollective& ran) {
    const auto found = expected_.find({group, *ran.op});
    if (found != expected_.end()) {
      for (Expected& expected : found->second) {
        // Of the planned size, but more often: extra, not another's place.
        if (expected.left == 0 || expected.in_bytes.count(ran.in_bytes) > 0) continue;
        --expected.left;
        out_.rows[expected.row].other_sizes.push_back(ran.in_bytes);
        return;
      }
    }
    const auto known_row = row_at_.find({group, *ran.op, ran.in_bytes});
    size_t at = 0;
    if (known_row != row_at_.end()) {
      at = known_row->second;
    } else {
      at = out_.rows.size();
      row_at_[{group, *ran.op, ran.in_bytes}] = at;
      RanRow row;
      row.group = group;
      row.op = *ran.op;
      row.in_bytes = ran.in_bytes;
      out_.rows.push_back(std::move(row));
    }
    ++out_.rows[at].extra;
    if (ran.took_ns) out_.rows[at].took_ns.push_back(*ran.took_ns);
  }

  // Rows stand in the order of the plan; a row that first ran before one above it is out of order.
  void mark_order() {
    for (const auto& [group, runs] : first_runs_) {
      std::set<size_t> seen;
      size_t last = 0;
      for (const size_t row : runs) {
        if (!seen.insert(row).second) continue;
        if (row < last) out_.rows[row].other_order = true;
        last = std::max(last, row);
      }
    }
  }

  const Plan& plan_;
  int64_t times_;
  std::vector<RanRow> rows_;
  std::map<std::tuple<std::string, Op, int64_t>, size_t> row_at_;
  std::map<std::pair<std::string, Op>, std::vector<Expected>> expected_;
  std::map<std::vector<int64_t>, std::string> group_of_;
  std::map<std::string, std::set<std::vector<int64_t>>> communicators_;
  std::map<std::string, std::vector<size_t>> first_runs_;  // by group: rows, as they ran
  RanComparison out_;
};

bool row_as_planned(const RanRow& row) {
  return row.missing == 0 && row.extra == 0 && row.other_sizes.empty() && !row.other_order;
}

std::string row_text(const RanRow& row) {
  std::vector<std::string> parts;
  if (row.ran > 0 || row_as_planned(row)) parts.push_back(with_commas(row.ran) + " as planned");
  if (row.whole > 0) {
    parts.push_back(with_commas(row.whole) + " of them " +
                    (row.op == Op::all_to_all ? "gathered" : "reduced") + " whole by gloo");
  }
  if (row.missing > 0) parts.push_back(with_commas(row.missing) + " missing");
  if (row.extra > 0) parts.push_back(with_commas(row.extra) + " extra");
  if (!row.other_sizes.empty()) {
    std::vector<std::string> sizes;
    for (const int64_t bytes : std::set<int64_t>(row.other_sizes.begin(), row.other_sizes.end()))
      sizes.push_back(human_bytes(bytes));
    parts.push_back(with_commas(std::ssize(row.other_sizes)) +
                    " with another size: " + join(sizes, " "));
  }
  if (row.other_order) parts.emplace_back("in another order");
  std::string text = std::string(row_as_planned(row) ? "  " : "! ") + to_text(row.op) + " on " +
                     row.group + ", " + human_bytes(row.in_bytes) + " in: " + join(parts, ", ");
  if (!row.took_ns.empty()) {
    std::vector<int64_t> sorted = row.took_ns;
    std::sort(sorted.begin(), sorted.end());
    text += "; took " + human_ns(sorted[sorted.size() / 2]);
    if (row.predicted_ns > 0) text += ", predicted " + human_ns(row.predicted_ns);
  }
  if (!row.ids.empty()) {
    text += "  [" + row.ids.front() +
            (row.ids.size() > 1 ? " and " + std::to_string(row.ids.size() - 1) + " more" : "") +
            "]";
  }
  return one_line(text) + "\n";
}

}  // namespace

bool as_planned(const RanComparison& comparison) {
  return std::all_of(comparison.rows.begin(), comparison.rows.end(), row_as_planned);
}

RanComparison compare_ran(const Plan& plan, RanDump dump, int64_t times) {
  return Comparer(plan, times).compare(std::move(dump));
}

std::string to_text(const RanComparison& comparison) {
  std::string text = one_line(comparison.dump.source + " (" + comparison.dump.format + ")") + "\n";
  int64_t same = 0;
  int64_t missing = 0;
  int64_t extra = 0;
  int64_t other = 0;
  int64_t order = 0;
  for (const RanRow& row : comparison.rows) {
    text += row_text(row);
    same += row.ran;
    missing = saturating_add(missing, row.missing);
    extra += row.extra;
    other += std::ssize(row.other_sizes);
    order += row.other_order ? 1 : 0;
  }
  for (const auto& [name, times] : comparison.not_compared)
    text += one_line("  not compared: " + name + ", " + with_commas(times) + " times") + "\n";
  if (comparison.dump.dropped > 0) {
    text += "  the buffer was full: " + with_commas(comparison.dump.dropped) +
            " earlier collectives are lost; raise TORCH_FR_BUFFER_SIZE\n";
  }
  text += with_commas(same) + " as planned, " + with_commas(missing) + " missing, " +
          with_commas(extra) + " extra, " + with_commas(other) + " with another size, " +
          with_commas(order) + " in another order\n";
  return text;
}

}  // namespace meshplan
