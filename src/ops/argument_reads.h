// ArgumentReads: which arguments of a call the row that serves it looks at, and
// how closely, while one is in scope on this thread. Whoever remembers what
// follows from a call (CachingPropagator) keeps those arguments and no others:
// a row that is given the same answers to the same questions says the same.
//
//   ArgumentReads reads(*op.function);
//   library.index_space(op);
//   reads.look("alpha");   // add.Tensor: kSign; dropout's p: kNothing
//
// Tensors are not counted: their metas always matter.
#pragma once

#include <shardprop/ops/op_schema.h>

#include <cstdint>
#include <string_view>
#include <vector>

namespace shardprop {

enum class Look : std::uint8_t {
  kNothing,
  kKind,   // which alternative of Argument it is
  kSign,   // and whether it is below, at or above zero, or no number
  kValue,  // all of it
};

class ArgumentReads {
 public:
  explicit ArgumentReads(const FunctionSchema& function);
  ~ArgumentReads();
  ArgumentReads(const ArgumentReads&) = delete;
  ArgumentReads& operator=(const ArgumentReads&) = delete;

  // One entry per declared argument.
  const std::vector<Look>& looks() const { return looks_; }

  // Notes a look at an argument, by its name in the call of the scope or in one
  // derived from it. Outside of any scope it does nothing.
  static void note(std::string_view argument, Look look);

 private:
  const FunctionSchema& function_;
  std::vector<Look> looks_;
  ArgumentReads* outer_;
};

// The argument of that name, for a reader that wants to know no more of it than
// `look`. Precondition: the function declares it.
const Argument& look_at(const OpSchema& op, std::string_view argument,
                        Look look);

// An argument's sign: -1, 0 or 1; nullopt if it is not a number or is NaN.
// Noted as kSign.
std::optional<int> sign_of(const OpSchema& op, std::string_view argument);

}  // namespace shardprop
