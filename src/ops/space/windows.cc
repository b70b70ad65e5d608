#include "ops/space/windows.h"

#include "base/saturating.h"

#include <cmath>

namespace shardprop {

// Returns the number for spatial dim `dim`, from a list that may hold one
// number for all dims.
std::int64_t per_dim(const std::vector<std::int64_t>& list, std::size_t dim,
                     std::int64_t fallback) {
  if (list.empty()) return fallback;
  require(list.size() == 1 || dim < list.size(),
          "a setting does not have one number per spatial dim");
  return list.size() == 1 ? list.front() : list[dim];
}

void require_per_dim(const std::vector<std::int64_t>& list, std::size_t dims,
                     std::string_view name, bool may_be_empty) {
  if (list.size() == 1 || list.size() == dims) return;
  if (list.empty() && may_be_empty) return;
  call_error("`" + std::string(name) + "` does not have " +
             std::to_string(dims) + " numbers");
}

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

std::int64_t upsampled_size(const OpCall& call, std::int64_t size,
                            std::size_t dim, std::size_t dims) {
  require(size > 0, "an image has no elements");
  const auto sizes = call.optional_integers("output_size");
  const std::vector<double>* factors =
      call.has("scale_factors")
          ? std::get_if<std::vector<double>>(&call.op().arg("scale_factors"))
          : nullptr;
  require(sizes.has_value() != (factors != nullptr),
          "either a size or factors are given");
  require((sizes ? sizes->size() : factors->size()) == dims,
          sizes ? "`output_size` does not have one number per dim"
                : "`scale_factors` does not have one number per dim");
  const double scaled =
      sizes ? 0 : std::floor(static_cast<double>(size) * (*factors)[dim]);
  require(sizes || (scaled >= 1 && scaled < 0x1p62), "a factor has no size");
  const std::int64_t result =
      sizes ? (*sizes)[dim] : static_cast<std::int64_t>(scaled);
  require(result > 0, "a size is not positive");
  return result;
}

// Decides by strides, as PyTorch does (is_channels_last_strides_2d). Parts of a
// larger tensor may be channels last too; an ambiguous case is not.
bool is_channels_last(const TensorMeta& meta) {
  if (meta.rank() != 4 && meta.rank() != 5) return false;
  const Dims& strides = meta.strides();
  if (strides[1] == 0) return false;
  std::vector<std::size_t> outwards = {1};
  for (std::size_t d = strides.size() - 1; d > 1; --d) outwards.push_back(d);
  outwards.push_back(0);
  std::int64_t least = 0;
  for (const std::size_t d : outwards) {
    const std::int64_t size = meta.shape()[d];
    if (size == 0 || strides[d] < least) return false;
    if (d == 0 && least == strides[1]) return false;
    least = sat_mul(strides[d], size);
  }
  return true;
}

Dims strides_like_image(const TensorMeta& image) {
  return is_channels_last(image)
             ? channels_last_strides(image.shape())
             : make_meta(image.shape(), image.dtype()).strides();
}

Dims strides_like_self(const OpCall& call, const Dims&, DType) {
  return strides_like_image(call.tensor("self"));
}

Dims strides_as_images(const OpCall& call, const Dims& shape, DType dtype) {
  return is_channels_last(call.first()) ? channels_last_strides(shape)
                                        : make_meta(shape, dtype).strides();
}

int spatial_dims(std::string_view name) {
  for (std::size_t i = 1; i < name.size(); ++i) {
    if (name[i] == 'd' && name[i - 1] >= '1' && name[i - 1] <= '3') {
      return name[i - 1] - '0';
    }
  }
  call_error("not an operator on images");
}

}  // namespace shardprop
