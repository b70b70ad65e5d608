#include "ops/decomposition_trace.h"

#include "ops/argument_reads.h"
#include "ops/op_call.h"

#include <algorithm>
#include <map>
#include <utility>

namespace shardprop {
namespace {

struct TensorValue {
  LocalRef ref;
  TensorMeta meta;
};
// An absent optional tensor in a list of tensors.
using TensorValues = std::vector<std::optional<TensorValue>>;
// What a name or an expression stands for.
using Value = std::variant<Argument, TensorValue, TensorValues, RankScalar>;

class Tracer {
 public:
  Tracer(const OpSchema& op, const OpLibrary& library, bool per_rank)
      : op_(op), call_(op), library_(library) {
    out_ = std::make_shared<Decomposition>();
    out_->per_rank = per_rank;
    bind_arguments();
  }

  std::shared_ptr<const Decomposition> run(const ProgramText& text) {
    for (const ProgramLine& line : text.lines) {
      if (!line.condition.empty() && !is_given(line.condition)) continue;
      names_[line.name] = value_of(*line.value);
    }
    for (const ExpressionPtr& result : text.results) {
      if (out_->outputs.size() == op_.outputs.size()) break;
      out_->outputs.push_back(tensor(value_of(*result)).ref);
    }
    require(out_->outputs.size() == op_.outputs.size(),
            "a program returns less than its operator");
    return out_;
  }

 private:
  void bind_arguments() {
    const auto& declared = op_.function->arguments();
    const auto tensor_of = [&](const TensorArg& arg) {
      return TensorValue{{-1, arg.operand}, op_.inputs[index(arg.operand)]};
    };
    for (std::size_t i = 0; i < declared.size(); ++i) {
      const Argument& argument = op_.args[i];
      const auto* lone = std::get_if<TensorArg>(&argument);
      if (lone != nullptr && lone->operand == TensorArg::kNone) {
        names_[declared[i].name] = Argument(NoneArg{});
      } else if (lone != nullptr) {
        names_[declared[i].name] = tensor_of(*lone);
      } else if (const auto* list =
                     std::get_if<std::vector<TensorArg>>(&argument)) {
        TensorValues values;
        for (const TensorArg& element : *list) {
          values.emplace_back();
          if (element.operand != TensorArg::kNone) {
            values.back() = tensor_of(element);
          }
        }
        names_[declared[i].name] = std::move(values);
      } else {
        ArgumentReads::note(declared[i].name, Look::kValue);
        names_[declared[i].name] = argument;
      }
    }
  }

  static bool is_none(const Value& value) {
    const auto* argument = std::get_if<Argument>(&value);
    return argument != nullptr && std::holds_alternative<NoneArg>(*argument);
  }
  bool is_given(const std::string& name) const {
    const auto found = names_.find(name);
    return found != names_.end() && !is_none(found->second);
  }

  static const TensorValue& tensor(const Value& value) {
    const auto* found = std::get_if<TensorValue>(&value);
    if (found == nullptr) call_error("a program needs a tensor");
    return *found;
  }
  static std::int64_t integer(const Value& value) {
    const auto* argument = std::get_if<Argument>(&value);
    if (argument != nullptr) {
      if (const auto* i = std::get_if<std::int64_t>(argument)) return *i;
      if (const auto* list =
              std::get_if<std::vector<std::int64_t>>(argument);
          list != nullptr && list->size() == 1) {
        return list->front();
      }
    }
    call_error("a program needs an integer");
  }
  static std::optional<double> number(const Value& value) {
    const auto* argument = std::get_if<Argument>(&value);
    if (argument == nullptr) return std::nullopt;
    if (const auto* i = std::get_if<std::int64_t>(argument)) {
      return static_cast<double>(*i);
    }
    if (const auto* d = std::get_if<double>(argument)) return *d;
    return std::nullopt;
  }
  static std::vector<std::int64_t> integers(const Value& value) {
    const auto* argument = std::get_if<Argument>(&value);
    if (argument != nullptr) {
      if (const auto* list = std::get_if<std::vector<std::int64_t>>(argument)) {
        return *list;
      }
      if (const auto* i = std::get_if<std::int64_t>(argument)) return {*i};
    }
    call_error("a program needs a list of integers");
  }

