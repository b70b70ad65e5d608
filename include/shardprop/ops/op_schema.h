// OpSchema: an operator applied: its declaration, one argument per declared
// argument (defaults filled in), and the TensorMeta of every tensor operand.
//
// Operands are the tensors among the arguments in order, list elements
// included, absent optional tensors left out. `outputs` are the metas of the
// tensors it returns in order, list elements included; a tensor that is not
// produced (an undefined gradient) is left out and marked in `output_slots`.
//
//   mm(a: f32[16,8], b: f32[8,4])
//     inputs  = {f32[16,8], f32[8,4]}
//     args    = {TensorArg{0}, TensorArg{1}}
//     outputs = {f32[16,4]}
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/ops/argument.h>
#include <shardprop/ops/function_schema.h>
#include <shardprop/placement/tensor_meta.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace shardprop {

struct OpSchema {
  std::shared_ptr<const FunctionSchema> function;
  std::vector<Argument> args;  // one per function->arguments()
  std::vector<TensorMeta> inputs;
  std::vector<TensorMeta> outputs;
  // One entry per tensor it returns: its index in `outputs`, or kNotProduced.
  std::vector<std::int32_t> output_slots;
  static constexpr std::int32_t kNotProduced = -1;

  const std::string& name() const { return function->name(); }

  // The argument of that name. Precondition: the function declares it.
  const Argument& arg(std::string_view name) const;
  bool has_arg(std::string_view name) const;
  // Typed looks at an argument; nullopt when it is None or of another type.
  // int_arg also takes bools, float_arg ints; ints_arg takes a lone int as a
  // list of one (of list_size copies where the declaration says so).
  std::optional<std::int64_t> int_arg(std::string_view name) const;
  std::optional<double> float_arg(std::string_view name) const;
  std::optional<bool> bool_arg(std::string_view name) const;
  std::optional<std::vector<std::int64_t>> ints_arg(
      std::string_view name) const;
  std::optional<std::string_view> string_arg(std::string_view name) const;
  std::optional<DType> dtype_arg(std::string_view name) const;
  // Operand index of a tensor argument; nullopt when absent.
  std::optional<std::size_t> tensor_arg(std::string_view name) const;
  // Operand indices of a tensor list argument, absent elements left out.
  std::vector<std::size_t> tensor_list_arg(std::string_view name) const;
};

// An argument given by name or position, before defaults.
struct GivenArgument {
  std::string name;  // empty: positional
  Argument value;
};

// Puts arguments in declared order and fills defaults; list sizes and
// optionals are honoured. `inputs` are the operands that the TensorArgs of
// `given` count in; they are renumbered into the order of OpSchema::inputs. A
// number may stand for a tensor, as in mul.Tensor(x, 2). Outputs are left for
// OpLibrary::infer_results().
// Errors: kUnknownArgument, kMissingArgument, kArgumentType.
Result<OpSchema> make_op_schema(std::shared_ptr<const FunctionSchema> function,
                                std::vector<GivenArgument> given,
                                std::vector<TensorMeta> inputs);

}  // namespace shardprop
