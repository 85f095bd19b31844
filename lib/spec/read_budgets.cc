#include "spec/read_budgets.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>

#include "diag/codes.h"

namespace meshplan {
namespace {

// Reports an id that no redistribution has.
void check_id(Reader& reader, uint32_t index, const std::string& id,
              const ReadRedistributions& known) {
  if (known.ids_lost || known.ids.contains(id)) return;
  const auto all_ids = [&] {
    std::vector<std::string> ids;
    ids.reserve(known.ids.size());
    for (const auto& [name, node] : known.ids) ids.emplace_back(name);
    std::sort(ids.begin(), ids.end());
    return ids;
  };
  reader.error_naming("E0411", index, "there is no redistribution " + quote(id) + known.where, id,
                      all_ids, "its redistributions are ");
}

void read_limits(Reader& reader, const std::array<uint32_t, 4>& nodes, Budget& budget) {
  constexpr std::array<std::string_view, 4> names{"\"wire_bytes\"", "\"collectives\"",
                                                  "\"predicted_ns\"", "\"peak_bytes\""};
  std::optional<Limit>* const limits[] = {&budget.wire_bytes, &budget.collectives,
                                          &budget.predicted_ns, &budget.peak_bytes};
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (const auto most = reader.integer(nodes[i], names[i], 0))
      *limits[i] = Limit{*most, reader.place(nodes[i])};
  }
}

// Adds budgets to those of the file that this one extends: limits for what has a budget there take
// the place of those.
class AddedBudgets {
 public:
  explicit AddedBudgets(Spec& spec) : spec_(spec) {
    for (size_t i = 0; i < spec.budgets.size(); ++i)
      extended_.try_emplace({spec.budgets[i].bundle, spec.budgets[i].id}, i);
  }
  void add(Budget budget) {
    const auto found = extended_.find({budget.bundle, budget.id});
    if (found == extended_.end()) return spec_.budgets.push_back(std::move(budget));
    Budget& known = spec_.budgets[found->second];
    if (budget.wire_bytes) known.wire_bytes = budget.wire_bytes;
    if (budget.collectives) known.collectives = budget.collectives;
    if (budget.predicted_ns) known.predicted_ns = budget.predicted_ns;
    if (budget.peak_bytes) known.peak_bytes = budget.peak_bytes;
  }

 private:
  Spec& spec_;
  std::map<std::pair<bool, std::string>, size_t> extended_;  // by id, of a bundle or not
};

// Of redistributions, or of bundles; `check` reports an id that there is none of.
template <class Check>
void read_budgets_of(Reader& reader, uint32_t list, bool bundles, const Check& check,
                     AddedBudgets& added) {
  const std::string what = bundles ? "the budgets of bundles" : "the budgets of redistributions";
  const std::string each = bundles ? "the budget of a bundle" : "the budget of a redistribution";
  std::map<std::string, uint32_t> seen;
  for (const uint32_t entry : reader.elements(list, what).value_or(std::vector<uint32_t>{})) {
    constexpr std::array<KeyRule, 5> limits{
        {{"id", true}, {"wire_bytes"}, {"collectives"}, {"predicted_ns"}, {"peak_bytes"}}};
    const auto nodes = reader.members(entry, limits, each);
    if (!nodes) continue;
    const auto [id, wire, collectives, predicted, peak] = *nodes;
    Budget budget;
    budget.bundle = bundles;
    read_limits(reader, {wire, collectives, predicted, peak}, budget);
    const auto name = id != 0 ? reader.name(id, "\"id\"") : std::nullopt;
    if (!name) continue;
    check(id, *name);
    const auto [first, fresh] = seen.emplace(*name, id);
    if (!fresh) {
      reader.error("E0210", id, "a budget for " + quote(*name) + " exists already",
                   {"keep one of them", {}, first->second, "first given here"});
    }
    budget.id = *name;
    added.add(std::move(budget));
  }
}

void check_silenced(Reader& reader, uint32_t index, const std::string& code) {
  if (may_be_silenced(code)) return;
  std::vector<std::string> warnings;
  for (const CodeEntry& known : code_table()) {
    if (may_be_silenced(known.code)) warnings.emplace_back(known.code);
  }
  const std::string message =
      find_code(code) != nullptr
          ? quote(code) + " is not a warning of the planner, and only those can be silenced"
          : "there is no warning " + quote(code);
  reader.error("E0412", index, message, suggestion(code, warnings, "the warnings are "));
}

}  // namespace

void read_budgets(Reader& reader, uint32_t index, const ReadRedistributions& known, Spec& spec) {
  constexpr std::array<KeyRule, 3> rules{{{"total"}, {"redistributions"}, {"bundles"}}};
  const auto found = reader.members(index, rules, "\"budgets\"");
  if (!found) return;
  const auto [total, list, bundles] = *found;
  AddedBudgets added(spec);
  if (total != 0) {
    constexpr std::array<KeyRule, 4> limits{
        {{"wire_bytes"}, {"collectives"}, {"predicted_ns"}, {"peak_bytes"}}};
    if (const auto nodes = reader.members(total, limits, "the total budget")) {
      Budget budget;
      read_limits(reader, *nodes, budget);
      added.add(std::move(budget));
    }
  }
  if (list != 0) {
    read_budgets_of(
        reader, list, false,
        [&](uint32_t id, const std::string& name) { check_id(reader, id, name, known); }, added);
  }
  if (bundles == 0) return;
  std::vector<std::string> ids;
  for (const BundleRequest& bundle : spec.bundles) ids.push_back(bundle.id);
  read_budgets_of(
      reader, bundles, true,
      [&](uint32_t id, const std::string& name) {
        if (known.bundles_lost || std::find(ids.begin(), ids.end(), name) != ids.end()) return;
        reader.error_naming(
            "E0411", id, "there is no bundle " + quote(name), name, [&] { return ids; },
            "its bundles are ");
      },
      added);
}

void read_allow(Reader& reader, uint32_t index, const ReadRedistributions& known, Spec& spec) {
  constexpr std::array<KeyRule, 3> rules{{{"code", true}, {"id"}, {"reason", true}}};
  for (const uint32_t entry :
       reader.elements(index, "\"allow\"").value_or(std::vector<uint32_t>{})) {
    const auto found = reader.members(entry, rules, "a silenced warning");
    if (!found) continue;
    const auto [code, id, reason] = *found;
    Allow allow;
    if (code != 0) {
      allow.code = reader.name(code, "\"code\"").value_or("");
      if (!allow.code.empty()) check_silenced(reader, code, allow.code);
    }
    if (id != 0) {
      allow.id = reader.name(id, "\"id\"").value_or("");
      if (!allow.id.empty()) check_id(reader, id, allow.id, known);
    }
    if (reason != 0) allow.reason = reader.name(reason, "\"reason\"").value_or("");
    spec.allow.push_back(std::move(allow));
  }
}

}  // namespace meshplan
