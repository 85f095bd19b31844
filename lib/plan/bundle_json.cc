#include "plan/bundle_json.h"

#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "plan/read_parts.h"

namespace meshplan {
namespace {

// Pieces of one tensor: more would make plans too long to read.
constexpr int64_t most_pieces = 1'000'000;

// From so many members on, that stand behind one another in the file, the first and the last of
// them are named: long lists of names would be most of a plan, and tell nothing more.
constexpr size_t shortest_run = 64;

// Indices of the first and the last member of every entry.
std::vector<std::pair<size_t, size_t>> runs_of(const std::vector<size_t>& members) {
  std::vector<std::pair<size_t, size_t>> runs;
  for (size_t begin = 0; begin < members.size();) {
    size_t end = begin + 1;
    while (end < members.size() && members[end] == members[end - 1] + 1) ++end;
    if (end - begin < shortest_run) {
      for (size_t i = begin; i < end; ++i) runs.emplace_back(members[i], members[i]);
    } else {
      runs.emplace_back(members[begin], members[end - 1]);
    }
    begin = end;
  }
  return runs;
}

// Whether two members have the same steps, as those with one question do.
bool same_steps(const PlannedRedistribution& a, const PlannedRedistribution& b) {
  const auto& x = a.steps.list();
  const auto& y = b.steps.list();
  return &x == &y || x == y;
}

// Members behind one another in the bundle whose like tensors all run the same step whole stand
// in one entry: so the file grows with rounds and questions, not with the names of like tensors.
class PartWriter {
 public:
  PartWriter(JsonWriter& writer, const Plan& plan, const PlannedBundle& bundle)
      : w_(writer), plan_(plan), members_(bundle.request.members) {
    for (size_t i = 0; i < members_.size(); ++i) place_.emplace(members_[i], i);
  }

  void write(const std::vector<RoundPart>& parts) {
    std::vector<std::pair<size_t, size_t>> runs;  // the first part and the last
    for (size_t i = 0; i < parts.size(); ++i) {
      if (!runs.empty() && follows(parts[i - 1], parts[i])) {
        runs.back().second = i;
      } else {
        runs.push_back({i, i});
      }
    }
    w_.list("parts", Breaks::one_line, runs,
            [&](const auto& run) { write(parts[run.first], parts[run.second]); });
  }

 private:
  [[nodiscard]] const PlannedRedistribution& member(const RoundPart& part) const {
    return plan_.redistributions[part.member];
  }

  [[nodiscard]] bool is_whole(const RoundPart& part) const {
    return part.from == 0 && part.to == member(part).request.count && part.pieces == 1;
  }

  [[nodiscard]] bool follows(const RoundPart& a, const RoundPart& b) const {
    const auto place = place_.find(a.member);
    return place != place_.end() && place->second + 1 < members_.size() &&
           members_[place->second + 1] == b.member && a.step == b.step && is_whole(a) &&
           is_whole(b) && same_steps(member(a), member(b));
  }

  void write(const RoundPart& part, const RoundPart& last) {
    w_.open('{', Breaks::one_line);
    if (part.from != 0) w_.field("from", part.from);
    w_.field("id", member(part).request.id);
    if (part.piece != 0) w_.field("piece", part.piece);
    if (part.pieces != 1) w_.field("pieces", part.pieces);
    w_.field("step", part.step);
    if (last.member != part.member) w_.field("through", member(last).request.id);
    if (part.to != member(part).request.count) w_.field("to", part.to);
    w_.close();
  }

