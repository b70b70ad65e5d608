// Derives the local program of a strategy from the decomposition of its index
// space. It is for factors that the operator alone cannot shard.
#pragma once

#include <shardprop/strategy/local_context.h>
#include <shardprop/strategy/local_program.h>

#include <cstdint>
#include <vector>

namespace shardprop {

// StepWork describes the work of a program step on the busiest rank.
struct StepWork {
  enum class Kind : std::uint8_t {
    kView,     // no work
    kByPoint,  // pointwise: reads one element of each operand per result
    kOther,    // a reduction or a collective
  };
  Kind kind = Kind::kOther;
  std::int64_t bytes = 0;  // bytes of the result; 0 if unknown
};

struct DerivedProgram {
  LocalProgram program;
  std::vector<StepWork> work;  // by step
};

// Precondition: context.space.program is not null.
DerivedProgram derived_program(const LocalContext& context);

}  // namespace shardprop
