#include "io/emit/rank_emitter.h"

#include "base/index.h"
#include "base/try.h"
#include "io/emit/philox.h"
#include "io/emit/tensor_ops.h"
#include "ops/op_call.h"
#include "ops/schema/foreign_operator.h"
#include "program/step_values.h"

#include <shardprop/placement/local_region.h>
#include <shardprop/program/rank_program.h>

#include <algorithm>
#include <type_traits>

namespace shardprop::emit {
namespace {

// Views of local tensors may need a copy even if views of the full tensors need
// none.
std::string_view local_name(std::string_view op) {
  if (op == "aten.view.default" || op == "aten._unsafe_view.default") {
    return "aten.reshape.default";
  }
  if (op == "aten.view_as.default") return "aten.reshape_as.default";
  return op;
}

// Returns the name of the overload that writes into its first argument:
// aten.index_copy.default -> aten.index_copy_.default.
std::string in_place_name(std::string name) {
  return name.insert(name.rfind('.'), "_");
}

// Returns the view of `self` into which an operator writes its source.
std::string_view written_view(std::string_view op) {
  if (op == "aten.slice_scatter.default") return "aten.slice.Tensor";
  if (op == "aten.select_scatter.default") return "aten.select.int";
  return {};
}

// Returns the output that is written into the memory of an operand; invalid if
// there is none.
ProgramValueId written_result(const SpmdProgram& program, const ProgramOp& op) {
  for (const ProgramValueId id : op.outputs) {
    if (id.valid() && program.value(id).overwrites.valid()) return id;
  }
  return {};
}

// Returns whether the operator itself has the tensor as the argument `self`.
bool is_self(const ProgramOp& op, ProgramValueId id) {
  return std::any_of(op.args.begin(), op.args.end(), [&](const auto& argument) {
    const auto* given = std::get_if<ProgramValueId>(&argument.second);
    return argument.first == "self" && given != nullptr && *given == id;
  });
}

std::string device_name(const std::string& name) {
  return name.substr(0, name.find(':'));
}

std::string_view prefix(InputKind kind) {
  switch (kind) {
    case InputKind::kParameter:
      return "p_";
    case InputKind::kBuffer:
    case InputKind::kOptimizerState:
      return "b_";
    case InputKind::kConstant:
      return "c_";
    default:
      return "";
  }
}

// True if PyTorch would produce the result on the CPU, because neither an
// operand nor an argument names the device. Exported factories name their
// device; factories inside local programs do not.
bool makes_from_nothing(const ProgramOp& op) {
  return std::none_of(op.args.begin(), op.args.end(), [](const auto& argument) {
    const auto& [name, value] = argument;
    return name == "device" || std::holds_alternative<ProgramValueId>(value) ||
           std::holds_alternative<std::vector<ProgramValueId>>(value);
  });
}

}  // namespace

Argument device_of(const SpmdProgram& program) {
  if (program.device != "cpu") return NamedArg{program.device};
  for (const ProgramStep& step : program.steps) {
    const auto* op = std::get_if<ProgramOp>(&step.action);
    if (op == nullptr) continue;
    for (const auto& [name, value] : op->args) {
      const auto* own = std::get_if<Argument>(&value);
      const auto* named = own ? std::get_if<NamedArg>(own) : nullptr;
      if (name == "device" && named != nullptr) {
        return NamedArg{device_name(named->name)};
      }
    }
  }
  return NamedArg{"cpu"};
}

RankEmitter::RankEmitter(const SpmdProgram& program, const OpLibrary& library,
                         Coordinate at)
    : program_(program),
      library_(library),
      at_(std::move(at)),
      graph_(library),
      values_(program.values.size()),
      device_(device_of(program)),
      is_taken_(program.values.size(), false),
      queues_(transfer_queues(program)) {}

Result<TorchProgram> RankEmitter::run() {
  note_taken();
  for (const ProgramInput& input : program_.inputs) add_input(input);
  for (std::size_t s = 0; s < program_.steps.size(); ++s) {
    const ProgramStep& step = program_.steps[s];
    stand_at(s);
    if (const auto* op = std::get_if<ProgramOp>(&step.action)) {
      SP_CHECK(add(*op, step.node));
    } else if (const auto* moved =
                   std::get_if<ProgramCollective>(&step.action)) {
      SP_CHECK(add(*moved));
    } else if (const auto* wait = std::get_if<ProgramWait>(&step.action)) {
      finish(*wait);
    }
    // FX itself drops values after their last use, so frees need no call.
  }
  TorchProgram out{std::move(graph_), {}, {}};
  for (const ProgramInput& input : program_.inputs) {
    out.inputs.push_back(values_[input.value.index()]);
  }
  for (const ProgramOutput& output : program_.outputs) {
    out.outputs.push_back(values_[output.value.index()]);
  }
  return out;
}

void RankEmitter::note_taken() {
  const auto take = [&](ProgramValueId id) { is_taken_[id.index()] = true; };
  for (const ProgramStep& step : program_.steps) for_each_taken(step, take);
  for (const ProgramOutput& output : program_.outputs) take(output.value);
}

void RankEmitter::add_input(const ProgramInput& input) {
  const ProgramValue& value = program_.value(input.value);
  values_[input.value.index()] = graph_.value(
      std::string(prefix(input.kind)) + value.name,
      dense(local_shape(program_, input.value, at_), value.meta.dtype()));
}

TorchArgument RankEmitter::argument(const ProgramArgument& argument,
                                    OperandOrder order) {
  return std::visit(
      [&](const auto& held) -> TorchArgument {
        using T = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<T, Argument>) {
          if (const auto* named = std::get_if<NamedArg>(&held)) {
            return Argument(NamedArg{device_name(named->name)});
          }
          return held;
        } else if constexpr (std::is_same_v<T, ProgramValueId>) {
          return laid_out(held, order);
        } else if constexpr (std::is_same_v<T, std::vector<ProgramValueId>>) {
          std::vector<TorchId> list;
          for (const ProgramValueId id : held) {
            list.push_back(laid_out(id, order));
          }
          return list;
        } else if constexpr (std::is_same_v<T, RankInt>) {
          return Argument(held.at(program_.mesh, at_));
        } else {
          std::vector<std::int64_t> list;
          for (const RankInt& value : held) {
            list.push_back(value.at(program_.mesh, at_));
          }
          return Argument(std::move(list));
        }
      },
      argument);
}