  JsonWriter& w_;
  const Plan& plan_;
  const std::vector<size_t>& members_;
  std::unordered_map<size_t, size_t> place_;  // of each member in members_
};

void write_round(JsonWriter& w, const BundleRound& round, PartWriter& parts) {
  w.open('{', Breaks::one_line);
  if (!round.after.empty()) {
    const std::vector<int64_t> after(round.after.begin(), round.after.end());
    w.field("after", after);
  }
  w.fields({{"group", round.group}, {"messages", round.messages}, {"op", to_text(round.op)}});
  parts.write(round.parts);
  w.fields(
      {{"predicted_ns", ns_of_ps(round.predicted_ps)}, {"staging_bytes", round.staging_bytes}});
  if (round.stream != 0) w.field("stream", round.stream);
  w.field("wire_bytes", round.wire_bytes);
  w.close();
}

void write_bundle(JsonWriter& w, const PlannedBundle& bundle, const Plan& plan) {
  const BundleTotals& totals = bundle.totals;
  w.open('{', Breaks::lines);
  w.fields({{"alone_ns", ns_of_ps(bundle.alone_ps)},
            {"count", bundle.request.count},
            {"id", bundle.request.id},
            {"max_messages", bundle.request.max_messages},
            {"max_staging_bytes", bundle.request.max_staging_bytes}});
  w.list("members", Breaks::one_line, runs_of(bundle.request.members), [&](const auto& run) {
    const std::string& first = plan.redistributions[run.first].request.id;
    if (run.first == run.second) return w.value(first);
    w.open('{', Breaks::one_line);
    w.fields({{"id", first}, {"through", plan.redistributions[run.second].request.id}});
    w.close();
  });
  w.field("proven_gap_ns", ns_of_ps(bundle.proven_gap_ps));
  PartWriter parts(w, plan, bundle);
  w.list("rounds", Breaks::lines, bundle.rounds,
         [&](const BundleRound& round) { write_round(w, round, parts); });
  w.field("tensors", bundle.tensors);
  w.key("totals");
  w.object({{"lower_bound_ns", ns_of_ps(totals.lower_bound_ps)},
            {"messages", totals.messages},
            {"peak_bytes", totals.peak_bytes},
            {"predicted_ns", ns_of_ps(totals.predicted_ps)},
            {"rounds", totals.rounds},
            {"staging_bytes", totals.staging_bytes},
            {"wire_bytes", totals.wire_bytes}});
  w.close();
}

// Of one bundle.
class BundleReader {
 public:
  using Index = std::unordered_map<std::string, size_t>;
  BundleReader(const std::vector<PlannedRedistribution>& redistributions, const Index& by_id)
      : redistributions_(redistributions), by_id_(by_id) {}

  PlannedBundle read(const Value& value) {
    PlannedBundle bundle;
    bundle.request.id = value.at("id").text();
    bundle.request.count = value.at("count").integer(1);
    bundle.request.max_staging_bytes = value.at("max_staging_bytes").integer(0);
    bundle.request.max_messages = value.at("max_messages").integer(1);
    value.at("members").each([&](const Value& entry) { read_members(entry); });
    bundle.request.members = members_;
    bundle.tensors = value.at("tensors").integer(0);
    value.at("rounds").each([&](const Value& round) {
      bundle.rounds.push_back(read_round(round, bundle.rounds.size()));
    });
    const Value totals = value.at("totals");
    bundle.totals = {
        totals.at("rounds").integer(0),          totals.at("wire_bytes").integer(0),
        totals.at("staging_bytes").integer(0),   totals.at("peak_bytes").integer(0),
        totals.at("messages").integer(0),        picoseconds(totals.at("predicted_ns")),
        picoseconds(totals.at("lower_bound_ns"))};
    bundle.proven_gap_ps = picoseconds(value.at("proven_gap_ns"));
    bundle.alone_ps = picoseconds(value.at("alone_ns"));
    return bundle;
  }

 private:
  [[nodiscard]] size_t member_named(const Value& id) const {
    const auto found = by_id_.find(id.text());
    if (found == by_id_.end()) id.fail("there is no redistribution \"" + id.text() + "\"");
    return found->second;
  }

  // One by its id, or those that stand in the file from one through another.
  void read_members(const Value& entry) {
    size_t at = member_named(entry.is_text() ? entry : entry.at("id"));
    size_t last = at;
    if (!entry.is_text()) {
      const Value through = entry.at("through");
      last = member_named(through);
      if (last <= at)
        through.fail("expected a redistribution behind \"" + entry.at("id").text() + '"');
    }
    for (; at <= last; ++at) {
      if (!place_.try_emplace(at, members_.size()).second)
        entry.fail("member \"" + redistributions_[at].request.id + "\" is named twice");
      members_.push_back(at);
    }
  }