  Value value_of(const Expression& expression) {
    if (const auto* name = std::get_if<NameExpression>(&expression.node)) {
      const auto found = names_.find(name->name);
      if (found == names_.end()) {
        call_error("a program names `" + name->name + "`, which is nothing");
      }
      return found->second;
    }
    if (const auto* number = std::get_if<NumberExpression>(&expression.node)) {
      return std::visit([](auto v) -> Value { return Argument(v); },
                        number->value);
    }
    if (std::holds_alternative<NoneExpression>(expression.node)) {
      return Argument(NoneArg{});
    }
    if (const auto* list = std::get_if<ListExpression>(&expression.node)) {
      std::vector<std::int64_t> values;
      for (const ExpressionPtr& element : list->elements) {
        values.push_back(integer(value_of(*element)));
      }
      return Argument(std::move(values));
    }
    if (const auto* binary = std::get_if<BinaryExpression>(&expression.node)) {
      // Steps are made in the order in which they are written.
      const Value left = value_of(*binary->left);
      return combined(binary->op, left, value_of(*binary->right));
    }
    return called(std::get<CallExpression>(expression.node));
  }

  // --- operators ---

  Value combined(const std::string& op, const Value& left, const Value& right) {
    if (std::holds_alternative<TensorValue>(left)) {
      static const std::map<std::string, std::string> kNames = {
          {"+", "add"},  {"-", "sub"}, {"*", "mul"}, {"/", "div"},
          {"<", "lt"},   {">=", "ge"}, {"==", "eq"}, {"|", "bitwise_or"}};
      const bool both = std::holds_alternative<TensorValue>(right);
      return operation("aten." + kNames.at(op) + (both ? ".Tensor" : ".Scalar"),
                       {left, right}, {});
    }
    if (std::holds_alternative<TensorValue>(right)) {
      // a + x, a * x
      require(op == "+" || op == "*", "a number stands on the left");
      return combined(op, right, left);
    }
    if (const auto* scalar = std::get_if<RankScalar>(&left)) {
      return shifted(op, *scalar, right);
    }
    if (std::holds_alternative<RankScalar>(right)) {
      require(op == "+" || op == "*", "a number stands on the left");
      return combined(op, right, left);
    }
    return folded(op, left, right);
  }

  static Value shifted(const std::string& op, RankScalar scalar,
                       const Value& right) {
    const std::int64_t by = integer(right);
    if (op == "*") {
      scalar.scale = multiply_sizes(scalar.scale, by);
      scalar.constant = multiply_sizes(scalar.constant, by);
    } else {
      require(op == "+" || op == "-", "a scalar of the rank is not linear");
      scalar.constant = add_sizes(scalar.constant, op == "+" ? by : -by);
    }
    return scalar;
  }

  static Value folded(const std::string& op, const Value& left,
                      const Value& right) {
    const auto* a = std::get_if<Argument>(&left);
    const auto* b = std::get_if<Argument>(&right);
    require(a != nullptr && b != nullptr, "a program computes with no numbers");
    const auto* i = std::get_if<std::int64_t>(a);
    const auto* j = std::get_if<std::int64_t>(b);
    if (i != nullptr && j != nullptr && op != "/") {
      if (op == "+") return Argument(add_sizes(*i, *j));
      if (op == "-") return Argument(add_sizes(*i, -*j));
      if (op == "*") return Argument(multiply_sizes(*i, *j));
    }
    const auto x = number(left);
    const auto y = number(right);
    require(x && y, "a program computes with no numbers");
    if (op == "+") return Argument(*x + *y);
    if (op == "-") return Argument(*x - *y);
    if (op == "*") return Argument(*x * *y);
    require(op == "/", "numbers are not compared");
    return Argument(*x / *y);
  }

  // --- functions ---

