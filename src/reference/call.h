// `Call` is one operator call, as the kernels of the reference read it.
//
// A kernel refuses a call by an exception. It throws CallError if a value does
// not fit (an index beyond its table), and NoKernel if the reference lacks this
// variant. evaluate() turns both into errors.
#pragma once

#include <shardprop/reference/evaluate.h>

#include "ops/op_call.h"
#include "reference/elements.h"

#include <string>
#include <string_view>
#include <vector>

namespace shardprop::reference {

struct NoKernel {
  std::string what;
};

class Call : public OpCall {
 public:
  Call(const OpLibrary& library, const OpSchema& op,
       std::span<const Tensor> inputs)
      : OpCall(op), library_(library), inputs_(inputs) {}

  const OpLibrary& library() const { return library_; }
  std::span<const Tensor> inputs() const { return inputs_; }

  // Returns the values of a tensor argument.
  const Tensor& value(std::string_view arg) const {
    return inputs_[operand(arg)];
  }
  const Tensor& first_value() const { return inputs_.front(); }
  // Null if the argument is absent or not declared.
  const Tensor* optional_value(std::string_view arg) const {
    if (!has(arg)) return nullptr;
    const auto at = op().tensor_arg(arg);
    return at ? &inputs_[*at] : nullptr;
  }
  std::vector<Tensor> list_values(std::string_view arg) const {
    std::vector<Tensor> out;
    for (const std::size_t i : op().tensor_list_arg(arg)) {
      out.push_back(inputs_[i]);
    }
    return out;
  }
  // Returns a number; `fallback` if the argument is None or not declared.
  double number(std::string_view arg, double fallback = 0) const {
    return has(arg) ? op().float_arg(arg).value_or(fallback) : fallback;
  }
  std::optional<double> optional_number(std::string_view arg) const {
    return has(arg) ? op().float_arg(arg) : std::nullopt;
  }
  std::string_view text(std::string_view arg) const {
    return has(arg) ? op().string_arg(arg).value_or("") : "";
  }

  std::size_t outputs() const { return op().outputs.size(); }
  const TensorMeta& out(std::size_t i = 0) const {
    if (i >= op().outputs.size()) call_error("a result is missing");
    return op().outputs[i];
  }
  // Returns output i with these row-major values.
  template <class T>
  Tensor made(const std::vector<T>& from, std::size_t i = 0) const {
    return tensor_of(out(i).shape(), out(i).dtype(), from);
  }

 private:
  const OpLibrary& library_;
  std::span<const Tensor> inputs_;
};

}  // namespace shardprop::reference
