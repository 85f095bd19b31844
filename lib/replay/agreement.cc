#include "replay/agreement.h"

#include <algorithm>

#include "base/sha256.h"

namespace meshplan {
namespace {

// The version that processes must share; incremented when the meaning of steps or data changes.
constexpr const char* replay_version = "1";

// What the elements of all tensors are made from.
std::string data_text(const ReplayOptions& options) {
  return std::string(options.data == DataKind::random ? "random" : "exact") + ":" +
         std::to_string(options.seed);
}

// Whether all processes have the version, the data and the steps of the first one. `texts`: "ready
// VERSION DIGEST DATA" of every process.
Status check_same(const std::vector<std::string>& texts, const std::string& place,
                  const RankTable& ranks) {
  const auto version_in = [](const std::string& text) {
    return text.substr(6, text.find(' ', 6) - 6);
  };
  const auto data_in = [](const std::string& text) { return text.substr(text.rfind(' ') + 1); };
  const std::string& first = texts[0];
  for (size_t p = 1; p < texts.size(); ++p) {
    const std::string& other = texts[p];
    if (first == other) continue;
    const std::string who = place + ": the process of rank " +
                            (p < ranks.global_ids.size() ? std::to_string(ranks.global_ids[p])
                                                         : "number " + std::to_string(p));
    if (version_in(first) != version_in(other)) {
      return environment(who + " has replay version " + version_in(other) +
                         ", the first process has " + version_in(first) +
                         "; use the same meshplan everywhere");
    }
    if (data_in(first) != data_in(other)) {
      return wrong_data(who + " has the data " + data_in(other) + ", the first process has " +
                        data_in(first) + "; use the same --data and --seed on every process");
    }
    return wrong_data(who + " has different steps than the first process; " +
                      "use the same plan and options on every process");
  }
  return Done{};
}

}  // namespace

Error ended_alone(const AgreementQuestion& q, const Error& error) {
  Error located{error.fault, error.message.rfind(q.place, 0) == 0 ? error.message
                                                                  : q.place + ": " + error.message};
  q.communicator->abort(located);
  return located;
}

bool is_ours(const InjectedFault& fault, const RankTable& ranks, const Communicator& communicator) {
  const std::vector<int32_t> locals = communicator.local_ranks();
  return std::any_of(locals.begin(), locals.end(), [&](int32_t local) {
    const auto rank = static_cast<size_t>(local);
    return rank < ranks.global_ids.size() && ranks.global_ids[rank] == fault.rank;
  });
}

Status agree_on(const AgreementQuestion& q, const Error* problem, const std::string& digest_text) {
  std::string said;
  if (problem != nullptr) {
    said = "error " + std::to_string(exit_code(problem->fault)) + " " + problem->message;
  } else {
    const bool ours = q.fault != nullptr && is_ours(*q.fault, *q.ranks, *q.communicator);
    // Separate digests of version and steps, so that the message can say which differs.
    std::string version = replay_version;
    std::string text = digest_text;
    if (ours && q.fault->kind == FaultKind::version) version += "-injected";
    if (ours && q.fault->kind == FaultKind::plan) text += "injected";
    said = "ready " + version + " " + sha256_hex(text) + " " + data_text(*q.options);
  }
  const Deadline deadline = std::chrono::steady_clock::now() + q.options->step_deadline;
  auto all = q.communicator->tell_all(said, deadline);
  if (!all) return ended_alone(q, all.error());
  for (const std::string& text : *all) {
    if (text.rfind("error ", 0) != 0) continue;
    const int code = text[6] - '0';
    for (Fault fault : {Fault::bad_input, Fault::no_plan, Fault::wrong_data, Fault::environment}) {
      if (exit_code(fault) == code) return Error{fault, text.substr(8)};
    }
  }
  return check_same(*all, q.place, *q.ranks);
}

}  // namespace meshplan
