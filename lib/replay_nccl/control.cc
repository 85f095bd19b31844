#include "replay_nccl/control.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <thread>

namespace meshplan {
namespace {

using Clock = std::chrono::steady_clock;

// How much longer than process 0 the others wait: its answer may name the process that it waited
// for.
constexpr auto patience = std::chrono::milliseconds(2500);
// How long processes wait for each other's word after a missed deadline: shorter, since others may
// still wait for process 0 by a deadline that is earlier.
constexpr auto listening = std::chrono::milliseconds(1000);

// The first message of a connecting process: its number and the secret. Nothing else is read before
// the secret is verified.
constexpr size_t hello_text = 16;
constexpr size_t hello_bytes = 1 + 8 + hello_text;
constexpr size_t more_strangers = 64;  // unverified connections beyond the expected ones

// A message: kind, length, bytes. said: one process's text; all: everyone's, each with its length;
// error: fault, then the message.
enum class Kind : char { said = 's', all = 'a', error = 'e' };
struct Message {
  Kind kind = Kind::said;
  std::string bytes;
};

void append_number(std::string& out, uint64_t value) {
  for (int i = 0; i < 8; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
}
uint64_t number_at(const std::string& text, size_t at) {
  uint64_t value = 0;
  for (size_t i = 0; i < 8; ++i)
    value |= static_cast<uint64_t>(static_cast<unsigned char>(text[at + i])) << (8 * i);
  return value;
}

std::string encoded(const Error& error) {
  return std::to_string(exit_code(error.fault)) + error.message;
}
Error decoded(const std::string& bytes) {
  for (Fault fault : {Fault::bad_input, Fault::no_plan, Fault::wrong_data}) {
    if (!bytes.empty() && bytes[0] - '0' == exit_code(fault)) return {fault, bytes.substr(1)};
  }
  return environment(bytes.empty() ? bytes : bytes.substr(1));
}

// One connection: a stream of framed messages.
struct Line {
  int fd = -1;
  std::string heard;
  bool closed = false;

  void hang_up() {
    if (fd >= 0) close(fd);
    fd = -1;
    closed = true;
  }

  // Messages are short; if the socket buffer is full, waits until the deadline.
  bool say(Kind kind, const std::string& bytes, Clock::time_point until) {
    if (fd < 0) return false;
    std::string out(1, static_cast<char>(kind));
    append_number(out, bytes.size());
    out += bytes;
    size_t at = 0;
    while (at < out.size()) {
      const ssize_t n = send(fd, out.data() + at, out.size() - at, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n > 0) {
        at += static_cast<size_t>(n);
      } else if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        if (Clock::now() > until) return false;
        pollfd waits{fd, POLLOUT, 0};
        (void)poll(&waits, 1, 20);
      } else {
        return false;
      }
    }
    return true;
  }

  // Reads available data, at most `most` bytes in total.
  void listen_once(size_t most = SIZE_MAX) {
    if (fd < 0) return;
    char bytes[65536];
    while (heard.size() < most) {
      const ssize_t n = recv(fd, bytes, std::min(sizeof(bytes), most - heard.size()), MSG_DONTWAIT);
      if (n > 0) {
        heard.append(bytes, static_cast<size_t>(n));
        continue;
      }
      if (n < 0 && errno == EINTR) continue;
      if (n == 0 || errno != EAGAIN) hang_up();
      return;
    }
  }

  std::optional<Message> next() {
    if (heard.size() < 9) return std::nullopt;
    const uint64_t length = number_at(heard, 1);
    if (heard.size() - 9 < length) return std::nullopt;
    Message message{static_cast<Kind>(heard[0]), heard.substr(9, length)};
    heard.erase(0, 9 + length);
    return message;
  }
};

std::string reason() { return std::strerror(errno); }  // NOLINT(concurrency-mt-unsafe)

// A connection that is not verified yet.
struct Stranger {
  Line line;
  Clock::time_point until;

