// This file defines pooling and resampling over batch and channels. Spatial
// dims are not sharded.

#include "ops/definitions/dtypes.h"
#include "ops/definitions/families.h"
#include "ops/definitions/words.h"
#include "ops/space/windows.h"

namespace shardprop {
namespace {

std::int64_t pooled(const OpCall& call, std::int64_t size, std::size_t dim) {
  const auto dims = index(spatial_dims(call.base_name()));
  const auto kernel = call.integers("kernel_size");
  require_per_dim(kernel, dims, "kernel_size");
  auto stride = call.integers("stride");
  if (stride.empty()) stride = kernel;
  const std::int64_t padding = per_dim(call.integers("padding"), dim, 0);
  require(multiply_sizes(2, padding) <= per_dim(kernel, dim, 1),
          "the padding is more than half of the kernel");
  require_per_dim(stride, dims, "stride");
  require_per_dim(call.integers("padding"), dims, "padding");
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

std::int64_t unpooled_size(const OpCall& call, std::int64_t size,
                           std::size_t dim) {
  return upsampled_size(call, size, dim, index(spatial_dims(call.base_name())));
}

}  // namespace

void words_of_pool(RuleWords& words) {
  words.form(resize_form("pool()", pooled));
  words.form(resize_form("pool(2)", pooled, 2));
  words.form(resize_form("pool(output_size)", adapted));
  words.form(resize_form("upsample(output_size)", unpooled_size));
  words.form(resize_gradient_form("pool_gradient()", pooled));
  words.form(resize_gradient_form("resized_gradient()"));
}

void define_pool(Family f) {
  f.add({"max_pool1d", "max_pool2d", "max_pool3d"}, resized("pool()"));
  f.add({"avg_pool1d", "avg_pool2d"}, resized("pool()").linear_in("self"));
  f.add("avg_pool3d", contiguous(resized("pool()")).linear_in("self"));
  f.add({"max_pool1d_with_indices", "max_pool2d_with_indices",
         "max_pool3d_with_indices"},
        resized("pool(2)"));
  f.add({"adaptive_avg_pool1d", "adaptive_avg_pool2d", "_adaptive_avg_pool2d"},
        resized("pool(output_size)").linear_in("self"));
  f.add({"adaptive_avg_pool3d", "_adaptive_avg_pool3d"},
        contiguous(resized("pool(output_size)")).linear_in("self"));
  f.add({"upsample_nearest2d", "upsample_bilinear2d", "upsample_bicubic2d"},
        resized("upsample(output_size)")
            .linear_in("self")
            .linear_in("input"));  // the name in .vec
  f.add({"max_pool2d_with_indices_backward", "max_pool3d_with_indices_backward",
         "avg_pool2d_backward"},
        resized_gradient("pool_gradient()"));
  f.add("avg_pool3d_backward", contiguous(resized_gradient("pool_gradient()")));
  f.add("_adaptive_avg_pool2d_backward",
        resized_gradient("resized_gradient()"));
  f.add("_adaptive_avg_pool3d_backward",
        contiguous(resized_gradient("resized_gradient()")));
}

}  // namespace shardprop
