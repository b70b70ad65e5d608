#include "graph/recompute/core_attention.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace shardprop {
namespace {

class CoreAttention {
 public:
  CoreAttention(const Graph& graph, const NodeFacts& facts,
                std::span<const std::int32_t> regions)
      : graph_(graph), regions_(regions) {
    for (const Node& node : graph.nodes()) {
      const OperatorFacts of = facts.of(node);
      is_matmul_.push_back(of.is_matmul);
      core_.push_back(of.is_attention);
    }
  }

  std::vector<bool> run() {
    for (const Node& node : graph_.nodes()) {
      if (node.phase == Phase::kForward && is_softmax(node)) add_around(node);
    }
    return std::move(core_);
  }

 private:
  static bool is_softmax(const Node& node) {
    constexpr std::string_view kName = "softmax";
    return node.op_name().find(kName) != std::string::npos ||
           node.decomposed_from.find(kName) != std::string::npos;
  }

  bool is_near(NodeId id, const Node& of) const {
    return graph_.node(id).phase == Phase::kForward &&
           regions_[id.index()] == regions_[of.id.index()];
  }

  bool reads_parameter(NodeId id) const {
    const std::vector<ValueId>& inputs = graph_.node(id).inputs;
    return std::any_of(inputs.begin(), inputs.end(), [&](ValueId input) {
      const ValueId base = graph_.buffer(graph_.value(input).buffer).base();
      return graph_.value(base).is_input() &&
             graph_.value(base).input_kind == InputKind::kParameter;
    });
  }

  // A mask is computed before the matmul's result is read, so that only what
  // depends on a matmul belongs to the attention.
  bool add_before(NodeId id, const Node& softmax) {
    if (!is_near(id, softmax)) return false;
    if (const auto known = depends_.find(id); known != depends_.end()) {
      return known->second;
    }
    bool depends = is_matmul_[id.index()] && !reads_parameter(id);
    if (!is_matmul_[id.index()]) {
      for (const ValueId input : graph_.node(id).inputs) {
        const NodeId producer = graph_.value(input).producer;
        depends =
            (producer.valid() && add_before(producer, softmax)) || depends;
      }
    }
    if (depends) core_[id.index()] = true;
    return depends_[id] = depends;
  }

  void add_after(NodeId id, const Node& softmax) {
    if (!is_near(id, softmax) || is_matmul_[id.index()]) return;
    if (id != softmax.id && core_[id.index()]) return;
    core_[id.index()] = true;
    for (const ValueId output : graph_.node(id).outputs) {
      for (const Use& use : graph_.value(output).consumers) {
        add_after(use.node, softmax);
      }
    }
  }

  void add_around(const Node& softmax) {
    if (!add_before(softmax.id, softmax)) return;
    add_after(softmax.id, softmax);
  }

  const Graph& graph_;
  std::span<const std::int32_t> regions_;
  std::vector<bool> is_matmul_;
  std::vector<bool> core_;
  std::map<NodeId, bool> depends_;
};

}  // namespace

std::vector<bool> core_attention(const Graph& graph, const NodeFacts& facts,
                                 std::span<const std::int32_t> regions) {
  return CoreAttention(graph, facts, regions).run();
}

}  // namespace shardprop
