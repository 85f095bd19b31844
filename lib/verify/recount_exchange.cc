#include "verify/recount_exchange.h"

#include "base/int_math.h"

namespace meshplan::verification {
namespace {

Counted too_many() {
  Counted counted;
  counted.left_out =
      "its figures, as it has more than " + std::to_string(most_pieces) + " pieces, unevenly cut";
  return counted;
}

// The figures that follow from what is received and sent, and the time by levels.
Counted figures_of(const StepView& view, const ExchangeView& exchange, int64_t received,
                   int64_t sent, int64_t ps) {
  Counted counted;
  const int64_t element = element_bytes(view.tensor->dtype);
  const int64_t input =
      largest_bytes(*exchange.src, exchange.shape, mesh_shape(*exchange.src_mesh), element);
  const int64_t output =
      largest_bytes(*exchange.dst, exchange.shape, mesh_shape(*exchange.dst_mesh), element);
  counted.wire_bytes = received;
  counted.peak_bytes =
      saturating_add(saturating_add(input, output), saturating_add(received, sent));
  if (priced_by_levels(*exchange.topology)) {
    counted.ps = ps;
  } else {
    counted.least_ps = ps;
    counted.left_out = "predicted_ns, which a finer tier than levels may raise";
  }
  return counted;
}

// Packed and unpacked: every byte received is copied twice.
PhaseTraffic phase_of(const Exchanged& exchanged) {
  return {exchanged.traffic, saturating_mul(2, exchanged.received)};
}
int64_t time_of(const Topology& topology, const Exchanged& exchanged) {
  const PhaseTraffic phase = phase_of(exchanged);
  return time_ps(topology, phase.traffic, true, phase.copied_bytes);
}

Counted count_two_phases(const StepView& view, const ExchangeView& exchange) {
  auto twice = exchanged_evenly_in_two_phases(exchange);
  if (!twice) twice = exchanged_in_two_phases(exchange);
  if (!twice) return too_many();
  const int64_t chunks = view.step->chunks;
  if (chunks % twice->stages != 0) {
    Counted counted;
    counted.wrong = "an exchange in " + std::to_string(chunks) + " chunks, " +
                    std::to_string(exchange.at_once) + " at once, in " +
                    std::to_string(twice->stages) + " stages: chunks are a multiple of the stages";
    return counted;
  }
  const int64_t ps = two_phases_ps(*exchange.topology, phase_of(twice->phase[0]),
                                   phase_of(twice->phase[1]), chunks);
  return figures_of(view, exchange, twice->received, twice->sent, ps);
}

}  // namespace

int64_t parts_of_missing(int64_t missing, int64_t members) {
  int64_t parts = 1;
  while (16 * members * ceil_div(missing * parts, members) > 17 * missing * parts) ++parts;
  return parts;
}

Counted recount_exchange(const StepView& view) {
  const Step& step = *view.step;
  const Topology& topology = view.plan->topology;
  if (topology.levels.empty() || topology.levels.size() > most_levels) {
    Counted counted;
    counted.left_out = "its figures, as the plan has no topology of levels";
    return counted;
  }
  const bool crosses = view.dst_mesh != nullptr && view.dst_mesh != view.src_mesh;
  ExchangeView exchange;
  exchange.topology = &topology;
  exchange.src_mesh = view.src_mesh;
  exchange.dst_mesh = crosses ? view.dst_mesh : view.src_mesh;
  exchange.shape = view.tensor->shape;
  exchange.element_bytes = moved_element_bytes(view);
  exchange.src = view.before;
  exchange.dst = &step.state;
  exchange.whole_pieces = step.whole_pieces;
  exchange.fetched_by_all = step.fetched_by_all;
  exchange.laps = step.laps;
  exchange.far_64ths = step.far_64ths;
  exchange.at_once = step.at_once;
  if (step.phases == 2) return count_two_phases(view, exchange);
  std::optional<Exchanged> exchanged;
  if (step.far_64ths > 0) {
    exchanged = exchanged_with_far_share(exchange);
  } else {
    exchanged = exchanged_evenly(exchange);
    if (!exchanged) exchanged = exchanged_by_ranks(exchange);
  }
  if (!exchanged) return too_many();
  return figures_of(view, exchange, exchanged->received, exchanged->sent,
                    time_of(topology, *exchanged));
}

}  // namespace meshplan::verification
