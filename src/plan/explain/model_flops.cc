#include "plan/explain/model_flops.h"

#include "base/index.h"
#include "graph/analysis/dim_roles.h"
#include "graph/analysis/pass_through.h"

#include <shardprop/plan/plan_options.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace shardprop {
namespace {

// The backward pass computes two gradients for each forward matmul.
constexpr double kForwardAndBackward = 3;

class ModelFlops {
 public:
  explicit ModelFlops(const PlanProblem& problem)
      : problem_(problem),
        graph_(problem.graph()),
        roles_(problem.roles()),
        is_dispatch_(graph_.nodes().size()) {
    find_routes();
    find_dispatches();
  }

  double count() const {
    double flops = 0;
    for (const Node& node : graph_.nodes()) {
      const IndexSpace* space = space_of(node);
      if (space == nullptr || space->flops_per_point <= 0 ||
          node.phase != Phase::kForward || is_one_hot(node, *space)) {
        continue;
      }
      flops += flops_of(*space) * active_share(node, *space);
    }
    return flops * (trains(graph_) ? kForwardAndBackward : 1);
  }

 private:
  const IndexSpace* space_of(const Node& node) const {
    const ChoiceSet* set = problem_.choices_of(node.id);
    return set == nullptr ? nullptr : set->op.space.get();
  }

  // Finds, by number of experts, the rows that are routed. A token that is
  // routed to k experts counts as k rows.
  void find_routes() {
    for (const Node& node : graph_.nodes()) {
      const std::string name = node.op_name();
      if (!name.starts_with("aten.topk") && !name.starts_with("aten.argmax") &&
          !name.starts_with("aten.max.dim")) {
        continue;
      }
      const TensorMeta& scores = graph_.value(node.inputs[0]).meta;
      if (scores.rank() == 0) continue;
      std::int64_t& routed = routed_[scores.size(scores.rank() - 1)];
      routed = std::max(routed, graph_.value(node.outputs[0]).meta.numel());
    }
  }

  // Finds the producers of the rows that a matmul with experts reads through
  // views and casts.
  void find_dispatches() {
    for (const Node& node : graph_.nodes()) {
      const auto weight = roles_.weight(node.id);
      if (!weight || !experts_of(node)) continue;
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        if (i == *weight) continue;
        const Value* value = &graph_.value(node.inputs[i]);
        while (!value->is_input()) {
          const Node& producer = graph_.node(value->producer);
          if (!carries_elements(graph_, producer, space_of(producer))) {
            is_dispatch_[producer.id.index()] = true;
            break;
          }
          value = &graph_.value(producer.inputs[0]);
        }
      }
    }
  }

  // Returns the factor of a matmul with experts that is each expert's own.
  std::optional<FactorId> experts_of(const Node& node) const {
    const auto& trace = roles_.factor(node.id, DimRole::kExperts);
    const auto weight = roles_.weight(node.id);
    if (!trace || !weight ||
        !space_of(node)->inputs[*weight].holds(trace->factor)) {
      return std::nullopt;
    }
    return trace->factor;
  }

  // Returns whether a matmul moves tokens to the experts, or back, with a
  // matrix of ones and zeros (or of weights).
  bool is_one_hot(const Node& node, const IndexSpace& space) const {
    if (roles_.weight(node.id)) return false;
    if (is_dispatch_[node.id.index()]) return true;
    const auto& trace = roles_.factor(node.id, DimRole::kExperts);
    return trace && !space.outputs[0].holds(trace->factor);
  }

  // Returns the share of the rows of a matmul with experts that are routed
  // tokens. The rest is padding.
  double active_share(const Node& node, const IndexSpace& space) const {
    const auto experts = experts_of(node);
    if (!experts || space.factor(*experts).kind == FactorKind::kIndexed) {
      return 1;
    }
    const auto routed = routed_.find(space.factor(*experts).size);
    if (routed == routed_.end()) return 1;
    double rows = static_cast<double>(space.factor(*experts).size);
    for (std::size_t f = 0; f < space.factors.size(); ++f) {
      const auto factor = static_cast<FactorId>(f);
      if (space.outputs[0].holds(factor) &&
          !space.inputs[*roles_.weight(node.id)].holds(factor)) {
        rows *= static_cast<double>(space.factor(factor).size);
      }
    }
    return std::min(static_cast<double>(routed->second) / rows, 1.0);
  }

  const PlanProblem& problem_;
  const Graph& graph_;
  const DimRoles& roles_;
  std::map<std::int64_t, std::int64_t> routed_;
  std::vector<bool> is_dispatch_;  // by node
};

}  // namespace

double model_flops(const PlanProblem& problem) {
  return ModelFlops(problem).count();
}

}  // namespace shardprop
