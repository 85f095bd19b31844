#include "diff/bundles.h"

#include <algorithm>

#include "base/text.h"
#include "diff/declarations.h"

namespace meshplan {
namespace {

// The bundle that it is in; nullptr: none.
const PlannedBundle* bundle_of(const Plan& plan, size_t redistribution) {
  for (const PlannedBundle& bundle : plan.bundles) {
    const std::vector<size_t>& members = bundle.request.members;
    if (std::binary_search(members.begin(), members.end(), redistribution)) return &bundle;
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

// What is asked of it.
std::vector<Figure> asked_of(const PlannedBundle& before, const PlannedBundle& after) {
  return {
      {"count", with_commas(before.request.count), with_commas(after.request.count)},
      {"tensors", with_commas(before.tensors), with_commas(after.tensors)},
      {"max_staging_bytes", human_bytes(before.request.max_staging_bytes),
       human_bytes(after.request.max_staging_bytes)},
      {"max_messages", with_commas(before.request.max_messages),
       with_commas(after.request.max_messages)},
  };
}

// What it comes to.
std::vector<Figure> totals_of(const PlannedBundle& before, const PlannedBundle& after) {
  const auto bytes = [](int64_t n) { return human_bytes(n); };
  const auto time = [](int64_t ps) { return human_ns(ns_of_ps(ps)); };
  return {
      {"rounds", with_commas(before.totals.rounds), with_commas(after.totals.rounds)},
      {"wire bytes", bytes(before.totals.wire_bytes), bytes(after.totals.wire_bytes)},
      {"staging", bytes(before.totals.staging_bytes), bytes(after.totals.staging_bytes)},
      {"predicted", time(before.totals.predicted_ps), time(after.totals.predicted_ps)},
      {"one by one", time(before.alone_ps), time(after.alone_ps)},
  };
}

void add_changes(const std::string& name, const std::vector<Figure>& figures,
                 std::vector<std::string>& texts) {
  for (const Figure& figure : figures) {
    if (figure.before != figure.after)
      texts.push_back(name + ": " + figure.name + " " + figure.after + ", was " + figure.before);
  }
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
  const PlannedBundle* const was = bundle_of(before, i);
  const PlannedBundle* const is = bundle_of(after, j);
  return was != nullptr && is != nullptr && was->request.id == is->request.id ? is->request.id : "";
}

namespace {

// What is asked of each member, ascending.
std::vector<std::string> questions_of(const Plan& plan, const PlannedBundle& bundle) {
  std::vector<std::string> questions;
  for (const size_t member : bundle.request.members) {
    const PlannedRedistribution& r = plan.redistributions[member];
    questions.push_back(r.request.id + " x" + std::to_string(r.request.count) + " " +
                        request_text(plan, r));
  }
  std::sort(questions.begin(), questions.end());
  return questions;
}

std::vector<std::string> changes_of(const Plan& before, const PlannedBundle& was, const Plan& after,
                                    const PlannedBundle& is) {
  std::vector<std::string> texts;
  const std::string name = "bundle " + is.request.id;
  add_changes(name, asked_of(was, is), texts);
  if (ids_of(before, was.request.members) != ids_of(after, is.request.members)) {
    texts.push_back(name + " has different members");
  } else if (texts.empty() && questions_of(before, was) != questions_of(after, is)) {
    texts.push_back("members of " + name + " are asked for otherwise");
  }
  return texts;
}

}  // namespace

const std::vector<std::string>& BundleCauses::of(size_t i, size_t j) {
  const PlannedBundle* const was = bundle_of(before_, i);
  const PlannedBundle* const is = bundle_of(after_, j);
  const auto [at, is_new] = known_.try_emplace({was, is});
  std::vector<std::string>& causes = at->second;
  if (!is_new || (was == nullptr && is == nullptr)) return causes;
  if (is == nullptr) {
    causes = {"it is in no bundle; was in bundle " + was->request.id};
  } else if (was == nullptr) {
    causes = {"it is in bundle " + is->request.id + "; was in none"};
  } else if (was->request.id != is->request.id) {
    causes = {"it is in bundle " + is->request.id + "; was in bundle " + was->request.id};
  } else {
    causes = changes_of(before_, *was, after_, *is);
  }
  return causes;
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
    add_changes(name, asked_of(*was, now), texts);
    add_changes(name, totals_of(*was, now), texts);
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