  // Whether the data so far can be the beginning of a valid hello.
  [[nodiscard]] bool may_be_ours() const {
    const std::string& heard = line.heard;
    return (heard.empty() || heard[0] == static_cast<char>(Kind::said)) &&
           (heard.size() < 9 || number_at(heard, 1) == hello_text);
  }
};

// Where process 0 listens: at the address of `host`, which is where the others call. Everywhere
// only if that is none of this machine's own (a name for a machine in front of it), or if a name
// other than localhost means this machine to itself alone.
in_addr_t listening_address(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return htonl(INADDR_ANY);
  const in_addr_t address = reinterpret_cast<const sockaddr_in*>(found->ai_addr)->sin_addr.s_addr;
  freeaddrinfo(found);
  in_addr literal{};
  const bool loopback = ntohl(address) >> 24 == IN_LOOPBACKNET;
  const bool meant = host == "localhost" || inet_pton(AF_INET, host.c_str(), &literal) == 1;
  return loopback && !meant ? htonl(INADDR_ANY) : address;
}

}  // namespace

struct Control::Inside {
  Question q;
  int listener = -1;
  // process 0: by process, its own unused; others: one, to process 0
  std::vector<Line> lines;
  std::vector<Message> unread;                   // others: messages of process 0 not yet asked for
  std::vector<std::optional<std::string>> said;  // process 0: this round's texts
  std::optional<Error> known;                    // once something is wrong it stays so

  ~Inside() {
    for (Line& line : lines) line.hang_up();
    if (listener >= 0) close(listener);
  }

  [[nodiscard]] bool leads() const { return q.process == 0; }

  Status start_listening(uint16_t& port) {
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = listening_address(q.host);
    socklen_t length = sizeof(address);
    bool bound = listener >= 0 &&
                 bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
    if (listener >= 0 && !bound && errno == EADDRNOTAVAIL) {
      address.sin_addr.s_addr = htonl(INADDR_ANY);
      bound = bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
    }
    const bool listens = bound && listen(listener, 4096) == 0 &&
                         getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) == 0;
    if (!listens)
      return environment("starting: process 0 cannot listen for connections: " + reason());
    port = ntohs(address.sin_port);
    return Done{};
  }

