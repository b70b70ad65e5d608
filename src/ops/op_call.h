// OpCall: one call of an operator as the forms of src/ops see it: typed
// arguments, or a CallError.
//
// Nearly every line of a form can find operands that do not fit. So that forms
// read as shapes and not as error handling, they throw CallError, which
// OpLibrary turns into an Error; nothing else sees it.
#pragma once

#include <shardprop/base/error_code.h>

#include <shardprop/ops/op_definition.h>
#include <shardprop/ops/op_library.h>

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
  std::optional<std::size_t> operand;  // the one that does not fit, if known
};
[[noreturn]] void call_error(std::string message);
// A call that PyTorch takes and the row cannot state: sizes that depend on data.
[[noreturn]] void call_not_stated(std::string message);
void require(bool holds, std::string_view message);
// What `look` returns; its CallError is of that operand.
template <class Look>
auto at_operand(std::size_t operand, const Look& look) {
  try {
    return look();
  } catch (CallError& error) {
    if (!error.operand) error.operand = operand;
    throw;
  }
}

// 64-bit arithmetic on sizes that a file may choose at will.
std::int64_t add_sizes(std::int64_t a, std::int64_t b);
std::int64_t subtract_sizes(std::int64_t a, std::int64_t b);
std::int64_t multiply_sizes(std::int64_t a, std::int64_t b);
std::int64_t product(std::span<const std::int64_t> sizes);

// The most results of one call, which is far above those of any program. A file
// may ask for more, and each costs memory before it is looked at.
inline constexpr std::int64_t kMostResults = 65'536;

// Of a matrix of that many rows and columns, `offset` columns to the right of
// the main one.
std::int64_t diagonal_length(std::int64_t rows, std::int64_t columns,
                             std::int64_t offset);

// Dim counted from the end when negative; `rank` 0 counts as 1.
int wrap_dim(std::int64_t dim, int rank);

// One call: typed arguments, or a CallError.
class OpCall {
 public:
  explicit OpCall(const OpSchema& op) : op_(op) {}

  const OpSchema& op() const { return op_; }
  std::string_view base_name() const { return op_.function->base_name(); }
  std::string_view overload() const { return op_.function->overload(); }

  bool has(std::string_view arg) const { return op_.has_arg(arg); }
  const TensorMeta& tensor(std::string_view arg) const;
  // The first operand.
  const TensorMeta& first() const;
  const TensorMeta* optional_tensor(std::string_view arg) const;
  std::vector<TensorMeta> tensors(std::string_view arg) const;
  std::int64_t integer(std::string_view arg) const;
  std::int64_t integer_or(std::string_view arg, std::int64_t fallback) const;
  bool boolean(std::string_view arg) const;
  bool boolean_or(std::string_view arg, bool fallback) const;
  std::vector<std::int64_t> integers(std::string_view arg) const;
  // nullopt when None.
  std::optional<std::vector<std::int64_t>> optional_integers(
      std::string_view arg) const;
  DType dtype_or(std::string_view arg, DType fallback) const;
  // "channels_last"; empty when None or not declared.
  std::string_view memory_format() const;
  // The dim that an integer argument names, counted from the front.
  int dim(std::string_view arg, int rank) const;
  // The dims that a list (or lone integer) argument names, each once; all when
  // it is absent, None or empty.
  std::vector<int> dims(std::string_view arg, int rank) const;
  // A list of bools of that length.
  std::vector<bool> mask(std::string_view arg, std::size_t length) const;
  // Operand index of a tensor argument that is there.
  std::size_t operand(std::string_view arg) const;

 private:
  const OpSchema& op_;
};

// TensorMeta's factories, or a CallError.
TensorMeta make_meta(Dims shape, DType dtype);
TensorMeta make_meta(Dims shape, Dims strides, DType dtype);
TensorMeta with_dtype(const TensorMeta& meta, DType dtype);
// The shape in the order of dims that `strides` has, without gaps.
TensorMeta dense_like(const TensorMeta& like, Dims shape, DType dtype);
// The strides of a copy of `self` of which a part is then written: its own with
// their gaps; without gaps where elements share a place, as in expanded dims.
Dims strides_to_write(const TensorMeta& self);
Dims channels_last_strides(const Dims& shape);
// Dense and without overlap, in whatever order of dims.
bool is_dense(const TensorMeta& meta);

// Shapes broadcast together, or a CallError.
Dims broadcast(const Dims& a, const Dims& b);
Dims broadcast(std::span<const TensorMeta> operands);  // all of the call's

// dtype of an operation on these arguments (tensors or numbers), by PyTorch's
// three tiers: tensors with dims, tensors without, numbers.
DType result_dtype(const OpCall& op, std::span<const std::string_view> args);
// The same over every operand and number among the arguments.
DType promoted_dtype(const OpCall& op);
// The dtype in which functions such as exp compute: integers become f32.
DType to_floating(DType dtype);

// Elementwise result of the tensor operands: broadcast shape, and strides as
// TensorIterator lays them out.
TensorMeta elementwise(std::span<const TensorMeta> operands, DType dtype);

}  // namespace shardprop
