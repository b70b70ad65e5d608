#include "ops/shape_context.h"

#include <utility>

namespace shardprop {
namespace {

const TensorMeta& matrix(const ShapeContext& op, std::string_view arg,
                         int rank) {
  const TensorMeta& meta = op.tensor(arg);
  require(meta.rank() == rank, std::string("`") + std::string(arg) +
                                   "` is not of rank " + std::to_string(rank));
  return meta;
}

void same_dtypes(const TensorMeta& a, const TensorMeta& b) {
  require(a.dtype() == b.dtype(), "the factors are of two dtypes");
}

Results multiply(const ShapeContext& op, const TensorMeta& a,
                 const TensorMeta& b, const TensorMeta* bias) {
  same_dtypes(a, b);
  require(a.shape().back() == b.shape()[b.shape().size() - 2],
          "the inner sizes differ");
  Dims shape = a.shape();
  shape.back() = b.shape().back();
  if (a.rank() == 3) require(a.size(0) == b.size(0), "the batch sizes differ");
  if (bias != nullptr) {
    require(broadcast(shape, bias->shape()) == shape,
            "the summand does not broadcast to the product");
  }
  return one(make_meta(std::move(shape), op.dtype_or("out_dtype", a.dtype())));
}

Results mm(const ShapeContext& op) {
  return multiply(op, matrix(op, "self", 2), matrix(op, "mat2", 2), nullptr);
}

Results addmm(const ShapeContext& op) {
  return multiply(op, matrix(op, "mat1", 2), matrix(op, "mat2", 2),
                  &op.tensor("self"));
}

Results bmm(const ShapeContext& op) {
  return multiply(op, matrix(op, "self", 3), matrix(op, "mat2", 3), nullptr);
}

Results baddbmm(const ShapeContext& op) {
  return multiply(op, matrix(op, "batch1", 3), matrix(op, "batch2", 3),
                  &op.tensor("self"));
}

Results mv(const ShapeContext& op) {
  const TensorMeta& a = matrix(op, "self", 2);
  const TensorMeta& x = matrix(op, "vec", 1);
  same_dtypes(a, x);
  require(a.size(1) == x.size(0), "the inner sizes differ");
  return one(make_meta(Dims{a.size(0)}, a.dtype()));
}

Results dot(const ShapeContext& op) {
  const TensorMeta& a = matrix(op, "self", 1);
  const TensorMeta& b = matrix(op, op.has("tensor") ? "tensor" : "other", 1);
  same_dtypes(a, b);
  require(a.size(0) == b.size(0), "the inner sizes differ");
  return one(make_meta(Dims{}, a.dtype()));
}

Results outer(const ShapeContext& op) {
  const TensorMeta& a = matrix(op, "self", 1);
  const TensorMeta& b = matrix(op, "vec2", 1);
  return one(make_meta(Dims{a.size(0), b.size(0)},
                       promote_types(a.dtype(), b.dtype())));
}

// numpy's rules: a vector is a row on the left and a column on the right, and
// loses that dim again.
Results matmul(const ShapeContext& op) {
  const TensorMeta& a = op.tensor("self");
  const TensorMeta& b = op.tensor("other");
  require(a.rank() > 0 && b.rank() > 0, "a factor is a scalar");
  same_dtypes(a, b);
  Dims left = a.shape();
  Dims right = b.shape();
  if (a.rank() == 1) left.insert(left.begin(), 1);
  if (b.rank() == 1) right.push_back(1);
  const std::size_t l = left.size();
  const std::size_t r = right.size();
  require(left[l - 1] == right[r - 2], "the inner sizes differ");
  Dims shape = broadcast(Dims(left.begin(), left.begin() + (l - 2)),
                         Dims(right.begin(), right.begin() + (r - 2)));
  if (a.rank() > 1) shape.push_back(left[l - 2]);
  if (b.rank() > 1) shape.push_back(right[r - 1]);
  return one(make_meta(std::move(shape), a.dtype()));
}

Results linear(const ShapeContext& op) {
  const TensorMeta& input = op.tensor("input");
  const TensorMeta& weight = op.tensor("weight");
  require(input.rank() > 0 && (weight.rank() == 1 || weight.rank() == 2),
          "linear needs a weight of rank 1 or 2");
  same_dtypes(input, weight);
  require(input.shape().back() == weight.shape().back(),
          "the inner sizes differ");
  Dims shape = input.shape();
  shape.pop_back();
  if (weight.rank() == 2) shape.push_back(weight.size(0));
  if (const TensorMeta* bias = op.optional_tensor("bias")) {
    require(broadcast(shape, bias->shape()) == shape,
            "the bias does not broadcast to the product");
  }
  return one(make_meta(std::move(shape), input.dtype()));
}

}  // namespace

void add_matmul_shapes(ShapeTable& table) {
  table["aten.mm"] = mm;
  table["aten.addmm"] = addmm;
  table["aten.bmm"] = bmm;
  table["aten.baddbmm"] = baddbmm;
  table["aten.mv"] = mv;
  table["aten.dot"] = dot;
  table["aten.vdot"] = dot;
  table["aten.outer"] = outer;
  table["aten.matmul"] = matmul;
  table["aten.linear"] = linear;
}

}  // namespace shardprop
