#include <shardprop/propagate/sharding_propagator.h>

#include "base/guard.h"
#include "base/nothing_wrong.h"
#include "base/quantities.h"
#include "base/try.h"
#include "ops/schema/operand_name.h"
#include "ops/space/fused_lists.h"
#include "placement/single_ranks.h"
#include "propagate/propagator_body.h"

#include <shardprop/redistribute/planner.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

Error written_layout(const BoundOp& call, std::span<const Layout> given) {
  Error error{ErrorCode::kNoStrategy,
              "`" + call.op->name() +
                  "` writes a tensor in a layout that no strategy leaves as it "
                  "is",
              call.op->name(),
              {},
              "redistribute it first, or call the operator that returns a new "
              "tensor"};
  for (const WrittenOperand& write : call.writes) {
    error.notes.push_back("writes `" + operand_name(*call.op, write.operand) +
                          "`: " + to_string(call.op->inputs[write.operand]) +
                          " " + to_string(given[write.operand]));
  }
  return error;
}

}  // namespace

Result<TensorSpec> spec_of(const DeviceMesh& mesh, const Layout& layout,
                           const TensorMeta& meta) {
  auto spec = TensorSpec::create(mesh, layout, meta);
  if (!spec) throw InternalError("a strategy has a layout that does not fit");
  return spec;
}

Result<ShardingPropagator> ShardingPropagator::create(
    DeviceMesh mesh, Topology topology,
    std::shared_ptr<const OpLibrary> library, PropagatorOptions options) {
  if (library == nullptr) {
    return fail(ErrorCode::kInvalidArgument, "a propagator has no operators",
                "pass OpLibrary::standard()");
  }
  if (options.moves == ImplicitMoves::kReported && !options.report) {
    return fail(ErrorCode::kInvalidArgument,
                "implicit redistributions are to be reported to nobody",
                "set PropagatorOptions::report");
  }
  return guarded([&]() -> Result<ShardingPropagator> {
    SP_CHECK(check_topology(topology));
    SP_ASSIGN(RedistributePlanner planner,
              RedistributePlanner::create(mesh, topology));
    return ShardingPropagator(std::make_shared<const Body>(
        std::move(mesh), std::move(topology), std::move(library),
        std::move(options),
        std::make_shared<CachingPlanner>(std::move(planner))));
  });
}

ShardingPropagator::ShardingPropagator(std::shared_ptr<const Body> body)
    : body_(std::move(body)) {}

const DeviceMesh& ShardingPropagator::mesh() const { return body_->mesh; }
const Topology& ShardingPropagator::topology() const { return body_->topology; }
const std::shared_ptr<const OpLibrary>& ShardingPropagator::library() const {
  return body_->library;
}
const PropagatorOptions& ShardingPropagator::options() const {
  return body_->options;
}

ShardingPropagator ShardingPropagator::with_library(
    std::shared_ptr<const OpLibrary> library) const {
  return ShardingPropagator(std::make_shared<const Body>(
      body_->mesh, body_->topology, std::move(library), body_->options,
      body_->planner));
}

Result<void> ShardingPropagator::Body::check_inputs(
    const OpSchema& op, std::span<const Layout> inputs) const {
  if (op.function == nullptr) {
    return fail(ErrorCode::kInvalidArgument, "a call has no operator",
                "make it with make_op_schema()");
  }
  if (inputs.size() != op.inputs.size()) {
    return fail(Error{ErrorCode::kInvalidArgument,
                      "`" + op.name() + "` has " +
                          counted(op.inputs.size(), "operand") +
                          " and is given " + counted(inputs.size(), "layout"),
                      op.name(),
                      {},
                      "give one per tensor, list elements each, absent ones "
                      "left out"});
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (auto fits = check_layout(inputs[i], mesh, op.inputs[i]); !fits) {
      return fail(std::move(fits).error().at(op.name() + ", `" +
                                             operand_name(op, i) + "`"));
    }
  }
  return nothing_wrong();
}

