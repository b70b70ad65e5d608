// Convolutions are sharded over batch, channels and groups, and over space. A
// rank that computes a part of the window positions reads the same part of the
// image. It also reads a halo: a few elements of the neighbours' parts.
//
//   conv2d(f32[n,c,8,w], f32[o,c,3,3], padding=1) on two ranks
//     rank 0 makes rows 0 to 3 of rows -1 to 4, rank 1 rows 4 to 7 of 3 to 8
//
// The program shards one spatial dim with a halo, the first that allows it.
// Dims that need no halo, such as those of patches that do not overlap, are
// sharded like any other.

#include "ops/forms/forms.h"
#include "ops/forms/shared_form.h"
#include "ops/space/windows.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace shardprop {
namespace {

constexpr char kConvolutionHalo[] = "windows lie over several parts of it";

struct Settings {
  std::vector<std::int64_t> stride;
  std::vector<std::int64_t> padding;
  std::vector<std::int64_t> dilation;
  std::vector<std::int64_t> output_padding;
  bool transposed = false;
  bool by_word = false;    // padding="valid" or "same"
  bool same_size = false;  // padding="same"
  std::int64_t groups = 1;
  bool has_groups = false;  // an argument; a rank passes its own
};

// Reads the arguments of aten.convolution, aten.conv2d and
// aten.conv_transpose2d. The padding may be the word "same" or "valid".
Settings settings_of(const OpCall& call) {
  Settings s;
  s.stride = call.integers("stride");
  if (call.has("dilation")) s.dilation = call.integers("dilation");
  s.has_groups = call.has("groups");
  if (s.has_groups) s.groups = call.integer("groups");
  require(s.groups > 0, "`groups` is not positive");
  // Operators without this argument pad the output only if they are transposed.
  s.transposed = call.boolean_or("transposed", call.has("output_padding"));
  if (call.has("output_padding")) {
    s.output_padding = call.integers("output_padding");
  }
  if (const auto word = call.op().string_arg("padding")) {
    s.by_word = true;
    s.same_size = *word == "same";
    require(s.same_size || *word == "valid", "padding is `same` or `valid`");
  } else {
    s.padding = call.integers("padding");
  }
  return s;
}

// Returns the spatial sizes of the result, without batch and channels.
std::vector<std::int64_t> spatial_sizes(const Settings& s,
                                        const TensorMeta& input,
                                        const TensorMeta& weight) {
  std::vector<std::int64_t> sizes;
  const auto rank = weight.rank();
  const std::size_t dims = index(rank) - 2;
  require_per_dim(s.stride, dims, "stride");
  require_per_dim(s.dilation, dims, "dilation", s.dilation.empty());
  require_per_dim(s.padding, dims, "padding", s.same_size || s.by_word);
  require_per_dim(s.output_padding, dims, "output_padding", !s.transposed);
  for (int i = 0; i + 2 < rank; ++i) {
    const std::int64_t size = input.size(input.rank() - rank + 2 + i);
    const std::int64_t kernel = weight.size(i + 2);
    const std::int64_t stride = per_dim(s.stride, index(i), 1);
    const std::int64_t padding = per_dim(s.padding, index(i), 0);
    const std::int64_t dilation = per_dim(s.dilation, index(i), 1);
    if (s.same_size) {
      sizes.push_back(size);
    } else if (s.transposed) {
      sizes.push_back(transposed_size(size, kernel, stride, padding, dilation,
                                      per_dim(s.output_padding, index(i), 0)));
    } else {
      sizes.push_back(
          window_count(size, kernel, stride, padding, dilation, false));
    }
  }
  return sizes;
}

// `ConvolutionDims` holds the factors of the dims. Input channels are (groups,
// in), output channels (groups, out). The weight has all channels of one side,
// and one group's channels of the other. Transposed convolutions swap the
// sides.
struct ConvolutionDims {
  DimFactors n;
  DimFactors channels_in;
  DimFactors channels_out;
  DimFactors group, in, out;
  Operand weight;
  std::vector<DimFactors> places;  // window positions, per spatial dim
  std::vector<bool> cut;           // whether the image is sharded like them
};

DimFactors joined(const DimFactors& major, const DimFactors& minor) {
  DimFactors out = major;
  for (const FactorId id : minor) out.push_back(id);
  return out;
}

// `Halo` counts the elements of the image that a part of the window positions
// reads outside of the same part of the image.
struct Halo {
  std::int64_t before = 0;
  std::int64_t behind = 0;
  bool is_none() const { return before == 0 && behind == 0; }
};

// Returns nullopt if a part of the positions does not correspond to a part of
// the image.
std::optional<Halo> halo_of(const Settings& s, std::size_t dim,
                            std::int64_t image, std::int64_t places,
                            std::int64_t kernel) {
  if (s.transposed || s.same_size || kernel < 1) return std::nullopt;
  const std::int64_t stride = per_dim(s.stride, dim, 1);
  const std::int64_t padding = per_dim(s.padding, dim, 0);
  const std::int64_t reach =
      multiply_sizes(per_dim(s.dilation, dim, 1), kernel - 1);
  if (multiply_sizes(places, stride) != image) return std::nullopt;
  const std::int64_t behind =
      add_sizes(subtract_sizes(subtract_sizes(reach, padding), stride), 1);
  return Halo{padding, std::max<std::int64_t>(behind, 0)};
}

// Shards a dim of the image together with its window positions; returns false
// if it cannot. Only one dim may have a halo, because the program serves one
// dim.
bool cut_places(SpaceBuilder& b, const DimFactors& places,
                const std::optional<Halo>& halo, std::int64_t stride,
                bool may_have_halo) {
  if (!halo || !(halo->is_none() || may_have_halo)) return false;
  // A halo must not extend beyond the next part, so each part has at least
  // `least` positions. A dim with fewer than two such parts is not sharded.
  const std::int64_t widest = std::max(halo->before, halo->behind);
  const std::int64_t least =
      std::max<std::int64_t>(add_sizes(widest, stride - 1) / stride, 1);
  if (b.space.size(places) < 2 * least) return false;
  for (const FactorId id : places) {
    Factor& factor = b.space.factor(id);
    // A part of the image has `stride` elements for each window position.
    factor.even = stride > 1;
    factor.least = 1;
    if (halo->is_none()) {
      factor.kind = FactorKind::kParallel;
      factor.reason.clear();
      continue;
    }
    factor.program = ProgramUse::kWhenSharded;
    factor.least = least;
  }
  return true;
}

// The window has one position on the image for each element of the result. In a
// transposed convolution the result is the image, with one position for each
// element of the input.
ConvolutionDims convolution_dims(SpaceBuilder& b, const Settings& s,
                                 const TensorMeta& input,
                                 const TensorMeta& weight,
                                 std::span<const std::int64_t> result) {
  const int rank = weight.rank();
  require(rank >= 3 && (input.rank() == rank || input.rank() + 1 == rank),
          "input and weight do not have the same rank");
  require(input.dtype() == weight.dtype(),
          "input and weight are of two dtypes");
  const bool batched = input.rank() == rank;
  const std::int64_t channels = input.size(batched ? 1 : 0);
  const std::int64_t weight_in =
      s.transposed ? weight.size(0) : multiply_sizes(weight.size(1), s.groups);
  const std::int64_t weight_out =
      s.transposed ? multiply_sizes(weight.size(1), s.groups) : weight.size(0);
  require(channels == weight_in, "the channels differ");
  require(channels % s.groups == 0 && weight_out % s.groups == 0,
          "the groups do not divide the channels");
  ConvolutionDims dims;
  if (batched) dims.n = b.dim(input.size(0), 'n');
  if (s.has_groups) {
    dims.group = {b.factor(s.groups, 'g')};
    b.space.local_arguments.push_back(
        {"groups", false, {RankScalar::factor_size(dims.group[0])}});
  }
  if (s.groups == 1) dims.group = {};
  dims.in = b.dim(channels / s.groups, 'c');
  dims.out = b.dim(weight_out / s.groups, 'o');
  for (Factor& factor : b.space.factors) factor.least = 1;
  dims.channels_in = joined(dims.group, dims.in);
  dims.channels_out = joined(dims.group, dims.out);
  dims.weight.dims = s.transposed
                         ? std::vector<DimFactors>{dims.channels_in, dims.out}
                         : std::vector<DimFactors>{dims.channels_out, dims.in};
  bool has_halo = false;
  for (int i = 0; i + 2 < rank; ++i) {
    const std::int64_t places = s.transposed
                                    ? input.size(input.rank() - rank + 2 + i)
                                    : result[index(i)];
    dims.places.push_back(
        b.blocked(places, kConvolutionHalo, FactorKind::kWindowed));
    const auto halo =
        halo_of(s, index(i), input.size(input.rank() - rank + 2 + i), places,
                weight.size(i + 2));
    dims.cut.push_back(cut_places(b, dims.places.back(), halo,
                                  per_dim(s.stride, index(i), 1), !has_halo));
    has_halo = has_halo || (dims.cut.back() && !halo->is_none());
    dims.weight.dims.push_back(
        b.blocked(weight.size(i + 2), kConvolutionHalo, FactorKind::kWindowed));
  }
  if (!batched) {
    for (Factor& factor : b.space.factors) {
      factor.kind = FactorKind::kBlocked;
      factor.program = ProgramUse::kNever;
      factor.reason = "the input is not a batch";
    }
  }
  b.space.product = ProductKind::kConvolution;
  b.space.flops_per_point = 2;
  return dims;
}

// Returns the operand with channels. The image holds the factors of the window
// positions only along sharded dims. The other operand has one element for each
// position.
Operand feature_map(const ConvolutionDims& dims, const DimFactors& channels,
                    const TensorMeta& meta, bool is_image) {
  Operand out;
  const int rank = static_cast<int>(dims.weight.dims.size());
  if (meta.rank() == rank) out.dims.push_back(dims.n);
  out.dims.push_back(channels);
  for (std::size_t i = 0; i < dims.places.size(); ++i) {
    const bool holds = !is_image || dims.cut[i];
    out.dims.push_back(holds ? dims.places[i] : DimFactors{});
  }
  return out;
}

Dims shape_of_result(const IndexSpace& index_space, const ConvolutionDims& dims,
                     const TensorMeta& input,
                     std::span<const std::int64_t> space) {
  Dims shape;
  if (input.rank() == static_cast<int>(dims.weight.dims.size())) {
    shape.push_back(input.size(0));
  }
  shape.push_back(index_space.size(dims.channels_out));
  for (const std::int64_t size : space) shape.push_back(size);
  return shape;
}

// Returns whether the result is channels last: either operand is. Volumes of
// doubles are the exception.
bool comes_channels_last(const TensorMeta& input, const TensorMeta& weight) {
  if (input.rank() != weight.rank()) return false;
  if (input.rank() == 5 && input.dtype() == DType::kF64) return false;
  return is_channels_last(input) || is_channels_last(weight);
}

BoundForm bind_convolution(const OpCall& call, int spatial) {
  const TensorMeta& input = call.first();
  const TensorMeta& weight = call.tensor("weight");
  const Settings s = settings_of(call);
  require(spatial == 0 || weight.rank() == spatial + 2,
          "the weight has another rank");
  require(weight.rank() >= 3 && input.rank() + 1 >= weight.rank(),
          "input and weight do not have the same rank");
  if (call.has("kernel_size")) {
    const Dims kernel(weight.shape().begin() + 2, weight.shape().end());
    require(dims_of(call.integers("kernel_size")) == kernel,
            "`kernel_size` is not that of the weight");
  }
  const std::vector<std::int64_t> space = spatial_sizes(s, input, weight);
  SpaceBuilder b;
  const ConvolutionDims dims = convolution_dims(b, s, input, weight, space);
  b.input(feature_map(dims, dims.channels_in, input, !s.transposed));
  b.input(dims.weight);
  const TensorMeta* bias = call.optional_tensor("bias");
  if (bias != nullptr) {
    require(
        bias->rank() == 1 && bias->size(0) == b.space.size(dims.channels_out),
        "the bias does not have one element per channel");
    b.input({{dims.channels_out}});
  }
  BoundResult result;
  result.shape = shape_of_result(b.space, dims, input, space);
  if (comes_channels_last(input, weight)) {
    result.strides = channels_last_strides(*result.shape);
  }
  b.output(feature_map(dims, dims.channels_out, input, s.transposed),
           std::move(result));
  b.without(0, dims.in, kTermsOfSum);
  for (const FactorId id : dims.in) {
    if (bias != nullptr) b.space.inputs_without[2][index(id)] = kTermsOfSum;
  }
  return b.bound();
}

void convolution_linearities(const OpCall& call, IndexSpace& space) {
  for (const std::size_t linear : {std::size_t{0}, std::size_t{1}}) {
    std::vector<std::optional<ReduceOp>> inputs(space.inputs.size());
    inputs[linear] = ReduceOp::kSum;
    if (inputs.size() == 3) inputs[2] = ReduceOp::kSum;
    add_linearity(call, space, std::move(inputs),
                  partials(space.outputs.size(), ReduceOp::kSum));
  }
}

// Binds the three gradients that output_mask selects.
BoundForm bind_gradients(const OpCall& call) {
  const std::vector<bool> mask = call.mask("output_mask", 3);
  const TensorMeta& grad = call.tensor("grad_output");
  const TensorMeta& input = call.tensor("input");
  const TensorMeta& weight = call.tensor("weight");
  const Settings s = settings_of(call);
  require(weight.rank() >= 3 && input.rank() + 1 >= weight.rank(),
          "input and weight do not have the same rank");
  const std::vector<std::int64_t> space = spatial_sizes(s, input, weight);
  SpaceBuilder b;
  const ConvolutionDims dims = convolution_dims(b, s, input, weight, space);
  require(grad.rank() == input.rank(), "the gradient has another rank");
  b.input(feature_map(dims, dims.channels_out, grad, s.transposed));
  b.input(feature_map(dims, dims.channels_in, input, !s.transposed));
  b.input(dims.weight);
  require(grad.shape() == shape_of_result(b.space, dims, input, space),
          "the gradient does not have the shape of the result");
  const bool channels_last = comes_channels_last(input, weight);
  const auto gradient_of = [&](const TensorMeta& meta) {
    BoundResult result{.shape = meta.shape(), .dtype = meta.dtype()};
    if (channels_last) result.strides = channels_last_strides(meta.shape());
    return result;
  };
  int outputs = 0;
  for (int kind = 0; kind < 3; ++kind) {
    if (!mask[index(kind)]) {
      b.not_produced();
      continue;
    }
    if (kind == 0) b.output(b.space.inputs[1], gradient_of(input));
    if (kind == 1) b.output(dims.weight, gradient_of(weight));
    if (kind == 2) b.output({{dims.channels_out}}, {.dtype = grad.dtype()});
    const int o = outputs++;
    std::vector<DimFactors> sums = {dims.n, dims.group, dims.in, dims.out};
    sums.insert(sums.end(), dims.places.begin(), dims.places.end());
    for (const DimFactors& lacking : sums) {
      // The bias does not depend on input channels, so every rank has its full
      // gradient.
      b.without(
          o, lacking,
          kind == 2 && lacking == dims.in ? Without::same() : kTermsOfSum);
    }
    if (kind == 2) {
      b.space.local_arguments.push_back(
          {"bias_sizes", true, {RankScalar::output_size(o, 0)}});
    }
  }
  // The gradients of the image and of the weight are convolutions; that of the
  // bias is a sum.
  b.space.flops_per_point = 2.0 * (int{mask[0]} + int{mask[1]});
  return b.bound();
}

void backward_linearities(const OpCall& call, IndexSpace& space) {
  std::vector<std::optional<ReduceOp>> inputs(space.inputs.size());
  inputs[0] = ReduceOp::kSum;
  add_linearity(call, space, std::move(inputs),
                partials(space.outputs.size(), ReduceOp::kSum));
}

}  // namespace

OpDefinition convolved(int spatial) {
  return with_implied(
      shared_form(spatial == 0 ? "convolution()"
                               : "convolution(" + std::to_string(spatial) + ")",
                  [spatial](const OpCall& call) {
                    return bind_convolution(call, spatial);
                  }),
      convolution_linearities);
}

OpDefinition convolved_gradients() {
  return with_implied(shared_form("convolution_gradients()", bind_gradients),
                      backward_linearities);
}

}  // namespace shardprop
