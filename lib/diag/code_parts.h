// The tables of codes, one per phase; diag/codes.cc joins them.
#pragma once

#include "diag/codes.h"

namespace meshplan {

[[nodiscard]] std::vector<CodeEntry> text_codes();            // E01xx
[[nodiscard]] std::vector<CodeEntry> form_codes();            // E02xx
[[nodiscard]] std::vector<CodeEntry> mesh_codes();            // E03xx
[[nodiscard]] std::vector<CodeEntry> redistribution_codes();  // E04xx
[[nodiscard]] std::vector<CodeEntry> command_codes();         // E05xx, E06xx, N07xx, W08xx
[[nodiscard]] std::vector<CodeEntry> advice_codes();          // W03xx, A04xx

// Specs for the examples: with these members; with a mesh of dp 2 x tp 4 and one redistribution
// with these members.
[[nodiscard]] std::string spec_of(const std::string& members);
[[nodiscard]] std::string redistribution_of(const std::string& members);

}  // namespace meshplan
