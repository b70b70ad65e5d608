// `OpSchema` is an operator call: its declaration, one argument per declared
// argument (defaults filled in), and the TensorMeta of every tensor operand.
//
// Operands are the tensors among the arguments in order, with list elements and
// without absent optional tensors. `outputs` are the metas of the returned
// tensors in order, with list elements. A tensor that is not produced (an
// undefined gradient) is omitted there and marked in `output_slots`.
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
  // One entry per returned tensor: its index in `outputs`, or kNotProduced.
  std::vector<std::int32_t> output_slots;
  static constexpr std::int32_t kNotProduced = -1;

  const std::string& name() const { return function->name(); }

  // Returns the argument with that name. Precondition: the function declares
  // it.
  const Argument& arg(std::string_view name) const;
  bool has_arg(std::string_view name) const;
  // These return an argument by type; nullopt if it is None or of another type.
  // int_arg also accepts bools, float_arg also ints. ints_arg accepts a single
  // int as a list of one, or of list_size copies if the declaration has a list
  // size.
  std::optional<std::int64_t> int_arg(std::string_view name) const;
  std::optional<double> float_arg(std::string_view name) const;
  std::optional<bool> bool_arg(std::string_view name) const;
  std::optional<std::vector<std::int64_t>> ints_arg(
      std::string_view name) const;
  std::optional<std::string_view> string_arg(std::string_view name) const;
  std::optional<DType> dtype_arg(std::string_view name) const;
  // Returns the operand index of a tensor argument; nullopt if it is absent.
  std::optional<std::size_t> tensor_arg(std::string_view name) const;
  // Returns the operand indices of a tensor list argument, without absent
  // elements.
  std::vector<std::size_t> tensor_list_arg(std::string_view name) const;
};

// `GivenArgument` is an argument given by name or position, before defaults.
struct GivenArgument {
  std::string name;  // empty: positional
  Argument value;
};

// Puts arguments in declared order and fills in defaults; list sizes and
// optional types are respected. The TensorArgs of `given` are indices into
// `inputs`; they are renumbered in the order of OpSchema::inputs. A number may
// replace a tensor, as in mul.Tensor(x, 2). OpLibrary::infer_results() fills in
// the outputs later. Errors: kUnknownArgument, kMissingArgument, kArgumentType.
Result<OpSchema> make_op_schema(std::shared_ptr<const FunctionSchema> function,
                                std::vector<GivenArgument> given,
                                std::vector<TensorMeta> inputs);

}  // namespace shardprop
