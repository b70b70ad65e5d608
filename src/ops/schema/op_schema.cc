#include <shardprop/ops/op_schema.h>

#include "base/index.h"
#include "base/quantities.h"
#include "base/try.h"
#include "ops/argument_reads.h"
#include "ops/schema/argument_check.h"

#include <utility>

namespace shardprop {

bool OpSchema::has_arg(std::string_view name) const {
  return function->argument_index(name).has_value();
}

const Argument& OpSchema::arg(std::string_view name) const {
  return look_at(*this, name, Look::kValue);
}

std::optional<std::int64_t> OpSchema::int_arg(std::string_view name) const {
  const Argument& value = arg(name);
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return *integer;
  if (const auto* boolean = std::get_if<bool>(&value)) return *boolean ? 1 : 0;
  return std::nullopt;
}

std::optional<double> OpSchema::float_arg(std::string_view name) const {
  const Argument& value = arg(name);
  if (const auto* real = std::get_if<double>(&value)) return *real;
  if (const auto integer = int_arg(name)) return static_cast<double>(*integer);
  return std::nullopt;
}

std::optional<bool> OpSchema::bool_arg(std::string_view name) const {
  const auto* boolean = std::get_if<bool>(&arg(name));
  if (boolean == nullptr) return std::nullopt;
  return *boolean;
}

std::optional<std::vector<std::int64_t>> OpSchema::ints_arg(
    std::string_view name) const {
  const Argument& value = arg(name);
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value)) {
    return *list;
  }
  if (const auto* one = std::get_if<std::int64_t>(&value)) {
    return std::vector<std::int64_t>{*one};
  }
  return std::nullopt;
}

std::optional<std::string_view> OpSchema::string_arg(
    std::string_view name) const {
  const auto* text = std::get_if<std::string>(&arg(name));
  if (text == nullptr) return std::nullopt;
  return std::string_view(*text);
}

std::optional<DType> OpSchema::dtype_arg(std::string_view name) const {
  const auto* dtype = std::get_if<DType>(&arg(name));
  if (dtype == nullptr) return std::nullopt;
  return *dtype;
}

std::optional<std::size_t> OpSchema::tensor_arg(std::string_view name) const {
  const auto* tensor =
      std::get_if<TensorArg>(&look_at(*this, name, Look::kKind));
  if (tensor == nullptr || tensor->operand == TensorArg::kNone) {
    return std::nullopt;
  }
  return static_cast<std::size_t>(tensor->operand);
}

std::vector<std::size_t> OpSchema::tensor_list_arg(
    std::string_view name) const {
  std::vector<std::size_t> operands;
  if (const auto* list = std::get_if<std::vector<TensorArg>>(
          &look_at(*this, name, Look::kKind))) {
    for (const TensorArg& tensor : *list) {
      if (tensor.operand != TensorArg::kNone) {
        operands.push_back(static_cast<std::size_t>(tensor.operand));
      }
    }
  }
  return operands;
}

namespace {

// Assigns each argument to its declared position.
Result<std::vector<std::optional<Argument>>> place_arguments(
    const FunctionSchema& function, std::vector<GivenArgument> given) {
  const std::vector<ArgumentSchema>& declared = function.arguments();
  std::vector<std::optional<Argument>> placed(declared.size());
  std::size_t next = 0;
  for (GivenArgument& argument : given) {
    std::size_t index = 0;
    if (argument.name.empty()) {
      index = next++;
      if (index >= declared.size() || declared[index].keyword_only) {
        return fail(ErrorCode::kUnknownArgument,
                    "`" + function.name() + "` is given more than its " +
                        counted(index, "positional argument"),
                    to_string(function));
      }
    } else if (const auto known = function.argument_index(argument.name)) {
      index = *known;
    } else {
      return fail(
          ErrorCode::kUnknownArgument,
          "`" + function.name() + "` has no argument `" + argument.name + "`",
          to_string(function));
    }
    if (placed[index]) {
      return fail(ErrorCode::kUnknownArgument,
                  "`" + function.name() + "` is given its argument `" +
                      declared[index].name + "` twice",
                  "give it by position or by name, not both");
    }
    placed[index] = std::move(argument.value);
  }
  return placed;
}

// Renumbers operands into the order in which the arguments name them.
class OperandSorter {
 public:
  OperandSorter(std::vector<TensorMeta> given, std::vector<TensorMeta>& ordered)
      : given_(std::move(given)),
        used_(given_.size(), false),
        ordered_(ordered) {}

  bool renumber(TensorArg& tensor) {
    if (tensor.operand == TensorArg::kNone) return true;
    const auto index = static_cast<std::size_t>(tensor.operand);
    if (tensor.operand < 0 || index >= given_.size()) return false;
    used_[index] = true;
    tensor.operand = static_cast<std::int32_t>(ordered_.size());
    ordered_.push_back(given_[index]);
    return true;
  }
  bool renumber(Argument& argument) {
    if (auto* tensor = std::get_if<TensorArg>(&argument)) {
      return renumber(*tensor);
    }
    if (auto* list = std::get_if<std::vector<TensorArg>>(&argument)) {
      for (TensorArg& tensor : *list) {
        if (!renumber(tensor)) return false;
      }
    }
    return true;
  }
  bool all_used() const {
    for (const bool used : used_) {
      if (!used) return false;
    }
    return true;
  }

 private:
  std::vector<TensorMeta> given_;
  std::vector<bool> used_;
  std::vector<TensorMeta>& ordered_;
};

}  // namespace

Result<OpSchema> make_op_schema(std::shared_ptr<const FunctionSchema> function,
                                std::vector<GivenArgument> given,
                                std::vector<TensorMeta> inputs) {
  SP_ASSIGN(std::vector<std::optional<Argument>> placed,
            place_arguments(*function, std::move(given)));
  OpSchema op;
  op.function = std::move(function);
  op.args.reserve(placed.size());
  op.inputs.reserve(inputs.size());
  OperandSorter operands(std::move(inputs), op.inputs);
  for (std::size_t i = 0; i < placed.size(); ++i) {
    const ArgumentSchema& declared = op.function->arguments()[i];
    if (!placed[i]) {
      if (!declared.has_default && declared.type != ArgumentType::kGenerator) {
        return fail(
            ErrorCode::kMissingArgument,
            "`" + op.name() + "` lacks its argument `" + declared.name + "`",
            to_string(*op.function));
      }
      placed[i] = declared.default_value;
    }
    const std::string_view found = describe_value(*placed[i]);
    auto fitted = fit_argument(declared, *std::move(placed[i]));
    if (!fitted || !operands.renumber(*fitted)) {
      return fail(ErrorCode::kArgumentType,
                  "argument `" + declared.name + "` of `" + op.name() +
                      "` is " + std::string(found) + ", not " +
                      describe_type(declared),
                  to_string(*op.function));
    }
    op.args.push_back(*std::move(fitted));
  }
  if (!operands.all_used()) {
    return fail(ErrorCode::kArgumentType,
                "`" + op.name() + "` is given a tensor that no argument names",
                to_string(*op.function));
  }
  return op;
}

}  // namespace shardprop
