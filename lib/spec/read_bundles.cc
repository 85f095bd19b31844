#include "spec/read_bundles.h"

#include <algorithm>
#include <set>

#include "base/utf8.h"

namespace meshplan {
namespace {

class BundlesReader {
 public:
  BundlesReader(Reader& reader, const ReadRedistributions& known) : reader_(reader), known_(known) {
    for (size_t i = 0; i < known.requests.size(); ++i) by_id_.emplace(known.requests[i].id, i);
  }

  void read(uint32_t entry) {
    constexpr std::array<KeyRule, 5> rules{{{"id", true},
                                            {"redistributions", true},
                                            {"count"},
                                            {"max_staging_bytes"},
                                            {"max_messages"}}};
    const auto found = reader_.members(entry, rules, "a bundle");
    if (!found) return;
    const auto [id, list, count, staging, messages] = *found;
    BundleRequest bundle;
    if (id != 0) bundle.id = read_id(id);
    bundle.count = reader_.integer(count, "\"count\"", 1).value_or(bundle.count);
    bundle.max_staging_bytes =
        reader_.integer(staging, "\"max_staging_bytes\"", 0).value_or(bundle.max_staging_bytes);
    bundle.max_messages =
        reader_.integer(messages, "\"max_messages\"", 1).value_or(bundle.max_messages);
    if (list != 0) read_members(list, bundle);
    bundles_.push_back(std::move(bundle));
  }

  // Puts what was read beside the bundles of the files that are extended.
  void add_to(std::vector<BundleRequest>& bundles, BundlePlaces& places) {
    for (const BundleRequest& known : bundles) {
      if (ids_.contains(known.id)) continue;
      for (const size_t member : known.members) {
        const auto taken = taken_.find(member);
        if (taken == taken_.end()) continue;
        reader_.error("E0413", taken->second,
                      "redistribution " + quote(known_.requests[member].id) + " is in bundle " +
                          quote(known.id) + " of " + printable(places[known.id].file, 300) +
                          " already",
                      {"give the bundle here the same id to replace that one", {}, 0, {}});
      }
    }
    for (BundleRequest& bundle : bundles_) {
      places[bundle.id] = reader_.place(ids_[bundle.id]);
      const auto known =
          std::find_if(bundles.begin(), bundles.end(),
                       [&](const BundleRequest& other) { return other.id == bundle.id; });
      if (known != bundles.end()) {
        *known = std::move(bundle);
      } else {
        bundles.push_back(std::move(bundle));
      }
    }
  }

 private:
  std::string read_id(uint32_t index) {
    const auto name = reader_.name(index, "\"id\"");
    if (!name) return {};
    const auto [first, fresh] = ids_.emplace(*name, index);
    if (!fresh) {
      reader_.error("E0210", index, "a bundle " + quote(*name) + " exists already",
                    {"give it another id", {}, first->second, "first given here"});
    }
    return *name;
  }

  void read_members(uint32_t list, BundleRequest& bundle) {
    const auto names = reader_.elements(list, "the redistributions of a bundle");
    if (!names) return;
    if (names->empty()) {
      reader_.error("E0211", list, "a bundle without redistributions",
                    {"name some by id, or by \"prefix*\"", {}, 0, {}});
    }
    std::set<size_t> members;
    for (const uint32_t at : *names) {
      if (const auto name = reader_.name(at, "an id")) add_named(at, *name, members);
    }
    bundle.members.assign(members.begin(), members.end());
  }

  void add_named(uint32_t at, const std::string& name, std::set<size_t>& members) {
    const size_t before = members.size();
    bool meant = false;
    const auto add = [&](size_t member) {
      meant = true;
      if (!members.insert(member).second) return;
      const auto [first, fresh] = taken_.emplace(member, at);
      if (!fresh) {
        reader_.error(
            "E0413", at,
            "redistribution " + quote(known_.requests[member].id) + " is in another bundle already",
            {"keep it in one of them", {}, first->second, "put there by this"});
      }
    };
    if (name.back() == '*') {
      const std::string prefix = name.substr(0, name.size() - 1);
      for (auto id = by_id_.lower_bound(prefix);
           id != by_id_.end() && id->first.compare(0, prefix.size(), prefix) == 0; ++id)
        add(id->second);
    } else if (const auto id = by_id_.find(name); id != by_id_.end()) {
      add(id->second);
    }
    if (meant || members.size() > before || known_.ids_lost) return;
    if (name.back() == '*') {
      reader_.error("E0411", at,
                    "no redistribution's id" + known_.where + " starts with " + quote(name));
      return;
    }
    if (known_.ids.contains(name)) return;  // it has an error of its own
    reader_.error_naming(
        "E0411", at, "there is no redistribution " + quote(name) + known_.where, name,
        [&] { return all_ids(); }, "its redistributions are ");
  }

  [[nodiscard]] std::vector<std::string> all_ids() const {
    std::vector<std::string> ids;
    for (const auto& [id, member] : by_id_) ids.push_back(id);
    return ids;
  }

  Reader& reader_;
  const ReadRedistributions& known_;
  std::map<std::string, size_t> by_id_;
  std::map<std::string, uint32_t> ids_;  // of bundles, and their places
  std::map<size_t, uint32_t> taken_;     // members of bundles, and what named them
  std::vector<BundleRequest> bundles_;
};

// Whether a recorder wrote the bundle.
bool is_recorded(const Reader& reader, uint32_t entry) {
  const uint32_t mark = reader.node(entry).kind == JsonKind::object
                            ? find_key(reader.document(), entry, "x-recorded")
                            : 0;
  return mark != 0 && reader.node(mark).truth;
}

}  // namespace

void read_bundles(Reader& reader, uint32_t index, const ReadRedistributions& known,
                  bool recorded_again, std::vector<BundleRequest>& bundles, BundlePlaces& places) {
  BundlesReader read(reader, known);
  for (const uint32_t entry :
       reader.elements(index, "\"bundles\"").value_or(std::vector<uint32_t>{})) {
    if (!recorded_again || !is_recorded(reader, entry)) read.read(entry);
  }
  read.add_to(bundles, places);
}

}  // namespace meshplan
