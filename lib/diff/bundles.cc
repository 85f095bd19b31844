#include "diff/bundles.h"

#include <algorithm>

#include "base/text.h"

namespace meshplan {
namespace {

// The id of the bundle that it is in; nullptr: none.
const std::string* bundle_of(const Plan& plan, size_t redistribution) {
  for (const PlannedBundle& bundle : plan.bundles) {
    const std::vector<size_t>& members = bundle.request.members;
    if (std::binary_search(members.begin(), members.end(), redistribution))
      return &bundle.request.id;
  }
  return nullptr;
}

const PlannedBundle* find(const Plan& plan, const std::string& id) {
  const auto found =
      std::find_if(plan.bundles.begin(), plan.bundles.end(),
                   [&](const PlannedBundle& bundle) { return bundle.request.id == id; });
  return found == plan.bundles.end() ? nullptr : &*found;
}

// Ascending, so that the order of the redistributions does not matter.
std::vector<std::string> ids_of(const Plan& plan, const std::vector<size_t>& members) {
  std::vector<std::string> ids;
  for (const size_t member : members) ids.push_back(plan.redistributions[member].request.id);
  std::sort(ids.begin(), ids.end());
  return ids;
}

// A figure of the bundle before and after.
struct Figure {
  const char* name;
  std::string before;
  std::string after;
};

std::vector<Figure> figures_of(const PlannedBundle& before, const PlannedBundle& after) {
  const auto bytes = [](int64_t n) { return human_bytes(n); };
  const auto time = [](int64_t ps) { return human_ns(ns_of_ps(ps)); };
  return {
      {"count", with_commas(before.request.count), with_commas(after.request.count)},
      {"tensors", with_commas(before.tensors), with_commas(after.tensors)},
      {"max_staging_bytes", bytes(before.request.max_staging_bytes),
       bytes(after.request.max_staging_bytes)},
      {"max_messages", with_commas(before.request.max_messages),
       with_commas(after.request.max_messages)},
      {"rounds", with_commas(before.totals.rounds), with_commas(after.totals.rounds)},
      {"wire bytes", bytes(before.totals.wire_bytes), bytes(after.totals.wire_bytes)},
      {"staging", bytes(before.totals.staging_bytes), bytes(after.totals.staging_bytes)},
      {"predicted", time(before.totals.predicted_ps), time(after.totals.predicted_ps)},
      {"one by one", time(before.alone_ps), time(after.alone_ps)},
  };
}

// Members by id, so that the order of the redistributions does not matter.
bool same_rounds(const Plan& old_plan, const PlannedBundle& before, const Plan& new_plan,
                 const PlannedBundle& after) {
  if (before.rounds.size() != after.rounds.size()) return false;
  for (size_t r = 0; r < before.rounds.size(); ++r) {
    BundleRound a = before.rounds[r];
    BundleRound b = after.rounds[r];
    if (a.parts.size() != b.parts.size()) return false;
    for (size_t p = 0; p < a.parts.size(); ++p) {
      if (old_plan.redistributions[a.parts[p].member].request.id !=
          new_plan.redistributions[b.parts[p].member].request.id)
        return false;
      a.parts[p].member = b.parts[p].member = 0;
    }
    if (!(a == b)) return false;
  }
  return true;
}

}  // namespace

std::string common_bundle(const Plan& before, size_t i, const Plan& after, size_t j) {
  const std::string* const was = bundle_of(before, i);
  const std::string* const is = bundle_of(after, j);
  return was != nullptr && is != nullptr && *was == *is ? *is : "";
}

std::vector<std::string> compare_bundles(const Plan& before, const Plan& after) {
  std::vector<std::string> texts;
  for (const PlannedBundle& now : after.bundles) {
    const std::string name = "bundle " + now.request.id;
    const PlannedBundle* was = find(before, now.request.id);
    if (was == nullptr) {
      texts.push_back(name + " is new: " + counted(now.tensors, "tensor") + " in " +
                      counted(now.totals.rounds, "round") + ", " +
                      human_ns(ns_of_ps(now.totals.predicted_ps)) + " predicted, " +
                      human_ns(ns_of_ps(now.alone_ps)) + " one by one");
      continue;
    }
    const size_t so_far = texts.size();
    for (const Figure& figure : figures_of(*was, now)) {
      if (figure.before != figure.after)
        texts.push_back(name + ": " + figure.name + " " + figure.after + ", was " + figure.before);
    }
    if (ids_of(before, was->request.members) != ids_of(after, now.request.members))
      texts.push_back(name + " has different members");
    if (texts.size() == so_far && !same_rounds(before, *was, after, now))
      texts.push_back(name + " has different rounds");
  }
  for (const PlannedBundle& was : before.bundles) {
    if (find(after, was.request.id) == nullptr)
      texts.push_back("bundle " + was.request.id + " is removed");
  }
  return texts;
}

}  // namespace meshplan
