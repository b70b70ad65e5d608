// `ArgumentReads` records which arguments of a call its operator definition
// reads, and how closely, while an `ArgumentReads` is in scope on this thread.
// A cache of results (CachingPropagator) keys on these arguments only: if every
// recorded read gives the same answer, the definition gives the same result.
//
//   ArgumentReads reads(*op.function);
//   library.index_space(op);
//   reads.looks()[2];   // alpha of add.Tensor: kSign
//
// Tensors are not recorded, because their metas always matter.
#pragma once

#include <shardprop/base/error.h>

#include <shardprop/ops/op_schema.h>

#include <cstdint>
#include <string_view>
#include <vector>

namespace shardprop {

enum class Look : std::uint8_t {
  kNothing,
  kKind,   // the alternative of Argument
  kSign,   // kKind, and the sign: below, at or above zero, or NaN
  kValue,  // the full value
};

class ArgumentReads {
 public:
  explicit ArgumentReads(const FunctionSchema& function);
  ~ArgumentReads();
  ArgumentReads(const ArgumentReads&) = delete;
  ArgumentReads& operator=(const ArgumentReads&) = delete;

  // Returns one entry per declared argument.
  const std::vector<Look>& looks() const { return looks_; }

  // Records a read of an argument, by its name in the call of the scope or in a
  // call derived from it. It does nothing outside of any scope.
  static void note(std::string_view argument, Look look);

 private:
  const FunctionSchema& function_;
  std::vector<Look> looks_;
  ArgumentReads* outer_;
};

// `UndeclaredArgument` reports a rule that reads an argument which its operator does
// not declare: a rule of a user, or a bug of a rule of this library.
class UndeclaredArgument : public InternalError {
 public:
  using InternalError::InternalError;
};

// Returns the argument of that name and records a read of kind `look`.
// Precondition: the function declares the argument.
const Argument& look_at(const OpSchema& op, std::string_view argument,
                        Look look);

// Returns an argument's sign: -1, 0 or 1; nullopt if it is not a number or is
// NaN. The read is recorded as kSign.
std::optional<int> sign_of(const OpSchema& op, std::string_view argument);

}  // namespace shardprop
