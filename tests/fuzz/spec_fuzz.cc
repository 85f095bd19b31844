// Any bytes are a spec or have diagnostics, which render in every format; a topology file likewise.
#include <cstdint>
#include <cstdlib>

#include "diag/render.h"
#include "spec/spec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace meshplan;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const FileReader same = [&](const std::string&) -> Result<std::string> { return std::string(text); };
  Diagnostics diagnostics;
  const auto spec = read_spec(text, "a.json", same, diagnostics);
  if (spec.has_value() == diagnostics.has_errors()) std::abort();
  for (const DiagnosticFormat format :
       {DiagnosticFormat::text, DiagnosticFormat::json, DiagnosticFormat::github, DiagnosticFormat::sarif}) {
    if (render(diagnostics, {format, true, "1"}).empty() && !spec) std::abort();
  }
  Diagnostics of_topology;
  const auto topology = read_topology_file(text, "t.json", of_topology);
  if (topology.has_value() == of_topology.has_errors()) std::abort();
  if (topology && !check_topology(*topology)) std::abort();
  if (topology && read_topology_file(write_topology(*topology), "t.json", of_topology) != topology) std::abort();
  return 0;
}
