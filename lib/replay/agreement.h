// Before the first step: all processes are ready and do the same.
//
// MPI and NCCL do not notice that ranks call different collectives, so processes compare a digest
// of all that decides their calls, and what their data is made from.
#pragma once

#include <string>

#include "replay/communicator.h"
#include "replay/report.h"
#include "transfer/rank_table.h"

namespace meshplan {

struct AgreementQuestion {
  std::string place;  // "redistribution 'x', step 0": the start of errors
  const ReplayOptions* options = nullptr;
  const RankTable* ranks = nullptr;
  Communicator* communicator = nullptr;
  const InjectedFault* fault = nullptr;  // null: none
};

// Collective: `problem` is why this process is not ready (null: it is), `digest_text` all that must
// be the same everywhere. Where some process is not ready or differs, every process gets the same
// error.
[[nodiscard]] Status agree_on(const AgreementQuestion& question, const Error* problem,
                              const std::string& digest_text);

// An error on this process only: ends the others, too.
[[nodiscard]] Error ended_alone(const AgreementQuestion& question, const Error& error);

// Whether a rank of this process is the one of the fault.
[[nodiscard]] bool is_ours(const InjectedFault& fault, const RankTable& ranks,
                           const Communicator& communicator);

}  // namespace meshplan
