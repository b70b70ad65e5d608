// Lowers random operators to 32-bit random numbers per element and operators on
// them.
#include "lower/lowering.h"

#include "base/try.h"
#include "lower/drawing.h"
#include "lower/drawn_attention.h"

#include <utility>

namespace shardprop::lowering {

ProgramValueId Lowering::seed() {
  auto [it, fresh] = scalars_.try_emplace(InputKind::kSeed);
  if (fresh) {
    it->second =
        build_.input({InputKind::kSeed, {}, {}, true}, "shardprop.seed",
                     *TensorMeta::contiguous({}, DType::kI64),
                     Layout::replicated(plan_.mesh.ndim()));
  }
  return it->second;
}

Result<void> Lowering::draw(const Node& node, const PlannedNode& planned,
                            const std::vector<ProgramValueId>& inputs,
                            std::vector<ProgramValueId>& outputs) {
  const Distribution distribution = distribution_of(node);
  const bool again = distribution == Distribution::kAttentionBackward;
  if (again || distribution == Distribution::kAttention) {
    SP_ASSIGN(const std::int64_t drawn_by, drawing_node(node));
    DrawnAttention attention(build_, node, planned, inputs, {seed(), drawn_by});
    SP_ASSIGN(outputs, attention.run(again));
    return {};
  }
  Drawing drawing(build_, node, planned, inputs, seed());
  SP_ASSIGN(outputs, drawing.run(distribution));
  return {};
}

Distribution Lowering::distribution_of(const Node& node) const {
  const OpRow* row = library_.row(*node.op.function);
  return row == nullptr ? Distribution::kNotStated
                        : row->definition.traits().distribution;
}

// Returns the node whose random numbers drop the weights of an attention. For a
// gradient, it is the node that produced the `philox_seed` that the gradient
// reads, possibly through views and copies.
Result<std::int64_t> Lowering::drawing_node(const Node& node) const {
  if (distribution_of(node) == Distribution::kAttention) {
    return static_cast<std::int64_t>(node.drawn_by().index());
  }
  if (const auto state = node.op.tensor_arg("philox_seed")) {
    const Value* value = &graph_.value(node.inputs[*state]);
    while (!value->is_input()) {
      const Node& maker = graph_.nodes()[value->producer.index()];
      if (distribution_of(maker) == Distribution::kAttention) {
        return static_cast<std::int64_t>(maker.drawn_by().index());
      }
      if (maker.inputs.empty()) break;
      value = &graph_.value(maker.inputs[0]);
    }
  }
  return fail(Error{ErrorCode::kNotLowered,
                    "`" + node.op_name() +
                        "` drops what another program drew: its forward is "
                        "not in this one",
                    node.name,
                    {},
                    "export forward and backward as one program, or turn "
                    "dropout off"});
}

}  // namespace shardprop::lowering
