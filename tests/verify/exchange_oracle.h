// What an exchange moves, found the plain way: every rank asks every other for the boxes that it
// misses. Nothing here is quick or shared with the library but boxes and coordinates.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "tensor/box.h"
#include "verify/recount_exchange.h"
#include "verify/shift_oracle.h"
#include "verify/simulator.h"

namespace meshplan::test {

struct OracleRank {
  int64_t id = 0;
  bool holds = false;
  bool wants = false;
  Box held;
  Box wanted;
  std::vector<int64_t> kept;     // coordinates on what stays pending
  std::vector<int64_t> reduced;  // and on what is reduced
};

// One message: so many elements, over the level; in one phase also which, and in the second of two what it passes on, by its number in
// the first.
constexpr size_t held_before = SIZE_MAX;
struct OracleMessage {
  size_t from = 0;
  size_t to = 0;
  int64_t elements = 0;
  size_t level = 0;
  Box box{};
  size_t part = held_before;
};

inline size_t oracle_level(const Topology& topology, int64_t a, int64_t b) {
  size_t level = 0;
  while (level + 1 < topology.levels.size() && a / topology.levels[level].ranks != b / topology.levels[level].ranks) ++level;
  return level;
}

// The ranks of the copies at this number, in rank order.
inline std::vector<OracleRank> oracle_ranks(const verification::ExchangeView& view, int64_t copy) {
  std::map<int64_t, OracleRank> by_id;
  const std::vector<int64_t> src_shape = mesh_shape(*view.src_mesh);
  const std::vector<int64_t> dst_shape = mesh_shape(*view.dst_mesh);
  const bool crosses = view.src_mesh != view.dst_mesh;
  // What is pending at both ends, cut alike, so that parts can be compared.
  const State src{{}, view.src->partial};
  const State dst{{}, crosses ? std::vector<PendingSubAxis>{} : view.dst->partial};
  const std::vector<SubAxis> before = pending_sub_axes(cut_alike(src, pending_sub_axes(dst)));
  const std::vector<SubAxis> after = pending_sub_axes(cut_alike(dst, pending_sub_axes(src)));
  for (int64_t i = 0; i < mesh_size(*view.src_mesh); ++i) {
    const int64_t id = rank_at(*view.src_mesh->universe, position_of(*view.src_mesh, copy, i));
    OracleRank& rank = by_id[id];
    const std::vector<int64_t> at = coordinates_of(i, src_shape);
    rank.holds = true;
    rank.held = box_of(*view.src, view.shape, src_shape, at);
    for (const SubAxis& part : before) {
      const auto m = static_cast<size_t>(part.mesh_dim);
      const bool stays = std::find(after.begin(), after.end(), part) != after.end();
      (stays ? rank.kept : rank.reduced).push_back(sub_axis_coordinate(part, src_shape[m], at[m]));
    }
  }
  for (int64_t i = 0; i < mesh_size(*view.dst_mesh); ++i) {
    const int64_t id = rank_at(*view.dst_mesh->universe, position_of(*view.dst_mesh, copy, i));
    OracleRank& rank = by_id[id];
    rank.wants = true;
    rank.wanted = box_of(*view.dst, view.shape, dst_shape, coordinates_of(i, dst_shape));
  }
  std::vector<OracleRank> ranks;
  for (auto& [id, rank] : by_id) {
    rank.id = id;
    ranks.push_back(std::move(rank));
  }
  return ranks;
}

inline std::vector<OracleMessage> oracle_messages(const verification::ExchangeView& view, const std::vector<OracleRank>& ranks) {
  std::vector<OracleMessage> messages;
  const auto same_shard = [](const OracleRank& a, const OracleRank& b) {
    return a.holds && b.holds && a.held == b.held && a.kept == b.kept && a.reduced == b.reduced;
  };
  std::vector<int64_t> asked(ranks.size(), 0);  // by the shard's first holder
  std::map<size_t, size_t> turns;               // of far shares, likewise
  for (size_t to = 0; to < ranks.size(); ++to) {
    if (!ranks[to].wants) continue;
    for (size_t first = 0; first < ranks.size(); ++first) {
      // Each shard once, at its first holder.
      if (!ranks[first].holds) continue;
      bool earlier = false;
      for (size_t i = 0; i < first; ++i) earlier = earlier || same_shard(ranks[i], ranks[first]);
      if (earlier || same_shard(ranks[to], ranks[first])) continue;
      if (view.src_mesh == view.dst_mesh && ranks[to].kept != ranks[first].kept) continue;
      const Box piece = intersect(ranks[first].held, ranks[to].wanted);
      if (volume(piece) == 0) continue;
      size_t nearest = view.topology->levels.size();
      std::vector<size_t> holders;
      for (size_t i = 0; i < ranks.size(); ++i) {
        if (!same_shard(ranks[i], ranks[first])) continue;
        const size_t level = oracle_level(*view.topology, ranks[i].id, ranks[to].id);
        if (level < nearest) holders.clear();
        nearest = std::min(nearest, level);
        if (level == nearest) holders.push_back(i);
      }
      if (view.whole_pieces) {
        const auto turn = static_cast<size_t>(asked[first]++) % holders.size();
        messages.push_back({holders[turn], to, volume(piece), nearest, piece});
        continue;
      }
      int64_t longest = 1;
      for (const Interval& side : piece) longest = std::max(longest, width(side));
      size_t along = 0;
      while (along < piece.size() && width(piece[along]) != longest) ++along;
      // Far holders, of the innermost level that has any.
      std::vector<size_t> away_holders;
      size_t far_level = nearest == 0 ? 1 : view.topology->levels.size();
      for (; far_level < view.topology->levels.size() && away_holders.empty(); ++far_level) {
        for (size_t i = 0; i < ranks.size(); ++i) {
          if (same_shard(ranks[i], ranks[first]) && oracle_level(*view.topology, ranks[i].id, ranks[to].id) == far_level)
            away_holders.push_back(i);
        }
      }
      const size_t turn = turns[first]++;
      const int64_t away = view.far_64ths > 0 && !away_holders.empty() ? longest * view.far_64ths / 64 : 0;
      int64_t begin = 0;
      const auto cut = [&](const std::vector<size_t>& senders, int64_t slices, size_t level) {
        const auto h = static_cast<int64_t>(senders.size());
        for (int64_t i = 0; i < h; ++i) {
          const int64_t length = slices / h + (i < slices % h ? 1 : 0);
          if (length == 0) continue;
          Box part = piece;
          if (!piece.empty()) part[along] = {piece[along].lo + begin, piece[along].lo + begin + length};
          begin += length;
          messages.push_back({senders[static_cast<size_t>(i)], to, volume(piece) / longest * length, level, part});
        }
      };
      cut(holders, longest - away, nearest);
      if (away == 0) continue;
      std::vector<size_t> asked_far{away_holders[2 * turn % away_holders.size()]};
      if (away_holders.size() > 1) asked_far.push_back(away_holders[(2 * turn + 1) % away_holders.size()]);
      cut(asked_far, away, far_level - 1);
    }
  }
  return messages;
}

inline verification::Exchanged oracle_exchange(const verification::ExchangeView& view) {
  verification::Exchanged most;
  const int64_t copies = view.src_mesh == view.dst_mesh ? mesh_copies(*view.src_mesh) : 1;
  const size_t levels = view.topology->levels.size();
  for (int64_t copy = 0; copy < copies; ++copy) {
    const std::vector<OracleRank> ranks = oracle_ranks(view, copy);
    std::vector<std::vector<int64_t>> received(ranks.size(), std::vector<int64_t>(levels, 0));
    std::vector<std::vector<int64_t>> sent = received;
    std::set<std::vector<size_t>> pairs;
    std::vector<std::vector<int64_t>> from = received;
    std::vector<std::vector<int64_t>> to = received;
    for (const OracleMessage& message : oracle_messages(view, ranks)) {
      received[message.to][message.level] += message.elements * view.element_bytes;
      sent[message.from][message.level] += message.elements * view.element_bytes;
      if (!pairs.insert({message.from, message.to}).second) continue;
      ++from[message.to][message.level];
      ++to[message.from][message.level];
    }
    for (size_t i = 0; i < ranks.size(); ++i) {
      int64_t in = 0;
      int64_t out = 0;
      for (size_t l = 0; l < levels; ++l) {
        in += received[i][l];
        out += sent[i][l];
        most.traffic.bytes[l] = std::max({most.traffic.bytes[l], received[i][l], sent[i][l]});
        most.traffic.peers[l] = std::max({most.traffic.peers[l], from[i][l], to[i][l]});
      }
      most.received = std::max(most.received, in);
      most.sent = std::max(most.sent, out);
    }
  }
  return most;
}

// Near-equal part `i` of `length` in `parts`, the first ones longer by one.
inline int64_t oracle_part(int64_t length, int64_t parts, int64_t i) { return length / parts + (i < length % parts ? 1 : 0); }

// What the fullest chunk moves in shifts: stage by stage and message by message.
inline void oracle_stages(const verification::ExchangeView& view, const std::array<std::vector<OracleMessage>, 2>& messages,
                          verification::TwoPhases& most) {
  std::vector<OraclePart> parts;
  for (const OracleMessage& message : messages[0]) parts.emplace_back(message.to, message.from);
  const std::vector<int64_t> shifts = oracle_shifts(parts);
  const int64_t d = shifts.empty() ? 0 : *std::max_element(shifts.begin(), shifts.end()) + 1;
  while (most.stages * view.at_once < d) ++most.stages;
  for (int64_t stage = 0; stage < most.stages; ++stage) {
    for (size_t p = 0; p < 2; ++p) {
      std::map<std::tuple<bool, size_t, size_t>, std::pair<int64_t, std::set<size_t>>> moved;  // sent or not, rank, level
      for (size_t i = 0; i < messages[p].size(); ++i) {
        const OracleMessage& message = messages[p][i];
        const size_t part = p == 0 ? i : message.part;
        if (part != held_before && shifts[part] * most.stages / d != stage) continue;
        const int64_t bytes = message.elements * view.element_bytes * (part == held_before ? 1 : most.stages);
        for (const bool sends : {false, true}) {
          auto& [all, peers] = moved[{sends, sends ? message.from : message.to, message.level}];
          all += bytes;
          peers.insert(sends ? message.to : message.from);
        }
      }
      verification::LevelTraffic& traffic = most.phase[p].traffic;
      for (const auto& [who, what] : moved) {
        const size_t level = std::get<2>(who);
        traffic.bytes[level] = std::max(traffic.bytes[level], what.first);
        traffic.peers[level] = std::max(traffic.peers[level], static_cast<int64_t>(what.second.size()));
      }
    }
  }
}

// What a unit of the innermost level fetches, by the rules one by one, and what it passes on
// inside.
inline verification::TwoPhases oracle_two_phases(const verification::ExchangeView& view) {
  verification::TwoPhases most;
  const size_t levels = view.topology->levels.size();
  const int64_t copies = view.src_mesh == view.dst_mesh ? mesh_copies(*view.src_mesh) : 1;
  for (int64_t copy = 0; copy < copies; ++copy) {
    const std::vector<OracleRank> ranks = oracle_ranks(view, copy);
    std::array<std::vector<OracleMessage>, 2> messages;
    std::map<std::vector<int64_t>, std::vector<size_t>> classes;
    for (size_t i = 0; i < ranks.size(); ++i) classes[ranks[i].kept].push_back(i);
    for (const auto& one_class : classes) {
      const std::vector<size_t>& members_of_class = one_class.second;
      std::vector<std::pair<Box, std::vector<size_t>>> shards;  // with their holders, in the order of the first
      for (const size_t i : members_of_class) {
        if (!ranks[i].holds || volume(ranks[i].held) == 0) continue;
        auto at = std::find_if(shards.begin(), shards.end(), [&](const auto& shard) { return shard.first == ranks[i].held; });
        if (at == shards.end()) at = shards.insert(shards.end(), {ranks[i].held, {}});
        at->second.push_back(i);
      }
      const auto nearest = [&](const std::vector<size_t>& holders, size_t to, size_t& level) {
        std::vector<size_t> near;
        level = levels;
        for (const size_t i : holders) {
          const size_t here = oracle_level(*view.topology, ranks[i].id, ranks[to].id);
          if (here < level) near.clear();
          level = std::min(level, here);
          if (here == level) near.push_back(i);
        }
        return near;
      };
      // By shard, parts, and nearest holders on their level.
      std::map<std::tuple<size_t, int64_t, size_t, std::vector<size_t>>, size_t> asked;
      std::map<std::tuple<size_t, size_t, std::vector<size_t>>, std::map<size_t, int64_t>> asked_for;  // elements, by holder
      std::map<int64_t, std::vector<size_t>> units;
      for (const size_t i : members_of_class) units[ranks[i].id / view.topology->levels[0].ranks].push_back(i);
      for (const auto& unit : units) {
        const std::vector<size_t>& members = unit.second;
        // Inside, what some member holds.
        for (const size_t to : members) {
          if (!ranks[to].wants) continue;
          for (const auto& [box, holders] : shards) {
            const Box piece = intersect(box, ranks[to].wanted);
            if (volume(piece) == 0 || (ranks[to].holds && ranks[to].held == box)) continue;
            size_t level = 0;
            const std::vector<size_t> near = nearest(holders, to, level);
            if (level > 0) continue;
            int64_t longest = 1;
            for (const Interval& side : piece) longest = std::max(longest, width(side));
            for (size_t i = 0; i < near.size(); ++i) {
              const int64_t length = oracle_part(longest, static_cast<int64_t>(near.size()), static_cast<int64_t>(i));
              if (length > 0) messages[1].push_back({near[i], to, volume(piece) / longest * length, 0});
            }
          }
        }
        // From outside, for each wanted box: what is missing, the line of its parts, and who takes
        // which.
        std::vector<Box> wanted;
        for (const size_t m : members) {
          const bool known = std::find(wanted.begin(), wanted.end(), ranks[m].wanted) != wanted.end();
          if (ranks[m].wants && volume(ranks[m].wanted) > 0 && !known) wanted.push_back(ranks[m].wanted);
        }
        // Fetched by all: every slice of what is missing by the last member whose share, of one lap,
        // begins before its end, stretches of slices from the holder that was asked for least.
        std::vector<size_t> targets;
        for (const size_t m : members) {
          if (ranks[m].wants) targets.push_back(m);
        }
        const auto missing_of = [&](const Box& w) {
          std::vector<size_t> missing;
          for (size_t s = 0; s < shards.size(); ++s) {
            size_t level = 0;
            (void)nearest(shards[s].second, members[0], level);
            if (level > 0 && volume(intersect(w, shards[s].first)) > 0) missing.push_back(s);
          }
          return missing;
        };
        int64_t all = 0;
        for (const Box& w : wanted) {
          for (const size_t s : missing_of(w)) all += volume(intersect(w, shards[s].first));
        }
        int64_t begin = 0;  // of the overlap at hand, in elements of all
        for (size_t i = 0; i < wanted.size() && view.fetched_by_all; ++i) {
          for (const size_t s : missing_of(wanted[i])) {
            const Box piece = intersect(wanted[i], shards[s].first);
            int64_t longest = 1;
            for (const Interval& side : piece) longest = std::max(longest, width(side));
            std::map<size_t, int64_t> taken;  // elements, by share
            const size_t shares = targets.size() * static_cast<size_t>(view.laps);
            const int64_t each = volume(piece) / longest;
            std::vector<int64_t> first(shares);  // slice of the overlap, by share
            for (size_t j = 0; j < shares; ++j) {
              const int64_t share_begin = static_cast<int64_t>(j) * all / static_cast<int64_t>(shares);
              while (first[j] < longest && begin + (first[j] + 1) * each <= share_begin) ++first[j];
              const int64_t left = longest - first[j];
              const auto few = [&](int64_t slices) { return 256 * static_cast<int64_t>(shares) * slices * each < all; };
              if (left == 0 || first[j] == 0) continue;
              if (few(left)) first[j] = longest;
              if (few(longest - left)) first[j] = 0;
            }
            for (int64_t slice = 0; slice < longest; ++slice) {
              size_t j = shares - 1;
              while (first[j] > slice) --j;
              taken[j] += each;
            }
            begin += volume(piece);
            for (const auto& [share, elements] : taken) {
              const size_t to = targets[share % targets.size()];
              size_t level = 0;
              const std::vector<size_t> near = nearest(shards[s].second, to, level);
              auto& asked_so_far = asked_for[{s, level, near}];
              size_t from = near[0];
              for (const size_t holder : near) {
                if (asked_so_far[holder] < asked_so_far[from]) from = holder;
              }
              asked_so_far[from] += elements;
              messages[0].push_back({from, to, elements, level});
              for (const size_t m : members) {
                if (m != to && ranks[m].wants && ranks[m].wanted == wanted[i])
                  messages[1].push_back({to, m, elements, 0, {}, messages[0].size() - 1});
              }
            }
          }
        }
        for (const Box& w : wanted) {
          if (view.fetched_by_all) break;
          std::vector<size_t> takers;
          for (const size_t m : members) {
            if (ranks[m].wants && ranks[m].wanted == w) takers.push_back(m);
          }
          std::vector<size_t> missing;
          for (size_t s = 0; s < shards.size(); ++s) {
            size_t level = 0;
            (void)nearest(shards[s].second, members[0], level);
            if (level > 0 && volume(intersect(w, shards[s].first)) > 0) missing.push_back(s);
          }
          if (missing.empty()) continue;
          const auto k = static_cast<int64_t>(takers.size());
          const auto count = static_cast<int64_t>(missing.size());
          int64_t c = 1;
          while (16 * k * ((count * c + k - 1) / k) > 17 * count * c) ++c;
          c *= view.laps;
          std::vector<std::pair<int64_t, size_t>> line;  // number of the part, shard
          for (int64_t part = 0; part < c; ++part) {
            for (const size_t s : missing) line.emplace_back(part, s);
          }
          for (int64_t j = 0; j < k; ++j) {
            const size_t to = takers[static_cast<size_t>(j)];
            for (int64_t i = j * count * c / k; i < (j + 1) * count * c / k; ++i) {
              const auto [part, s] = line[static_cast<size_t>(i)];
              const Box piece = intersect(w, shards[s].first);
              int64_t longest = 1;
              for (const Interval& side : piece) longest = std::max(longest, width(side));
              const int64_t elements = volume(piece) / longest * oracle_part(longest, c, part);
              if (elements == 0) continue;
              size_t level = 0;
              const std::vector<size_t> near = nearest(shards[s].second, to, level);
              messages[0].push_back({near[asked[{s, c, level, near}]++ % near.size()], to, elements, level});
              for (const size_t m : takers) {
                if (m != to) messages[1].push_back({to, m, elements, 0, {}, messages[0].size() - 1});
              }
            }
          }
        }
      }
    }
    if (view.at_once > 0) oracle_stages(view, messages, most);
    std::vector<int64_t> in(ranks.size(), 0);
    std::vector<int64_t> out(ranks.size(), 0);
    for (size_t p = 0; p < 2; ++p) {
      for (size_t i = 0; i < ranks.size(); ++i) {
        std::vector<int64_t> received(levels, 0);
        std::vector<int64_t> sent(levels, 0);
        std::vector<std::set<size_t>> from(levels);
        std::vector<std::set<size_t>> to(levels);
        int64_t here = 0;
        for (const OracleMessage& message : messages[p]) {
          const int64_t bytes = message.elements * view.element_bytes;
          if (message.to == i) {
            here += bytes;
            received[message.level] += bytes;
            from[message.level].insert(message.from);
          }
          if (message.from == i) {
            out[i] += bytes;
            sent[message.level] += bytes;
            to[message.level].insert(message.to);
          }
        }
        in[i] += here;
        most.phase[p].received = std::max(most.phase[p].received, here);
        for (size_t l = 0; l < levels && view.at_once == 0; ++l) {
          auto& traffic = most.phase[p].traffic;
          traffic.bytes[l] = std::max({traffic.bytes[l], received[l], sent[l]});
          traffic.peers[l] = std::max({traffic.peers[l], static_cast<int64_t>(from[l].size()), static_cast<int64_t>(to[l].size())});
        }
      }
    }
    most.received = std::max(most.received, *std::max_element(in.begin(), in.end()));
    most.sent = std::max(most.sent, *std::max_element(out.begin(), out.end()));
  }
  return most;
}

}  // namespace meshplan::test
