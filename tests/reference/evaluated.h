// Evaluates operators by the reference on values that a test spells out.
#pragma once

#include "ops/applied_op.h"
#include "reference/elements.h"

#include <shardprop/reference/evaluate.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardprop::testing {

using Numbers = std::vector<double>;

// `Given` is a tensor of this meta ("f32[2,3]") with these values, row-major.
// It is the value of the next tensor argument that is not given otherwise, in
// declared order.
struct Given {
  std::string_view meta;
  Numbers values;
};

inline Result<std::vector<reference::Tensor>> try_evaluate(
    std::string_view name, const std::vector<Given>& tensors,
    const std::vector<GivenArgument>& others = {}) {
  std::vector<std::string_view> metas;
  std::vector<reference::Tensor> inputs;
  std::vector<GivenArgument> all = others;
  const auto is_given = [&](const std::string& argument) {
    return std::any_of(
        others.begin(), others.end(),
        [&](const GivenArgument& other) { return other.name == argument; });
  };
  const auto function = library().find(name);
  REQUIRE(function);
  std::size_t next = 0;
  for (const ArgumentSchema& argument : function->arguments()) {
    if (next == tensors.size() || !argument.is_tensor()) continue;
    if (is_given(argument.name)) continue;
    const Given& given = tensors[next];
    all.push_back({argument.name, TensorArg{static_cast<std::int32_t>(next)}});
    const TensorMeta meta = value_of(TensorMeta::parse(given.meta));
    metas.push_back(given.meta);
    inputs.push_back(
        reference::tensor_of(meta.shape(), meta.dtype(), given.values));
    ++next;
  }
  OpSchema op = applied_to(name, std::move(all), metas);
  set_results(op, value_of(library().infer_results(op)));
  return reference::evaluate(library(), op, inputs);
}

// Returns the values of result `result`, row-major.
inline Numbers evaluated(std::string_view name,
                         const std::vector<Given>& tensors,
                         const std::vector<GivenArgument>& others = {},
                         std::size_t result = 0) {
  const auto made = value_of(try_evaluate(name, tensors, others));
  return reference::values<double>(made.at(result));
}

inline void check_near(const Numbers& found, const Numbers& wanted,
                       double tolerance = 1e-12) {
  REQUIRE(found.size() == wanted.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CAPTURE(i);
    CHECK(found[i] == doctest::Approx(wanted[i]).epsilon(tolerance));
  }
}

}  // namespace shardprop::testing
