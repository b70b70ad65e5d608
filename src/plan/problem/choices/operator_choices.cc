#include "plan/problem/choices/operator_choices.h"

#include "base/saturating.h"
#include "graph/analysis/op_application.h"
#include "ops/space/unsharded_space.h"
#include "plan/tuning.h"

#include <shardprop/base/hash.h>

#include <algorithm>
#include <utility>

namespace shardprop {
namespace {

PartialSet bit(Placement placement) {
  return placement.is_partial()
             ? static_cast<PartialSet>(
                   1U << static_cast<unsigned>(placement.reduce_op()))
             : PartialSet{0};
}

// A linearity that no partial of the inputs can use only turns replicated
// tensors into terms of a sum. This never costs less than replicated tensors.
void drop_unfed_linearities(IndexSpace& space,
                            const std::vector<PartialSet>& meets) {
  std::erase_if(space.linearities, [&](const Linearity& linearity) {
    bool takes_partials = false;
    for (std::size_t i = 0; i < linearity.inputs.size(); ++i) {
      if (!linearity.inputs[i]) continue;
      const PartialSet read = bit(Placement::partial(*linearity.inputs[i]));
      takes_partials = true;
      if ((read & meets[i]) != 0) return false;
    }
    return takes_partials;
  });
}

// Sharding the spatial dims of a convolution is dominated by sharding the
// batch: it shards the same tensors and exchanges no halo. So spatial dims are
// sharded only if the ranks do not divide the batch.
void drop_places(IndexSpace& space, const DeviceMesh& mesh) {
  if (space.product != ProductKind::kConvolution) return;
  const auto in_the_same = [&](int f, int g) {
    const auto uniform = [&](const Operand& operand) {
      return operand.holds(f) == operand.holds(g);
    };
    return std::all_of(space.inputs.begin(), space.inputs.end(), uniform) &&
           std::all_of(space.outputs.begin(), space.outputs.end(), uniform);
  };
  for (int f = 0; f < static_cast<int>(space.factors.size()); ++f) {
    Factor& places = space.factor(f);
    for (int g = 0; g < f && places.shardable(); ++g) {
      const Factor& batch = space.factor(g);
      if (batch.kind != FactorKind::kParallel ||
          batch.size % mesh.size() != 0 || !in_the_same(f, g)) {
        continue;
      }
      places.kind = FactorKind::kWindowed;
      places.program = ProgramUse::kNever;
      places.reason = "the batch may be cut instead";
    }
  }
}

// Pieces of a split or cat are sharded only if the graph demands it. The fused
// dim is strided then, and the operators around it would have to move it.
void drop_pieces(IndexSpace& space) {
  for (const auto* operands : {&space.inputs, &space.outputs}) {
    for (const Operand& operand : *operands) {
      for (const DimFactors& dim : operand.dims) {
        if (const auto piece = piece_factor(space, dim)) {
          space.factor(*piece).kind = FactorKind::kSegmented;
          space.factor(*piece).reason = "no matmul has the pieces";
        }
      }
    }
  }
}

// Fills in the distinct layouts of every operand, and each strategy as indices
// into them.
void fill_layouts(ChoiceSet& set) {
  const auto& strategies = set.op.strategies;
  set.num_uses = set.op.op->inputs.size();
  const std::size_t operands = set.num_uses + set.op.op->outputs.size();
  set.layouts.resize(operands);
  set.picks.resize(strategies.size() * operands);
  for (std::size_t o = 0; o < operands; ++o) {
    std::unordered_map<LayoutId, std::uint32_t> seen;
    for (std::size_t c = 0; c < strategies.size(); ++c) {
      const LayoutId id = o < set.num_uses
                              ? strategies[c].inputs[o]
                              : strategies[c].outputs[o - set.num_uses];
      const auto [it, fresh] = seen.try_emplace(
          id, static_cast<std::uint32_t>(set.layouts[o].size()));
      if (fresh) set.layouts[o].push_back(id);
      set.picks[c * operands + o] = it->second;
    }
  }
}

}  // namespace

PartialSet partials_of(const Layout& layout) {
  PartialSet set = 0;
  for (const Placement placement : layout.placements()) {
    set = static_cast<PartialSet>(set | bit(placement));
  }
  return set;
}

OperatorChoiceCache::OperatorChoiceCache(
    const DeviceMesh& mesh, const Topology& topology, const OpLibrary& library,
    LayoutTable& layouts, const PlanSpace& space, StepFusion fusion)
    : mesh_(mesh),
      topology_(topology),
      library_(library),
      layouts_(layouts),
      space_(space),
      fusion_(fusion) {}

std::size_t OperatorChoiceCache::KeyHash::operator()(const Key& key) const {
  return hash_range(hash_application(*key.op), key.meets);
}

bool OperatorChoiceCache::KeyEqual::operator()(const Key& a,
                                               const Key& b) const {
  return a.meets == b.meets && a.demands == b.demands &&
         same_application(*a.op, *b.op);
}

const OperatorChoices& OperatorChoiceCache::of(
    const OpSchema& op, const std::vector<PartialSet>& meets,
    const OperatorDemands& demands) {
  // The key is looked up without a copy of the operator: its pointer owns
  // nothing.
  const Key probe{std::shared_ptr<const OpSchema>(std::shared_ptr<void>(), &op),
                  meets, demands};
  const auto found = cache_.find(probe);
  if (found != cache_.end()) return found->second;
  auto own = std::make_shared<const OpSchema>(op);
  OperatorChoices choices = work_out(own, meets, demands);
  return cache_.emplace(Key{std::move(own), meets, demands}, std::move(choices))
      .first->second;
}

OperatorChoices OperatorChoiceCache::work_out(
    const std::shared_ptr<const OpSchema>& op,
    const std::vector<PartialSet>& meets, const OperatorDemands& demands) {
  auto set = std::make_shared<ChoiceSet>();
  Result<IndexSpace> space = library_.index_space(*op);
  if (space) {
    drop_unfed_linearities(*space, meets);
    drop_places(*space, mesh_);
    if (!demands.shards_pieces) drop_pieces(*space);
  } else {
    set->unsupported = space.error().message;
    space = unsharded_space(*op);
  }
  StrategyOptions options;
  options.allow_empty_shards = false;
  options.allow_strided = mesh_.num_active_dims() <= tuning::kMostStridedDims;
  options.most_assignments = tuning::kMostOperatorAssignments;
  options.most_runs = space_.most_runs;
  options.joined_dims = space_.joined_dims;
  for (const auto& [factor, sharding] : demands.offered) {
    options.shardings.push_back({sharding, factor});
  }
  set->op =
      op_strategies(op, std::make_shared<const IndexSpace>(*std::move(space)),
                    mesh_, layouts_, options);
  fill_layouts(*set);
  const auto alone = [&](InputStorage buffer) {
    return [this, buffer](const LocalContext& context) {
      return compute_nanoseconds(context, topology_, buffer, fusion_);
    };
  };
  set_costs(*set, alone(InputStorage::kTakenOver));

  OperatorChoices out;
  for (std::size_t o = 0; o < op->outputs.size(); ++o) {
    PartialSet produced = 0;
    for (const LayoutId id : set->layouts[set->num_uses + o]) {
      produced = static_cast<PartialSet>(produced | partials_of(layouts_[id]));
    }
    out.makes.push_back(produced);
  }
  out.set = out.keeping = set;
  if (set->op.space->writes_into != IndexSpace::kNothing) {
    auto keeping = std::make_shared<ChoiceSet>(*set);
    set_costs(*keeping, alone(InputStorage::kKept));
    out.keeping = std::move(keeping);
  }
  return out;
}

std::shared_ptr<const ChoiceSet> OperatorChoiceCache::fused(
    const std::shared_ptr<const ChoiceSet>& set, const KernelPart& part) {
  auto& known = fused_[{set.get(), part}];
  if (!known) {
    auto priced = std::make_shared<ChoiceSet>(*set);
    set_costs(*priced, [&](const LocalContext& context) {
      return compute_nanoseconds(context, topology_, part);
    });
    known = std::move(priced);
  }
  return known;
}

template <class Compute>
void OperatorChoiceCache::set_costs(ChoiceSet& set,
                                    const Compute& compute) const {
  set.costs.clear();
  set.compute.clear();
  set.costs.reserve(set.op.strategies.size());
  set.compute.reserve(set.op.strategies.size());
  for (const PlacementStrategy& strategy : set.op.strategies) {
    const LocalContext context{*set.op.op, *set.op.space, mesh_, layouts_,
                               strategy};
    set.compute.push_back(compute(context));
    std::int64_t cost = set.compute.back();
    for (const CollectiveStep& step : collectives_inside(context, topology_)) {
      cost = sat_add(cost, step.nanoseconds);
    }
    set.costs.push_back(cost);
  }
}

}  // namespace shardprop
