#include "ops/shape_context.h"

#include <algorithm>
#include <utility>

namespace shardprop {
namespace {

// One number per spatial dim, of a list that may hold one for all.
std::int64_t per_dim(const std::vector<std::int64_t>& list, std::size_t dim,
                     std::int64_t fallback) {
  if (list.empty()) return fallback;
  require(list.size() == 1 || dim < list.size(),
          "a setting has not one number per spatial dim");
  return list.size() == 1 ? list.front() : list[dim];
}

// How often a window fits.
std::int64_t window_count(std::int64_t size, std::int64_t kernel,
                          std::int64_t stride, std::int64_t padding,
                          std::int64_t dilation, bool round_up) {
  require(stride > 0 && dilation > 0 && padding >= 0 && kernel > 0,
          "a stride, dilation or kernel is not positive");
  const std::int64_t reach = add_sizes(multiply_sizes(dilation, kernel - 1), 1);
  const std::int64_t room =
      add_sizes(add_sizes(size, multiply_sizes(2, padding)), -reach);
  require(room >= 0, "the kernel is larger than the padded input");
  if (!round_up) return room / stride + 1;
  std::int64_t count = room / stride + (room % stride != 0 ? 1 : 0) + 1;
  // The last window starts inside the input or its left padding.
  if (multiply_sizes(count - 1, stride) >= add_sizes(size, padding)) --count;
  return count;
}

std::int64_t transposed_size(std::int64_t size, std::int64_t kernel,
                             std::int64_t stride, std::int64_t padding,
                             std::int64_t dilation, std::int64_t extra) {
  const std::int64_t spread = multiply_sizes(add_sizes(size, -1), stride);
  const std::int64_t reach = multiply_sizes(dilation, add_sizes(kernel, -1));
  const std::int64_t total =
      add_sizes(add_sizes(spread, reach), add_sizes(extra, 1));
  const std::int64_t out = add_sizes(total, multiply_sizes(-2, padding));
  require(out >= 0, "the padding leaves nothing");
  return out;
}

bool is_channels_last(const TensorMeta& meta) {
  return meta.rank() >= 4 && !meta.is_contiguous() &&
         meta.strides() == channels_last_strides(meta.shape());
}

struct ConvolutionSettings {
  std::vector<std::int64_t> stride;
  std::vector<std::int64_t> padding;
  std::vector<std::int64_t> dilation;
  std::vector<std::int64_t> output_padding;
  bool transposed = false;
  std::int64_t groups = 1;
};

TensorMeta convolve(const TensorMeta& input, const TensorMeta& weight,
                    const ConvolutionSettings& s) {
  const std::size_t rank = weight.shape().size();
  require(rank >= 3 && (input.shape().size() == rank ||
                        input.shape().size() + 1 == rank),
          "input and weight have not the same rank");
  require(input.dtype() == weight.dtype(),
          "input and weight are of two dtypes");
  require(s.groups > 0, "no groups");
  const bool batched = input.shape().size() == rank;
  const std::size_t channel = batched ? 1 : 0;
  const std::int64_t in_channels = input.shape()[channel];
  Dims shape;
  if (batched) shape.push_back(input.size(0));
  if (s.transposed) {
    require(in_channels == weight.size(0), "the channels differ");
    shape.push_back(multiply_sizes(weight.size(1), s.groups));
  } else {
    require(in_channels == multiply_sizes(weight.size(1), s.groups),
            "the channels differ");
    shape.push_back(weight.size(0));
  }
  for (std::size_t i = 0; i + 2 < rank; ++i) {
    const std::int64_t size = input.shape()[channel + 1 + i];
    const std::int64_t kernel = weight.shape()[i + 2];
    const std::int64_t stride = per_dim(s.stride, i, 1);
    const std::int64_t padding = per_dim(s.padding, i, 0);
    const std::int64_t dilation = per_dim(s.dilation, i, 1);
    shape.push_back(
        s.transposed
            ? transposed_size(size, kernel, stride, padding, dilation,
                              per_dim(s.output_padding, i, 0))
            : window_count(size, kernel, stride, padding, dilation, false));
  }
  TensorMeta out = make_meta(std::move(shape), input.dtype());
  if (batched && (is_channels_last(input) || is_channels_last(weight))) {
    return make_meta(out.shape(), channels_last_strides(out.shape()),
                     out.dtype());
  }
  return out;
}

Results convolution(const ShapeContext& op) {
  return one(convolve(op.tensor("input"), op.tensor("weight"),
                      {.stride = op.integers("stride"),
                       .padding = op.integers("padding"),
                       .dilation = op.integers("dilation"),
                       .output_padding = op.integers("output_padding"),
                       .transposed = op.boolean("transposed"),
                       .groups = op.integer("groups")}));
}

// conv1d, conv2d, conv3d; padding may be the words "same" and "valid".
Results convolution_nd(const ShapeContext& op) {
  const TensorMeta& input = op.tensor("input");
  const TensorMeta& weight = op.tensor("weight");
  ConvolutionSettings settings{.stride = op.integers("stride"),
                               .padding = {},
                               .dilation = op.integers("dilation"),
                               .output_padding = {},
                               .transposed = false,
                               .groups = op.integer("groups")};
  const auto word = op.op().string_arg("padding");
  if (!word) {
    settings.padding = op.integers("padding");
    return one(convolve(input, weight, settings));
  }
  TensorMeta valid = convolve(input, weight, settings);
  if (*word != "same") return one(std::move(valid));
  Dims shape = valid.shape();
  const std::size_t spatial = weight.shape().size() - 2;
  for (std::size_t i = 0; i < spatial; ++i) {
    shape[shape.size() - 1 - i] = input.shape()[input.shape().size() - 1 - i];
  }
  return one(make_meta(std::move(shape), valid.dtype()));
}

// The three gradients that output_mask asks for.
Results convolution_backward(const ShapeContext& op) {
  const auto* mask =
      std::get_if<std::vector<bool>>(&op.op().arg("output_mask"));
  require(mask != nullptr && mask->size() == 3, "output_mask has three parts");
  const TensorMeta& grad = op.tensor("grad_output");
  const TensorMeta& input = op.tensor("input");
  const TensorMeta& weight = op.tensor("weight");
  require(grad.rank() >= 3, "the gradient is of no image");
  Results results(3);
  if ((*mask)[0]) results[0] = dense_like(input, input.shape(), input.dtype());
  if ((*mask)[1]) {
    results[1] = dense_like(weight, weight.shape(), weight.dtype());
  }
  if ((*mask)[2]) results[2] = make_meta(Dims{grad.size(1)}, grad.dtype());
  return results;
}

TensorMeta pooled(const ShapeContext& op, const TensorMeta& self,
                  std::size_t spatial, DType dtype) {
  require(
      self.shape().size() == spatial + 1 || self.shape().size() == spatial + 2,
      "the input has another rank");
  const auto kernel = op.integers("kernel_size");
  auto stride = op.integers("stride");
  if (stride.empty()) stride = kernel;
  const auto padding = op.integers("padding");
  const auto dilation = op.has("dilation") ? op.integers("dilation")
                                           : std::vector<std::int64_t>{};
  const bool round_up = op.boolean("ceil_mode");
  Dims shape = self.shape();
  for (std::size_t i = 0; i < spatial; ++i) {
    std::int64_t& size = shape[shape.size() - spatial + i];
    size =
        window_count(size, per_dim(kernel, i, 1), per_dim(stride, i, 1),
                     per_dim(padding, i, 0), per_dim(dilation, i, 1), round_up);
  }
  TensorMeta out = make_meta(std::move(shape), dtype);
  if (!is_channels_last(self)) return out;
  return make_meta(out.shape(), channels_last_strides(out.shape()), dtype);
}

std::size_t spatial_of(std::string_view name) {
  for (std::size_t i = 1; i < name.size(); ++i) {
    if (name[i] == 'd' && name[i - 1] >= '1' && name[i - 1] <= '3') {
      return static_cast<std::size_t>(name[i - 1] - '0');
    }
  }
  shape_error("not an operator on images");
}

Results pool(const ShapeContext& op) {
  const TensorMeta& self = op.tensor("self");
  return one(pooled(op, self, spatial_of(op.base_name()), self.dtype()));
}

Results pool_with_indices(const ShapeContext& op) {
  const TensorMeta& self = op.tensor("self");
  const std::size_t spatial = spatial_of(op.base_name());
  Results results = one(pooled(op, self, spatial, self.dtype()));
  results.emplace_back(pooled(op, self, spatial, DType::kI64));
  return results;
}

Results adaptive_pool(const ShapeContext& op) {
  const TensorMeta& self = op.tensor("self");
  const auto sizes = op.integers("output_size");
  const std::size_t spatial = spatial_of(op.base_name());
  require(self.shape().size() > spatial, "the input has another rank");
  Dims shape = self.shape();
  for (std::size_t i = 0; i < spatial; ++i) {
    shape[shape.size() - spatial + i] = per_dim(sizes, i, 1);
  }
  TensorMeta out = make_meta(std::move(shape), self.dtype());
  if (!is_channels_last(self)) return one(out);
  return one(
      make_meta(out.shape(), channels_last_strides(out.shape()), out.dtype()));
}

Results gradient_of_self(const ShapeContext& op) {
  const TensorMeta& self = op.tensor("self");
  return one(dense_like(self, self.shape(), self.dtype()));
}

Results upsample(const ShapeContext& op) {
  const TensorMeta& self = op.tensor(op.has("input") ? "input" : "self");
  const std::size_t spatial = spatial_of(op.base_name());
  require(self.shape().size() == spatial + 2, "the input has another rank");
  const auto sizes = op.optional_integers("output_size");
  require(sizes.has_value(), "the output size is given by factors");
  Dims shape = self.shape();
  for (std::size_t i = 0; i < spatial; ++i) {
    shape[2 + i] = per_dim(*sizes, i, 1);
  }
  return one(dense_like(self, std::move(shape), self.dtype()));
}

}  // namespace

void add_convolution_shapes(ShapeTable& table) {
  table["aten.convolution"] = convolution;
  table["aten.convolution_backward"] = convolution_backward;
  for (const char* name : {"aten.conv1d", "aten.conv2d", "aten.conv3d"}) {
    table[name] = convolution_nd;
  }
  for (const char* name :
       {"aten.max_pool1d", "aten.max_pool2d", "aten.max_pool3d",
        "aten.avg_pool1d", "aten.avg_pool2d", "aten.avg_pool3d"}) {
    table[name] = pool;
  }
  for (const char* name :
       {"aten.max_pool2d_with_indices", "aten.max_pool3d_with_indices"}) {
    table[name] = pool_with_indices;
  }
  for (const char* name :
       {"aten.adaptive_avg_pool1d", "aten.adaptive_avg_pool2d",
        "aten._adaptive_avg_pool2d", "aten.adaptive_avg_pool3d",
        "aten._adaptive_avg_pool3d"}) {
    table[name] = adaptive_pool;
  }
  for (const char* name :
       {"aten.max_pool2d_with_indices_backward",
        "aten.max_pool3d_with_indices_backward", "aten.avg_pool2d_backward",
        "aten.avg_pool3d_backward", "aten._adaptive_avg_pool2d_backward",
        "aten._adaptive_avg_pool3d_backward"}) {
    table[name] = gradient_of_self;
  }
  for (const char* name :
       {"aten.upsample_nearest2d", "aten.upsample_bilinear2d"}) {
    table[name] = upsample;
  }
}

}  // namespace shardprop
