#include "io/pt2_import.h"

#include "base/try.h"
#include "io/pt2_importer.h"

#include <utility>

namespace shardprop::pt2 {

std::string quote(std::string_view name) {
  constexpr std::size_t kMostShown = 80;
  return '`' + std::string(name.substr(0, kMostShown)) + '`';
}

std::string_view display_name(const Node& node) {
  return node.name.empty() ? node.target : node.name;
}

Result<void> Importer::run() {
  std::size_t nodes = 0;
  std::size_t values = program_.inputs.size();
  for (const Node& node : program_.nodes) {
    nodes += node.outputs.empty() ? 0 : 1;
    values += node.outputs.size();
  }
  builder_.expect(nodes, values);
  SP_CHECK(add_inputs());
  for (std::size_t i = 0; !program_.nodes.empty(); ++i) {
    const Node& node = program_.nodes.front();
    if (auto added = add_node(node); !added) {
      return fail(std::move(added).error().at("$.graph_module.graph.nodes[" +
                                              std::to_string(i) + "] " +
                                              quote(display_name(node))));
    }
    program_.nodes.pop_front();
  }
  SP_CHECK(add_outputs());
  add_guards();
  add_bounds();
  add_open_sizes();
  add_checkpoints();
  return {};
}

Result<Graph> to_graph(Program program, const StoredTensors& stored,
                       std::string name, const OpLibrary& library,
                       const GivenSizes& given) {
  GraphBuilder builder(std::move(name), library);
  if (!program.device.empty()) builder.set_device(std::string(program.device));
  {
    SP_ASSIGN(Values values, Values::create(program, given));
    SP_CHECK(Importer(program, stored, std::move(values), library, given.bounds,
                      builder)
                 .run());
  }
  program = {};
  return std::move(builder).build();
}

}  // namespace shardprop::pt2
