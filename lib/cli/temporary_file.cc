#include "cli/temporary_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstring>

namespace meshplan {
namespace {

constexpr std::array<int, 5> ending_signals = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXFSZ};

// What the signal handler reads; written while the signals are blocked or no handler is set.
std::array<char, PATH_MAX> doomed{};
std::array<struct sigaction, ending_signals.size()> before{};

extern "C" void remove_and_end(int signal) {
  const int error = errno;
  ::unlink(doomed.data());
  for (size_t i = 0; i < ending_signals.size(); ++i) {
    if (ending_signals[i] == signal) ::sigaction(signal, &before[i], nullptr);
  }
  ::raise(signal);  // delivered to whoever had it before, as soon as this returns
  errno = error;
}

void set_handlers() {
  struct sigaction ours {};
  ours.sa_handler = remove_and_end;
  sigfillset(&ours.sa_mask);
  for (size_t i = 0; i < ending_signals.size(); ++i) {
    ::sigaction(ending_signals[i], nullptr, &before[i]);
    if (before[i].sa_handler != SIG_IGN) ::sigaction(ending_signals[i], &ours, nullptr);
  }
}

void restore_handlers() {
  for (size_t i = 0; i < ending_signals.size(); ++i)
    ::sigaction(ending_signals[i], &before[i], nullptr);
}

}  // namespace

TemporaryFile::TemporaryFile(const std::string& target)
    : target_(target), name_(target + ".XXXXXX") {
  if (name_.size() >= doomed.size()) {
    errno = ENAMETOOLONG;
    return;
  }
  // No signal comes between the making of the file and the handler that removes it.
  sigset_t ending;
  sigset_t mask;
  sigemptyset(&ending);
  for (const int signal : ending_signals) sigaddset(&ending, signal);
  ::pthread_sigmask(SIG_BLOCK, &ending, &mask);
  fd_ = ::mkostemp(name_.data(), O_CLOEXEC);
  const int error = errno;
  if (fd_ >= 0) {
    std::memcpy(doomed.data(), name_.c_str(), name_.size() + 1);
    set_handlers();
  }
  ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  errno = error;
}

bool TemporaryFile::rename_to_target() {
  if (::close(fd_) == 0 && ::rename(name_.c_str(), target_.c_str()) == 0) {
    restore_handlers();
    fd_ = -1;
    return true;
  }
  const int error = errno;
  ::unlink(name_.c_str());
  restore_handlers();
  fd_ = -1;
  errno = error;
  return false;
}

TemporaryFile::~TemporaryFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(name_.c_str());
  restore_handlers();
}

}  // namespace meshplan
