#include "ops/program/tracer.h"

#include "ops/argument_reads.h"
#include "ops/program/trace.h"

namespace shardprop {

namespace {

// Calls visit(ref) for every tensor that a step reads.
template <class Visit>
void each_operand(DecompositionStep& step, const Visit& visit) {
  for (LocalRef& ref : step.operands) visit(ref);
  if (step.collective) visit(step.collective->value);
  for (auto& [name, value] : step.op.args) {
    if (auto* ref = std::get_if<LocalRef>(&value)) visit(*ref);
    if (auto* list = std::get_if<std::vector<LocalRef>>(&value)) {
      for (LocalRef& ref : *list) visit(ref);
    }
  }
}

// Removes the steps that no result needs.
void drop_unused(Decomposition& program) {
  std::vector<bool> used(program.steps.size(), false);
  const auto use = [&](const LocalRef& ref) {
    if (ref.step >= 0) used[index(ref.step)] = true;
  };
  for (const LocalRef& output : program.outputs) use(output);
  for (std::size_t s = used.size(); s-- > 0;) {
    if (used[s]) each_operand(program.steps[s], use);
  }
  std::vector<std::int32_t> place(used.size(), 0);
  std::vector<DecompositionStep> kept;
  const auto move = [&](LocalRef& ref) {
    if (ref.step >= 0) ref.step = place[index(ref.step)];
  };
  for (std::size_t s = 0; s < used.size(); ++s) {
    if (!used[s]) continue;
    place[s] = static_cast<std::int32_t>(kept.size());
    each_operand(program.steps[s], move);
    kept.push_back(std::move(program.steps[s]));
  }
  for (LocalRef& output : program.outputs) move(output);
  program.steps = std::move(kept);
}

}  // namespace

Tracer::Tracer(const OpSchema& op, const OpLibrary& library, bool per_rank,
               const IndexSpace* space)
    : op_(op),
      library_(library),
      space_(space),
      out_(std::make_shared<Decomposition>()) {
  out_->per_rank = per_rank;
  bind_arguments();
}

std::shared_ptr<Decomposition> Tracer::run(const ProgramText& text) {
  // A call without outputs, such as gradients that are not requested, runs no
  // step.
  if (op_.outputs.empty()) return out_;
  for (const ProgramLine& line : text.lines) {
    if (is_made(line)) assign(line);
  }
  // Results that the call does not produce are skipped in two cases: the
  // program lists every result, or it has no value of that name.
  const bool says_all = text.results.size() == op_.output_slots.size();
  for (std::size_t r = 0; r < text.results.size(); ++r) {
    if (out_->outputs.size() == op_.outputs.size()) break;
    if (says_all ? !output_of(r) : is_not_made(*text.results[r])) continue;
    out_->outputs.push_back(tensor_of(value_of(*text.results[r])).ref);
  }
  require(out_->outputs.size() == op_.outputs.size(),
          "a program returns less than its operator");
  if (!out_->per_rank) check_shapes();
  drop_unused(*out_);
  return out_;
}

void Tracer::check_shapes() const {
  for (std::size_t o = 0; o < out_->outputs.size(); ++o) {
    const LocalRef& ref = out_->outputs[o];
    const auto i = index(ref.index);
    const TensorMeta& made =
        ref.step < 0 ? op_.inputs[i]
                     : out_->steps[index(ref.step)].schema.outputs[i];
    if (made.shape() == op_.outputs[o].shape()) continue;
    call_error("its result " + std::to_string(o) + " is " + to_string(made) +
               ", not of the shape of " + to_string(op_.outputs[o]));
  }
}

std::optional<std::size_t> Tracer::output_of(std::size_t result) const {
  const auto& slots = op_.output_slots;
  // Without slots all results are produced.
  if (slots.empty() && result < op_.outputs.size()) return result;
  if (result >= slots.size() || slots[result] == OpSchema::kNotProduced) {
    return std::nullopt;
  }
  return index(slots[result]);
}

void Tracer::bind_arguments() {
  const auto& declared = op_.function->arguments();
  const auto operand = [&](const TensorArg& arg) {
    return TensorValue{{-1, arg.operand}, op_.inputs[index(arg.operand)]};
  };
  for (std::size_t i = 0; i < declared.size(); ++i) {
    const Argument& argument = op_.args[i];
    TraceValue& value = names_[declared[i].name];
    if (const auto* lone = std::get_if<TensorArg>(&argument)) {
      value = Argument(NoneArg{});
      if (lone->operand != TensorArg::kNone) value = operand(*lone);
    } else if (const auto* list =
                   std::get_if<std::vector<TensorArg>>(&argument)) {
      TensorValues values(list->size());
      for (std::size_t k = 0; k < list->size(); ++k) {
        const TensorArg element = (*list)[k];
        if (element.operand != TensorArg::kNone) values[k] = operand(element);
      }
      value = std::move(values);
    } else {
      ArgumentReads::note(declared[i].name, Look::kValue);
      value = argument;
    }
  }
}

bool Tracer::is_given(const std::string& name) const {
  const auto found = names_.find(name);
  return found != names_.end() && !is_none(found->second);
}

bool Tracer::is_not_made(const Expression& result) const {
  const auto* name = std::get_if<NameExpression>(&result.node);
  return name != nullptr && !is_given(name->name);
}

bool Tracer::is_made(const ProgramLine& line) const {
  if (line.condition.empty()) return true;
  bool holds = is_given(line.condition);
  if (holds) {
    const auto* argument = std::get_if<Argument>(&names_.at(line.condition));
    const auto* truth =
        argument == nullptr ? nullptr : std::get_if<bool>(argument);
    holds = truth == nullptr || *truth;
  }
  return holds != line.negated;
}

void Tracer::assign(const ProgramLine& line) {
  const TraceValue value = value_of(*line.value);
  names_[line.names[0]] = value;
  if (line.names.size() == 1) return;
  // The remaining names are the other results of the same step.
  const LocalRef first = tensor_of(value).ref;
  require(first.step >= 0, "an argument has one value");
  const auto& outputs = out_->steps[index(first.step)].schema.outputs;
  for (std::size_t k = 1; k < line.names.size(); ++k) {
    require(k < outputs.size(), "a step has fewer results than names");
    names_[line.names[k]] =
        TensorValue{{first.step, static_cast<std::int32_t>(k)}, outputs[k]};
  }
}

TraceValue Tracer::value_of(const Expression& expression) {
  if (const auto* name = std::get_if<NameExpression>(&expression.node)) {
    const auto found = names_.find(name->name);
    if (found == names_.end()) {
      call_error("a program names `" + name->name + "`, which is nothing");
    }
    return found->second;
  }
  if (const auto* number = std::get_if<NumberExpression>(&expression.node)) {
    return std::visit([](auto v) -> TraceValue { return Argument(v); },
                      number->value);
  }
  if (std::holds_alternative<NoneExpression>(expression.node)) {
    return Argument(NoneArg{});
  }
  if (const auto* list = std::get_if<ListExpression>(&expression.node)) {
    return listed(*list);
  }
  if (const auto* binary = std::get_if<BinaryExpression>(&expression.node)) {
    // Steps are created in the order in which they are written.
    const TraceValue left = value_of(*binary->left);
    return combined(binary->op, left, value_of(*binary->right));
  }
  return called(std::get<CallExpression>(expression.node));
}

// A list holds integers or tensors, not both.
TraceValue Tracer::listed(const ListExpression& list) {
  std::vector<std::int64_t> integers;
  TensorValues tensors;
  for (const ExpressionPtr& element : list.elements) {
    const TraceValue value = value_of(*element);
    if (std::holds_alternative<TensorValue>(value)) {
      tensors.emplace_back(tensor_of(value));
    } else {
      integers.push_back(integer_of(value));
    }
  }
  if (tensors.empty()) return Argument(std::move(integers));
  require(integers.empty(), "a list holds integers and tensors");
  return tensors;
}

namespace {

TraceValue shifted(const std::string& op, RankScalar scalar,
                   const TraceValue& right) {
  const std::int64_t by = integer_of(right);
  if (op == "*") {
    scalar.scale = multiply_sizes(scalar.scale, by);
    scalar.constant = multiply_sizes(scalar.constant, by);
  } else {
    require(op == "+" || op == "-", "a scalar of the rank is not linear");
    scalar.constant = op == "+" ? add_sizes(scalar.constant, by)
                                : subtract_sizes(scalar.constant, by);
  }
  return scalar;
}

const std::int64_t* whole_number(const TraceValue& value) {
  const auto* argument = std::get_if<Argument>(&value);
  return argument == nullptr ? nullptr : std::get_if<std::int64_t>(argument);
}

TraceValue folded(const std::string& op, const TraceValue& left,
                  const TraceValue& right) {
  const std::int64_t* i = whole_number(left);
  const std::int64_t* j = whole_number(right);
  if (i != nullptr && j != nullptr && op != "/") {
    if (op == "+") return Argument(add_sizes(*i, *j));
    if (op == "-") return Argument(subtract_sizes(*i, *j));
    if (op == "*") return Argument(multiply_sizes(*i, *j));
  }
  const auto x = number_of(left);
  const auto y = number_of(right);
  require(x && y, "a program computes with what is not a number");
  if (op == "+") return Argument(*x + *y);
  if (op == "-") return Argument(*x - *y);
  if (op == "*") return Argument(*x * *y);
  if (op == "<") return Argument(*x < *y);
  if (op == ">=") return Argument(*x >= *y);
  if (op == "==") return Argument(*x == *y);
  require(op == "/", "numbers are not compared so");
  return Argument(*x / *y);
}

}  // namespace

TraceValue Tracer::combined(const std::string& op, const TraceValue& left,
                            const TraceValue& right) {
  const bool right_is_tensor = std::holds_alternative<TensorValue>(right);
  if (std::holds_alternative<TensorValue>(left)) {
    return operation("aten." + std::string(operator_named(op)) +
                         (right_is_tensor ? ".Tensor" : ".Scalar"),
                     {left, right}, {});
  }
  if (right_is_tensor || (std::holds_alternative<RankScalar>(right) &&
                          !std::holds_alternative<RankScalar>(left))) {
    // a + x, a * x
    require(op == "+" || op == "*", "a number stands on the left");
    return combined(op, right, left);
  }
  if (const auto* scalar = std::get_if<RankScalar>(&left)) {
    return shifted(op, *scalar, right);
  }
  return folded(op, left, right);
}

namespace {

// At most 64 programs, each called by the one before it, run at once. The limit
// bounds the recursion of a program that leads back to itself through a function
// such as cast(). The definitions of this library nest fewer than 10.
constexpr int kMostNestedPrograms = 64;
// Programs that call each other twice at each level take exponential time.
constexpr int kMostProgramsOfACall = 4096;

thread_local int nested_programs = 0;
thread_local int programs_of_call = 0;

struct TooManyPrograms {};

// `ProgramNesting` counts the programs that this thread is in, and all those that
// the outermost one has called.
class ProgramNesting {
 public:
  ProgramNesting() {
    if (nested_programs++ == 0) programs_of_call = 0;
    ++programs_of_call;
  }
  ~ProgramNesting() { --nested_programs; }
  ProgramNesting(const ProgramNesting&) = delete;
  ProgramNesting& operator=(const ProgramNesting&) = delete;
};

}  // namespace

Result<std::shared_ptr<Decomposition>> trace_program(const ProgramText& text,
                                                     const OpSchema& op,
                                                     const OpLibrary& library,
                                                     bool per_rank,
                                                     const IndexSpace* space) {
  const ProgramNesting nesting;
  try {
    if (nested_programs > kMostNestedPrograms ||
        programs_of_call > kMostProgramsOfACall) {
      throw TooManyPrograms();
    }
    return Tracer(op, library, per_rank, space).run(text);
  } catch (const TooManyPrograms&) {
    // Only the outermost program reports the error: each program in between
    // would add its name.
    if (nested_programs > 1) throw;
    return fail(ErrorCode::kProgram,
                programs_of_call > kMostProgramsOfACall
                    ? "the program of `" + op.name() + "` calls more than " +
                          std::to_string(kMostProgramsOfACall) + " programs"
                    : "the program of `" + op.name() +
                          "` calls programs that nest deeper than " +
                          std::to_string(kMostNestedPrograms) +
                          ": one of them leads back to itself",
                "write the program in terms of other operators");
  } catch (const UndeclaredArgument& error) {
    return fail(ErrorCode::kProgram, error.what());
  } catch (const CallError& error) {
    return fail(ErrorCode::kProgram,
                "the program of `" + op.name() +
                    "` does not fit this call: " + error.message,
                error.help.empty()
                    ? "docs/row_language.md lists the functions of programs "
                      "and their arguments"
                    : error.help);
  }
}

}  // namespace shardprop
