#include "search/across_least_peak.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "base/int_math.h"

namespace meshplan {
namespace {

// A state of one mesh, and the least peak of its way, once that was asked for.
struct StopOfPeak {
  Stop stop;
  LeastPeak way;
  bool looked_at = false;
};

// The end first, then those of the smallest boxes.
std::vector<StopOfPeak> smallest_first(std::vector<Stop> stops) {
  std::stable_sort(stops.begin(), stops.end(), [](const Stop& a, const Stop& b) {
    return std::tuple(!a.found, a.box_elements) < std::tuple(!b.found, b.box_elements);
  });
  std::vector<StopOfPeak> sorted;
  for (Stop& stop : stops) sorted.push_back({std::move(stop), {}, false});
  return sorted;
}

class AcrossPeakSearch {
 public:
  AcrossPeakSearch(const Side& sources, const Side& landings, AcrossExchange& exchange,
                   const ExchangeWays& ways, work::Budget& budget)
      : sources_side_(sources),
        landings_side_(landings),
        exchange_(exchange),
        ways_(ways),
        budget_(budget) {}

  AcrossLeastPeak run() {
    Shortcuts left_out;
    std::vector<StopOfPeak> sources = smallest_first(sources_side_.stops(INT64_MAX, left_out));
    std::vector<StopOfPeak> landings = smallest_first(landings_side_.stops(INT64_MAX, left_out));
    found_.least.proven = left_out.none();
    for (StopOfPeak& source : sources) {
      for (StopOfPeak& landing : landings) {
        if (source.looked_at && source.way.bytes >= found_.least.bytes) break;
        if (budget_.used_up() && found_.least.bytes < INT64_MAX) {
          found_.least.proven = false;
          return std::move(found_);
        }
        look(source, landing);
      }
    }
    return std::move(found_);
  }

 private:
  void look(StopOfPeak& source, StopOfPeak& landing) {
    const int64_t boxes =
        saturating_add(sources_side_.bytes(source.stop), landings_side_.bytes(landing.stop));
    const int64_t below = found_.least.bytes;
    if (boxes >= below || (landing.looked_at && landing.way.bytes >= below)) return;
    AcrossExchange::Least crossing =
        exchange_.least_peak(source.stop.state, landing.stop.state, ways_);
    if (crossing.peak_bytes >= below || way_of(sources_side_, source) >= below ||
        way_of(landings_side_, landing) >= below)
      return;
    found_.least.bytes = std::max({crossing.peak_bytes, source.way.bytes, landing.way.bytes});
    found_.source = source.stop;
    found_.crossing = std::move(crossing.step);
    found_.landing = landing.stop;
  }

  int64_t way_of(const Side& side, StopOfPeak& at) {
    if (!std::exchange(at.looked_at, true)) {
      at.way = side.find_least_peak(at.stop, budget_);
      found_.least.proven = found_.least.proven && at.way.proven;
    }
    return at.way.bytes;
  }

  const Side& sources_side_;
  const Side& landings_side_;
  AcrossExchange& exchange_;
  const ExchangeWays& ways_;
  work::Budget& budget_;
  AcrossLeastPeak found_;
};

}  // namespace

AcrossLeastPeak least_peak_across(const Side& sources, const Side& landings,
                                  AcrossExchange& exchange, const ExchangeWays& ways,
                                  work::Budget& budget) {
  return AcrossPeakSearch(sources, landings, exchange, ways, budget).run();
}

}  // namespace meshplan
