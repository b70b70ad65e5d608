// Programs as they come from outside: archives, gzip and JSON, told apart by
// their first bytes. What is read must be a sound graph; nothing may crash,
// hang or grow without bound.
#include <shardprop/io/load_graph.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

using namespace shardprop;  // NOLINT(google-build-using-namespace)

namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

void check_sound(const Graph& graph) {
  for (const Node& node : graph.nodes()) {
    check(node.inputs.size() == node.op.inputs.size());
    check(node.outputs.size() == node.op.outputs.size());
    check(!node.op.function->is_mutating());
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const Value& operand = graph.value(node.inputs[i]);
      check(operand.meta == node.op.inputs[i]);
      check(operand.is_input() || operand.producer < node.id);
    }
  }
  for (const Value& value : graph.values()) {
    check(!value.is_view() ||
          graph.value(value.view_of).storage == value.storage);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  static const auto kLibrary = OpLibrary::standard();
  LoadOptions options;
  options.max_input_bytes = 1 << 20;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto graph = read_graph(bytes, "fuzz", *kLibrary, options);
  if (graph) check_sound(*graph);
  return 0;
}
