// Implements the propagators, caches, answers and redistributions of the C API.

#include "c/boundary.h"

#include <shardprop/redistribute/planner.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/index.h"

using namespace shardprop;     // NOLINT(google-build-using-namespace)
using namespace shardprop::c;  // NOLINT(google-build-using-namespace)

namespace {

// The call that the arguments make, worked out once.
Result<const OpSchema*> made_call(CallObject& call) {
  if (call.made) return &*call.made;
  // Operands are renumbered: which spec each of them is, its place says.
  std::vector<TensorMeta> metas;
  for (const TensorSpec& spec : call.specs) metas.push_back(spec.meta());
  SP_ASSIGN(OpSchema op, make_op_schema(call.function, call.given, metas));
  std::vector<std::size_t> order;
  const auto& declared = call.function->arguments();
  const auto add = [&](const TensorArg& tensor) {
    if (tensor.operand != TensorArg::kNone) {
      order.push_back(static_cast<std::size_t>(tensor.operand));
    }
  };
  // Positions first come first; names find their own.
  std::vector<const Argument*> placed(declared.size(), nullptr);
  std::size_t next = 0;
  for (const GivenArgument& given : call.given) {
    const std::size_t at = given.name.empty()
                               ? next++
                               : *call.function->argument_index(given.name);
    placed[at] = &given.value;
  }
  for (const Argument* argument : placed) {
    if (argument == nullptr) continue;
    if (const auto* one = std::get_if<TensorArg>(argument)) add(*one);
    if (const auto* list = std::get_if<std::vector<TensorArg>>(argument)) {
      for (const TensorArg& tensor : *list) add(tensor);
    }
  }
  std::vector<TensorSpec> operands;
  for (const std::size_t i : order) operands.push_back(call.specs[i]);
  call.operands = std::move(operands);
  call.made = std::move(op);
  return &*call.made;
}

const OutputSharding* answer_of(const shardprop_sharding* sharding) {
  const ShardingObject* found = peek(sharding);
  return found == nullptr ? nullptr : found->sharding.get();
}

int64_t count(std::size_t size) { return static_cast<int64_t>(size); }

Result<void> give_spec(shardprop_spec** out,
                       const std::vector<TensorSpec>& from, int64_t i,
                       std::string_view what) {
  SP_ASSIGN(const std::size_t at, index_of(i, from.size(), what));
  return give(out, spec_object(from[at]));
}

std::string line_of(const Candidate& candidate) {
  std::string line;
  for (const Layout& layout : candidate.inputs) {
    line += (line.empty() ? "" : " ") + to_string(layout);
  }
  line += " ->";
  for (const Layout& layout : candidate.outputs) {
    line += " " + to_string(layout);
  }
  if (candidate.possible) {
    line += "  " + std::to_string(candidate.cost()) + " ns";
  }
  line += candidate.why_not.empty() ? "  taken" : "  " + candidate.why_not;
  return line + "\n";
}

}  // namespace

shardprop_error* shardprop_propagator_create(
    const shardprop_mesh* mesh, const shardprop_topology* topology,
    const shardprop_library* library, int32_t moves,
    shardprop_propagator** propagator) {
  return barrier([&]() -> Result<void> {
    SP_CHECK(clear(propagator, "propagator"));
    SP_ASSIGN(const DeviceMesh* on, get(mesh));
    SP_ASSIGN(const Topology* machine, get(topology));
    SP_ASSIGN(const auto* operators, get(library));
    PropagatorOptions options;
    if (moves == SHARDPROP_MOVES_FORBIDDEN) {
      options.moves = ImplicitMoves::kForbidden;
    } else if (moves != SHARDPROP_MOVES_ALLOWED) {
      return fail(ErrorCode::kInvalidArgument,
                  "`moves` is " + std::to_string(moves),
                  "pass SHARDPROP_MOVES_ALLOWED or SHARDPROP_MOVES_FORBIDDEN");
    }
    SP_ASSIGN(ShardingPropagator made,
              ShardingPropagator::create(*on, *machine, *operators, options));
    return give(propagator, std::move(made));
  });
}

shardprop_error* shardprop_propagate(const shardprop_propagator* propagator,
                                     shardprop_call* call,
                                     shardprop_sharding** sharding) {
  return barrier([&]() -> Result<void> {
    SP_CHECK(clear(sharding, "sharding"));
    SP_ASSIGN(const ShardingPropagator* by, get(propagator));
    SP_ASSIGN(CallObject * of, get(call));
    SP_ASSIGN(const OpSchema* op, made_call(*of));
    SP_ASSIGN(OutputSharding found, by->propagate(*op, of->operands));
    return give(
        sharding,
        {std::make_shared<const OutputSharding>(std::move(found)), by->mesh()});
  });
}

