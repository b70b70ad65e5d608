// Describes pointwise operators by the arguments that they read at each point,
// and scalar functions of them.
#pragma once

#include "reference/call.h"

#include <functional>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace shardprop::reference {

// x[i] is the value of argument i of `operands` at the point; it is 0 if the
// argument is absent. An empty function is not defined in its domain.
struct PointFunctions {
  std::vector<std::string_view> operands;
  std::function<double(const double* x)> real;
  std::function<std::int64_t(const std::int64_t* x)> integer;
  std::function<Complex(const Complex* x)> complex;
};

// Evaluates the row at every point of the result, in the common domain of the
// operands and the result.
std::vector<Tensor> pointwise(const Call& call, const PointFunctions& row);

// Returns the domain in which the call computes.
Domain domain_of(const Call& call);

// Returns the values of a tensor at every index of `shape`. Throws CallError if
// the tensor does not broadcast to it.
template <class T>
std::vector<T> broadcast_values(const Tensor& tensor, const Dims& shape) {
  return values<T>(broadcast_to(tensor, shape));
}

}  // namespace shardprop::reference
