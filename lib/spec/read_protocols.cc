#include "spec/read_protocols.h"

#include "plan/topology_limits.h"

namespace meshplan {
namespace {

// A list with one number of each level.
void read_numbers(Reader& reader, uint32_t index, const char* name, int64_t ProtocolLevel::*number,
                  int64_t least, int64_t most, Protocol& protocol) {
  if (index == 0 || protocol.levels.empty()) return;  // without levels all is refused already
  const auto list = reader.elements(index, quote(name));
  if (!list) return;
  if (list->size() != protocol.levels.size()) {
    reader.error("E0314", index,
                 std::to_string(list->size()) + " numbers in " + quote(name) +
                     ", the topology has " + std::to_string(protocol.levels.size()) + " levels",
                 {"one number for each level, inside out", {}, 0, {}});
    return;
  }
  for (size_t l = 0; l < list->size(); ++l) {
    if (const auto read = reader.integer((*list)[l], "a number of " + quote(name), least, most))
      protocol.levels[l].*number = *read;
  }
}

// What a share comes to is counted in whole MB/s; less than one would be priced as one.
bool is_enough(Reader& reader, uint32_t place, int64_t share, const TopologyLevel& level) {
  const int64_t least = least_share(level.mb_per_s);
  if (share >= least) return true;
  reader.error("E0314", place,
               "a share of " + std::to_string(share) + " ten-thousandths of the " +
                   std::to_string(level.mb_per_s) + " MB/s of level " + quote(level.name) +
                   " is less than 1 MB/s",
               {"a share of at least " + std::to_string(least) + " here", {}, 0, {}});
  return false;
}

void read_shares(Reader& reader, uint32_t index, const char* name, int64_t ProtocolLevel::*number,
                 std::span<const TopologyLevel> levels, Protocol& protocol) {
  const size_t before = reader.errors();
  read_numbers(reader, index, name, number, 1, whole_share, protocol);
  if (index == 0 || reader.errors() > before || levels.empty()) return;
  const auto list = reader.elements(index, quote(name));
  for (size_t l = 0; l < levels.size(); ++l)
    is_enough(reader, (*list)[l], protocol.levels[l].*number, levels[l]);
}

std::vector<Protocol> read_nccl(Reader& reader, uint32_t model,
                                std::span<const TopologyLevel> levels) {
  std::vector<Protocol> all = nccl_protocols(levels.size());
  for (const Protocol& protocol : all) {
    for (size_t l = 0; l < levels.size(); ++l) {
      if (!is_enough(reader, model, protocol.levels[l].share, levels[l])) return {};
    }
  }
  return all;
}

uint8_t read_ops(Reader& reader, uint32_t index) {
  std::vector<std::string> names;
  for (const OpRow& row : op_table) {
    if (row.scope != OpScope::rank) names.emplace_back(row.name);
  }
  const auto list = reader.elements(index, "\"ops\"");
  if (list && list->empty())
    reader.error("E0211", index, "\"ops\" is empty",
                 {"a protocol without \"ops\" serves all but all_to_all and exchange", {}, 0, {}});
  uint8_t ops = 0;
  for (const uint32_t one : list.value_or(std::vector<uint32_t>{})) {
    if (const auto chosen = reader.choice(one, "collective", names))
      ops |= bit_of(parse_op(names[*chosen]).value_or(Op::all_reduce));
  }
  return ops;
}

std::optional<Protocol> read_protocol(Reader& reader, uint32_t index,
                                      std::span<const TopologyLevel> levels) {
  constexpr std::array<KeyRule, 12> rules{{{"name", true},
                                           {"base_ns", true},
                                           {"hop_ns", true},
                                           {"share"},
                                           {"trees"},
                                           {"tree_ns"},
                                           {"tree_share"},
                                           {"switch_ns"},
                                           {"ops"},
                                           {"most_bytes"},
                                           {"near_bytes"},
                                           {"far_share"}}};
  const auto found = reader.members(index, rules, "a protocol");
  if (!found) return std::nullopt;
  const auto [name, base, hop, share, trees, tree_ns, tree_share, switch_ns, ops, most_bytes,
              near_bytes, far_share] = *found;
  const size_t before = reader.errors();
  Protocol protocol;
  protocol.levels.resize(levels.size());
  if (name != 0) protocol.name = reader.name(name, "\"name\"").value_or("");
  if (base != 0)
    protocol.base_ns = reader.integer(base, "\"base_ns\"", 0, max_latency_ns).value_or(0);
  read_numbers(reader, hop, "hop_ns", &ProtocolLevel::hop_ns, 0, max_latency_ns, protocol);
  read_shares(reader, share, "share", &ProtocolLevel::share, levels, protocol);
  // A tree's steps take what a ring's do, where nothing else is said.
  for (ProtocolLevel& level : protocol.levels) {
    level.tree_ns = level.hop_ns;
    level.tree_share = level.share;
  }
  if (trees != 0) protocol.trees = reader.boolean(trees, "\"trees\"").value_or(false);
  read_numbers(reader, tree_ns, "tree_ns", &ProtocolLevel::tree_ns, 0, max_latency_ns, protocol);
  read_shares(reader, tree_share, "tree_share", &ProtocolLevel::tree_share, levels, protocol);
  if (switch_ns != 0)
    protocol.switch_ns = reader.integer(switch_ns, "\"switch_ns\"", 1, max_latency_ns).value_or(0);
  if (!protocol.trees && protocol.switch_ns == 0) {
    for (ProtocolLevel& level : protocol.levels)
      level = {level.hop_ns, level.share, 0, whole_share};
  }
  if (ops != 0) protocol.ops = read_ops(reader, ops);
  if (most_bytes != 0)
    protocol.most_bytes =
        reader.integer(most_bytes, "\"most_bytes\"", 1, max_peer_bytes).value_or(0);
  if (near_bytes != 0)
    protocol.near_bytes =
        reader.integer(near_bytes, "\"near_bytes\"", 1, max_peer_bytes).value_or(0);
  if ((near_bytes == 0) != (far_share == 0)) {
    reader.error("E0208", near_bytes + far_share,
                 "\"near_bytes\" and \"far_share\" belong together",
                 {"bytes beyond near_bytes have far_share of the bandwidth", {}, 0, {}});
  }
  read_shares(reader, far_share, "far_share", &ProtocolLevel::far_share, levels, protocol);
  if (reader.errors() > before || name == 0 || base == 0 || hop == 0) return std::nullopt;
  return protocol;
}

}  // namespace

std::vector<Protocol> read_protocols(Reader& reader, uint32_t index, uint32_t model,
                                     uint32_t protocols, std::span<const TopologyLevel> levels) {
  const std::vector<std::string> models{"levels", "protocols", "nccl"};
  std::vector<Protocol> all;
  std::string chosen;
  if (model != 0) {
    const auto choice = reader.choice(model, "cost model", models);
    if (!choice) return all;
    chosen = models[*choice];
  }
  if (chosen == "nccl" && protocols == 0) return read_nccl(reader, model, levels);
  if (chosen != "protocols" && protocols != 0) {
    reader.error("E0208", protocols, "\"protocols\" without \"model\": \"protocols\"",
                 {"say \"model\": \"protocols\", or leave them out", {}, model, "the model"});
    return all;
  }
  if (chosen != "protocols") return all;
  if (protocols == 0) {
    reader.error("E0202", index, "the model \"protocols\" lacks the key \"protocols\"");
    return all;
  }
  const auto list = reader.elements(protocols, "\"protocols\"");
  if (!list) return all;
  if (list->empty() || std::ssize(*list) > max_protocols) {
    reader.error("E0212", protocols,
                 std::to_string(list->size()) + " protocols; 1 to " +
                     std::to_string(max_protocols) + " are priced");
    return all;
  }
  for (const uint32_t one : *list) {
    if (auto read = read_protocol(reader, one, levels)) all.push_back(std::move(*read));
  }
  if (const auto op = unserved_op(all); op && all.size() == list->size()) {
    reader.error("E0314", protocols,
                 std::string("no protocol serves ") + to_text(*op) + " of every size",
                 {"one of those that serve it has no \"most_bytes\"", {}, 0, {}});
  }
  return all;
}

}  // namespace meshplan
