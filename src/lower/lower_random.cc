// Random operators: 32-bit numbers by element, and what is made of them.
#include "lower/lowering.h"

#include "base/try.h"
#include "lower/drawing.h"

#include <utility>

namespace shardprop::lowering {

ProgramValueId Lowering::seed() {
  auto [it, fresh] = scalars_.try_emplace(ProgramInputKind::kSeed);
  if (fresh) {
    it->second =
        build_.input({ProgramInputKind::kSeed, {}, {}, true}, "shardprop.seed",
                     *TensorMeta::contiguous({}, DType::kI64),
                     Layout::replicated(plan_.mesh.ndim()));
  }
  return it->second;
}

Result<void> Lowering::draw(const Node& node, const PlannedNode& planned,
                            const std::vector<ProgramValueId>& inputs,
                            std::vector<ProgramValueId>& outputs) {
  Drawing drawing(build_, node, planned, inputs, seed());
  SP_ASSIGN(outputs, drawing.run());
  return {};
}

}  // namespace shardprop::lowering
