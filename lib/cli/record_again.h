// check --record: runs the program of a recorded spec again, for the spec that it records now.
//
//     python -u train.py --steps 3     runs as  python -u -m meshplan.capture --world W -o FILE
//                                               train.py --steps 3
//     torchrun ... | make record       the shell runs what is no such command, and it records by
//                                      itself: meshplan.capture.record and meshplan.capture write
//                                      the file that $MESHPLAN_RECORD names in place of the one of
//                                      the same name that they are told to write
#pragma once

#include <string>
#include <vector>

#include "cli/system.h"
#include "spec/spec.h"

namespace meshplan {

inline constexpr const char* record_variable = "MESHPLAN_RECORD";

// How a spec was recorded, by its "x-recorded".
struct RecordedBy {
  int64_t world = 0;  // ranks
  int64_t rank = 0;
  int64_t read_integer = 1;
  bool real_tensors = false;
};
// `ranks`: of its meshes, where it does not say in which world.
[[nodiscard]] RecordedBy recorded_by(const std::string& spec, int64_t ranks);

// The words that run a command so that it writes the spec at `path`.
[[nodiscard]] std::vector<std::string> recording_words(const std::string& command,
                                                       const RecordedBy& by,
                                                       const std::string& path);
// The command for a person who wants to write the spec at `path`.
[[nodiscard]] std::string recording_command(const std::string& command, const RecordedBy& by,
                                            const std::string& path);

// Errors are about --record: a command that cannot be started, lacks a package, fails, is ended by
// a signal, writes no spec or one of a program that did not come to its end. `recorded`: the
// committed file; `said`: of a command that failed, the last lines that it printed.
[[nodiscard]] Result<SpecText> record_again(System& system, const std::string& command,
                                            const SpecText& recorded, const RecordedBy& by,
                                            std::vector<std::string>& said);

}  // namespace meshplan