shardprop_error* shardprop_candidates(const shardprop_propagator* propagator,
                                      shardprop_call* call, char** text) {
  return barrier([&]() -> Result<void> {
    SP_CHECK(clear(text, "text"));
    SP_ASSIGN(const ShardingPropagator* by, get(propagator));
    SP_ASSIGN(CallObject * of, get(call));
    SP_ASSIGN(const OpSchema* op, made_call(*of));
    // Meshes and metas are checked as in propagate().
    if (auto possible = by->propagate(*op, of->operands);
        !possible && possible.error().code != ErrorCode::kNoStrategy) {
      return fail(std::move(possible).error());
    }
    std::vector<Layout> layouts;
    for (const TensorSpec& spec : of->operands)
      layouts.push_back(spec.layout());
    SP_ASSIGN(const auto all, by->candidates(*op, layouts));
    std::string lines;
    for (const Candidate& candidate : all) lines += line_of(candidate);
    return give_text(text, lines);
  });
}
void shardprop_propagator_free(shardprop_propagator* propagator) {
  release(propagator);
}

shardprop_error* shardprop_cache_create(const shardprop_propagator* propagator,
                                        int64_t most_entries,
                                        int64_t most_bytes,
                                        shardprop_cache** cache) {
  return barrier([&]() -> Result<void> {
    SP_CHECK(clear(cache, "cache"));
    SP_ASSIGN(const ShardingPropagator* by, get(propagator));
    if (most_entries < 0 || most_bytes < 0) {
      return fail(ErrorCode::kInvalidArgument, "a bound is below 0",
                  "pass 0 for the default");
    }
    CacheOptions options;
    if (most_entries > 0) {
      options.most_entries = static_cast<std::size_t>(most_entries);
    }
    if (most_bytes > 0) {
      options.most_bytes = static_cast<std::size_t>(most_bytes);
    }
    SP_ASSIGN(auto made, CachingPropagator::create(*by, options));
    return give(cache, std::move(made));
  });
}

shardprop_error* shardprop_cache_set_library(shardprop_cache* cache,
                                             const shardprop_library* library) {
  return barrier([&]() -> Result<void> {
    SP_ASSIGN(CachingPropagator * of, get(cache));
    SP_ASSIGN(const auto* operators, get(library));
    return of->set_library(*operators);
  });
}

shardprop_error* shardprop_cache_read_statistics(
    const shardprop_cache* cache, shardprop_cache_statistics* statistics) {
  return barrier([&]() -> Result<void> {
    if (statistics == nullptr) {
      return fail(ErrorCode::kInvalidArgument, "`statistics` is null",
                  "pass the address of a variable");
    }
    *statistics = {};
    SP_ASSIGN(const CachingPropagator* of, get(cache));
    const CacheStatistics seen = of->statistics();
    *statistics = {seen.hits,  seen.shared_hits, seen.misses,
                   seen.waits, seen.evictions,   seen.entries,
                   seen.bytes, seen.generation};
    return {};
  });
}

shardprop_error* shardprop_cache_propagate(const shardprop_cache* cache,
                                           shardprop_call* call,
                                           shardprop_sharding** sharding) {
  return barrier([&]() -> Result<void> {
    SP_CHECK(clear(sharding, "sharding"));
    SP_ASSIGN(const CachingPropagator* by, get(cache));
    SP_ASSIGN(CallObject * of, get(call));
    SP_ASSIGN(const OpSchema* op, made_call(*of));
    SP_ASSIGN(auto found, by->propagate(*op, of->operands));
    return give(sharding, {std::move(found), by->mesh()});
  });
}
void shardprop_cache_free(shardprop_cache* cache) { release(cache); }

int64_t shardprop_sharding_input_count(const shardprop_sharding* sharding) {
  const OutputSharding* of = answer_of(sharding);
  return of == nullptr ? 0 : count(of->inputs.size());
}
int64_t shardprop_sharding_output_count(const shardprop_sharding* sharding) {
  const OutputSharding* of = answer_of(sharding);
  return of == nullptr ? 0 : count(of->outputs.size());
}
shardprop_error* shardprop_sharding_input(const shardprop_sharding* sharding,
                                          int64_t i, shardprop_spec** spec) {
  return barrier([&]() -> Result<void> {
    SP_CHECK(clear(spec, "spec"));
    SP_ASSIGN(const ShardingObject* of, get(sharding));
    return give_spec(spec, of->sharding->inputs, i, "input");
  });
}
shardprop_error* shardprop_sharding_output(const shardprop_sharding* sharding,
                                           int64_t i, shardprop_spec** spec) {
  return barrier([&]() -> Result<void> {
    SP_CHECK(clear(spec, "spec"));
    SP_ASSIGN(const ShardingObject* of, get(sharding));
    return give_spec(spec, of->sharding->outputs, i, "output");
  });
}

