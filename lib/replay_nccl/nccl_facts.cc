#include "replay_nccl/nccl_facts.h"

#include <unistd.h>

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

}  // namespace meshplan
