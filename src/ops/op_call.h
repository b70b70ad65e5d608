// `OpCall` is one call of an operator as the forms of src/ops see it: typed
// arguments, or a CallError.
//
// Nearly every line of a form can find operands that do not fit. Forms throw
// CallError, so that they contain shapes and no error handling. OpLibrary turns
// the exception into an Error; it never leaves this module.
#pragma once

#include <shardprop/base/error_code.h>

#include <shardprop/ops/op_definition.h>
#include <shardprop/ops/op_library.h>

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/index.h"

namespace shardprop {

struct CallError {
  std::string message;
  ErrorCode code = ErrorCode::kShapeMismatch;
  std::optional<std::size_t> operand;  // the operand at fault, if known
  std::string help;                    // empty: that of the caller
};
[[noreturn]] void call_error(std::string message);
// Throws for a call that PyTorch accepts and the rule cannot express: sizes
// that depend on data.
[[noreturn]] void call_not_stated(std::string message);
void require(bool holds, std::string_view message);
// Like the first `require`, with a function that builds the message. It is called only
// for the error: a search makes thousands of calls that hold.
template <std::invocable Message>
void require(bool holds, const Message& message) {
  if (!holds) call_error(message());
}
// Returns the result of `look`. A CallError that `look` throws names the
// operand, unless it names one already.
template <class Look>
auto at_operand(std::size_t operand, const Look& look) {
  try {
    return look();
  } catch (CallError& error) {
    if (!error.operand) error.operand = operand;
    throw;
  }
}

// Arithmetic with 64 bits, checked for overflow, on sizes that a file may
// choose freely.
std::int64_t add_sizes(std::int64_t a, std::int64_t b);
std::int64_t subtract_sizes(std::int64_t a, std::int64_t b);
std::int64_t multiply_sizes(std::int64_t a, std::int64_t b);
std::int64_t product(std::span<const std::int64_t> sizes);

// Maximum number of results of one call, far above any real program. A file may
// ask for more, and each result costs memory before it is checked.
inline constexpr std::int64_t kMostResults = 65'536;

// Returns the length of the diagonal of a rows x columns matrix, `offset`
// columns to the right of the main one.
std::int64_t diagonal_length(std::int64_t rows, std::int64_t columns,
                             std::int64_t offset);

// Returns the size of a dim, which the tensor must have. The operator of a user's rule
// may have tensors of any rank.
std::int64_t size_of(const TensorMeta& meta, int dim);

// Returns an entry of a list, which must have it. The operator of a user's rule may
// have any number of operands and results.
template <class List>
auto& nth(List& list, std::size_t i) {
  require(i < list.size(), [&] {
    return "the rule reads entry " + std::to_string(i + 1) + " of a list of " +
           std::to_string(list.size());
  });
  return list[i];
}

// Wraps a negative dim, which counts from the end; `rank` 0 counts as 1.
int wrap_dim(std::int64_t dim, int rank);

// `OpCall` gives typed access to the arguments of one call. An argument that
// does not fit causes a CallError.
class OpCall {
 public:
  explicit OpCall(const OpSchema& op) : op_(op) {}

  const OpSchema& op() const { return op_; }
  std::string_view base_name() const { return op_.function->base_name(); }
  std::string_view overload() const { return op_.function->overload(); }

  bool has(std::string_view arg) const { return op_.has_arg(arg); }
  const TensorMeta& tensor(std::string_view arg) const;
  // Returns the first operand.
  const TensorMeta& first() const;
  const TensorMeta* optional_tensor(std::string_view arg) const;
  std::vector<TensorMeta> tensors(std::string_view arg) const;
  std::int64_t integer(std::string_view arg) const;
  std::int64_t integer_or(std::string_view arg, std::int64_t fallback) const;
  bool boolean(std::string_view arg) const;
  bool boolean_or(std::string_view arg, bool fallback) const;
  std::vector<std::int64_t> integers(std::string_view arg) const;
  // Returns nullopt if the argument is None.
  std::optional<std::vector<std::int64_t>> optional_integers(
      std::string_view arg) const;
  DType dtype_or(std::string_view arg, DType fallback) const;
  // Returns, for example, "channels_last"; empty if None or not declared.
  std::string_view memory_format() const;
  // Returns the dim that an integer argument names, counted from the front.
  int dim(std::string_view arg, int rank) const;
  // Returns the dims that a list (or lone integer) argument names, each once.
  // Returns all dims if the argument is absent, None or empty.
  std::vector<int> dims(std::string_view arg, int rank) const;
  // Returns a list of bools, which must have that length.
  std::vector<bool> mask(std::string_view arg, std::size_t length) const;
  // Returns the operand index of a tensor argument, which must be present.
  std::size_t operand(std::string_view arg) const;

 private:
  const OpSchema& op_;
};

// Returns the declaration of an argument, which the operator must have.
const ArgumentSchema& declared(const OpCall& call, std::string_view arg);

// Call TensorMeta's factories; their errors become a CallError.
TensorMeta make_meta(Dims shape, DType dtype);
TensorMeta make_meta(Dims shape, Dims strides, DType dtype);
TensorMeta with_dtype(const TensorMeta& meta, DType dtype);
// Returns a dense meta of this shape whose dims have the memory order of
// `like`.
TensorMeta dense_like(const TensorMeta& like, Dims shape, DType dtype);
// Returns the strides of a copy of `self` that is then partly written: the
// strides of `self`, including gaps. The copy is dense if elements of `self`
// share memory, as in expanded dims.
Dims strides_to_write(const TensorMeta& self);
Dims channels_last_strides(const Dims& shape);
// Returns whether the tensor is dense and without overlap, in any order of
// dims.
bool is_dense(const TensorMeta& meta);

// Broadcasts shapes together; a mismatch causes a CallError.
Dims broadcast(const Dims& a, const Dims& b);
Dims broadcast(std::span<const TensorMeta> operands);  // all operands

// Returns the dtype of an operation on these arguments (tensors or numbers).
// PyTorch ranks them in three tiers: tensors with dims, tensors without dims,
// numbers.
DType result_dtype(const OpCall& op, std::span<const std::string_view> args);
// Returns the promoted dtype of every operand and number among the arguments.
DType promoted_dtype(const OpCall& op);
// Returns the dtype in which functions such as exp compute: integers become
// f32.
DType to_floating(DType dtype);

// Returns the elementwise result of the tensor operands: broadcast shape, and
// strides in the order of TensorIterator.
TensorMeta elementwise(std::span<const TensorMeta> operands, DType dtype);

}  // namespace shardprop
