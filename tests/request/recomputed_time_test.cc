// The time that `full` adds to a step of Llama 3 8B, beside a sum by hand.
#include <shardprop/request/plan_request.h>

#include "support/result_checks.h"

#include <shardprop/request/graph_reading.h>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;

constexpr std::int64_t kLayers = 32;
constexpr std::int64_t kSequences = 8;
constexpr std::int64_t kTokens = 2048;  // of a sequence
constexpr std::int64_t kHidden = 4096;
constexpr std::int64_t kKeyValue = 1024;
constexpr std::int64_t kFeedForward = 14336;

PlannedGraph planned(const LoadedGraph& loaded, const std::string& rule) {
  PlanRequest request;
  request.graph = loaded.graph;
  request.library = loaded.library;
  request.mesh = value_of(planned_mesh("x=1"));
  request.topology = default_topology();
  request.options =
      value_of(plan_options(std::vector<GivenOption>{{"recompute", rule, {}},
                                                     {"execution", "eager", {}},
                                                     {"optimizer", "none", {}},
                                                     {"memory", "none", {}}},
                            request.topology));
  return value_of(plan_graph(request));
}

// Returns whether the node is one of a layer that the backward phase needs again.
// Its end is not needed: only the next layer reads the projection down and the sum
// with the residual.
class NeededAgain {
 public:
  explicit NeededAgain(const Graph& graph) {
    for (const Node& node : graph.nodes()) {
      if (is_sum(node)) last_sum_[node.module_path] = node.id;
    }
  }

  bool operator()(const Node& node) const {
    constexpr std::string_view kLayerPath = "model.layers.";
    if (node.phase == Phase::kBackward ||
        !node.module_path.starts_with(kLayerPath)) {
      return false;
    }
    const auto last = last_sum_.find(node.module_path);
    return !node.module_path.ends_with("mlp.down_proj") &&
           (last == last_sum_.end() || last->second != node.id);
  }

 private:
  // A sum of a layer itself, whose path is model.layers.3.
  static bool is_sum(const Node& node) {
    return node.phase == Phase::kForward &&
           node.op_name() == "aten.add.Tensor" &&
           node.module_path.starts_with("model.layers.") &&
           node.module_path.find('.', sizeof("model.layers.") - 1) ==
               std::string::npos;
  }

  std::map<std::string, NodeId> last_sum_;
};

TEST_CASE("full on Llama 3 8B adds the time of its layers without their ends") {
  const LoadedGraph loaded = value_of(
      load_graph("examples/graphs/llama3_8b_train.json.gz", GraphReading()));
  const PlannedGraph none = planned(loaded, "none");
  const PlannedGraph full = planned(loaded, "full");
  const NeededAgain is_needed(*none.graph);
  std::int64_t by_hand = 0;
  for (std::size_t n = 0; n < none.graph->nodes().size(); ++n) {
    if (!is_needed(none.graph->nodes()[n])) continue;
    by_hand += none.plan.nodes[n].compute_nanoseconds;
  }
  CHECK(by_hand > 0);
  CHECK(full.plan.summary.recompute_nanoseconds == by_hand);
  CHECK(*full.plan.objective_nanoseconds - *none.plan.objective_nanoseconds ==
        by_hand);
}

TEST_CASE(
    "full on Llama 3 8B adds the matmuls of its layers without the last") {
  const LoadedGraph loaded = value_of(
      load_graph("examples/graphs/llama3_8b_train.json.gz", GraphReading()));
  constexpr std::int64_t kMatmuls =
      2 * kSequences * kTokens *
      (2 * kHidden * kHidden + 2 * kHidden * kKeyValue +
       2 * kHidden * kFeedForward);
  // Scores and their product with the values, of the half that is not masked.
  constexpr std::int64_t kAttention =
      2 * 2 * kSequences * kTokens * kTokens * kHidden / 2;
  CHECK(planned(loaded, "full").plan.work.flops -
            planned(loaded, "none").plan.work.flops ==
        kLayers * (kMatmuls + kAttention));
}

}  // namespace
}  // namespace shardprop
