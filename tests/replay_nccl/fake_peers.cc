#include "fake_peers.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

namespace meshplan::test {
namespace {

// A name that starts with a zero byte lives in the kernel only.
socklen_t address_of(const std::string& meeting, int rank, sockaddr_un& address) {
  const std::string name = meeting + ":" + std::to_string(rank);
  address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

int open_socket() { return socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); }

void append_number(std::string& out, uint64_t value) { out.append(reinterpret_cast<const char*>(&value), sizeof(value)); }
uint64_t number_at(const std::string& text, size_t at) {
  uint64_t value = 0;
  std::memcpy(&value, text.data() + at, sizeof(value));
  return value;
}

// False: the other end is closed.
bool read_some(int fd, std::string& in) {
  char bytes[65536];
  while (true) {
    const ssize_t n = recv(fd, bytes, sizeof(bytes), 0);
    if (n > 0) {
      in.append(bytes, static_cast<size_t>(n));
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    return n < 0 && errno == EAGAIN;
  }
}

}  // namespace

FakePeers::FakePeers(const std::string& meeting, int rank, int ranks) : meeting_(meeting), rank_(rank), links_(static_cast<size_t>(ranks)) {
  listener_ = open_socket();
  sockaddr_un address;
  const socklen_t length = address_of(meeting_, rank_, address);
  (void)bind(listener_, reinterpret_cast<sockaddr*>(&address), length);
  (void)listen(listener_, ranks);
}

FakePeers::~FakePeers() {
  close(listener_);
  for (auto* list : {&links_, &callers_}) {
    for (const Link& link : *list) {
      if (link.fd >= 0) close(link.fd);
    }
  }
}

// The higher rank calls the lower one and says its number first.
void FakePeers::connect_down() {
  for (int p = 0; p < rank_; ++p) {
    Link& link = links_[static_cast<size_t>(p)];
    if (link.greeted) continue;
    sockaddr_un address;
    const socklen_t length = address_of(meeting_, p, address);
    const int fd = open_socket();
    if (connect(fd, reinterpret_cast<sockaddr*>(&address), length) != 0) {
      close(fd);
      continue;
    }
    link.fd = fd;
    link.greeted = true;
    append_number(link.out, static_cast<uint64_t>(rank_));
  }
}

void FakePeers::take_callers() {
  for (int fd = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC); fd >= 0;
       fd = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)) {
    callers_.emplace_back().fd = fd;
  }
  for (Link& caller : callers_) {
    if (caller.fd < 0) continue;
    caller.gone = !read_some(caller.fd, caller.in);
    if (caller.in.size() < 8) continue;
    const auto peer = static_cast<size_t>(number_at(caller.in, 0));
    caller.in.erase(0, 8);
    caller.greeted = true;
    links_[peer] = std::exchange(caller, Link{});
  }
}

void FakePeers::receive(int peer, Link& link) {
  if (!link.gone) link.gone = !read_some(link.fd, link.in);
  while (link.in.size() >= 16) {
    const uint64_t key = number_at(link.in, 0);
    const uint64_t bytes = number_at(link.in, 8);
    if (link.in.size() < 16 + key + bytes) break;
    arrived_[{peer, link.in.substr(16, key)}] = link.in.substr(16 + key, bytes);
    link.in.erase(0, 16 + key + bytes);
  }
}

void FakePeers::turn() {
  if (!ready()) {
    connect_down();
    take_callers();
  }
  for (size_t p = 0; p < links_.size(); ++p) {
    Link& link = links_[p];
    if (!link.greeted) continue;
    while (!link.out.empty() && !link.gone) {
      const ssize_t n = send(link.fd, link.out.data(), link.out.size(), MSG_NOSIGNAL);
      if (n > 0) {
        link.out.erase(0, static_cast<size_t>(n));
      } else if (errno != EINTR) {
        if (errno != EAGAIN) link.out.clear();  // nobody will read it
        break;
      }
    }
    receive(static_cast<int>(p), link);
  }
}

bool FakePeers::ready() const {
  for (size_t p = 0; p < links_.size(); ++p) {
    if (static_cast<int>(p) != rank_ && !links_[p].greeted) return false;
  }
  return true;
}

bool FakePeers::flushed() const {
  for (const Link& link : links_) {
    if (!link.out.empty() && !link.gone) return false;
  }
  return true;
}

void FakePeers::post(int peer, const std::string& key, const std::string& bytes) {
  if (peer == rank_) {
    arrived_[{peer, key}] = bytes;
    return;
  }
  std::string& out = links_[static_cast<size_t>(peer)].out;
  append_number(out, key.size());
  append_number(out, bytes.size());
  out += key;
  out += bytes;
}

const std::string* FakePeers::find(int peer, const std::string& key) const {
  const auto at = arrived_.find({peer, key});
  return at == arrived_.end() ? nullptr : &at->second;
}

}  // namespace meshplan::test
