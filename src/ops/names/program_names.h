// Checks the names in a program before any call of its operator.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/ops/function_schema.h>
#include <shardprop/ops/op_library.h>

#include "ops/program/program_text.h"

#include <memory>
#include <vector>

namespace shardprop {

// Checks that each name in a program is an argument of one of the overloads or an
// earlier result, that each function exists and takes as many values and those names,
// and that a program on full tensors (`is_per_rank` is false) calls no function of a
// rank. Error, which names the column: kProgramSyntax.
Result<void> check_program_names(
    const ProgramText& program, bool is_per_rank,
    const std::vector<std::shared_ptr<const FunctionSchema>>& overloads,
    const OpLibrary& library);

}  // namespace shardprop
