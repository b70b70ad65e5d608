// Whole programs, operator by operator, each on its inputs as they came out of
// the operators before: as an eager framework runs a training step.
#include <shardprop/propagate/caching_propagator.h>

#include "propagate/drawn_calls.h"
#include "propagate/fixtures.h"
#include "support/eager_graphs.h"

#include <shardprop/io/load_graph.h>

#include <map>
#include <random>
#include <string>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;

struct Steps {
  int propagated = 0;
  int without_row = 0;
  int sharded_outputs = 0;
};

// Runs every step of one program.
Steps run(const Graph& graph, const ShardingPropagator& plain,
          const CachingPropagator& cache) {
  std::mt19937_64 random(7);
  const DeviceMesh& mesh = plain.mesh();
  auto reader = value_of(cache.reader());
  std::map<std::size_t, Layout> held;  // by value
  for (const Value& value : graph.values()) {
    if (!value.is_input()) continue;
    held.emplace(value.id.index(),
                 testing::some_layout(mesh, value.meta, random));
  }
  Steps steps;
  for (const Node& node : graph.nodes()) {
    CAPTURE(node.name);
    CAPTURE(node.op_name());
    std::vector<Layout> given;
    for (const ValueId input : node.inputs) {
      given.push_back(held.at(input.index()));
    }
    const auto found = reader.propagate(node.op, given);
    if (!found) {
      // An operator without a definition runs replicated.
      CHECK(found.error().code == ErrorCode::kNoStrategy);
      ++steps.without_row;
      for (const ValueId output : node.outputs) {
        held.insert_or_assign(output.index(), Layout::replicated(mesh.ndim()));
      }
      continue;
    }
    ++steps.propagated;
    const OutputSharding& sharding = **found;
    CHECK(testing::difference(value_of(plain.propagate(node.op, given)),
                              sharding, mesh)
              .empty());
    REQUIRE(sharding.inputs.size() == node.inputs.size());
    REQUIRE(sharding.outputs.size() == node.outputs.size());
    std::vector<bool> moved(given.size(), false);
    for (const InputMove& move : sharding.moves) moved[move.input] = true;
    for (std::size_t i = 0; i < given.size(); ++i) {
      CHECK(sharding.inputs[i].meta() == node.op.inputs[i]);
      if (!moved[i]) {
        CHECK(sharding.inputs[i].layout() ==
              canonical(given[i], mesh, node.op.inputs[i].shape()));
      }
    }
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      const TensorSpec& spec = sharding.outputs[o];
      CHECK(spec.meta() == graph.value(node.outputs[o]).meta);
      CHECK(check_layout(spec.layout(), mesh, spec.meta()).has_value());
      steps.sharded_outputs += spec.layout().is_replicated() ? 0 : 1;
      held.insert_or_assign(node.outputs[o].index(), spec.layout());
    }
  }
  return steps;
}

TEST_CASE("every step of the example programs") {
  Steps all;
  for (const char* mesh : {"2", "2,2"}) {
    const ShardingPropagator plain = testing::propagator_on(mesh);
    const CachingPropagator cache = testing::cache_of(plain);
    for (const std::string& file : testing::tiny_graph_files()) {
      CAPTURE(file);
      const Graph graph =
          value_of(load_graph(file, *testing::shared_library()));
      const Steps steps = run(graph, plain, cache);
      all.propagated += steps.propagated;
      all.without_row += steps.without_row;
      all.sharded_outputs += steps.sharded_outputs;
    }
  }
  MESSAGE(all.propagated << " steps, " << all.sharded_outputs
                         << " sharded results, " << all.without_row
                         << " steps without a row");
  CHECK(all.propagated > 1000);
  CHECK(all.sharded_outputs > all.propagated / 4);
  CHECK(all.without_row * 50 < all.propagated);
}

}  // namespace
}  // namespace shardprop
