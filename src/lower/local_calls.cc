#include "lower/local_calls.h"

#include "base/index.h"
#include "base/try.h"
#include "graph/analysis/op_application.h"
#include "graph/analysis/view_source.h"
#include "lower/broken_plan.h"
#include "ops/space/unsharded_space.h"
#include "placement/split_factor.h"
#include "strategy/chosen_steps.h"
#include "strategy/strategy_of.h"

#include <shardprop/base/hash.h>

#include <algorithm>
#include <type_traits>

namespace shardprop::lowering {
namespace {

// The mesh dims shard a factor one after another, as they shard a dim.
RankInt factor_size(std::int64_t size, const DimIndices& mesh_dims,
                    const DeviceMesh& mesh, const RankScalar& scalar) {
  Placements placements(static_cast<std::size_t>(mesh.ndim()));
  ShardOrder order(placements.size());
  std::int8_t place = 0;
  for (const std::int32_t dim : mesh_dims) {
    placements[index(dim)] = Placement::shard(0);
    order[index(dim)] = place++;
  }
  auto layout = Layout::create(std::move(placements), std::move(order));
  if (!layout) throw InternalError("the cuts of a factor are not a layout");
  return RankInt::of(RankInt::Kind::kLocalSize, size, *layout, 0, scalar);
}

}  // namespace

RankInt rank_int(const RankScalar& scalar, const LocalContext& context) {
  const auto operand = index(scalar.operand);
  switch (scalar.kind) {
    case RankScalar::Kind::kConstant:
      return scalar.constant;
    case RankScalar::Kind::kFactorSize:
      return factor_size(context.space.factors[operand].size,
                         context.mesh_dims(scalar.operand), context.mesh,
                         scalar);
    case RankScalar::Kind::kLocalSize:
    case RankScalar::Kind::kOffset:
      break;
  }
  const TensorMeta& meta = scalar.of_output ? context.op.outputs[operand]
                                            : context.op.inputs[operand];
  const Layout& layout = scalar.of_output ? context.output(scalar.operand)
                                          : context.input(scalar.operand);
  return RankInt::of(scalar.kind == RankScalar::Kind::kLocalSize
                         ? RankInt::Kind::kLocalSize
                         : RankInt::Kind::kOffset,
                     meta.size(scalar.dim), layout, scalar.dim, scalar);
}

namespace {

// Returns the steps of the `per_rank` program of the operator definition, which
// ranks run unchanged. Returns no steps if ranks run the operator itself, or a
// program derived from its decomposition. A derived program reads first results
// only.
std::vector<DecompositionStep> steps_as_written(const LocalContext& context) {
  const auto& program = context.space.program;
  if (!needs_program(context) || !program->per_rank) return {};
  return chosen_steps(*program, context).steps;
}

// A call on the ranks, and the steps that produce its results.
struct Writing {
  const LocalContext& context;
  std::vector<DecompositionStep> steps = steps_as_written(context);
};

const OpSchema* origin(const LocalRef& ref, const Writing& writing) {
  if (ref.step < 0 || writing.steps.empty()) return nullptr;
  const auto& step = writing.steps[index(ref.step)];
  return step.collective ? nullptr : &step.schema;
}

// Converts an index among the produced results to an index among the declared
// results.
LocalRef declared(LocalRef ref, const Writing& writing) {
  if (const OpSchema* op = origin(ref, writing)) {
    const auto& slots = op->output_slots;
    ref.index = static_cast<std::int32_t>(
        std::find(slots.begin(), slots.end(), ref.index) - slots.begin());
  }
  return ref;
}

LocalCall::Argument argument(const LocalOp::Value& value,
                             const Writing& writing) {
  return std::visit(
      [&](const auto& held) -> LocalCall::Argument {
        using T = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<T, RankScalar>) {
          return rank_int(held, writing.context);
        } else if constexpr (std::is_same_v<T, LocalRef>) {
          return declared(held, writing);
        } else if constexpr (std::is_same_v<T, std::vector<LocalRef>>) {
          std::vector<LocalRef> list;
          for (const LocalRef& ref : held) {
            list.push_back(declared(ref, writing));
          }
          return list;
        } else if constexpr (std::is_same_v<T, std::vector<RankScalar>>) {
          std::vector<RankInt> list;
          for (const RankScalar& scalar : held) {
            list.push_back(rank_int(scalar, writing.context));
          }
          return list;
        } else {
          return held;
        }
      },
      value);
}

// True if every rank has the same, so that the operator's own will do.
bool is_same_on_all(const LocalCall::Argument& argument) {
  if (const auto* one = std::get_if<RankInt>(&argument)) {
    return one->is_constant();
  }
  const auto* list = std::get_if<std::vector<RankInt>>(&argument);
  return list != nullptr &&
         std::all_of(list->begin(), list->end(),
                     [](const RankInt& value) { return value.is_constant(); });
}

std::size_t result_count(const OpLibrary& library, const std::string& op) {
  const auto function = library.find(op);
  return function == nullptr ? 1 : function->returns().size();
}

// Returns, for each output of the node, its index among the declared results.
std::vector<LocalRef> direct_outputs(const OpSchema& op) {
  std::vector<LocalRef> out(op.outputs.size());
  for (std::size_t slot = 0; slot < op.output_slots.size(); ++slot) {
    if (op.output_slots[slot] == OpSchema::kNotProduced) continue;
    out[index(op.output_slots[slot])] = {0, static_cast<std::int32_t>(slot)};
  }
  return out;
}

}  // namespace

