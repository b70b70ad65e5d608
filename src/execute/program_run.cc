#include <shardprop/execute/program_run.h>

#include "base/guard.h"
#include "base/index.h"
#include "base/try.h"
#include "execute/collective_run.h"
#include "execute/held_values.h"
#include "execute/rank_clock.h"
#include "execute/region_elements.h"

#include <shardprop/execute/executor.h>
#include <shardprop/placement/local_region.h>
#include <shardprop/program/random_bits.h>
#include <shardprop/program/rank_program.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace shardprop {
namespace {

constexpr std::string_view kRandomBits = "shardprop.random_bits";

DType widened(DType dtype) {
  if (is_complex(dtype)) return DType::kC128;
  return is_floating(dtype) ? DType::kF64 : dtype;
}

// Returns the meta of an evaluator's operand. Values do not depend on strides,
// so the meta is contiguous.
Result<TensorMeta> meta_of(const LocalTensor& tensor) {
  return TensorMeta::contiguous(tensor.sizes(), tensor.dtype());
}

class RankRun {
 public:
  RankRun(const SpmdProgram& program, Communicator& communicator,
          const ProgramRunOptions& options, ProgramRunReport& report)
      : program_(program),
        communicator_(communicator),
        options_(options),
        report_(report),
        held_(program) {
    if (options.prices != nullptr) clock_.emplace(program, *options.prices);
    report_ = {};
    report_.step_payload_bytes.resize(program.steps.size(), 0);
    report_.step_calls.resize(program.steps.size(), 0);
  }

  Result<std::vector<LocalTensor>> operator()(
      std::span<const LocalTensor> inputs) {
    const auto at = program_.mesh.coordinate_of(communicator_.rank());
    if (!at) {
      return fail(ErrorCode::kMeshCoordinate,
                  "rank " + std::to_string(communicator_.rank()) +
                      " is not on the mesh " + to_string(program_.mesh));
    }
    at_ = *at;
    held_.stand_at(at_);
    if (inputs.size() != program_.inputs.size()) {
      return fail(ErrorCode::kInvalidArgument,
                  "the program takes " +
                      std::to_string(program_.inputs.size()) + " inputs, not " +
                      std::to_string(inputs.size()));
    }
    SP_CHECK(check_host(communicator_.memory_ops().device(),
                        "the communicator exchanges tensors"));
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      SP_CHECK(
          check_host(inputs[i].device(), "input " + std::to_string(i) + " is"));
      SP_CHECK(held_.hold(program_.inputs[i].value, inputs[i]));
    }
    for (std::size_t s = 0; s < program_.steps.size(); ++s) {
      step_ = s;
      const Result<void> done = run_step(program_.steps[s]);
      report_.peak_bytes = held_.peak_bytes();
      if (!done) {
        return fail(Error(done.error()).at(place()));
      }
    }
    std::vector<LocalTensor> outputs;
    for (const ProgramOutput& output : program_.outputs) {
      SP_ASSIGN(LocalTensor held, held_.output(output.value));
      outputs.push_back(std::move(held));
    }
    SP_CHECK(held_.check_complete());
    if (clock_) report_.virtual_nanoseconds = clock_->end();
    return outputs;
  }

 private:
  // "node mm_1, rank 3".
  std::string place() const {
    const ProgramStep& step = program_.steps[step_];
    const std::string name = step.node < program_.nodes.size()
                                 ? program_.nodes[step.node].name
                                 : std::string();
    return (name.empty() ? "end of the program" : name) + ", rank " +
           std::to_string(communicator_.rank());
  }

  static Result<void> check_host(const Device& device,
                                 const std::string& what) {
    if (device.type == DeviceType::kHost) return {};
    return fail(
        ErrorCode::kCollectiveDevice,
        what + " on " + to_string(device) + ", and programs run on host memory",
        "run the program on threads or MPI, with tensors on the host");
  }

  Result<void> make(ProgramValueId id, LocalTensor tensor) {
    const ProgramValue& value = program_.value(id);
    if (!value.is_local()) {
      const Dims wanted = local_shape(program_, id, at_);
      const DType dtype = run_dtype(value.meta.dtype(), options_.widen);
      if (tensor.sizes() != wanted || tensor.dtype() != dtype) {
        return fail(
            Error{ErrorCode::kLocalTensor,
                  "`" + value.name + "` comes out as " + to_string(tensor) +
                      " where its layout says " +
                      to_string(LocalTensor::wrap(nullptr, wanted, dtype)),
                  {},
                  {to_string(value.meta) + " " + to_string(value.layout)},
                  {}});
      }
    }
    SP_CHECK(held_.hold(id, tensor));
    if (!value.is_local() && options_.made) {
      return options_.made(id, step_, tensor);
    }
    return {};
  }

