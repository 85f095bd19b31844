// What pieces of a step move, as a list.
#pragma once

#include <cstdint>
#include <vector>

#include "transfer/step_cuts.h"

namespace meshplan::test {

// By sender, then receiver, each pair once.
inline std::vector<PairElements> elements_of(const std::vector<StepCut>& cuts, int64_t piece, int64_t pieces, int64_t count = 1) {
  std::vector<PairElements> pairs;
  PieceReader reader(cuts, piece, pieces, count);
  for (int32_t from = reader.next_sender(); from >= 0; from = reader.next_sender()) {
    reader.read_sender([&](int32_t to, int64_t elements) {
      if (!pairs.empty() && pairs.back().from == from && pairs.back().to == to) {
        pairs.back().elements += elements;
      } else {
        pairs.push_back({from, to, elements});
      }
    });
  }
  return pairs;
}

}  // namespace meshplan::test