Result<std::vector<Layout>> layouts_on(const DeviceMesh& mesh,
                                       const OpSchema& op,
                                       std::span<const TensorSpec> inputs) {
  std::vector<Layout> layouts;
  layouts.reserve(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].mesh() != mesh) {
      return fail(
          Error{ErrorCode::kRedistributeMeshes,
                "operand " + std::to_string(i) + " is on mesh " +
                    to_string(inputs[i].mesh()) + ", the call is on mesh " +
                    to_string(mesh),
                op.name(),
                {},
                "bring the tensors to one mesh: plan_between_meshes()"});
    }
    if (i < op.inputs.size() && inputs[i].meta() != op.inputs[i]) {
      return fail(Error{ErrorCode::kShapeMismatch,
                        "operand " + std::to_string(i) + " is " +
                            to_string(op.inputs[i]) + " in the call and " +
                            to_string(inputs[i].meta()) + " in its spec",
                        op.name(),
                        {},
                        "make the call from the metas of the specs"});
    }
    layouts.push_back(inputs[i].layout());
  }
  return layouts;
}

Result<ShardingPropagator::Body::Answer> ShardingPropagator::Body::answer(
    const OpSchema& op, std::span<const Layout> inputs) const {
  SP_CHECK(check_inputs(op, inputs));
  if (const auto form = foreach_form(*op.function, *library)) {
    SP_ASSIGN(const auto elements, element_calls(*form, op, *library));
    return answer_of_list(op, elements, form->arguments, inputs);
  }
  // A fused step that returns nothing has no lists of results to put together.
  if (op.function->returns().empty() && op.outputs.empty()) {
    const auto elements = fused_calls(op);
    if (!elements.empty()) {
      std::vector<std::size_t> arguments(op.args.size());
      std::iota(arguments.begin(), arguments.end(), std::size_t{0});
      return answer_of_list(op, elements, arguments, inputs);
    }
  }
  Answer out;
  SP_ASSIGN(out.call, calls.get(op));
  const BoundOp& call = *out.call;
  std::vector<Layout> given;
  given.reserve(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    given.push_back(without_single_ranks(
        canonical(inputs[i], mesh, op.inputs[i].shape()), mesh));
  }
  const SearchContext context = this->context();
  auto chosen = choose_strategy(context, call, given);
  if (!chosen) {
    if (chosen.error().written_moves) return fail(written_layout(call, given));
    return fail(std::move(chosen).error().refused);
  }
  OutputSharding& made = out.sharding;
  made.inputs.reserve(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Layout& needed = chosen->operands[i];
    if (needed == given[i]) {
      SP_ASSIGN(TensorSpec spec, spec_of(mesh, inputs[i], op.inputs[i]));
      made.inputs.push_back(std::move(spec));
      continue;
    }
    made.moves.push_back({i, std::move(chosen->plans[i])});
    SP_ASSIGN(TensorSpec spec, spec_of(mesh, needed, op.inputs[i]));
    made.inputs.push_back(std::move(spec));
  }
  made.outputs.reserve(call.op->outputs.size());
  for (std::size_t o = 0; o < call.op->outputs.size(); ++o) {
    SP_ASSIGN(TensorSpec spec,
              spec_of(mesh, chosen->operands[inputs.size() + o],
                      call.op->outputs[o]));
    made.outputs.push_back(std::move(spec));
  }
  made.output_slots = call.op->output_slots;
  made.assignments.push_back(chosen->assignment);
  made.shardings.push_back(std::move(chosen->shardings));
  made.inside = std::move(chosen->inside);
  made.redistribute_nanoseconds = chosen->moved_nanoseconds;
  made.inside_nanoseconds = chosen->inside_nanoseconds;
  if (!call.space->local_arguments.empty()) {
    made.rank_arguments = rank_arguments(
        LocalStrategy(call.op, call.space, made, mesh).context());
  }
  out.is_only_fit = chosen->is_only_fit;
  return out;
}

Result<OutputSharding> ShardingPropagator::propagate(
    const OpSchema& op, std::span<const Layout> inputs) const {
  return guarded([&]() -> Result<OutputSharding> {
    SP_ASSIGN(Body::Answer answer, body_->answer(op, inputs));
    SP_CHECK(guard_moves(body_->options, op, inputs, answer.sharding));
    return std::move(answer.sharding);
  });
}