int64_t shardprop_sharding_move_count(const shardprop_sharding* sharding) {
  const OutputSharding* of = answer_of(sharding);
  return of == nullptr ? 0 : count(of->moves.size());
}
shardprop_error* shardprop_sharding_move(
    const shardprop_sharding* sharding, int64_t i, int64_t* input,
    shardprop_redistribution** redistribution) {
  return barrier([&]() -> Result<void> {
    SP_CHECK(clear(redistribution, "redistribution"));
    SP_ASSIGN(const ShardingObject* of, get(sharding));
    SP_ASSIGN(const std::size_t at,
              index_of(i, of->sharding->moves.size(), "move"));
    const InputMove& move = of->sharding->moves[at];
    if (input != nullptr) *input = count(move.input);
    return give(redistribution, {move.plan});
  });
}

int64_t shardprop_sharding_rank_argument_count(
    const shardprop_sharding* sharding) {
  const OutputSharding* of = answer_of(sharding);
  return of == nullptr ? 0 : count(of->rank_arguments.size());
}
const char* shardprop_sharding_rank_argument_name(
    const shardprop_sharding* sharding, int64_t i) {
  const OutputSharding* of = answer_of(sharding);
  if (of == nullptr || i < 0 || i >= count(of->rank_arguments.size()))
    return "";
  return of->rank_arguments[index(i)].name().c_str();
}
shardprop_error* shardprop_sharding_rank_argument(
    const shardprop_sharding* sharding, int64_t i, int64_t rank,
    int64_t* values, int64_t capacity, int64_t* count_out) {
  return barrier([&]() -> Result<void> {
    SP_ASSIGN(const ShardingObject* of, get(sharding));
    SP_ASSIGN(
        const std::size_t at,
        index_of(i, of->sharding->rank_arguments.size(), "rank argument"));
    SP_ASSIGN(const std::size_t room, count_of(values, capacity, "values"));
    const auto place = of->mesh.coordinate_of(rank);
    if (!place) {
      return fail(ErrorCode::kMeshCoordinate,
                  "rank " + std::to_string(rank) + " is not on mesh " +
                      to_string(of->mesh),
                  "ask for a rank of the mesh");
    }
    const std::vector<std::int64_t> found =
        of->sharding->rank_arguments[at].at(*place);
    std::copy_n(found.begin(), std::min(room, found.size()), values);
    if (count_out != nullptr) *count_out = count(found.size());
    return {};
  });
}

int64_t shardprop_sharding_cost(const shardprop_sharding* sharding) {
  const OutputSharding* of = answer_of(sharding);
  return of == nullptr ? -1 : of->cost();
}
int64_t shardprop_sharding_inside_cost(const shardprop_sharding* sharding) {
  const OutputSharding* of = answer_of(sharding);
  return of == nullptr ? -1 : of->inside_nanoseconds;
}
void shardprop_sharding_free(shardprop_sharding* sharding) {
  release(sharding);
}

shardprop_error* shardprop_redistribution_plan(
    const shardprop_spec* src, const shardprop_spec* dst,
    const shardprop_topology* topology,
    shardprop_redistribution** redistribution) {
  return barrier([&]() -> Result<void> {
    SP_CHECK(clear(redistribution, "redistribution"));
    SP_ASSIGN(const SpecObject* from, get(src));
    SP_ASSIGN(const SpecObject* to, get(dst));
    SP_ASSIGN(const Topology* machine, get(topology));
    SP_ASSIGN(RedistributePlan plan,
              plan_redistribution(from->spec, to->spec, *machine));
    return give(redistribution,
                {std::make_shared<const RedistributePlan>(std::move(plan))});
  });
}
int64_t shardprop_redistribution_step_count(
    const shardprop_redistribution* plan) {
  const RedistributionObject* of = peek(plan);
  return of == nullptr ? 0 : count(of->plan->steps.size());
}
shardprop_error* shardprop_redistribution_step(
    const shardprop_redistribution* plan, int64_t i, shardprop_step* step) {
  return barrier([&]() -> Result<void> {
    if (step == nullptr) {
      return fail(ErrorCode::kInvalidArgument, "`step` is null",
                  "pass the address of a variable");
    }
    *step = {"", 0, 0, 0};
    SP_ASSIGN(const RedistributionObject* of, get(plan));
    SP_ASSIGN(const std::size_t at,
              index_of(i, of->plan->steps.size(), "step"));
    const RedistributeStep& found = of->plan->steps[at];
    step->kind = to_string(found.kind).data();  // a literal
    for (const std::int32_t dim : found.mesh_dims) step->mesh_dims |= 1U << dim;
    step->bytes_per_rank = found.bytes_per_rank;
    step->nanoseconds = found.nanoseconds;
    return {};
  });
}
int64_t shardprop_redistribution_cost(const shardprop_redistribution* plan) {
  const RedistributionObject* of = peek(plan);
  return of == nullptr ? -1 : of->plan->nanoseconds;
}
void shardprop_redistribution_free(shardprop_redistribution* plan) {
  release(plan);
}
