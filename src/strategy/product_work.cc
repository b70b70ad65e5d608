#include "strategy/product_work.h"

#include "strategy/factor_shards.h"

#include <optional>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

// The two inputs that hold a factor which the output lacks: what is multiplied.
// A bias or what stands beside a gradient holds none.
std::optional<std::pair<std::size_t, std::size_t>> multiplied(
    const IndexSpace& space, const Operand& output) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < space.inputs.size(); ++i) {
    for (std::size_t f = 0; f < space.factors.size(); ++f) {
      const auto factor = static_cast<int>(f);
      if (!output.holds(factor) && space.inputs[i].holds(factor)) {
        found.push_back(i);
        break;
      }
    }
  }
  if (found.size() != 2) return std::nullopt;
  return std::pair{found[0], found[1]};
}

bool has_window(const IndexSpace& space, const Operand& operand) {
  for (std::size_t f = 0; f < space.factors.size(); ++f) {
    if (space.factors[f].kind == FactorKind::kWindowed &&
        operand.holds(static_cast<int>(f))) {
      return true;
    }
  }
  return false;
}

// Rows and columns are those of the first and the second input. The places that
// a window is laid on are rows, too: of a convolution, and of the gradient of
// its image, which names none of them; that of its weight sums over them.
std::optional<ProductShape> shape_of(const LocalContext& context,
                                     const Operand& output) {
  const IndexSpace& space = context.space;
  const auto operands = multiplied(space, output);
  if (!operands) return std::nullopt;
  const bool window = has_window(space, output);
  ProductShape shape;
  for (std::size_t f = 0; f < space.factors.size(); ++f) {
    const auto factor = static_cast<int>(f);
    const auto size = static_cast<double>(
        factor_shards(space, context.mesh, context.strategy.assignment, factor)
            .largest);
    const bool first = space.inputs[operands->first].holds(factor);
    const bool second = space.inputs[operands->second].holds(factor);
    const bool windowed = space.factors[f].kind == FactorKind::kWindowed;
    // A third operand has it, as attention's query: that is no single product.
    if (output.holds(factor) && !first && !second && !windowed) {
      return std::nullopt;
    }
    const bool place = windowed && first && !second && !window;
    if (!output.holds(factor) && !place) {
      shape.depth *= size;
    } else if (first && second) {
      shape.batch *= size;
    } else if (second) {
      shape.columns *= size;
    } else {
      shape.rows *= size;
    }
  }
  return shape;
}

// What comes last needs all that came before: of a factor that n ranks take in
// order, the last one has 2 - 1/n times the mean.
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

MathClass math_class(const OpSchema& op) {
  if (op.inputs.empty()) return MathClass::kF32;
  switch (item_size(op.inputs[0].dtype())) {
    case 8:
      return MathClass::kF64;
    case 4:
      return MathClass::kF32;
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
  if (space.product == ProductKind::kAttention &&
      topology.attention_efficiency.value > 0) {
    return {
        plain * topology.efficiency.value / topology.attention_efficiency.value,
        0};
  }
  // Every point is a product and a sum, once for each output.
  constexpr double kFlopsPerProduct = 2;
  double left = space.flops_per_point;
  for (const Operand& output : space.outputs) {
    const auto shape = shape_of(context, output);
    if (!shape || left < kFlopsPerProduct) continue;
    left -= kFlopsPerProduct;
    const ProductCost one =
        product_cost(topology, math_class(context.op), *shape);
    work.flops += one.flops;
    work.bytes += one.bytes;
  }
  return left == 0 ? work : ProductCost{plain, 0};
}

}  // namespace shardprop
