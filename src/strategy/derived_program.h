// The local program of a strategy whose factors the operator alone cannot
// shard, derived from the decomposition of its index space.
#pragma once

#include <shardprop/strategy/local_context.h>
#include <shardprop/strategy/local_program.h>

#include <cstdint>
#include <vector>

namespace shardprop {

// What a step of a program does on the busiest rank.
struct StepWork {
  enum class Kind : std::uint8_t {
    kView,     // nothing
    kByPoint,  // each element of the result from one of each operand
    kOther,    // a reduction, a collective
  };
  Kind kind = Kind::kOther;
  std::int64_t bytes = 0;  // of the result; 0 where it is not known
};

struct DerivedProgram {
  LocalProgram program;
  std::vector<StepWork> work;  // by step
};

// Precondition: context.space.program is not null.
DerivedProgram derived_program(const LocalContext& context);

}  // namespace shardprop