// Returns an operand in the memory layout that kernels with this order need.
TorchId RankEmitter::laid_out(ProgramValueId id, OperandOrder order) {
  const TorchId x = id.valid() ? values_[id.index()] : TorchId();
  if (!x.valid() || order == OperandOrder::kAny) return x;
  const TensorMeta& meta = graph_.meta(x);
  if (order == OperandOrder::kDenseRows) {
    const bool has_rows = meta.rank() > 0 && meta.shape().back() > 1;
    return has_rows && meta.strides().back() != 1 ? contiguous(graph_, x) : x;
  }
  const ProgramValue& value = program_.value(id);
  if (value.is_local()) return meta.is_contiguous() ? x : contiguous(graph_, x);
  return is_dense(value.meta) ? in_order_of(graph_, x, value.meta) : x;
}

// Returns the inferred meta. Without shape inference, the sizes follow from the
// layout.
Result<TensorMeta> RankEmitter::meta_of(
    ProgramValueId id, const std::optional<TensorMeta>& inferred,
    const std::string& op) const {
  const ProgramValue& value = program_.value(id);
  if (value.is_local()) {
    if (inferred) return *inferred;
    return fail(Error{ErrorCode::kNoShapeInference,
                      "the sizes of `" + value.name +
                          "` are not known inside a local program",
                      op,
                      {},
                      "give its operator a row"});
  }
  const Dims shape = local_shape(program_, id, at_);
  if (inferred && inferred->shape() == shape &&
      inferred->dtype() == value.meta.dtype()) {
    return *inferred;
  }
  // The shape of a result that no node reads may come from PyTorch or from its
  // kernel.
  if (inferred && inferred->shape() != shape && is_taken_[id.index()]) {
    const TensorMeta wanted = dense(shape, value.meta.dtype());
    return fail(Error{ErrorCode::kPlanStep,
                      "`" + value.name + "` comes out as " +
                          to_string(*inferred) + " where its layout " +
                          to_string(value.layout) + " says " +
                          to_string(wanted),
                      op,
                      {},
                      "this is a bug of shardprop; please report it"});
  }
  return dense(shape, value.meta.dtype());
}

Result<void> RankEmitter::add_call(const std::string& op, TorchArguments args,
                                   const std::vector<ProgramValueId>& outputs) {
  auto inferred = graph_.infer(op, args);
  std::vector<TorchId> made;
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    if (!outputs[o].valid()) {
      made.emplace_back();
      continue;
    }
    const std::optional<TensorMeta> known =
        inferred && o < inferred->size() ? (*inferred)[o] : std::nullopt;
    SP_ASSIGN(TensorMeta meta, meta_of(outputs[o], known, op));
    made.push_back(
        graph_.value(program_.value(outputs[o]).name, std::move(meta)));
    values_[outputs[o].index()] = made.back();
  }
  graph_.call(op, std::move(args), std::move(made));
  return {};
}

