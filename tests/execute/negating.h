// negating() runs programs whose only operator is a negation of floats.
#pragma once

#include "support/result_checks.h"

#include <shardprop/execute/program_run.h>

#include <cstdint>
#include <span>
#include <vector>

namespace shardprop::testing {

inline ProgramRunOptions negating() {
  ProgramRunOptions options;
  options.library = OpLibrary::standard();
  options.evaluate = [](const OpSchema& op, std::span<const LocalTensor> inputs)
      -> Result<std::vector<LocalTensor>> {
    if (op.name() != "aten.neg.default") {
      return fail(ErrorCode::kUnknownOperator, "nothing but neg");
    }
    LocalTensor out =
        value_of(LocalTensor::empty(inputs[0].sizes(), inputs[0].dtype()));
    for (std::int64_t i = 0; i < out.numel(); ++i) {
      out.data_as<float>()[i] = -inputs[0].data_as<float>()[i];
    }
    return std::vector<LocalTensor>{out};
  };
  return options;
}

}  // namespace shardprop::testing
