#include "transfer/exchange_traffic.h"

#include "transfer/tally.h"

namespace meshplan {

void join_traffic(ExchangeTraffic& all, const ExchangeTraffic& more) {
  for (size_t p = 0; p < all.phase.size(); ++p) {
    for (size_t l = 0; l < max_levels; ++l) {
      raise(all.phase[p].bytes[l], more.phase[p].bytes[l]);
      raise(all.phase[p].peers[l], more.phase[p].peers[l]);
    }
    raise(all.received[p], more.received[p]);
  }
  raise(all.wire_bytes, more.wire_bytes);
  raise(all.sent_bytes, more.sent_bytes);
  add_up(all.work, more.work);
}

}  // namespace meshplan
