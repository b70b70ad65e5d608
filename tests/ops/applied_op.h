// Operators applied, and their index spaces.
#pragma once

#include <doctest/doctest.h>
#include <shardprop/ops/op_library.h>
#include <shardprop/ops/op_schema.h>

#include "support/result_checks.h"
#include "support/standard_library.h"

#include <string_view>
#include <utility>
#include <vector>

namespace shardprop::testing {

inline const OpLibrary& library() { return standard_library(); }

// TensorArgs of `given` count in `tensors`; outputs are inferred.
inline OpSchema applied_to(std::string_view name,
                           std::vector<GivenArgument> given,
                           const std::vector<std::string_view>& tensors) {
  std::vector<TensorMeta> metas;
  for (const std::string_view text : tensors) {
    metas.push_back(value_of(TensorMeta::parse(text)));
  }
  const auto function = library().find(name);
  REQUIRE(function);
  OpSchema op =
      value_of(make_op_schema(function, std::move(given), std::move(metas)));
  op.outputs = value_of(library().infer_outputs(op));
  return op;
}

// The tensors come first, in order; then other arguments by name.
inline OpSchema applied(std::string_view name,
                        const std::vector<std::string_view>& tensors,
                        const std::vector<GivenArgument>& others = {}) {
  std::vector<GivenArgument> given;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    given.push_back({"", TensorArg{static_cast<std::int32_t>(i)}});
  }
  given.insert(given.end(), others.begin(), others.end());
  return applied_to(name, std::move(given), tensors);
}

inline IndexSpace space_of(const OpSchema& op) {
  return value_of(library().index_space(op));
}

}  // namespace shardprop::testing
