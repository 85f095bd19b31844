// How fake ranks in processes of their own reach each other: sockets without a name in the file system, so that nothing can be left behind.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace meshplan::test {

// Every pair of ranks has a connection; what is posted waits at the receiver under its key. Nothing blocks and nothing runs by itself.
class FakePeers {
 public:
  FakePeers(const std::string& meeting, int rank, int ranks);
  ~FakePeers();
  FakePeers(const FakePeers&) = delete;
  FakePeers& operator=(const FakePeers&) = delete;

  void turn();                         // sends and receives what is possible now
  [[nodiscard]] bool ready() const;    // connected to all
  [[nodiscard]] bool flushed() const;  // everything posted is on its way
  [[nodiscard]] bool gone(int peer) const { return links_[static_cast<size_t>(peer)].gone; }
  void post(int peer, const std::string& key, const std::string& bytes);
  // What a peer has posted under the key; null: not here yet.
  [[nodiscard]] const std::string* find(int peer, const std::string& key) const;
  void forget(int peer, const std::string& key) { arrived_.erase({peer, key}); }

 private:
  struct Link {
    int fd = -1;
    bool greeted = false;  // the peer's number is known
    bool gone = false;
    std::string out;
    std::string in;
  };
  void connect_down();
  void take_callers();
  void receive(int peer, Link& link);

  std::string meeting_;
  int rank_;
  int listener_ = -1;
  std::vector<Link> links_;    // by rank; the own one unused
  std::vector<Link> callers_;  // that have not said who they are
  std::map<std::pair<int, std::string>, std::string> arrived_;
};

}  // namespace meshplan::test
