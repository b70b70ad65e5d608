// Fuzzes topology files. A topology that is read must print as TOML that reads
// back as the same, and a small program is planned on it.
#include "fuzz_input.h"
#include "planned.h"

#include <shardprop/io/load_graph.h>
#include <shardprop/io/topology_file.h>

using namespace shardprop;  // NOLINT(google-build-using-namespace)

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  static const auto kLibrary = OpLibrary::standard();
  static const Graph kGraph =
      *read_graph(fuzz_file("pt2/mlp.json"), "mlp", *kLibrary);
  const Result<Topology> topology =
      parse_topology_toml(as_text(data, size), "fuzz.toml");
  if (!topology) {
    require_reason(topology);
    return 0;
  }
  const std::string written = topology_to_toml(*topology);
  const Result<Topology> again = parse_topology_toml(written, "fuzz.toml");
  require(again.has_value() && topology_to_toml(*again) == written);
  require_plan(kGraph, *topology, *kLibrary);
  return 0;
}