  // --- steps ---

  Result<void> run_step(const ProgramStep& step) {
    if (clock_) SP_CHECK(clock_->run(step, communicator_));
    SP_CHECK(run_action(step));
    if (step.is_overlapped) held_.start(step);
    return {};
  }

  Result<void> run_action(const ProgramStep& step) {
    if (const auto* op = std::get_if<ProgramOp>(&step.action)) {
      return op->op == kRandomBits ? draw(*op) : run_op(*op);
    }
    if (const auto* moved = std::get_if<ProgramCollective>(&step.action)) {
      return move(*moved);
    }
    if (const auto* wait = std::get_if<ProgramWait>(&step.action)) {
      return held_.end(*wait);
    }
    return held_.free(std::get<ProgramFree>(step.action));
  }

  Result<LocalTensor> read(ProgramValueId id) const {
    return held_.value(id, program_.steps[step_]);
  }

  Result<void> run_op(const ProgramOp& op) {
    RankOp call = rank_op(program_, op, at_);
    const auto function = options_.library->find(call.name);
    if (function == nullptr) {
      return fail(ErrorCode::kUnknownOperator,
                  "`" + call.name + "` is not declared");
    }
    std::vector<LocalTensor> inputs;
    std::vector<TensorMeta> metas;
    for (const ProgramValueId id : call.tensors) {
      SP_ASSIGN(LocalTensor held, read(id));
      SP_ASSIGN(TensorMeta meta, meta_of(held));
      inputs.push_back(std::move(held));
      metas.push_back(std::move(meta));
    }
    for (GivenArgument& given : call.args) {
      if (auto* dtype = std::get_if<DType>(&given.value)) {
        *dtype = run_dtype(*dtype, options_.widen);
      }
    }

    SP_ASSIGN(OpSchema schema,
              make_op_schema(function, call.args, std::move(metas)));
    inputs = in_declared_order(schema, call, inputs);
    SP_CHECK(set_outputs(schema, op));
    SP_ASSIGN(std::vector<LocalTensor> made, options_.evaluate(schema, inputs));
    if (made.size() != schema.outputs.size()) {
      return fail(ErrorCode::kLocalTensor,
                  "`" + call.name + "` gives " + std::to_string(made.size()) +
                      " results, not " + std::to_string(schema.outputs.size()));
    }
    for (std::size_t r = 0; r < op.outputs.size(); ++r) {
      if (!op.outputs[r].valid()) continue;
      const std::int32_t slot = r < schema.output_slots.size()
                                    ? schema.output_slots[r]
                                    : OpSchema::kNotProduced;
      if (slot == OpSchema::kNotProduced) {
        return fail(
            ErrorCode::kLocalTensor,
            "`" + call.name + "` does not produce result " + std::to_string(r));
      }
      SP_CHECK(make(op.outputs[r], made[index(slot)]));
    }
    return {};
  }

  // Reorders operands: make_op_schema() counts them in the order of the
  // declaration, and `call` counts them in the order in which they are given.
  static std::vector<LocalTensor> in_declared_order(
      const OpSchema& schema, const RankOp& call,
      const std::vector<LocalTensor>& given) {
    std::vector<LocalTensor> out;
    for (const ArgumentSchema& declared : schema.function->arguments()) {
      for (const GivenArgument& argument : call.args) {
        if (argument.name != declared.name) continue;
        const auto add = [&](const TensorArg& tensor) {
          if (tensor.operand == TensorArg::kNone) return;
          out.push_back(given[index(tensor.operand)]);
        };
        if (const auto* one = std::get_if<TensorArg>(&argument.value))
          add(*one);
        if (const auto* list =
                std::get_if<std::vector<TensorArg>>(&argument.value)) {
          for (const TensorArg& element : *list) add(element);
        }
      }
    }
    return out;
  }

  // True if the program says how large all of them are.
  bool states_all(const std::vector<ProgramValueId>& outputs) const {
    return std::all_of(outputs.begin(), outputs.end(), [&](ProgramValueId id) {
      return !id.valid() || !program_.value(id).is_local();
    });
  }

