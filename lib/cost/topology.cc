#include "cost/topology.h"

#include "json/write.h"

namespace meshplan {

std::string write_topology(const Topology& topology) {
  JsonWriter w(1);
  write_topology(w, topology, false);
  return w.take();
}

}  // namespace meshplan
