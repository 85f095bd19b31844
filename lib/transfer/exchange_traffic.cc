#include "transfer/exchange_traffic.h"

#include "transfer/tally.h"

namespace meshplan {

void raise_traffic(Traffic& all, const Traffic& more) {
  for (size_t l = 0; l < max_levels; ++l) {
    raise(all.bytes[l], more.bytes[l]);
    raise(all.peers[l], more.peers[l]);
  }
}

void join_traffic(ExchangeTraffic& all, const ExchangeTraffic& more) {
  for (size_t p = 0; p < all.phase.size(); ++p) {
    raise_traffic(all.phase[p], more.phase[p]);
    raise(all.received[p], more.received[p]);
  }
  raise(all.wire_bytes, more.wire_bytes);
  raise(all.sent_bytes, more.sent_bytes);
  add_up(all.work, more.work);
}

}  // namespace meshplan
