// Local steps one behind the other, done in one go: nothing lies between them.
//
//     R -> P(sum) -> P(sum)            rank 0 keeps its values, all others fill in zeros
//     R -> S(0) -> S(0)[0]S(0)[1]      every rank copies the box that it has at last
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "tensor/placement.h"
#include "transfer/held_boxes.h"
#include "transfer/step_transfers.h"

namespace meshplan {

// What a slot has after the last of them. What is pending in one state has one identity.
struct ChainedBox {
  int32_t from = -1;                 // slot before the first step; -1: it keeps nothing
  std::optional<ReduceOp> identity;  // of which its box is full, but for what it keeps
  std::vector<Box> kept;
};

// Law: the same as step by step. `before`: the boxes before the first. Every slot keeps what its
// own rank has, or nothing.
[[nodiscard]] std::vector<ChainedBox> chain_of(
    const std::vector<std::shared_ptr<const StepTransfers>>& steps, const HeldBoxes& before);

}  // namespace meshplan