Result<OutputSharding> ShardingPropagator::propagate(
    const OpSchema& op, std::span<const TensorSpec> inputs) const {
  return guarded([&]() -> Result<OutputSharding> {
    SP_ASSIGN(const std::vector<Layout> layouts,
              layouts_on(body_->mesh, op, inputs));
    return propagate(op, layouts);
  });
}

Result<OpStrategy> ShardingPropagator::strategies(
    const OpSchema& op, LayoutTable& layouts,
    const StrategyOptions& options) const {
  return guarded([&]() -> Result<OpStrategy> {
    SP_ASSIGN(const auto call, body_->calls.get(op));
    return op_strategies(call->op, call->space, body_->mesh, layouts, options);
  });
}

Result<std::shared_ptr<const LocalStrategy>> ShardingPropagator::local_strategy(
    const OpSchema& op, const OutputSharding& sharding) const {
  return guarded([&]() -> Result<std::shared_ptr<const LocalStrategy>> {
    // The call has the caller's own arguments, because an answer may serve
    // calls that differ in arguments that it does not depend on.
    SP_ASSIGN(const auto call, body_->calls.get(op));
    if (sharding.inputs.size() != call->op->inputs.size() ||
        sharding.outputs.size() != call->op->outputs.size() ||
        sharding.assignments.size() != 1 || sharding.shardings.size() != 1 ||
        sharding.assignments[0].size() !=
            static_cast<std::size_t>(body_->mesh.ndim())) {
      return fail(ErrorCode::kInvalidArgument,
                  "the answer is not one for a call of `" + op.name() + "`",
                  "pass what propagate() returned for this call");
    }
    return std::make_shared<const LocalStrategy>(call->op, call->space,
                                                 sharding, body_->mesh);
  });
}

LocalStrategy::LocalStrategy(std::shared_ptr<const OpSchema> op,
                             std::shared_ptr<const IndexSpace> space,
                             const OutputSharding& sharding, DeviceMesh mesh)
    : op_(std::move(op)), space_(std::move(space)), mesh_(std::move(mesh)) {
  strategy_.assignment = sharding.assignments.at(0);
  const FactorShardings& shardings = sharding.shardings.at(0);
  if (!shardings.is_mesh_order()) {
    strategy_.shardings = layouts_.intern(shardings.of_all());
  }
  for (const TensorSpec& spec : sharding.inputs) {
    strategy_.inputs.push_back(layouts_.intern(spec.layout()));
  }
  for (const TensorSpec& spec : sharding.outputs) {
    strategy_.outputs.push_back(layouts_.intern(spec.layout()));
  }
}

Result<void> guard_moves(const PropagatorOptions& options, const OpSchema& op,
                         std::span<const Layout> given,
                         const OutputSharding& sharding) {
  if (!sees_moves(options, sharding)) return nothing_wrong();
  if (options.moves == ImplicitMoves::kReported) {
    options.report(op, sharding);
    return {};
  }
  return fail(Error{ErrorCode::kNoStrategy,
                    "`" + op.name() + "` would redistribute its inputs: " +
                        describe_moves(op, given, sharding),
                    op.name(),
                    {},
                    "redistribute them before the call, or allow implicit "
                    "moves"});
}

std::string describe_moves(const OpSchema& op, std::span<const Layout> given,
                           const OutputSharding& sharding) {
  std::string text;
  for (const InputMove& move : sharding.moves) {
    std::size_t sent = 0;
    for (const RedistributeStep& step : move.plan->steps) {
      sent += step.kind == CollectiveKind::kSlice ? 0 : 1;
    }
    if (!text.empty()) text += "; ";
    text += "input " + std::to_string(move.input) + " `" +
            operand_name(op, move.input) +
            "`: " + to_string(given[move.input]) + " -> " +
            to_string(sharding.inputs[move.input].layout()) + ", " +
            std::to_string(sent) +
            (sent == 1 ? " collective, " : " collectives, ") +
            time_text(move.plan->nanoseconds);
  }
  return text;
}

}  // namespace shardprop
