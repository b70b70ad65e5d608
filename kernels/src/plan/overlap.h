#pragma once

#include <span>

#include <shardprop/kernels/status.h>

#include "operand.h"

namespace shardprop::kernels {

// True if two elements of the operand share a byte. Layouts that cannot be
// sorted into nested strides count as overlapping.
bool overlaps_itself(const Operand& operand);

// True if an element of `a` shares a byte with one of `b`. Exact, also for
// interleaved views of one buffer (odd and even columns), up to a bound on the
// work; beyond it they count as overlapping.
bool overlap(const Operand& a, const Operand& b);

// kOverlap if any output overlaps itself, another output or an input.
struct NamedOperands {
  const char* name;  // of the list, or of its only operand
  bool list;
  std::span<const Operand> operands;
};
Status check_overlap(const char* op, NamedOperands outs, NamedOperands ins);

}  // namespace shardprop::kernels