Result<void> RankEmitter::add(const ProgramOp& op, std::size_t node) {
  if (op.op == "shardprop.random_bits") {
    draw_bits(op);
    return {};
  }
  const std::string name(local_name(op.op));
  const auto function = graph_.find(name);
  // PyTorch has no operator that is the functional form of a declared write.
  const bool is_functional_form =
      function != nullptr && is_foreign(name) && function->is_mutating();
  if (function == nullptr || is_functional_form) {
    return fail(
        Error{ErrorCode::kNotLowered,
              what_is_foreign(op.op) + "; a program with it cannot be written",
              node < program_.nodes.size() ? program_.nodes[node].name : "",
              {},
              help_without_foreign(op.op)});
  }
  const OpRow* row = library_.row(*function);
  const OperandOrder order =
      row == nullptr ? OperandOrder::kAny : row->definition.traits().order;
  TorchArguments args;
  for (const auto& [given, value] : op.args) {
    const bool reshapes = name != op.op && given == "size";
    const std::string own = reshapes ? "shape" : given;
    const auto at = function->argument_index(own);
    const std::optional<AliasInfo> alias =
        at ? function->arguments()[*at].alias : std::nullopt;
    // A value that the operator writes is passed unchanged, not as a copy.
    const bool is_written = alias && alias->writes;
    args.emplace_back(own,
                      argument(value, is_written ? OperandOrder::kAny : order));
  }
  if (makes_from_nothing(op) && function->argument_index("device")) {
    args.emplace_back("device", TorchArgument(device_));
  }
  const ProgramValueId written = written_result(program_, op);
  if (written.valid()) return add_write(op, name, std::move(args), written);
  return add_call(name, std::move(args), op.outputs);
}

// A call of the operator itself writes by its in-place overload, or into a view
// of the operand. A local program makes its result first, which is then copied.
Result<void> RankEmitter::add_write(const ProgramOp& op,
                                    const std::string& name,
                                    TorchArguments args,
                                    ProgramValueId result) {
  const ProgramValueId overwritten = program_.value(result).overwrites;
  const TorchId into = values_[overwritten.index()];
  const std::string in_place = in_place_name(name);
  const std::string view(written_view(name));
  const bool is_direct =
      op.outputs.size() == 1 && is_self(op, overwritten) &&
      graph_.shape(into) == local_shape(program_, result, at_);
  if (!is_direct || (view.empty() && graph_.find(in_place) == nullptr)) {
    SP_CHECK(add_call(name, std::move(args), op.outputs));
    write_back(result);
    return {};
  }
  const auto named = [](std::string_view wanted) {
    return [wanted](const auto& argument) { return argument.first == wanted; };
  };
  std::find_if(args.begin(), args.end(), named("self"))->second = into;
  TorchId& written = values_[result.index()];
  const auto write_by = [&](const std::string& call, TorchArguments given) {
    written = graph_.value(program_.value(result).name,
                           TensorMeta(graph_.meta(into)));
    graph_.call(call, std::move(given), {written});
  };
  if (view.empty()) {
    write_by(in_place, std::move(args));
    return {};
  }
  const auto source = std::find_if(args.begin(), args.end(), named("src"));
  const TorchArgument src = source->second;
  args.erase(source);
  SP_ASSIGN(const TorchId part, graph_.op(view, std::move(args)));
  graph_.op("aten.copy_.default", {{"self", part}, {"src", src}},
            TensorMeta(graph_.meta(part)));
  write_by("aten.alias.default", {{"self", into}});
  return {};
}

void RankEmitter::write_back(ProgramValueId result) {
  const ProgramValueId overwritten = program_.value(result).overwrites;
  if (!overwritten.valid()) return;
  const TorchId into = values_[overwritten.index()];
  TorchId& written = values_[result.index()];
  written = graph_.op("aten.copy_.default", {{"self", into}, {"src", written}},
                      TensorMeta(graph_.meta(into)));
}

Result<void> RankEmitter::add(const ProgramCollective& collective) {
  SP_CHECK(add_collective(collective));
  write_back(collective.output);
  return {};
}

Result<void> RankEmitter::add_collective(const ProgramCollective& collective) {
  Moves moves(graph_, program_.mesh, at_, device_);
  const TorchId input = values_[collective.input.index()];
  TorchId& output = values_[collective.output.index()];
  if (collective.step.src.mesh_ndim() == 0) {
    const CollectiveStep& step = collective.step;
    if (step.kind == CollectiveKind::kAllGather) {
      output = moves.all_gather(step, input);
    } else if (step.kind == CollectiveKind::kReduceScatter) {
      output = moves.reduce_scatter(step, input, *step.reduce_op);
    } else {
      output = moves.all_reduce(step, input, *step.reduce_op, 1);
    }
    return {};
  }
  SP_ASSIGN(output, moves.run(collective.step,
                              program_.value(collective.input).meta, input));
  return {};
}

void RankEmitter::draw_bits(const ProgramOp& op) {
  const ProgramValueId id = op.outputs[0];
  const ProgramValue& value = program_.value(id);
  std::int64_t node = 0;
  std::int64_t word = 0;
  TorchId seed;
  for (const auto& [name, given] : op.args) {
    if (name == "seed") seed = values_[std::get<ProgramValueId>(given).index()];
    if (name == "node") {
      node = std::get<std::int64_t>(std::get<Argument>(given));
    }
    if (name == "word") {
      word = std::get<std::int64_t>(std::get<Argument>(given));
    }
  }
  auto& words =
      drawn_[{node, word / 4, to_string(value.meta) + to_string(value.layout)}];
  if (words.empty()) {
    const LocalRegion region =
        local_region(value.layout, program_.mesh, value.meta.shape(), at_);
    words = philox_words(graph_, seed, node, word / 4, region,
                         value.meta.shape(), device_);
  }
  values_[id.index()] = words[index(word % 4)];
}

}  // namespace shardprop::emit
