// Operators evaluated by the reference on values written out.
#pragma once

#include "ops/applied_op.h"
#include "reference/elements.h"

#include <shardprop/reference/evaluate.h>

#include <string_view>
#include <utility>
#include <vector>

namespace shardprop::testing {

using Numbers = std::vector<double>;

// A tensor of this meta ("f32[2,3]") with these values, row-major.
struct Given {
  std::string_view meta;
  Numbers values;
};

inline Result<std::vector<reference::Tensor>> try_evaluate(
    std::string_view name, const std::vector<Given>& tensors,
    const std::vector<GivenArgument>& others = {}) {
  std::vector<std::string_view> metas;
  std::vector<reference::Tensor> inputs;
  for (const Given& given : tensors) {
    metas.push_back(given.meta);
    const TensorMeta meta = value_of(TensorMeta::parse(given.meta));
    inputs.push_back(
        reference::tensor_of(meta.shape(), meta.dtype(), given.values));
  }
  OpSchema op = applied(name, metas, others);
  set_results(op, value_of(library().infer_results(op)));
  return reference::evaluate(library(), op, inputs);
}

// The values of result `result`, row-major.
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
