#include "strategy/transcript.h"

#include "base/index.h"
#include "base/saturating.h"
#include "strategy/chosen_steps.h"
#include "strategy/factor_shards.h"

#include <cstddef>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

class Transcript {
 public:
  explicit Transcript(const LocalContext& context)
      : context_(context),
        program_(chosen_steps(*context.space.program, context)) {
    for (std::size_t m = 0; m < context.strategy.assignment.size(); ++m) {
      const std::int16_t choice = context.strategy.assignment[m];
      const auto f = index(choice);
      if (choice == kUnassigned || f >= context.space.factors.size()) continue;
      const Factor& factor = context.space.factors[f];
      // The ranks of a joined factor have parts of their own.
      if (factor.program != ProgramUse::kNever && factor.joins.empty()) {
        over_.push_back(static_cast<std::int32_t>(m));
      }
    }
  }

  DerivedProgram run() {
    for (const DecompositionStep& step : program_.steps) {
      StepWork& work = work_.emplace_back();
      if (!step.collective) {
        out_.steps.emplace_back(step.op);
        if (step.schema.function->is_view()) work.kind = StepWork::Kind::kView;
        continue;
      }
      const RankCollective& c = *step.collective;
      out_.collective(c.kind, c.value, c.op, over_, c.meta.dtype(),
                      message_bytes(c));
    }
    out_.outputs = program_.outputs;
    return {std::move(out_), std::move(work_)};
  }

 private:
  // The message of a gather is the full gathered tensor.
  std::int64_t message_bytes(const RankCollective& c) const {
    std::int64_t bytes = item_size(c.meta.dtype());
    for (std::size_t d = 0; d < c.dims.size(); ++d) {
      bytes = sat_mul(bytes, local_size(c.meta.shape()[d], c.dims[d]));
    }
    if (c.kind != CollectiveKind::kAllGather) return bytes;
    for (const std::int32_t m : over_) {
      bytes = sat_mul(bytes, context_.mesh.size(m));
    }
    return bytes;
  }

  // Returns the local size of a dim on the busiest rank.
  std::int64_t local_size(std::int64_t size, const DimFactors& dim) const {
    for (std::size_t f = 0; f < context_.space.factors.size(); ++f) {
      const DimFactors& joins = context_.space.factors[f].joins;
      if (joins.empty() || joins != dim) continue;
      const FactorShards shards = factor_shards(context_, static_cast<int>(f));
      if (!shards.mesh_dims.empty()) return shards.largest;
    }
    for (const FactorId factor : dim) {
      const FactorShards shards = factor_shards(context_, factor);
      if (shards.mesh_dims.empty()) continue;
      size = size / context_.space.factor(factor).size * shards.largest;
    }
    return size;
  }

  const LocalContext& context_;
  const Decomposition program_;
  DimIndices over_;
  LocalProgram out_;
  std::vector<StepWork> work_;
};

}  // namespace

DerivedProgram transcript(const LocalContext& context) {
  return Transcript(context).run();
}

}  // namespace shardprop
