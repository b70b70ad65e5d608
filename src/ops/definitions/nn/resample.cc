// This file defines resampling and padding of images. Batch and channels are
// sharded, spatial dims are not.

#include "ops/definitions/dtypes.h"
#include "ops/definitions/families.h"
#include "ops/definitions/words.h"
#include "ops/forms/mapped.h"
#include "ops/forms/space_builder.h"
#include "ops/rules/fixed_notation.h"
#include "ops/space/windows.h"

#include <utility>

namespace shardprop {
namespace {

// Letters of the spatial dims, of the input and of the result.
constexpr std::string_view kSpace = "uvw";
constexpr std::string_view kResult = "xyz";

// Returns the size of the image's spatial dim for letter x, y or z.
std::int64_t spatial(const OpCall& call, const FactorName& name, int dims) {
  const TensorMeta& image = call.first();
  require(image.rank() > dims, "the input has no channels");
  return size_of(image, image.rank() - dims + (name.letter() - 'x'));
}

// An image has at least one channel, but a batch may be empty.
void some_channels(const OpCall&, IndexSpace& space) {
  for (const FactorId id : dim_of(space.inputs, 0, 1)) {
    space.factor(id).least = 1;
  }
}

// Returns the dims of images, each with a size word: "{x:upsampled()}{y:...}".
std::string sized_dims(std::string_view letters, int dims,
                       std::string_view word) {
  std::string text;
  for (const char letter : letters.substr(0, index(dims))) {
    text += std::string{'{', letter, ':'} + std::string(word) + "()}";
  }
  return text;
}

std::string spatial_letters(std::string_view letters, int dims) {
  return "{" + std::string(letters.substr(0, index(dims))) + "}";
}

std::int64_t upsampled(const OpCall& call, const FactorName& name) {
  const int dims = call.first().rank() - 2;
  return upsampled_size(call, spatial(call, name, dims),
                        index(name.letter() - 'x'), index(dims));
}

// The rule of upsample_* with an output size or scale factors.
OpDefinition upsampling(int dims) {
  return mapped("nc" + spatial_letters(kSpace, dims) + "->nc" +
                sized_dims(kResult, dims, "upsampled"))
      .strided("images");
}

// Returns a size of the image before its upsampling.
std::int64_t image_size(const OpCall& call, const FactorName& name) {
  const TensorMeta& grad = call.tensor("grad_output");
  const int dims = grad.rank() - 2;
  const auto shape = call.integers("input_size");
  require(dims >= 0 && shape.size() == index(dims + 2) &&
              shape[0] == size_of(grad, 0) && shape[1] == size_of(grad, 1),
          "the gradient does not match the input's size");
  const auto sizes = call.integers("output_size");
  for (int d = 0; d < dims; ++d) {
    require(sizes.size() == index(dims) &&
                sizes[index(d)] == size_of(grad, 2 + d) &&
                shape[index(2 + d)] > 0,
            "the gradient does not match `output_size`");
  }
  return nth(shape, index(2 + (name.letter() - kSpace.front())));
}

// The rule of their gradients. The shape is an argument, and each rank passes
// its local shape.
// Some kernels never return channels last.
OpDefinition upsampled_gradient(int dims, bool is_contiguous) {
  OpDefinition form = mapped("nc" + spatial_letters(kResult, dims) + "->nc" +
                             sized_dims(kSpace, dims, "image"));
  form = is_contiguous ? std::move(form).contiguous()
                       : std::move(form).strided("images");
  return std::move(form)
      .nonempty()
      .linear_in("grad_output")
      .local_shape("input_size");
}

// Returns the size word of a padding: "padded2".
std::string padding_word(int dims) { return "padded" + std::to_string(dims); }

// Returns the rule of a padding of the last dims, innermost first.
std::string padded_notation(int dims, bool backward) {
  const std::string before = "..." + spatial_letters(kSpace, dims);
  if (!backward) {
    return before + "->..." + sized_dims(kResult, dims, padding_word(dims));
  }
  return "..." + spatial_letters(kResult, dims) + "," + before + "->" + before;
}

std::int64_t padded_size(const OpCall& call, const FactorName& name, int dims) {
  const auto pads = call.integers("padding");
  const auto from_end = index(dims - 1 - (name.letter() - 'x'));
  require(pads.size() == index(2 * dims), "two pads go with each dim");
  return add_sizes(spatial(call, name, dims),
                   add_sizes(pads[2 * from_end], pads[2 * from_end + 1]));
}

OpDefinition padded(int dims) {
  return mapped(padded_notation(dims, false)).strided("images");
}

std::int64_t output_size(const OpCall& call, const FactorName& name) {
  return per_dim(call.integers("output_size"), index(name.letter() - 'x'), 1);
}

// Returns the rule with letters of the spatial dims, whose sizes are an
// argument of affine_grid_generator.
Notation affine_notation(const OpCall& call) {
  const auto size = call.integers("size");
  const std::size_t rank = size.size();
  require(rank == 4 || rank == 5, "`size` is not that of a batch of images");
  require(size[0] == size_of(call.tensor("theta"), 0),
          "the matrices are not one per image");
  const TensorMeta& theta = call.tensor("theta");
  require(theta.rank() == 3 &&
              size_of(theta, 1) == static_cast<std::int64_t>(rank) - 2 &&
              size_of(theta, 2) == static_cast<std::int64_t>(rank) - 1,
          "the matrices do not map places of such images");
  static const Notation kVolumes = fixed_notation("n__->n{xyzc}");
  static const Notation kImages = fixed_notation("n__->n{xyc}");
  return rank == 5 ? kVolumes : kImages;
}

std::int64_t affine_size(const OpCall& call, const FactorName& name) {
  const auto size = call.integers("size");
  if (name == 'c') return static_cast<std::int64_t>(size.size()) - 2;
  return size[index(2 + (name.letter() - 'x'))];
}

// The gradient sums over the positions of the grid.
Notation affine_gradient_notation(const OpCall& call) {
  const auto size = call.integers("size");
  const std::size_t rank = size.size();
  require(rank == 4 || rank == 5, "`size` is not that of a batch of images");
  Dims grid = {size[0]};
  for (std::size_t i = 2; i < rank; ++i) grid.push_back(size[i]);
  grid.push_back(static_cast<std::int64_t>(rank) - 2);
  require(call.tensor("grad").shape() == grid,
          "the gradient does not have the shape of the grid");
  static const Notation kVolumes =
      fixed_notation("n{xyzc}->n{ct}:column_major");
  static const Notation kImages = fixed_notation("n{xyc}->n{ct}:column_major");
  return rank == 5 ? kVolumes : kImages;
}

std::int64_t affine_columns(const OpCall& call, const FactorName&) {
  return static_cast<std::int64_t>(call.integers("size").size()) - 1;
}

// Each rank creates the grids of its own images.
void local_images(const OpCall& call, IndexSpace& space) {
  require(nth(call.op().outputs, 0).rank() > 0, "the result has no images");
  LocalArgument local{"size", true, {RankScalar::output_size(0, 0)}};
  const auto size = call.integers("size");
  for (std::size_t i = 1; i < size.size(); ++i) {
    local.values.push_back(RankScalar::value(size[i]));
  }
  space.local_arguments.push_back(std::move(local));
}

void define_grids(Family& f) {
  f.add("affine_grid_generator", form("affine_grid(size)")
                                     .nonempty()
                                     .linear_in("theta")
                                     .refine("local_images()"));
  f.add("affine_grid_generator_backward", form("affine_grid_backward(size)")
                                              .nonempty()
                                              .linear_in("grad")
                                              .refine("local_images()"));
  f.add({"grid_sampler_2d"}, mapped("nc{hw},nxy_->ncxy").linear_in("input"));
  f.add("grid_sampler",
        mapped("nc{dhw},nxyz_->ncxyz | nc{hw},nxy_->ncxy").linear_in("input"));
  f.add({"grid_sampler_3d"}, mapped("nc{dhw},nxyz_->ncxyz").linear_in("input"));
  // The gradient of a pixel sums over all reads of it. The gradient of a position
  // sums over all channels.
  f.add("grid_sampler_2d_backward",
        mapped("ncxy,nc{hw},nxy{t}->nc{hw},nxy{t}:always")
            .reduced_without(ReduceOp::kSum)
            .linear_in("grad_output"));
  f.add("grid_sampler_3d_backward",
        mapped("ncxyz,nc{dhw},nxyz{t}->nc{dhw},nxyz{t}:always")
            .reduced_without(ReduceOp::kSum)
            .linear_in("grad_output"));
}

void define_pads(Family& f) {
  for (int dims = 1; dims <= 3; ++dims) {
    const std::string d = std::to_string(dims) + "d";
    for (const char* kind : {"reflection_pad", "replication_pad"}) {
      f.add(kind + d, padded(dims).nonempty().passes({"self"}));
      f.add(kind + d + "_backward", mapped(padded_notation(dims, true))
                                        .nonempty()
                                        .linear_in("grad_output"));
    }
    const std::string in = "..." + spatial_letters(kSpace, dims);
    const std::string out = "..." + spatial_letters(kResult, dims);
    const std::string made = "..." + sized_dims(kResult, dims, "output_size");
    // Kernels over volumes never return channels last.
    const auto laid_out = [&](OpDefinition row, std::string_view image) {
      return dims == 3 ? contiguous(std::move(row))
                       : std::move(row).strided(image);
    };
    f.add(
        "adaptive_max_pool" + d,
        laid_out(
            mapped(in + "->" + made + "," + out).typed("first,i64").nonempty(),
            "images"));
    if (dims == 1) continue;
    f.add("adaptive_max_pool" + d + "_backward",
          laid_out(in_order(mapped(out + "," + in + "," + out + "->" + in)
                                .nonempty()
                                .linear_in("grad_output")),
                   "self"));
    f.add("max_unpool" + d, mapped(in + "," + in + "->" + made).nonempty());
  }
}

// Windows have random positions, which the samples hold: one number per dim.
void define_fractional_pools(Family& f) {
  for (int dims = 2; dims <= 3; ++dims) {
    const std::string in = "nc" + spatial_letters(kSpace, dims);
    const std::string out = "nc" + spatial_letters(kResult, dims);
    const std::string made = "nc" + sized_dims(kResult, dims, "output_size");
    const std::string name = "fractional_max_pool" + std::to_string(dims) + "d";
    f.add(
        name,
        mapped(in + ",nc_->" + made + "," + out).typed("first,i64").nonempty());
    f.add(name + "_backward",
          in_order(mapped(out + "," + in + "," + out + "->" + in)
                       .nonempty()
                       .linear_in("grad_output")));
  }
}

void define_upsamples(Family& f) {
  struct Kind {
    const char* name;
    int dims;
  };
  constexpr Kind kKinds[] = {
      {"upsample_nearest1d", 1},        {"upsample_nearest2d", 2},
      {"upsample_nearest3d", 3},        {"_upsample_nearest_exact1d", 1},
      {"_upsample_nearest_exact2d", 2}, {"_upsample_nearest_exact3d", 3},
      {"upsample_linear1d", 1},         {"upsample_bilinear2d", 2},
      {"upsample_trilinear3d", 3},      {"upsample_bicubic2d", 2},
      {"_upsample_bilinear2d_aa", 2},   {"_upsample_bicubic2d_aa", 2},
      {"_upsample_lanczos2d_aa", 2}};
  for (const Kind& kind : kKinds) {
    // These three are defined as windows (pool.cc).
    const std::string name(kind.name);
    const bool windowed = name == "upsample_nearest2d" ||
                          name == "upsample_bilinear2d" ||
                          name == "upsample_bicubic2d";
    if (!windowed) {
      f.add(name, upsampling(kind.dims)
                      .linear_in("self")
                      .linear_in("input")  // of .vec
                      .refine("some_channels()"));
    }
    const bool is_contiguous = name == "upsample_nearest3d" ||
                               name == "_upsample_nearest_exact3d" ||
                               name == "upsample_bicubic2d";
    f.add(name + "_backward", upsampled_gradient(kind.dims, is_contiguous));
  }
}

}  // namespace

void words_of_resample(RuleWords& words) {
  words.size("upsampled", upsampled);
  words.size("image", image_size);
  words.size("output_size", output_size);
  for (int dims = 1; dims <= 3; ++dims) {
    words.size(padding_word(dims),
               [dims](const OpCall& call, const FactorName& name) {
                 return padded_size(call, name, dims);
               });
  }
  words.form(mapped("affine_grid(size)", affine_notation, affine_size));
  words.modifier("local_images()", local_images);
  words.form(mapped("affine_grid_backward(size)", affine_gradient_notation,
                    affine_columns));
  words.modifier("some_channels()", some_channels);
}

void define_resample(Family f) {
  define_upsamples(f);
  define_pads(f);
  define_grids(f);
  define_fractional_pools(f);
}

}  // namespace shardprop