  Value called(const CallExpression& call) {
    std::vector<Value> values;
    const bool looks_at_results =
        !call.positional.empty() &&
        std::holds_alternative<NameExpression>(call.positional[0]->node) &&
        std::get<NameExpression>(call.positional[0]->node).name == "out";
    if (call.function == "default") return or_default(call);
    for (std::size_t i = looks_at_results ? 1 : 0; i < call.positional.size();
         ++i) {
      values.push_back(value_of(*call.positional[i]));
    }
    if (looks_at_results) return of_results(call.function, values);
    if (auto known = function(call.function, values)) return *std::move(known);
    std::vector<std::pair<std::string, Value>> named;
    for (const auto& [name, expression] : call.named) {
      named.emplace_back(name, value_of(*expression));
    }
    return operation(call.function, std::move(values), std::move(named));
  }

  // default(step, 1): the argument, or that where it is None or not declared.
  Value or_default(const CallExpression& call) {
    require(call.positional.size() == 2, "default() takes two values");
    const auto* name = std::get_if<NameExpression>(&call.positional[0]->node);
    if (name != nullptr && is_given(name->name)) return names_.at(name->name);
    return value_of(*call.positional[1]);
  }

  // dtype(out), dtype(out, 1), numel(out), local_size(out, d), offset(out, d).
  Value of_results(const std::string& function,
                   const std::vector<Value>& values) {
    const std::int64_t first = values.empty() ? 0 : integer(values[0]);
    if (function == "dtype") {
      // A result that is not produced has the dtype of the first.
      const std::size_t o = index(first) < op_.outputs.size() ? index(first) : 0;
      return Argument(op_.outputs[o].dtype());
    }
    if (function == "numel") return Argument(op_.outputs[0].numel());
    if (function == "local_size") {
      return RankScalar::output_size(0, static_cast<int>(first));
    }
    require(function == "offset", "a program asks too much of its results");
    return RankScalar::output_offset(0, static_cast<int>(first));
  }

  int wrapped(const TensorValue& x, const Value& dim) const {
    return wrap_dim(integer(dim), x.meta.rank());
  }

  std::optional<Value> function(const std::string& name,
                                const std::vector<Value>& v) {
    if (name == "dtype") return Argument(tensor(v.at(0)).meta.dtype());
    if (name == "numel") return Argument(tensor(v.at(0)).meta.numel());
    if (name == "rank") return Argument(std::int64_t{tensor(v.at(0)).meta.rank()});
    if (name == "wrap") {
      return Argument(std::int64_t{wrapped(tensor(v.at(0)), v.at(1))});
    }
    if (name == "size") {
      const TensorValue& x = tensor(v.at(0));
      return Argument(x.meta.size(wrapped(x, v.at(1))));
    }
    if (name == "local_size" || name == "offset") {
      const TensorValue& x = tensor(v.at(0));
      require(x.ref.step < 0, "only inputs have local sizes");
      const int dim = wrapped(x, v.at(1));
      return name == "offset" ? RankScalar::input_offset(x.ref.index, dim)
                              : RankScalar::input_size(x.ref.index, dim);
    }
    if (name == "count") {
      const TensorValue& x = tensor(v.at(0));
      double count = 1;
      for (const std::int64_t dim : integers(v.at(1))) {
        count *= static_cast<double>(x.meta.size(wrap_dim(dim, x.meta.rank())));
      }
      return Argument(count);
    }
    if (name == "cast") return cast(v.at(0), v.at(1));
    if (name == "upcast") return upcast(v.at(0));
    if (name == "trailing") return trailing(v.at(0), integer(v.at(1)));
    return dims_function(name, v);
  }