LocalCall LocalCalls::call_of(const LocalContext& context) const {
  const bool is_program = needs_program(context);
  LocalProgram program = local_program(context);
  const Writing writing{context};
  LocalCall out;
  out.is_random = context.space.is_random;
  out.is_view = runs_as_view(context.space);
  for (LocalStep& step : program.steps) {
    const LocalRef here{static_cast<std::int32_t>(out.steps.size()), 0};
    if (auto* collective = std::get_if<LocalCollective>(&step)) {
      if (is_program) collective->value = declared(collective->value, writing);
      out.steps.emplace_back(std::move(*collective));
      continue;
    }
    auto& op = std::get<LocalOp>(step);
    LocalCall::Op made{op.name, {}, {}};
    if (const OpSchema* own =
            is_program ? origin(here, writing) : &context.op) {
      for (const std::int32_t slot : own->output_slots) {
        made.produces.push_back(slot != OpSchema::kNotProduced);
      }
    } else {
      made.produces.resize(result_count(library_, op.name), true);
    }
    for (const auto& [name, value] : op.args) {
      LocalCall::Argument local = argument(value, writing);
      if (!is_program && is_same_on_all(local)) {
        const Argument& own = context.op.arg(name);
        const auto index = context.op.function->argument_index(name);
        const ArgumentSchema& declared =
            context.op.function->arguments()[*index];
        if (declared.has_default && own == declared.default_value) continue;
        local = own;
      }
      made.args.emplace_back(name, std::move(local));
    }
    out.steps.emplace_back(std::move(made));
  }
  if (!is_program) {
    out.outputs = direct_outputs(context.op);
    return out;
  }
  for (const LocalRef& ref : program.outputs) {
    out.outputs.push_back(declared(ref, writing));
  }
  return out;
}

Result<LocalCall> LocalCalls::of_view(const OpSchema& op,
                                      const NodeStrategy& view) {
  const LocalContext context{op, *view.space, mesh_, layouts_, view.strategy};
  return call_of(context);
}

std::size_t LocalCalls::KeyHash::operator()(const Key& key) const {
  std::size_t seed = hash_application(*key.op);
  seed = hash_range(seed, key.node->assignment);
  seed = hash_combine(seed, key.node->shardings.of_all());
  for (const PlannedInput& input : key.node->inputs) {
    seed = hash_combine(seed, input.layout);
  }
  return seed;
}

bool LocalCalls::KeyEqual::operator()(const Key& a, const Key& b) const {
  const auto same_layouts = [](const auto& x, const auto& y, auto layout) {
    return std::equal(
        x.begin(), x.end(), y.begin(), y.end(),
        [&](const auto& i, const auto& j) { return layout(i) == layout(j); });
  };
  return a.node->assignment == b.node->assignment &&
         a.node->shardings == b.node->shardings &&
         same_layouts(a.node->inputs, b.node->inputs,
                      [](const auto& in) -> auto& { return in.layout; }) &&
         same_layouts(a.node->outputs, b.node->outputs,
                      [](const auto& o) -> auto& { return o.tensor.layout; }) &&
         same_application(*a.op, *b.op);
}

