#include "verify/bundle_traffic.h"

#include <algorithm>

#include "base/int_math.h"
#include "tensor/box.h"

namespace meshplan::verification {
namespace {

// Of what was counted, numbers that are kept at a time.
constexpr size_t most_remembered = size_t{1} << 26;

}  // namespace

void BundleTraffic::remember(size_t entries) {
  remembered_ += entries;
  if (remembered_ <= most_remembered) return;
  pieces_.clear();
  sent_.clear();
  peers_.clear();
  remembered_ = entries;
}

ExchangeView BundleTraffic::exchange_of(size_t kind, size_t step) const {
  const BundleStep& at = view_.steps[kind][step];
  ExchangeView exchange;
  exchange.topology = &view_.plan->topology;
  exchange.src_mesh = at.from;
  exchange.dst_mesh = at.to;
  exchange.shape = view_.member(kind).request.tensor.shape;
  exchange.src = at.before;
  exchange.dst = &at.step->state;
  exchange.whole_pieces = at.step->whole_pieces;
  return exchange;
}

std::optional<SentBoxes> BundleTraffic::list_phase(size_t kind, size_t step, PhaseBoxes which) {
  const BundleStep& at = view_.steps[kind][step];
  return boxes_of_phase(exchange_of(kind, step), which, ranks_.slots(*at.from, at.across).bases,
                        ranks_, work_);
}

std::optional<SentBoxes> BundleTraffic::list_sent(size_t kind, size_t step, Sent how) {
  if (how == Sent::fetched) return list_phase(kind, step, PhaseBoxes::fetched);
  if (how == Sent::passed_on) return list_phase(kind, step, PhaseBoxes::all_others);
  if (how == Sent::fetched_behind || how == Sent::passed_on_behind) {
    const bool fetches = how == Sent::fetched_behind;
    const auto before =
        fetches ? sent(kind, step - 1, Sent::behind) : sent(kind, step, Sent::fetched_behind);
    if (!before) return std::nullopt;
    const auto boxes =
        list_phase(kind, step, fetches ? PhaseBoxes::all_but_passed_on : PhaseBoxes::passed_on);
    if (!boxes) return std::nullopt;
    return boxes_behind(*before, *boxes, ranks_, work_);
  }
  if (how == Sent::behind && step > 0) {
    const auto before = sent(kind, step - 1, Sent::behind);
    const auto whole = before ? sent(kind, step, Sent::whole) : nullptr;
    if (!whole) return std::nullopt;
    return boxes_behind(*before, *whole, ranks_, work_);
  }
  const BundleStep& at = view_.steps[kind][step];
  auto boxes =
      sent_boxes(exchange_of(kind, step), ranks_.slots(*at.from, at.across).bases, ranks_, work_);
  if (boxes && step == 0) boxes->steady = steady_dims(view_, kind);
  return boxes;
}

std::shared_ptr<const SentBoxes> BundleTraffic::sent(size_t kind, size_t step, Sent how) {
  const auto found = sent_.find({kind, step, how});
  if (found != sent_.end()) return found->second;
  auto boxes = list_sent(kind, step, how);
  if (!boxes) return nullptr;
  auto shared = std::make_shared<const SentBoxes>(std::move(*boxes));
  remember(shared->size() + 2 * (shared->sides.size() + shared->cuts.size()));
  sent_[{kind, step, how}] = shared;
  return shared;
}

std::optional<PieceTraffic> BundleTraffic::count_piece(size_t kind, const RoundPart& part) {
  const auto step = static_cast<size_t>(part.step);
  const int64_t element = moved_element_bytes(step_view(view_, kind, step));
  if (view_.steps[kind][step].step->phases == 2) {
    const bool fetches = part.piece % 2 == 0;
    const bool behind = phases_go_behind(view_, kind, step);
    const auto phase = sent(kind, step,
                            behind ? (fetches ? Sent::fetched_behind : Sent::passed_on_behind)
                                   : (fetches ? Sent::fetched : Sent::passed_on));
    if (!phase) return std::nullopt;
    return piece_of(*phase, part.piece / 2, part.pieces / 2, element, ranks_, work_);
  }
  const auto boxes = sent(kind, step, part.pieces == 1 ? Sent::whole : Sent::behind);
  if (!boxes) return std::nullopt;
  return piece_of(*boxes, part.piece, part.pieces, element, ranks_, work_);
}

NumberedTraffic BundleTraffic::piece(size_t kind, const RoundPart& part) {
  const Key key{kind, part.step, part.piece, part.pieces};
  const size_t number = numbers_.try_emplace(key, numbers_.size()).first->second;
  const auto found = pieces_.find(number);
  if (found != pieces_.end()) return {number, found->second};
  auto counted = count_piece(kind, part);
  if (!counted) return {number, nullptr};
  auto shared = std::make_shared<const PieceTraffic>(std::move(*counted));
  remember(shared->pairs.size() + 3 * shared->shares.size());
  pieces_[number] = shared;
  return {number, shared};
}

const std::vector<PeerShare>& BundleTraffic::peers(const Together& together) {
  std::vector<size_t> key;
  for (const NumberedTraffic& one : together) key.push_back(one.number);
  const auto found = peers_.find(key);
  if (found != peers_.end()) return found->second;
  std::vector<uint64_t> pairs;
  for (const NumberedTraffic& one : together) {
    (void)work_.take(static_cast<int64_t>(pairs.size() + one.traffic->pairs.size()));
    if (work_.used_up()) break;
    std::vector<uint64_t> all;
    std::set_union(pairs.begin(), pairs.end(), one.traffic->pairs.begin(), one.traffic->pairs.end(),
                   std::back_inserter(all));
    pairs = std::move(all);
  }
  const size_t levels = ranks_.levels();
  std::vector<PeerShare> dense(ranks_.size() * levels);
  (void)work_.take(static_cast<int64_t>(dense.size() + pairs.size()));
  for (const uint64_t pair : pairs) {
    const auto from = static_cast<uint32_t>(pair >> 32);
    const auto to = static_cast<uint32_t>(pair);
    const size_t level = ranks_.level_of(from, to);
    ++dense[from * levels + level].to;
    ++dense[to * levels + level].from;
  }
  std::vector<PeerShare> shares;
  for (size_t i = 0; i < dense.size(); ++i) {
    if (dense[i].to + dense[i].from == 0) continue;
    shares.push_back({static_cast<uint32_t>(i / levels), static_cast<uint32_t>(i % levels),
                      dense[i].to, dense[i].from});
  }
  remember(3 * shares.size() + key.size());
  return peers_[key] = std::move(shares);
}

const Collective& BundleTraffic::collective(size_t kind, size_t step) {
  const auto [found, added] = collectives_.try_emplace({kind, step});
  if (added) found->second = collective_of(step_view(view_, kind, step));
  return found->second;
}

std::vector<RankBytes> BundleTraffic::boxes(size_t kind, const State& state, const Mesh& mesh) {
  const Request& request = view_.member(kind).request;
  const Slots& slots = ranks_.slots(mesh, request.src_mesh != request.dst_mesh);
  const std::vector<int64_t> sizes = mesh_shape(mesh);
  const int64_t element = element_bytes(request.tensor.dtype);
  const size_t size = slots.ranks.size() / slots.bases.size();
  std::vector<RankBytes> all;
  if (!work_.take(static_cast<int64_t>(8 * slots.ranks.size()))) return all;
  for (size_t i = 0; i < size; ++i) {
    int64_t bytes = element;
    for (const Interval& side :
         box_of(state, request.tensor.shape, sizes, coordinates_of(static_cast<int64_t>(i), sizes)))
      bytes = saturating_mul(bytes, width(side));
    if (bytes == 0) continue;
    for (size_t slot = i; slot < slots.ranks.size(); slot += size)
      all.push_back({slots.ranks[slot], bytes});
  }
  return all;
}

}  // namespace meshplan::verification