  // Sets the results that the operator infers from its operands. Sizes that
  // depend on data are the program's, and so are the dtypes it states.
  Result<void> set_outputs(OpSchema& schema, const ProgramOp& op) const {
    std::vector<std::optional<TensorMeta>> results;
    if (options_.library->infers(*schema.function)) {
      auto inferred = options_.library->infer_results(schema);
      if (inferred) {
        results = *std::move(inferred);
      } else if (inferred.error().code != ErrorCode::kNoShapeInference ||
                 !states_all(op.outputs)) {
        return fail(std::move(inferred).error());
      }
    }
    results.resize(std::max(results.size(), op.outputs.size()));
    for (std::size_t r = 0; r < results.size(); ++r) {
      const bool stated = r < op.outputs.size() && op.outputs[r].valid() &&
                          !program_.value(op.outputs[r]).is_local();
      if (!stated) {
        if (results[r]) {
          SP_ASSIGN(results[r],
                    TensorMeta::contiguous(
                        results[r]->shape(),
                        run_dtype(results[r]->dtype(), options_.widen)));
        }
        continue;
      }
      const ProgramValueId id = op.outputs[r];
      const Dims shape =
          results[r] ? results[r]->shape() : local_shape(program_, id, at_);
      SP_ASSIGN(results[r],
                TensorMeta::contiguous(
                    shape, run_dtype(program_.value(id).meta.dtype(),
                                     options_.widen)));
    }
    set_results(schema, std::move(results));
    return {};
  }

  // --- random numbers ---

  Result<std::int64_t> number(const ProgramOp& op,
                              std::string_view name) const {
    for (const auto& [argument, given] : op.args) {
      if (argument != name) continue;
      if (const auto* id = std::get_if<ProgramValueId>(&given)) {
        SP_ASSIGN(const LocalTensor held, read(*id));
        if (held.dtype() != DType::kI64 || held.numel() != 1) {
          return fail(ErrorCode::kLocalTensor,
                      "`" + std::string(name) + "` of `" + op.op + "` is " +
                          to_string(held),
                      "give one element of i64");
        }
        SP_CHECK(check_host(held.device(), "`" + std::string(name) + "` is"));
        return *held.data_as<std::int64_t>();
      }
      if (const auto* same = std::get_if<Argument>(&given)) {
        if (const auto* i = std::get_if<std::int64_t>(same)) return *i;
      }
      if (const auto* differs = std::get_if<RankInt>(&given)) {
        return differs->at(program_.mesh, at_);
      }
    }
    return fail(ErrorCode::kMissingArgument,
                "`" + op.op + "` lacks `" + std::string(name) + "`");
  }

  Result<void> draw(const ProgramOp& op) {
    SP_ASSIGN(const std::int64_t seed, number(op, "seed"));
    SP_ASSIGN(const std::int64_t node, number(op, "node"));
    SP_ASSIGN(const std::int64_t word, number(op, "word"));
    const ProgramValueId id = op.outputs.front();
    const Dims& whole = program_.value(id).meta.shape();
    const LocalRegion region =
        local_region(program_.value(id).layout, program_.mesh, whole, at_);
    SP_ASSIGN(LocalTensor out, LocalTensor::empty(region.shape(), DType::kI64));
    auto* to = out.data_as<std::int64_t>();
    for (const std::int64_t element : execute::elements_of(region, whole)) {
      *to++ = random_bits(static_cast<std::uint64_t>(seed),
                          static_cast<std::uint32_t>(node),
                          static_cast<std::uint64_t>(element),
                          static_cast<std::uint32_t>(word));
    }
    return make(id, std::move(out));
  }

  // --- collectives ---

  Result<void> move(const ProgramCollective& collective) {
    SP_ASSIGN(const LocalTensor source, read(collective.input));
    const CommunicatorStats before = communicator_.stats();
    SP_ASSIGN(LocalTensor made,
              execute::run_collective(program_, collective, source,
                                      communicator_, options_.widen));
    const CommunicatorStats after = communicator_.stats();
    const DType sent = collective.step.dtype;
    report_.step_payload_bytes[step_] =
        (after.payload_bytes - before.payload_bytes) /
        item_size(run_dtype(sent, options_.widen)) * item_size(sent);
    report_.step_calls[step_] = after.calls - before.calls;
    return make(collective.output, std::move(made));
  }

  const SpmdProgram& program_;
  Communicator& communicator_;
  const ProgramRunOptions& options_;
  ProgramRunReport& report_;
  Coordinate at_;
  execute::HeldValues held_;
  std::optional<execute::RankClock> clock_;
  std::size_t step_ = 0;
};

}  // namespace

DType run_dtype(DType dtype, bool widen) {
  return widen ? widened(dtype) : dtype;
}

Result<std::vector<LocalTensor>> run(const SpmdProgram& program,
                                     Communicator& communicator,
                                     std::span<const LocalTensor> inputs,
                                     const ProgramRunOptions& options,
                                     ProgramRunReport* report) {
  ProgramRunReport unread;
  return guarded([&] {
    return RankRun(program, communicator, options,
                   report != nullptr ? *report : unread)(inputs);
  });
}

}  // namespace shardprop