  Status call_process_0(uint16_t port) {
    addrinfo hints{};
    hints.ai_family = AF_INET;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const int code = getaddrinfo(q.host.c_str(), std::to_string(port).c_str(), &hints, &found);
    if (code != 0)
      return environment("starting: cannot find host '" + q.host +
                         "' of process 0: " + gai_strerror(code));
    lines.resize(1);
    std::string why;
    while (true) {
      const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) == 0) {
        lines[0].fd = fd;
        break;
      }
      why = reason();
      if (fd >= 0) close(fd);
      if (Clock::now() > q.deadline) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    freeaddrinfo(found);
    if (lines[0].fd < 0) {
      return environment("starting: cannot reach process 0 at " + q.host + " port " +
                         std::to_string(port) + ": " + why +
                         "; allow TCP connections between the machines of the run");
    }
    return Done{};
  }

  static void set_quick(int fd) {
    const int yes = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
  }

  // Hears what strangers have to say: those that know the word and a number that is still free get
  // their line, others are cut off as soon as they are known to be no process of this run, or have
  // kept silent for too long.
  void hear_strangers(std::vector<Stranger>& strangers, const std::string& word) {
    for (Stranger& stranger : strangers) {
      Line& line = stranger.line;
      line.listen_once(hello_bytes);
      if (auto message = stranger.may_be_ours() ? line.next() : std::nullopt) {
        const uint64_t process =
            number_at(message->bytes, 8) == number_at(word, 8) ? number_at(message->bytes, 0) : 0;
        if (process > 0 && process < lines.size() && lines[process].fd < 0)
          std::swap(lines[process], line);
        line.hang_up();
      } else if (line.closed || !stranger.may_be_ours() || Clock::now() > stranger.until) {
        line.hang_up();
      }
    }
    // Those who know the word speak at once: where too many are silent, the ones that have been so
    // the longest go.
    const size_t most = lines.size() + more_strangers;
    for (size_t i = 0; i + most < strangers.size(); ++i) strangers[i].line.hang_up();
    std::erase_if(strangers, [](const Stranger& stranger) { return stranger.line.fd < 0; });
  }

  void wait_for_strangers(const std::vector<Stranger>& strangers) const {
    std::vector<pollfd> waits{{listener, POLLIN, 0}};
    for (const Stranger& stranger : strangers) waits.push_back({stranger.line.fd, POLLIN, 0});
    (void)poll(waits.data(), waits.size(), 20);
  }

  // Accepts connections until every process is verified.
  Status take_calls(const std::string& word) {
    lines.resize(static_cast<size_t>(q.processes));
    std::vector<Stranger> strangers;
    auto missing = [&] {
      std::vector<int64_t> list;
      for (int64_t p = 1; p < q.processes; ++p) {
        if (lines[p].fd < 0) list.push_back(p);
      }
      return list;
    };
    while (true) {
      const std::vector<int64_t> rest = missing();
      if (rest.empty()) return Done{};
      if (Clock::now() > q.deadline)
        return environment("starting: " + names(rest) + " did not arrive within the deadline");
      wait_for_strangers(strangers);
      for (int fd = 0, taken = 0;
           taken < 64 && (fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC)) >= 0; ++taken) {
        set_quick(fd);
        strangers.push_back({{fd, {}, false}, Clock::now() + q.introduction});
      }
      hear_strangers(strangers, word);
    }
  }

  Status start() {
    std::string word;
    uint16_t port = 0;
    if (leads()) {
      if (auto done = start_listening(port); !done) return done;
      std::random_device random;
      append_number(word, port);
      append_number(word, static_cast<uint64_t>(random()) << 32 | random());
    } else {
      word.assign(16, '\0');
    }
    auto shared = q.share(word);
    if (!shared) return shared.error();
    if (leads()) {
      if (auto done = take_calls(*shared); !done) return done;
      close(listener);
      listener = -1;
      said.assign(lines.size(), std::nullopt);
      return Done{};
    }
    if (auto done = call_process_0(static_cast<uint16_t>(number_at(*shared, 0))); !done)
      return done;
    set_quick(lines[0].fd);
    std::string hello;
    append_number(hello, static_cast<uint64_t>(q.process));
    hello += shared->substr(8, 8);
    if (!lines[0].say(Kind::said, hello, q.deadline))
      return environment("starting: process 0 has ended");
    return Done{};
  }

  [[nodiscard]] std::string names(const std::vector<int64_t>& processes) const {
    std::string out;
    for (int64_t p : processes) out += (out.empty() ? "" : ", ") + q.rank_text(p);
    return out;
  }

  // Process 0: what has come in meanwhile. An error is passed on to everyone at once; so is the end
  // of a process whose word is needed, or by which calls of others may have failed. Otherwise it
  // may come after all that the process had to do: that is for the caller to judge.
  std::optional<Error> hear_everyone(const std::string& place, bool needed) {
    std::vector<int64_t> gone;
    std::optional<Error> failed;
    for (size_t p = 1; p < lines.size() && !known; ++p) {
      Line& line = lines[p];
      line.listen_once();
      bool is_wrong = false;
      while (auto message = line.next()) {
        is_wrong = message->kind == Kind::error;
        if (is_wrong) {
          if (!failed) failed = decoded(message->bytes);
          break;
        }
        said[p] = std::move(message->bytes);
      }
      if (line.closed && !said[p] && !is_wrong) gone.push_back(static_cast<int64_t>(p));
    }
    if (!known && !gone.empty()) {
      const Error ended = environment(place + ": " + names(gone) +
                                      (gone.size() == 1 ? " has ended" : " have ended"));
      if (!needed && !failed) return ended;
      known = ended;
    }
    if (!known) known = failed;
    if (known) tell_everyone(Kind::error, encoded(*known));
    return known;
  }

  void tell_everyone(Kind kind, const std::string& bytes) {
    const auto until = Clock::now() + patience;
    for (size_t p = 1; p < lines.size(); ++p) (void)lines[p].say(kind, bytes, until);
  }

  // The others: process 0's next message, if it has come.
  std::optional<Message> hear_process_0() {
    lines[0].listen_once();
    return lines[0].next();
  }
  [[nodiscard]] Error ended_0(const std::string& place) const {
    return environment(place + ": " + q.rank_text(0) + " has ended");
  }

  void wait_for_bytes() const {
    std::vector<pollfd> waits;
    for (const Line& line : lines) {
      if (line.fd >= 0) waits.push_back({line.fd, POLLIN, 0});
    }
    (void)poll(waits.data(), waits.size(), 5);
  }

  Result<std::vector<std::string>> lead(const std::string& text, const std::string& place,
                                        Deadline deadline) {
    said[0] = text;
    while (true) {
      if (auto wrong = hear_everyone(place, true)) return *wrong;
      std::vector<int64_t> missing;
      for (size_t p = 1; p < said.size(); ++p) {
        if (!said[p]) missing.push_back(static_cast<int64_t>(p));
      }
      if (missing.empty()) break;
      if (Clock::now() > deadline) {
        known = environment(place + ": " + names(missing) + " did not arrive within the deadline");
        tell_everyone(Kind::error, encoded(*known));
        return *known;
      }
      wait_for_bytes();
    }
    std::vector<std::string> all;
    std::string bytes;
    for (auto& words : said) {
      append_number(bytes, words->size());
      bytes += *words;
      all.push_back(std::move(*words));
      words.reset();
    }
    tell_everyone(Kind::all, bytes);
    return all;
  }

  Result<std::vector<std::string>> follow(const std::string& text, const std::string& place,
                                          Deadline deadline) {
    (void)lines[0].say(Kind::said, text, deadline);
    while (true) {
      std::optional<Message> message;
      if (!unread.empty()) {
        message = std::move(unread.front());
        unread.erase(unread.begin());
      } else {
        message = hear_process_0();
      }
      if (!message) {
        if (lines[0].closed) known = ended_0(place);
        if (known) return *known;
        if (Clock::now() > deadline + patience) {
          return environment(place + ": " + q.rank_text(0) + " did not arrive within the deadline");
        }
        wait_for_bytes();
        continue;
      }
      if (message->kind == Kind::error) {
        known = decoded(message->bytes);
        return *known;
      }
      std::vector<std::string> all;
      for (size_t at = 0; at + 8 <= message->bytes.size();) {
        const auto length = static_cast<size_t>(number_at(message->bytes, at));
        all.push_back(message->bytes.substr(at + 8, length));
        at += 8 + length;
      }
      if (std::ssize(all) != q.processes)
        return environment(place + ": " + q.rank_text(0) + " uses another protocol version");
      return all;
    }
  }
};