  std::optional<Value> dims_function(const std::string& name,
                                     const std::vector<Value>& v) {
    if (name == "last_dims") {
      const int rank = tensor(v.at(0)).meta.rank();
      const auto count = static_cast<int>(integers(v.at(1)).size());
      std::vector<std::int64_t> dims;
      for (int d = rank - count; d < rank; ++d) dims.push_back(d);
      return Argument(std::move(dims));
    }
    if (name == "all_dims_but") {
      std::vector<std::int64_t> dims;
      for (int d = 0; d < tensor(v.at(0)).meta.rank(); ++d) {
        if (d != integer(v.at(1))) dims.push_back(d);
      }
      return Argument(std::move(dims));
    }
    if (name == "ones_among") {
      const TensorValue& x = tensor(v.at(0));
      std::vector<std::int64_t> dims;
      for (const std::int64_t dim : integers(v.at(1))) {
        const int d = wrap_dim(dim, x.meta.rank());
        if (x.meta.rank() > 0 && x.meta.size(d) == 1) dims.push_back(d);
      }
      return Argument(std::move(dims));
    }
    if (name == "epsilon") {
      if (!is_none(v.at(0))) return v.at(0);
      return Argument(tensor(v.at(1)).meta.dtype() == DType::kF64 ? 0x1p-52
                                                                  : 0x1p-23);
    }
    const auto* list = v.empty() ? nullptr : std::get_if<TensorValues>(&v[0]);
    if (list != nullptr && (name == "given" || name == "first_given")) {
      for (std::size_t i = 0; i < list->size(); ++i) {
        if (!(*list)[i]) continue;
        if (name == "given") return *(*list)[i];
        return Argument(static_cast<std::int64_t>(i));
      }
    }
    if (name == "indices_at") {
      TensorValues at(index(integer(v.at(0))));
      at.emplace_back(tensor(v.at(1)));
      return at;
    }
    return std::nullopt;
  }

  Value cast(const Value& value, const Value& dtype) {
    const auto* argument = std::get_if<Argument>(&dtype);
    const auto* to =
        argument == nullptr ? nullptr : std::get_if<DType>(argument);
    require(to != nullptr, "cast() takes a dtype");
    if (tensor(value).meta.dtype() == *to) return value;
    return operation("_to_copy", {value}, {{"dtype", Argument(*to)}});
  }

  // To the dtype in which sums are taken.
  Value upcast(const Value& value) {
    const DType dtype = tensor(value).meta.dtype();
    const bool narrow = is_floating(dtype) && item_size(dtype) < 4;
    return narrow ? cast(value, Argument(DType::kF32)) : value;
  }

  Value trailing(Value value, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      value = operation("aten.unsqueeze.default",
                        {value, Argument(std::int64_t{-1})}, {});
    }
    return value;
  }

  // --- aten operators ---

  // `name` is a whole overload, or a base name whose overload is looked for.
  Value operation(const std::string& name, std::vector<Value> positional,
                  std::vector<std::pair<std::string, Value>> named) {
    std::vector<std::string> overloads = {name};
    if (!name.starts_with("aten.")) {
      overloads = library_.overloads("aten." + name);
    }
    std::string refused = "`" + name + "` is not an operator";
    for (const std::string& overload : overloads) {
      const auto function = library_.find(overload);
      if (function == nullptr || function->is_mutating()) continue;
      if (auto done = apply(function, positional, named, refused)) return *done;
    }
    call_error("a program calls " + refused);
  }

  std::optional<Value> apply(
      const std::shared_ptr<const FunctionSchema>& function,
      const std::vector<Value>& positional,
      const std::vector<std::pair<std::string, Value>>& named,
      std::string& refused) {
    DecompositionStep step;
    std::vector<GivenArgument> given;
    std::vector<TensorMeta> inputs;
    const auto add = [&](const std::string& argument, const Value& value) {
      given.push_back({argument, as_argument(value, inputs, step.operands)});
      step.op.args.emplace_back(argument, as_local(value));
    };
    for (std::size_t i = 0; i < positional.size(); ++i) {
      if (i >= function->arguments().size()) return std::nullopt;
      add(function->arguments()[i].name, positional[i]);
    }
    for (const auto& [argument, value] : named) {
      if (!function->argument_index(argument)) return std::nullopt;
      if (is_none(value)) continue;
      add(argument, value);
    }
    auto schema = make_op_schema(function, std::move(given), std::move(inputs));
    if (!schema) {
      refused = schema.error().message;
      return std::nullopt;
    }
    // Operands stand in the order in which arguments are declared.
    step.operands = operands_of(step.op, *function);
    auto results = library_.infer_results(*schema);
    if (!results) {
      refused = results.error().message;
      return std::nullopt;
    }
    set_results(*schema, *std::move(results));
    if (!out_->per_rank) {
      auto space = library_.index_space(*schema);
      if (!space) call_error(space.error().message);
      step.space = std::make_shared<const IndexSpace>(*std::move(space));
    }
    step.op.name = function->name();
    drop_defaults(step.op, *function);
    const TensorValue value{{static_cast<std::int32_t>(out_->steps.size()), 0},
                            schema->outputs.front()};
    step.schema = *std::move(schema);
    out_->steps.push_back(std::move(step));
    return value;
  }

