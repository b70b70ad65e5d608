#include "strategy/product_work.h"

#include "ops/space/contraction_order.h"
#include "strategy/factor_shards.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

// Returns the least multiplications of a product of three or more tensors, two
// at a time. Returns nullopt if another operand determines which elements
// belong together.
std::optional<double> products_of_many(const LocalContext& context) {
  const IndexSpace& space = context.space;
  if (space.product != ProductKind::kPlain || space.outputs.size() != 1 ||
      summed_inputs(space, space.outputs[0]).size() <= 2) {
    return std::nullopt;
  }
  std::vector<double> sizes;
  for (std::size_t f = 0; f < space.factors.size(); ++f) {
    if (space.factors[f].kind == FactorKind::kIndexed) return std::nullopt;
    const auto factor = static_cast<int>(f);
    sizes.push_back(
        static_cast<double>(factor_shards(context, factor).largest));
  }
  return least_products(space, sizes);
}

// Returns whether the operand is the image of a convolution. An image dim
// under a window has no factor but is longer than 1.
bool is_windowed(const Operand& operand, const TensorMeta& meta) {
  for (std::size_t d = 0; d < operand.dims.size(); ++d) {
    if (operand.dims[d].empty() && meta.shape()[d] > 1) return true;
  }
  return false;
}

// Rows are the factors of the first input, columns those of the second. The
// positions of a convolution window are rows too. This also holds for the
// gradient of the image, which has no factor for uncut positions. The gradient
// of the weight sums over positions. There the window, a factor of the weight,
// counts on the side of the image.
std::optional<ProductShape> shape_of(const LocalContext& context,
                                     std::size_t o) {
  const IndexSpace& space = context.space;
  const Operand& output = space.outputs[o];
  const std::vector<std::size_t> operands = summed_inputs(space, output);
  if (operands.size() != 2) return std::nullopt;
  const bool makes_image = is_windowed(output, context.op.outputs[o]);
  const auto is_image = [&](std::size_t i) {
    return is_windowed(space.inputs[i], context.op.inputs[i]);
  };
  const bool image_is_first = is_image(operands[0]);
  const bool image_is_second = is_image(operands[1]);
  ProductShape shape;
  for (std::size_t f = 0; f < space.factors.size(); ++f) {
    const auto factor = static_cast<int>(f);
    const auto size =
        static_cast<double>(factor_shards(context, factor).largest);
    const bool first = space.inputs[operands[0]].holds(factor);
    const bool second = space.inputs[operands[1]].holds(factor);
    const bool windowed = space.factors[f].kind == FactorKind::kWindowed;
    // A third operand has the factor, as the query of attention does, so this
    // is not a single matmul.
    if (output.holds(factor) && !first && !second && !windowed) {
      return std::nullopt;
    }
    const bool is_of_window =
        std::any_of(space.inputs.begin(), space.inputs.end(),
                    [&](const Operand& input) { return input.holds(factor); });
    const bool place = windowed && first && !second && makes_image;
    if (!output.holds(factor) && !place) {
      shape.depth *= size;
    } else if (first && second) {
      shape.batch *= size;
    } else if (second || (!first && (image_is_second ||
                                     (is_of_window && !image_is_first)))) {
      shape.columns *= size;
    } else {
      shape.rows *= size;
    }
  }
  return shape;
}

// Returns how much more work the last rank has. The last element of a scanned
// factor needs all earlier ones. If n ranks share the factor in order, the last
// rank has 2 - 1/n times the mean.
double of_the_last_rank(const LocalContext& context) {
  double times = 1;
  for (std::size_t f = 0; f < context.space.factors.size(); ++f) {
    if (context.space.factors[f].kind != FactorKind::kScanned) continue;
    double ranks = 1;
    for (const std::int32_t m : context.mesh_dims(static_cast<int>(f))) {
      ranks *= static_cast<double>(context.mesh.size(m));
    }
    times *= 2 - 1 / ranks;
  }
  return times;
}

}  // namespace

MathClass math_class(const OpSchema& op, ProductKind product) {
  if (op.inputs.empty()) return MathClass::kF32;
  switch (item_size(op.inputs[0].dtype())) {
    case 8:
      return MathClass::kF64;
    case 4:
      return product == ProductKind::kConvolution ? MathClass::kTf32
                                                  : MathClass::kF32;
    case 2:
      return MathClass::kF16;
    default:
      return MathClass::kF8;
  }
}

ProductCost product_work(const LocalContext& context,
                         const Topology& topology) {
  const IndexSpace& space = context.space;
  ProductCost work;
  if (space.flops_per_point <= 0) return work;
  const double plain = space.flops_per_point * max_local_points(context) *
                       of_the_last_rank(context);
  if (space.product == ProductKind::kAttention) {
    // The query, or its gradient, comes first; its last dim is the head dim.
    const TensorMeta& query = context.op.inputs[0];
    const double head_dim =
        query.shape().empty() ? 0 : static_cast<double>(query.shape().back());
    const MathClass math = math_class(context.op, space.product);
    return {plain * topology.matmul_rate(math) /
                topology.attention_rate(math, head_dim),
            0};
  }
  // Every point is one multiplication and one addition for each output.
  constexpr double kFlopsPerProduct = 2;
  if (const auto products = products_of_many(context)) {
    return {kFlopsPerProduct * *products, 0};
  }
  double left = space.flops_per_point;
  for (std::size_t o = 0; o < space.outputs.size(); ++o) {
    const auto shape = shape_of(context, o);
    if (!shape || left < kFlopsPerProduct) continue;
    left -= kFlopsPerProduct;
    const ProductCost one =
        product_cost(topology, math_class(context.op, space.product), *shape);
    work.flops += one.flops;
    work.bytes += one.bytes;
  }
  return left == 0 ? work : ProductCost{plain, 0};
}

}  // namespace shardprop
