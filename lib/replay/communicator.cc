#include "replay/communicator.h"

namespace meshplan {

const char* to_text(CallKind kind) {
  switch (kind) {
    case CallKind::all_gather:
      return "all_gather";
    case CallKind::reduce_scatter:
      return "reduce_scatter";
    case CallKind::all_reduce:
      return "all_reduce";
    case CallKind::all_to_all:
      return "all_to_all";
    case CallKind::send_receive:
      break;
  }
  return "send_receive";
}

}  // namespace meshplan
