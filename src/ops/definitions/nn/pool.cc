// This file defines pooling and resampling over batch and channels. Spatial
// dims are not sharded.

#include "ops/definitions/dtypes.h"
#include "ops/definitions/families.h"
#include "ops/definitions/words.h"
#include "ops/space/windows.h"

#include <string>

namespace shardprop {
namespace {

// Returns the size of a result of a pool over `dims` dims.
std::int64_t pooled(const OpCall& call, std::int64_t size, std::size_t dim,
                    std::size_t dims) {
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

std::int64_t resampled_size(const OpCall& call, std::int64_t size,
                            std::size_t dim) {
  return upsampled_size(call, size, dim, 2);
}

// Returns a row over one spatial dim. PyTorch runs it as one over two spatial dims,
// the first of size 1, so that strides may be those of channels last.
OpDefinition lines(std::string_view word) {
  return form(word).typed("first,i64").strided("pooled_lines");
}

OpDefinition images(std::string_view word) {
  return form(word).typed("first,i64").strided("images");
}

// The kernel returns no channels last.
OpDefinition contiguous_images(std::string_view word) {
  return form(word).typed("first,i64").contiguous();
}

OpDefinition contiguous_gradient(std::string_view word) {
  return form(word).contiguous().linear_in("grad_output");
}

}  // namespace

void words_of_pool(RuleWords& words) {
  for (const int dims : {1, 2, 3}) {
    const std::string d = std::to_string(dims);
    const Resize pool = [dims](const OpCall& call, std::int64_t size,
                               std::size_t dim) {
      return pooled(call, size, dim, index(dims));
    };
    words.form(resize_form("pool(" + d + ")", dims, pool));
    words.form(resize_form("pool(" + d + ",indices)", dims, pool, 2));
    words.form(resize_form("pool(" + d + ",output_size)", dims, adapted));
    words.form(resize_gradient_form("pool_gradient(" + d + ")", dims, pool));
    words.form(resize_gradient_form("resized_gradient(" + d + ")", dims));
  }
  words.form(resize_form("upsample(2,output_size)", 2, resampled_size));
}

void define_pool(Family f) {
  f.add("max_pool1d", lines("pool(1)"));
  f.add("max_pool2d", images("pool(2)"));
  f.add("max_pool3d", images("pool(3)"));
  f.add("avg_pool1d", lines("pool(1)").linear_in("self"));
  f.add("avg_pool2d", images("pool(2)").linear_in("self"));
  f.add("avg_pool3d", contiguous_images("pool(3)").linear_in("self"));
  f.add("max_pool1d_with_indices", lines("pool(1,indices)"));
  f.add("max_pool2d_with_indices", images("pool(2,indices)"));
  f.add("max_pool3d_with_indices", images("pool(3,indices)"));
  f.add("adaptive_avg_pool1d", lines("pool(1,output_size)").linear_in("self"));
  f.add({"adaptive_avg_pool2d", "_adaptive_avg_pool2d"},
        images("pool(2,output_size)").linear_in("self"));
  f.add({"adaptive_avg_pool3d", "_adaptive_avg_pool3d"},
        contiguous_images("pool(3,output_size)").linear_in("self"));
  f.add({"upsample_nearest2d", "upsample_bilinear2d", "upsample_bicubic2d"},
        images("upsample(2,output_size)")
            .linear_in("self")
            .linear_in("input"));  // the name in .vec
  f.add({"max_pool2d_with_indices_backward", "avg_pool2d_backward"},
        resized_gradient("pool_gradient(2)"));
  f.add("max_pool3d_with_indices_backward",
        resized_gradient("pool_gradient(3)"));
  f.add("avg_pool3d_backward", contiguous_gradient("pool_gradient(3)"));
  f.add("_adaptive_avg_pool2d_backward",
        resized_gradient("resized_gradient(2)"));
  f.add("_adaptive_avg_pool3d_backward",
        contiguous_gradient("resized_gradient(3)"));
}

}  // namespace shardprop
