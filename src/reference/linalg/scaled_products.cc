// Evaluates products of quantised matrices, whose elements are multiplied by scales. An
// operand has one scale, one for each row (or column), or one for each block of 128.

#include "reference/kernels.h"
#include "reference/linalg/matrix_product.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace shardprop::reference {
namespace {

constexpr std::int64_t kBlockOfScale = 128;

// Returns the index of the scale of element `i` of a dim of that size.
std::int64_t place_of_scale(std::int64_t i, std::int64_t size,
                            std::int64_t scales) {
  if (scales == 1) return 0;
  if (scales == size) return i;
  if ((size - 1) / kBlockOfScale + 1 != scales) {
    throw NoKernel{"scales in an order of the kernel"};
  }
  return i / kBlockOfScale;
}

// Returns the elements of a matrix times their scales.
std::vector<double> times_scales(const Tensor& matrix, const Tensor& scale) {
  std::vector<double> out = values<double>(matrix);
  const std::vector<double> scales = values<double>(scale);
  const bool is_one = scale.numel() == 1;
  if (!is_one && scale.rank() != 2) {
    throw NoKernel{"scales in an order of the kernel"};
  }
  const std::int64_t rows = matrix.size(0);
  const std::int64_t columns = matrix.size(1);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      const std::int64_t at =
          is_one ? 0
                 : place_of_scale(r, rows, scale.size(0)) * scale.size(1) +
                       place_of_scale(c, columns, scale.size(1));
      out[index(r * columns + c)] *= scales[index(at)];
    }
  }
  return out;
}

// Returns the scales of an operand: an argument, or the only tensor of a list.
Tensor scales_of_operand(const Call& call, std::string_view argument) {
  if (call.op().tensor_arg(argument)) return call.value(argument);
  std::vector<Tensor> levels = call.list_values(argument);
  if (levels.size() != 1) throw NoKernel{"scales of two levels"};
  return std::move(levels.front());
}

std::vector<Tensor> scaled_product(const Call& call) {
  if (call.optional_value("scale_result") != nullptr) {
    throw NoKernel{"a scale of the result"};
  }
  const Tensor& a = call.value("self");
  const Tensor& b = call.value("mat2");
  std::vector<double> out = batched_product(
      times_scales(a, scales_of_operand(call, "scale_a")),
      times_scales(b, scales_of_operand(call, "scale_b")),
      {.rows = a.size(0), .summed = a.size(1), .columns = b.size(1)});
  if (const Tensor* bias = call.optional_value("bias")) {
    const std::vector<double> added = values<double>(*bias);
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] += added[i % added.size()];
    }
  }
  return {call.made(out)};
}

}  // namespace

void add_scaled_products(Kernels& k) {
  k.add({"_scaled_mm"}, scaled_product);
  k.add({"_scaled_mm_v2"}, scaled_product);
}

}  // namespace shardprop::reference
