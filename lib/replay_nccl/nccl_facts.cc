#include "replay_nccl/nccl_facts.h"

#include <unistd.h>

#include <set>

namespace meshplan {

NcclFacts nccl_facts(const NcclQuestion& question) {
  const bool several = question.rendezvous.processes > 1;
  NcclFacts facts{{{"backend", "nccl"},
                   {"NCCL compiled for", nccl_version_text(NcclLibrary::version_compiled_for())},
                   {"NCCL loaded",
                    nccl_version_text(question.nccl.version()) + " from " + question.nccl.path()},
                   {"processes", std::to_string(question.rendezvous.processes)}},
                  {}};
  if (!question.rendezvous.launcher.empty())
    facts.shared.emplace_back("started by", question.rendezvous.launcher);
  if (question.calls == NcclLibrary::Calls::block)
    facts.shared.emplace_back("NCCL's calls", "blocking, as those of most programs");
  if (question.registration != Registration::none) {
    facts.shared.emplace_back("registered buffers",
                              question.registration == Registration::local ? "local" : "symmetric");
  }
  char host[256] = "";
  (void)gethostname(host, sizeof(host) - 1);
  facts.place = host;
  for (auto& [key, value] : question.device->facts()) {
    if (key.rfind("rank number ", 0) == 0) {
      facts.place += several ? ", " + value : "; " + key + ": " + value;
    } else {
      facts.shared.emplace_back(key, value);
    }
  }
  return facts;
}

std::string process_name(const NcclQuestion& question, int64_t process) {
  const auto p = static_cast<size_t>(process);
  return p < question.global_ids.size() ? "rank " + std::to_string(question.global_ids[p])
                                        : "process " + std::to_string(process);
}

std::string own_name(const NcclQuestion& q) {
  return q.rendezvous.processes == 1 ? "all ranks" : process_name(q, q.rendezvous.process);
}

std::vector<std::pair<std::string, std::string>> facts_of_all(
    const NcclQuestion& question, const NcclFacts& own, const std::vector<std::string>& places) {
  auto out = own.shared;
  for (size_t p = 0; p < places.size(); ++p)
    out.emplace_back("process " + std::to_string(p), places[p]);
  // Processes at one place have the same GPU.
  const std::set<std::string> apart(places.begin(), places.end());
  const bool alone = question.rendezvous.processes == 1;
  if (apart.size() < places.size() || (alone && question.world > question.device->counts().gpus))
    out.emplace_back(times_fact, "mean nothing: several ranks share a GPU");
  return out;
}

}  // namespace meshplan
