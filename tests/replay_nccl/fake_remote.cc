#include "fake_remote.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "fake_peers.h"

namespace meshplan::test {
namespace {

std::unique_ptr<FakePeers> peers;

struct Splitting {
  Split question;
  std::string key;
};
std::vector<Splitting> splitting;

size_t bytes_sent(const Pending& p) {
  const size_t parts = p.kind == Pending::scatter || p.kind == Pending::all_to_all ? p.comm->members.size() : 1;
  return parts * p.count * static_cast<size_t>(element_bytes(dtype_of(p.type)));
}

// What must be the same on every member, of a length that keeps the data behind it aligned.
std::string signature(const Pending& p) {
  std::string text = std::to_string(p.kind) + " " + std::to_string(p.count) + " " + std::to_string(p.type) + " " + std::to_string(p.op);
  text.resize(64, ' ');
  return text;
}

// A peer that is waited for in vain.
void note_loss(ncclComm* comm) {
  if (std::getenv("FAKE_NCCL_DEAF") == nullptr) comm->state = ncclRemoteError;
}

struct Running {
  bool begun = false;
  bool computed = false;
  std::string key;
};

bool step_collective(const Pending& p, Running& at) {
  if (!peers) return false;
  peers->turn();
  ncclComm* comm = p.comm;
  if (comm->state != ncclSuccess) return false;
  if (!at.begun) {
    at.begun = true;
    at.key = comm->name + " call " + std::to_string(comm->calls++);
    const std::string bytes = signature(p) + std::string(reinterpret_cast<const char*>(p.from), bytes_sent(p));
    for (int m : comm->members) {
      if (m != comm->world_rank()) peers->post(m, at.key, bytes);
    }
    peers->turn();
  }
  if (!at.computed) {
    std::vector<ncclComm> seats(comm->members.size(), *comm);
    std::vector<Pending> members;
    for (size_t i = 0; i < comm->members.size(); ++i) {
      seats[i].rank = static_cast<int>(i);
      Pending member = p;
      member.comm = &seats[i];
      if (static_cast<int>(i) != comm->rank) {
        const std::string* bytes = peers->find(comm->members[i], at.key);
        if (bytes == nullptr) {
          if (peers->gone(comm->members[i])) note_loss(comm);
          return false;
        }
        const std::string expected = signature(p);
        if (bytes->compare(0, expected.size(), expected) != 0) {
          comm->state = ncclInvalidUsage;
          return false;
        }
        member.from = reinterpret_cast<const std::byte*>(bytes->data() + expected.size());
      }
      members.push_back(member);
    }
    compute(members, members[static_cast<size_t>(comm->rank)]);
    for (int m : comm->members) peers->forget(m, at.key);
    at.computed = true;
  }
  return peers->flushed();
}

// The sends and receives of one group, all at once.
bool step_pairs(const std::vector<Pending>& work, Running& at, std::vector<std::string>& keys) {
  if (!peers) return false;
  peers->turn();
  ncclComm* comm = work.front().comm;
  if (comm->state != ncclSuccess) return false;
  if (!at.begun) {
    at.begun = true;
    for (const Pending& p : work) {
      const int peer = comm->members[static_cast<size_t>(p.peer)];
      const auto way = p.kind == Pending::send ? std::pair(comm->world_rank(), peer) : std::pair(peer, comm->world_rank());
      keys.push_back(comm->name + " pair " + std::to_string(way.first) + ">" + std::to_string(way.second) + " " +
                     std::to_string(comm->p2p[p.kind == Pending::send ? 0 : 1][way]++));
      if (p.kind != Pending::send) continue;
      const size_t bytes = p.count * static_cast<size_t>(element_bytes(dtype_of(p.type)));
      peers->post(peer, keys.back(), std::string(reinterpret_cast<const char*>(p.from), bytes));
    }
    peers->turn();
  }
  bool all = peers->flushed();
  for (size_t i = 0; i < work.size(); ++i) {
    const Pending& p = work[i];
    if (p.kind != Pending::receive || keys[i].empty()) continue;
    const int peer = comm->members[static_cast<size_t>(p.peer)];
    const std::string* bytes = peers->find(peer, keys[i]);
    if (bytes == nullptr) {
      if (peers->gone(peer)) note_loss(comm);
      all = false;
      continue;
    }
    if (bytes->size() != p.count * static_cast<size_t>(element_bytes(dtype_of(p.type)))) {
      comm->state = ncclInvalidUsage;
      return false;
    }
    std::memcpy(p.to, bytes->data(), bytes->size());
    peers->forget(peer, keys[i]);
    keys[i].clear();
  }
  return all;
}

}  // namespace

void put_on_streams(const std::vector<Pending>& work) {
  std::vector<Pending> pairs;
  for (const Pending& p : work) {
    if (p.kind == Pending::send || p.kind == Pending::receive) {
      pairs.push_back(p);
      continue;
    }
    p.stream->put([p]() -> StreamTask {
      auto at = std::make_shared<Running>();
      return [p, at] { return step_collective(p, *at); };
    });
  }
  if (pairs.empty()) return;
  pairs.front().stream->put([pairs]() -> StreamTask {
    auto at = std::make_shared<Running>();
    auto keys = std::make_shared<std::vector<std::string>>();
    return [pairs, at, keys] { return step_pairs(pairs, *at, *keys); };
  });
}

void begin_remote_split(const Split& split) {
  ncclComm* parent = split.parent;
  const std::string key = parent->name + " split " + std::to_string(parent->splits++);
  parent->state = ncclInProgress;
  for (int m : parent->members) {
    if (m != parent->world_rank()) peers->post(m, key, std::to_string(split.colour) + " " + std::to_string(split.key));
  }
  splitting.push_back({split, key});
}

namespace {

void finish_remote_split(const Splitting& s, std::vector<ncclComm*>& alive) {
  ncclComm* parent = s.question.parent;
  std::vector<std::pair<int, int>> others;  // key, world rank
  for (int m : parent->members) {
    int colour = s.question.colour;
    int key = s.question.key;
    if (m != parent->world_rank()) {
      const std::string* text = peers->find(m, s.key);
      if (text == nullptr) {
        if (peers->gone(m)) note_loss(parent);
        return;
      }
      (void)std::sscanf(text->c_str(), "%d %d", &colour, &key);
    }
    if (colour == s.question.colour) others.emplace_back(key, m);
  }
  parent->state = ncclSuccess;
  *s.question.out = nullptr;
  if (s.question.colour == NCCL_SPLIT_NOCOLOR) return;
  std::sort(others.begin(), others.end());
  auto* comm = new ncclComm;
  comm->blocks = s.question.blocks;
  comm->name = s.key + " colour " + std::to_string(s.question.colour);
  for (size_t i = 0; i < others.size(); ++i) {
    comm->members.push_back(others[i].second);
    if (others[i].second == parent->world_rank()) comm->rank = static_cast<int>(i);
  }
  alive.push_back(comm);
  *s.question.out = comm;
}

void finish_splits(std::vector<ncclComm*>& alive) {
  std::vector<Splitting> rest;
  for (const Splitting& s : splitting) {
    finish_remote_split(s, alive);
    if (s.question.parent->state == ncclInProgress) rest.push_back(s);
  }
  splitting = std::move(rest);
}

}  // namespace

void begin_remote_world(ncclComm* world, const std::string& meeting) {
  world->name = "world";
  world->state = ncclInProgress;
  peers = std::make_unique<FakePeers>("fake-nccl:" + meeting + ":" + std::to_string(getppid()), world->rank,
                                      static_cast<int>(world->members.size()));
}

void end_remote_world() { peers.reset(); }

void turn_remote(std::vector<ncclComm*>& alive, ncclComm* asked) {
  if (!peers) return;
  peers->turn();
  if (asked->name == "world" && asked->state == ncclInProgress && peers->ready() && splitting.empty()) asked->state = ncclSuccess;
  finish_splits(alive);
}

}  // namespace meshplan::test