Control::Control(std::unique_ptr<Inside> inside) : inside_(std::move(inside)) {}
Control::~Control() = default;

Result<std::unique_ptr<Control>> Control::open(const Question& question) {
  auto inside = std::make_unique<Inside>();
  inside->q = question;
  if (auto done = inside->start(); !done) return done.error();
  return std::unique_ptr<Control>(new Control(std::move(inside)));
}

Result<std::vector<std::string>> Control::gather(const std::string& text, const std::string& place,
                                                 Deadline deadline) {
  if (inside_->known) return *inside_->known;
  return inside_->leads() ? inside_->lead(text, place, deadline)
                          : inside_->follow(text, place, deadline);
}

std::optional<Error> Control::missing(const std::string& place) {
  const auto all = gather(std::string(), place, Clock::now() + listening);
  return all ? std::nullopt : std::optional<Error>(all.error());
}

std::optional<Error> Control::trouble(const std::string& place) {
  Inside& in = *inside_;
  if (in.known) return in.known;
  if (in.leads()) return in.hear_everyone(place, false);
  auto message = in.hear_process_0();
  if (!message)
    return in.lines[0].closed && in.unread.empty() ? std::optional<Error>(in.ended_0(place))
                                                   : std::nullopt;
  if (message->kind == Kind::error) {
    in.known = decoded(message->bytes);
  } else {
    in.unread.push_back(std::move(*message));
  }
  return in.known;
}

void Control::report(const Error& error) {
  Inside& in = *inside_;
  if (in.known) return;
  in.known = error;
  if (in.leads()) {
    in.tell_everyone(Kind::error, encoded(error));
  } else {
    (void)in.lines[0].say(Kind::error, encoded(error), Clock::now() + patience);
  }
}

}  // namespace meshplan
