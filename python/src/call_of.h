// Call is a call from Python as an OpSchema with the specs of its operands.
//
//   Call call = call_of(*library, "aten.mm.default", args, kwargs);
//   propagator.propagate(call.op, call.operands);
#pragma once

#include <shardprop/ops/op_library.h>
#include <shardprop/ops/op_schema.h>
#include <shardprop/placement/tensor_spec.h>

#include <nanobind/nanobind.h>

#include <string>
#include <vector>

namespace shardprop::python {

struct Call {
  OpSchema op;
  std::vector<TensorSpec> operands;  // one per op.inputs
};

// Tensors are Specs; dtypes, devices and memory formats are their names. Raises
// shardprop.Error for an undeclared operator and for the errors of
// make_op_schema().
Call call_of(const OpLibrary& library, const std::string& name,
             const nanobind::sequence& args, const nanobind::dict& kwargs);

// Returns an argument without tensors as a Python object; dtypes and names are
// ("dtype", "f32") and ("named", "contiguous_format").
nanobind::object to_python(const Argument& argument);

}  // namespace shardprop::python