  static Argument as_argument(const Value& value,
                              std::vector<TensorMeta>& inputs,
                              std::vector<LocalRef>& refs) {
    const auto add = [&](const TensorValue& x) {
      const TensorArg arg{static_cast<std::int32_t>(inputs.size())};
      inputs.push_back(x.meta);
      refs.push_back(x.ref);
      return arg;
    };
    if (const auto* x = std::get_if<TensorValue>(&value)) return add(*x);
    if (const auto* list = std::get_if<TensorValues>(&value)) {
      std::vector<TensorArg> args;
      for (const auto& element : *list) {
        args.push_back(element ? add(*element) : TensorArg{});
      }
      return args;
    }
    // The value on some rank: shapes of per-rank programs are those of whole
    // tensors, and an int stands for any.
    if (std::holds_alternative<RankScalar>(value)) return std::int64_t{1};
    return std::get<Argument>(value);
  }

  static LocalOp::Value as_local(const Value& value) {
    if (const auto* x = std::get_if<TensorValue>(&value)) return x->ref;
    if (const auto* list = std::get_if<TensorValues>(&value)) {
      std::vector<LocalRef> refs;
      for (const auto& element : *list) {
        refs.push_back(element ? element->ref
                               : LocalRef{-1, TensorArg::kNone});
      }
      return refs;
    }
    if (const auto* scalar = std::get_if<RankScalar>(&value)) return *scalar;
    return std::get<Argument>(value);
  }

  static std::vector<LocalRef> operands_of(const LocalOp& op,
                                           const FunctionSchema& function) {
    std::vector<LocalRef> refs;
    for (const ArgumentSchema& declared : function.arguments()) {
      for (const auto& [name, value] : op.args) {
        if (name != declared.name) continue;
        if (const auto* ref = std::get_if<LocalRef>(&value)) {
          refs.push_back(*ref);
        }
        if (const auto* list = std::get_if<std::vector<LocalRef>>(&value)) {
          for (const LocalRef& ref : *list) {
            if (ref.index != TensorArg::kNone) refs.push_back(ref);
          }
        }
      }
    }
    return refs;
  }

  static void drop_defaults(LocalOp& op, const FunctionSchema& function) {
    std::erase_if(op.args, [&](const auto& named) {
      const auto* value = std::get_if<Argument>(&named.second);
      if (value == nullptr) return false;
      const auto at = function.argument_index(named.first);
      const ArgumentSchema& declared = function.arguments()[*at];
      return declared.has_default && declared.default_value == *value;
    });
  }

  const OpSchema& op_;
  const OpCall call_;
  const OpLibrary& library_;
  std::map<std::string, Value> names_;
  std::shared_ptr<Decomposition> out_;
};

}  // namespace

Result<std::shared_ptr<const Decomposition>> trace_program(
    const ProgramText& text, const OpSchema& op, const OpLibrary& library,
    bool per_rank) {
  try {
    return Tracer(op, library, per_rank).run(text);
  } catch (const CallError& error) {
    return fail(ErrorCode::kProgram, "the program of `" + op.name() +
                                         "` does not fit this call: " +
                                         error.message);
  }
}

}  // namespace shardprop