  [[nodiscard]] BundleRound read_round(const Value& value, size_t index) {
    BundleRound round;
    round.op = named(value.at("op"), parse_op, "operation");
    round.group = value.at("group").text();
    if (value.has("stream")) round.stream = value.at("stream").integer(0, most_pieces);
    if (value.has("after")) {
      value.at("after").each([&](const Value& before) {
        const auto at = static_cast<size_t>(before.integer(0));
        if (at >= index) before.fail("expected an earlier round than " + std::to_string(index));
        round.after.push_back(at);
      });
    }
    value.at("parts").each([&](const Value& part) {
      round.parts.push_back(read_part(part));
      if (part.has("through")) read_members_behind(part, round.parts);
    });
    round.wire_bytes = value.at("wire_bytes").integer(0);
    round.staging_bytes = value.at("staging_bytes").integer(0);
    round.messages = value.at("messages").integer(0);
    round.predicted_ps = picoseconds(value.at("predicted_ns"));
    return round;
  }

  [[nodiscard]] RoundPart read_part(const Value& value) const {
    RoundPart part;
    part.member = member_named(value.at("id"));
    const PlannedRedistribution& member = redistributions_[part.member];
    part.step = value.at("step").integer(0, std::ssize(member.steps) - 1);
    if (value.has("from")) part.from = value.at("from").integer(0, member.request.count - 1);
    part.to = value.has("to") ? value.at("to").integer(part.from + 1, member.request.count)
                              : member.request.count;
    if (value.has("pieces")) part.pieces = value.at("pieces").integer(1, most_pieces);
    if (value.has("piece")) part.piece = value.at("piece").integer(0, part.pieces - 1);
    return part;
  }

  // The parts of the members behind that of the last part, up to the one that `through` names. Each
  // step stands in one such part: else a short file would be read for hours.
  void read_members_behind(const Value& value, std::vector<RoundPart>& parts) {
    const RoundPart first = parts.back();
    for (const char* key : {"from", "to", "piece", "pieces"}) {
      if (value.has(key)) value.at(key).fail("expected whole tensors beside \"through\"");
    }
    const Value through = value.at("through");
    const auto begin = place_.find(first.member);
    const auto end = place_.find(member_named(through));
    if (begin == place_.end() || end == place_.end() || end->second <= begin->second) {
      through.fail("expected a member of the bundle behind \"" + value.at("id").text() + '"');
    }
    for (size_t i = begin->second; i <= end->second; ++i) {
      if (!run_.emplace(members_[i], first.step).second) {
        through.fail("step " + std::to_string(first.step) + " of \"" +
                     redistributions_[members_[i]].request.id + "\" is run twice");
      }
      if (i == begin->second) continue;
      RoundPart part = first;
      part.member = members_[i];
      const PlannedRedistribution& member = redistributions_[part.member];
      if (!same_steps(member, redistributions_[first.member])) {
        through.fail("expected members with the steps of \"" + value.at("id").text() +
                     "\", not \"" + member.request.id + '"');
      }
      part.to = member.request.count;
      parts.push_back(part);
    }
  }

  const std::vector<PlannedRedistribution>& redistributions_;
  const Index& by_id_;
  std::vector<size_t> members_;
  std::unordered_map<size_t, size_t> place_;  // of each member in them
  std::set<std::pair<size_t, int64_t>> run_;  // steps of members in parts with `through`
};

}  // namespace

void write_bundles(JsonWriter& writer, const Plan& plan) {
  writer.list("bundles", Breaks::lines, plan.bundles,
              [&](const PlannedBundle& bundle) { write_bundle(writer, bundle, plan); });
}

std::vector<PlannedBundle> read_bundles(const Value& value,
                                        const std::vector<PlannedRedistribution>& redistributions) {
  BundleReader::Index by_id;
  for (size_t i = 0; i < redistributions.size(); ++i)
    by_id.emplace(redistributions[i].request.id, i);
  std::vector<PlannedBundle> bundles;
  value.each([&](const Value& bundle) {
    bundles.push_back(BundleReader(redistributions, by_id).read(bundle));
  });
  return bundles;
}

}  // namespace meshplan