namespace {

// True if the placements of the node's tensors on one mesh dim are those of the
// linearity.
bool fits(const Linearity& linearity, const PlannedNode& node,
          std::int32_t mesh_dim) {
  const auto same = [&](const std::optional<ReduceOp>& op,
                        const Layout& layout) {
    return layout[mesh_dim] ==
           (op ? Placement::partial(*op) : Placement::replicate());
  };
  for (std::size_t i = 0; i < linearity.inputs.size(); ++i) {
    if (!same(linearity.inputs[i], node.inputs[i].layout)) return false;
  }
  for (std::size_t o = 0; o < linearity.outputs.size(); ++o) {
    if (!same(linearity.outputs[o], node.outputs[o].tensor.layout)) {
      return false;
    }
  }
  return true;
}

// Replaces the linearities of the assignment by those of `space`. The plan
// numbers only the linearities that can occur in it, so they are identified by
// their placements.
std::optional<Assignment> whole_assignment(const IndexSpace& space,
                                           const PlannedNode& node) {
  Assignment out = node.assignment;
  const auto factors = static_cast<std::int16_t>(space.factors.size());
  for (std::size_t m = 0; m < out.size(); ++m) {
    if (out[m] < kUnassigned) return std::nullopt;
    if (out[m] < factors) {
      if (out[m] != kUnassigned && !space.factor(out[m]).shardable()) {
        return std::nullopt;
      }
      continue;
    }
    const auto found = std::find_if(
        space.linearities.begin(), space.linearities.end(),
        [&](const Linearity& linearity) {
          return fits(linearity, node, static_cast<std::int32_t>(m));
        });
    if (found == space.linearities.end()) return std::nullopt;
    out[m] = static_cast<std::int16_t>(factors +
                                       (found - space.linearities.begin()));
  }
  return out;
}

// Returns whether the shardings give each of the factors the mesh dims that the
// assignment gives it.
bool are_of_assignment(const PlannedNode& node, std::size_t factors) {
  if (node.shardings.is_mesh_order()) return true;
  const Layout& shardings = node.shardings.of_all();
  if (index(shardings.mesh_ndim()) != node.assignment.size()) return false;
  for (std::size_t m = 0; m < node.assignment.size(); ++m) {
    const Placement placement = shardings[static_cast<int>(m)];
    const std::int16_t choice = node.assignment[m];
    const bool shards = choice != kUnassigned && index(choice) < factors;
    if (placement.is_partial() || placement.is_shard() != shards ||
        placement.split_factor() > kMostPieces ||
        (shards && placement.dim() != choice)) {
      return false;
    }
  }
  return true;
}

}  // namespace

Result<NodeStrategy> LocalCalls::strategy_of(const Node& node,
                                             const PlannedNode& planned) {
  const auto space = library_.index_space(node.op);
  NodeStrategy out;
  out.space = std::make_shared<const IndexSpace>(
      space ? *space : unsharded_space(node.op));
  const bool one_entry_a_dim =
      planned.assignment.size() == static_cast<std::size_t>(mesh_.ndim());
  const auto assignment =
      one_entry_a_dim && are_of_assignment(planned, out.space->factors.size())
          ? whole_assignment(*out.space, planned)
          : std::nullopt;
  const auto strategy =
      assignment
          ? shardprop::strategy_of(node.op, *out.space, mesh_, *assignment,
                                   planned.shardings, layouts_)
          : std::nullopt;
  if (!strategy) {
    return broken_plan(node.name, "its strategy is not one of its operator");
  }
  out.strategy = *strategy;
  for (std::size_t i = 0; i < planned.inputs.size(); ++i) {
    if (layouts_[strategy->inputs[i]] != planned.inputs[i].layout) {
      return broken_plan(node.name, "it takes `" + planned.inputs[i].from +
                                        "` in another layout than its "
                                        "strategy");
    }
  }
  for (std::size_t o = 0; o < planned.outputs.size(); ++o) {
    if (layouts_[strategy->outputs[o]] != planned.outputs[o].tensor.layout) {
      return broken_plan(node.name, "it makes `" + planned.outputs[o].name +
                                        "` in another layout than its "
                                        "strategy");
    }
  }
  return out;
}

Result<LocalCalls::Entry> LocalCalls::work_out(const Node& node,
                                               const PlannedNode& planned) {
  SP_ASSIGN(const NodeStrategy chosen, strategy_of(node, planned));
  const LocalContext context{node.op, *chosen.space, mesh_, layouts_,
                             chosen.strategy};
  Entry out;
  out.call = call_of(context);
  out.run = local_run(context);
  return out;
}

Result<const LocalCall*> LocalCalls::of(const Node& node,
                                        const PlannedNode& planned) {
  const Key key{&node.op, &planned};
  auto found = known_.find(key);
  if (found == known_.end()) {
    SP_ASSIGN(Entry entry, work_out(node, planned));
    found = known_.emplace(key, std::move(entry)).first;
  }
  const Entry& entry = found->second;
  if (entry.run != planned.local) {
    return broken_plan(node.name, "its local run is not that of its strategy");
  }
  return &entry.call;
}

}  // namespace shardprop::lowering
