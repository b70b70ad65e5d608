// Pooling and resampling over batch and channels; space stays whole.

#include "ops/definitions/dtypes.h"
#include "ops/definitions/families.h"
#include "ops/windows.h"

#include <functional>

namespace shardprop {
namespace {

constexpr char kHalo[] = "it would need a halo exchange";

Dims image_strides(const OpCall& call, const Dims& shape, DType dtype) {
  return is_channels_last(call.first()) ? channels_last_strides(shape)
                                        : make_meta(shape, dtype).strides();
}

using Resize = std::function<std::int64_t(const OpCall&, std::int64_t size,
                                          std::size_t dim)>;

// The leading dims of the first operand, its spatial ones resized; other
// operands are alike where they have leading dims.
BoundForm bind_resized(const OpCall& call, int results, const Resize& resize) {
  const TensorMeta& self = call.first();
  const int spatial = spatial_dims(call.base_name());
  require(self.rank() == spatial + 1 || self.rank() == spatial + 2,
          "the input has another rank");
  SpaceBuilder b;
  const int leading = self.rank() - spatial;
  Operand whole = b.per_dim(self.shape());
  for (Factor& factor : b.space.factors) factor.nonempty = true;
  Operand output = whole;
  for (int d = leading; d < self.rank(); ++d) {
    b.block(whole.dims[index(d)], kHalo, FactorKind::kWindowed);
    output.dims[index(d)] =
        b.blocked(resize(call, self.size(d), index(d - leading)), kHalo,
                  FactorKind::kWindowed);
  }
  b.input(whole);
  for (int i = 0; i < results; ++i) b.output(output);
  return b.bound();
}

std::int64_t pooled(const OpCall& call, std::int64_t size, std::size_t dim) {
  const auto kernel = call.integers("kernel_size");
  require(!kernel.empty(), "`kernel_size` is empty");
  auto stride = call.integers("stride");
  if (stride.empty()) stride = kernel;
  const auto dilation = call.has("dilation") ? call.integers("dilation")
                                             : std::vector<std::int64_t>{};
  return window_count(size, per_dim(kernel, dim, 1), per_dim(stride, dim, 1),
                      per_dim(call.integers("padding"), dim, 0),
                      per_dim(dilation, dim, 1), call.boolean("ceil_mode"));
}

std::int64_t adapted(const OpCall& call, std::int64_t, std::size_t dim) {
  const std::int64_t size = per_dim(call.integers("output_size"), dim, 1);
  require(size >= 0, "a size is negative");
  return size;
}

// The gradient of `self`, from that of its result; both are alike in their
// leading dims.
BoundForm bind_backward(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  const TensorMeta& grad = call.tensor("grad_output");
  const int spatial = spatial_dims(call.base_name());
  require(self.rank() == spatial + 1 || self.rank() == spatial + 2,
          "the input has another rank");
  require(grad.rank() == self.rank(), "the gradient has another rank");
  SpaceBuilder b;
  const int leading = self.rank() - spatial;
  Operand whole = b.per_dim(self.shape());
  for (Factor& factor : b.space.factors) factor.nonempty = true;
  for (int d = leading; d < self.rank(); ++d) {
    b.block(whole.dims[index(d)], kHalo, FactorKind::kWindowed);
  }
  for (const TensorMeta& meta : call.op().inputs) {
    Operand operand = SpaceBuilder::whole(meta.rank());
    for (int d = 0; d < leading && meta.rank() == self.rank(); ++d) {
      require(meta.size(d) == self.size(d),
              "batch or channels differ between the operands");
      operand.dims[index(d)] = whole.dims[index(d)];
    }
    b.input(std::move(operand));
  }
  b.output(whole, {.strides = is_channels_last(self)
                                  ? channels_last_strides(self.shape())
                                  : make_meta(self.shape(), self.dtype())
                                        .strides(),
                   .dtype = self.dtype()});
  return b.bound();
}

OpDefinition resized(std::string name, int results, Resize resize) {
  return custom(std::move(name),
                [results, resize = std::move(resize)](const OpCall& call) {
                  return bind_resized(call, results, resize);
                })
      .typed(value_and_index)
      .strided(image_strides);
}

}  // namespace

void define_pool(Family f) {
  f.add({"max_pool1d", "max_pool2d", "max_pool3d"}, resized("pool()", 1, pooled));
  f.add({"avg_pool1d", "avg_pool2d", "avg_pool3d"},
        resized("pool()", 1, pooled).linear_in("self"));
  f.add({"max_pool1d_with_indices", "max_pool2d_with_indices",
         "max_pool3d_with_indices"},
        resized("pool()", 2, pooled));
  f.add({"adaptive_avg_pool1d", "adaptive_avg_pool2d", "_adaptive_avg_pool2d",
         "adaptive_avg_pool3d", "_adaptive_avg_pool3d"},
        resized("pool(output_size)", 1, adapted).linear_in("self"));
  f.add({"max_pool2d_with_indices_backward",
         "max_pool3d_with_indices_backward", "avg_pool2d_backward",
         "avg_pool3d_backward", "_adaptive_avg_pool2d_backward",
         "_adaptive_avg_pool3d_backward"},
        custom("pool_backward()", bind_backward).linear_in("grad_output"));
}

}  // namespace shardprop
