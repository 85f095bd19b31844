#include "plan/read_list.h"

#include "base/utf8.h"

namespace meshplan {
namespace {

std::string quoted(const std::string& id) { return "'" + one_line(id) + "'"; }

}  // namespace

size_t RedistributionList::first_named(const Value& value) const {
  const std::string id = value.at("id").text();
  const Value same_as = value.at("same_as");
  const std::string named = same_as.text();
  value.each_member([&](std::string_view key, const Value& member) {
    if (key == "id" || key == "count" || key == "same_as" || key.substr(0, 2) == "x-") return;
    member.fail("\"" + std::string(key) + "\" beside \"same_as\": what repeats " + quoted(named) +
                " has \"id\", \"count\", \"same_as\" and notes (\"x-...\") only");
  });
  if (named == id)
    same_as.fail(quoted(id) + " names itself; name an earlier redistribution, or write its steps");
  const auto found = by_id_.find(named);
  if (found == by_id_.end())
    same_as.fail("no redistribution " + quoted(named) + " comes before " + quoted(id));
  const size_t first = firsts_[found->second];
  if (first != found->second) {
    same_as.fail(quoted(named) + " is itself the same as " + quoted(list_[first].request.id) +
                 "; name that one");
  }
  return first;
}

void RedistributionList::add(const Value& value, const MeshTable& meshes,
                             const std::vector<MeshNames>& names) {
  const size_t own = list_.size();
  size_t first = own;
  if (value.has("same_as")) {
    first = first_named(value);
    const int64_t count = value.at("count").integer(1);
    PlannedRedistribution r = list_[first];
    r.request.id = value.at("id").text();
    r.request.count = count;
    r.request.notes = read_notes(value);
    list_.push_back(std::move(r));
  } else {
    list_.push_back(read_redistribution(value, meshes, names));
  }
  firsts_.push_back(first);
  const std::string& id = list_.back().request.id;
  if (!by_id_.emplace(id, own).second)
    value.at("id").fail("a second redistribution is called " + quoted(id));
}

}  // namespace meshplan
