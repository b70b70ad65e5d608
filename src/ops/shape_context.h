// What the shape rules are written with.
//
// Nearly every line of a shape rule can find operands that do not fit. So that
// the rules read as shapes and not as error handling, they throw ShapeError,
// which infer_results() turns into an Error; nothing else sees it.
#pragma once

#include <shardprop/ops/shape_inference.h>

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace shardprop {

struct ShapeError {
  std::string message;
};
[[noreturn]] void shape_error(std::string message);
void require(bool holds, std::string_view message);

// 64-bit arithmetic on sizes that a file may choose at will.
std::int64_t add_sizes(std::int64_t a, std::int64_t b);
std::int64_t multiply_sizes(std::int64_t a, std::int64_t b);
std::int64_t product(std::span<const std::int64_t> sizes);

// Dim counted from the end when negative; `rank` 0 counts as 1.
int wrap_dim(std::int64_t dim, int rank);

using Results = std::vector<std::optional<TensorMeta>>;

// The operator seen by a rule: typed arguments, or a ShapeError.
class ShapeContext {
 public:
  explicit ShapeContext(const OpSchema& op) : op_(op) {}

  const OpSchema& op() const { return op_; }
  std::string_view base_name() const { return op_.function->base_name(); }
  std::string_view overload() const { return op_.function->overload(); }

  bool has(std::string_view arg) const { return op_.has_arg(arg); }
  const TensorMeta& tensor(std::string_view arg) const;
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

 private:
  const OpSchema& op_;
};

using ShapeRule = Results (*)(const ShapeContext&);
using ShapeTable = std::unordered_map<std::string_view, ShapeRule>;

// TensorMeta's factories, or a ShapeError.
TensorMeta make_meta(Dims shape, DType dtype);
TensorMeta make_meta(Dims shape, Dims strides, DType dtype);
TensorMeta with_dtype(const TensorMeta& meta, DType dtype);
// The shape in the order of dims that `strides` has, without gaps.
TensorMeta dense_like(const TensorMeta& like, Dims shape, DType dtype);
Dims channels_last_strides(const Dims& shape);
// Dense and without overlap, in whatever order of dims.
bool is_dense(const TensorMeta& meta);

Results one(TensorMeta meta);

// Shapes broadcast together, or a ShapeError.
Dims broadcast(const Dims& a, const Dims& b);

// dtype of an operation on these arguments (tensors or numbers), by PyTorch's
// three tiers: tensors with dims, tensors without, numbers.
DType result_dtype(const ShapeContext& op,
                   std::span<const std::string_view> args);
// The dtype in which functions such as exp compute: integers become f32.
DType to_floating(DType dtype);

// Elementwise result of the tensor operands: broadcast shape, and strides as
// TensorIterator lays them out.
TensorMeta elementwise(std::span<const TensorMeta> operands, DType dtype);

// One table line per operator; a family a file.
void add_pointwise_shapes(ShapeTable& table);
void add_view_shapes(ShapeTable& table);
void add_reduction_shapes(ShapeTable& table);
void add_matmul_shapes(ShapeTable& table);
void add_creation_shapes(ShapeTable& table);
void add_indexing_shapes(ShapeTable& table);
void add_convolution_shapes(ShapeTable& table);
void add_normalization_shapes(ShapeTable& table);
void add_attention_shapes(ShapeTable& table);

}  // namespace shardprop
