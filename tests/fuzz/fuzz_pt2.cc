// Fuzzes exported programs: archives, gzip and JSON, which their first bytes
// distinguish. A program that is read must give a sound graph that can be
// planned. No input may cause a crash, a hang or growth without bound.
#include "fuzz_input.h"
#include "planned.h"

#include <shardprop/io/load_graph.h>

using namespace shardprop;  // NOLINT(google-build-using-namespace)

namespace {

void require_sound(const Graph& graph) {
  for (const Node& node : graph.nodes()) {
    require(node.inputs.size() == node.op.inputs.size());
    require(node.outputs.size() == node.op.outputs.size());
    require(!node.op.function->is_mutating());
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const Value& operand = graph.value(node.inputs[i]);
      require(operand.meta == node.op.inputs[i]);
      require(operand.is_input() || operand.producer < node.id);
    }
  }
  for (const Value& value : graph.values()) {
    require(!value.is_view() ||
            graph.value(value.view_of).buffer == value.buffer);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  static const auto kLibrary = OpLibrary::standard();
  LoadOptions options;
  options.max_input_bytes = 1 << 20;
  const auto graph =
      read_graph(as_text(data, size), "fuzz", *kLibrary, options);
  if (!graph) {
    require_reason(graph);
    return 0;
  }
  require_sound(*graph);
  if (is_small(*graph)) require_plan(*graph, default_topology(), *kLibrary);
  return 0;
}
