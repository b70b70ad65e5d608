// Group norm: each group of channels of each sample has its own statistics.

#include "ops/definitions/families.h"
#include "ops/definitions/words.h"
#include "ops/forms/norms.h"
#include "ops/space/windows.h"

#include <string>
#include <string_view>

namespace shardprop {
namespace {

// `GroupedImage` holds the dims of an image [n, (gc), ...], a vector of
// channels [(gc)] and statistics [n, g]. Samples and groups may be sharded,
// because each group has its own statistics.
struct GroupedImage {
  Operand image;
  Operand channels;
  Operand statistics;
};

GroupedImage grouped_image(SpaceBuilder& b, const TensorMeta& input,
                           std::int64_t groups) {
  require(input.rank() >= 2 && groups > 0 && size_of(input, 1) % groups == 0,
          "the groups do not divide the channels");
  GroupedImage of;
  const DimFactors samples = b.dim(size_of(input, 0));
  const DimFactors group = b.dim(groups, 'g');
  DimFactors channels = group;
  for (const FactorId id :
       b.blocked(size_of(input, 1) / groups, "the statistics run over it")) {
    channels.push_back(id);
  }
  of.image.dims = {samples, channels};
  for (int dim = 2; dim < input.rank(); ++dim) {
    of.image.dims.push_back(
        b.blocked(size_of(input, dim), "the statistics run over it"));
  }
  of.channels.dims = {channels};
  of.statistics.dims = {samples, group};
  for (const FactorId id : group) b.space.factor(id).least = 1;
  return of;
}

// Each rank passes its own number of groups, samples and channels.
void tell_groups(IndexSpace& space, const GroupedImage& of,
                 std::string_view groups, int image) {
  const DimFactors& group = of.statistics.dims[1];
  if (groups == "group") {
    space.local_arguments.push_back(
        {"N", false, {RankScalar::input_size(image, 0)}});
    space.local_arguments.push_back(
        {"C", false, {RankScalar::input_size(image, 1)}});
  }
  space.local_arguments.push_back(
      {std::string(groups),
       false,
       {group.empty() ? RankScalar::value(1)
                      : RankScalar::factor_size(group[0])}});
}

void require_channels(const TensorMeta& vector, const TensorMeta& input) {
  require(vector.rank() == 1 && size_of(vector, 0) == size_of(input, 1),
          "a vector does not have one element per channel");
}

void require_counts(const OpCall& call, const TensorMeta& input) {
  const std::int64_t n = call.integer("N");
  const std::int64_t channels = call.integer("C");
  require(input.rank() >= 2 && size_of(input, 0) == n &&
              size_of(input, 1) == channels &&
              input.numel() == multiply_sizes(multiply_sizes(n, channels),
                                              call.integer("HxW")),
          "N, C and HxW are not those of the input");
}

BoundForm bind_group_norm(const OpCall& call) {
  const TensorMeta& input = call.tensor("input");
  const bool is_native = call.has("group");
  const std::string_view groups = is_native ? "group" : "num_groups";
  if (is_native) require_counts(call, input);
  SpaceBuilder b;
  const GroupedImage of = grouped_image(b, input, call.integer(groups));
  for (const TensorMeta& meta : call.op().inputs) {
    if (&meta != &input) require_channels(meta, input);
    b.input(&meta == &input ? of.image : of.channels);
  }
  b.output(of.image);
  const DType dtype = statistics_dtype(input.dtype());
  for (int i = 0; is_native && i < 2; ++i) {
    b.output(of.statistics, {.dtype = dtype, .or_dtype = input.dtype()});
  }
  tell_groups(b.space, of, groups, static_cast<int>(call.operand("input")));
  return b.bound();
}

// The gradients of weight and bias are sums over the samples.
BoundForm bind_group_norm_backward(const OpCall& call) {
  const std::vector<bool> mask = call.mask("output_mask", 3);
  const TensorMeta& input = call.tensor("input");
  const TensorMeta& gradient = call.tensor("grad_out");
  const std::int64_t groups = call.integer("group");
  require_counts(call, input);
  require(gradient.shape() == input.shape(),
          "the gradient does not have the shape of the input");
  SpaceBuilder b;
  const GroupedImage of = grouped_image(b, input, groups);
  for (const FactorId id : of.image.dims[0]) b.space.factor(id).least = 1;
  const TensorMeta* weight = call.optional_tensor("weight");
  for (const TensorMeta& meta : call.op().inputs) {
    if (&meta == weight) require_channels(meta, input);
    const bool is_image = &meta == &input || &meta == &gradient;
    require(is_image || &meta == weight ||
                meta.shape() == Dims{size_of(input, 0), groups},
            "the statistics are not those of the input");
    b.input(is_image          ? of.image
            : &meta == weight ? of.channels
                              : of.statistics);
  }
  for (std::size_t part = 0; part < mask.size(); ++part) {
    if (!mask[part] || (part > 0 && weight == nullptr)) {
      b.not_produced();
    } else if (part == 0) {
      b.output(of.image,
               {.strides = strides_like_image(input), .dtype = input.dtype()});
    } else {
      b.output(of.channels, {.dtype = weight->dtype()});
      b.without(static_cast<int>(b.space.outputs.size()) - 1, of.image.dims[0],
                Without::partial(ReduceOp::kSum));
    }
  }
  tell_groups(b.space, of, "group", static_cast<int>(call.operand("input")));
  return b.bound();
}

}  // namespace

void words_of_group_norm(RuleWords& words) {
  words.form(custom("group_norm()", bind_group_norm));
  words.form(custom("group_norm_backward()", bind_group_norm_backward));
}

void define_group_norm(Family f) {
  const OpDefinition norm = form("group_norm()").checked("affine_dtypes()");
  f.add("native_group_norm", in_order(OpDefinition(norm).normalises()));
  f.add("group_norm", OpDefinition(norm).like({"input"}).normalises());
  f.add("native_group_norm_backward",
        in_order(form("group_norm_backward()").normalises()));
}

}  // namespace shardprop
