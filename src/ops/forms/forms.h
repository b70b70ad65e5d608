// The forms of src/ops beside those that users write rows with: views, parts
// and joins of dims, windows. Each says in a line what it is.
#pragma once

#include "ops/arithmetic.h"
#include "ops/forms/domains.h"
#include "ops/forms/space_builder.h"
#include "ops/row_traits.h"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {

// The operands broadcast into the named one, which gives shape and strides.
OpDefinition pointwise_into(std::string_view argument);
// The row with results that lie in memory in the order of their dims, where its
// form does not say how they lie.
OpDefinition contiguous(OpDefinition row);
// The first operand, and a vector with an element per channel (dim 1) or one.
OpDefinition with_channels(std::string_view argument);
// Results of the shape of the first operand, every dim of it parallel; the
// other operands are whole unless they are of the same shape.
OpDefinition same_shape(int results = 1);

// A number and no tensor comes back, so that every rank needs all operands,
// unless `needs_all` says that tensors cut alike make the same of it. `check`
// refuses calls.
OpDefinition number(std::string name, std::function<void(const OpCall&)> check,
                    std::function<bool(const OpCall&)> needs_all = {});

using ShapeOf = std::function<Dims(const OpCall&)>;
using DimsOf = std::function<std::vector<int>(const OpCall&)>;
// The dim that a call means of a tensor of that rank.
using DimOf = std::function<int(const OpCall&, int rank)>;

// The same elements in the same order in another shape: dims flatten and
// split. `argument`, if any, is the new shape. A copy where no strides fit.
OpDefinition reshaped(std::string name, ShapeOf shape,
                      std::string_view argument = {});
// The dims of the first operand in another order.
OpDefinition permuted(std::string name, DimsOf order);
// Dims of size 1 repeated without a copy.
OpDefinition expanded(std::string_view argument);
// Each tensor of a list, expanded to the shape that all broadcast to.
OpDefinition expanded_together();
// Each tensor of a list, with dims of size 1 where it has too few (atleast_2d).
OpDefinition at_least_each();
// The product of vectors: a result for each vector, which runs along its dim
// (meshgrid), or a row for each point (cartesian_prod).
OpDefinition grid_of_vectors();
OpDefinition rows_of_vectors();

// Cuts of one dim into results: `sizes` of the pieces.
using SizesOf =
    std::function<std::vector<std::int64_t>(const OpCall&, std::int64_t size)>;
OpDefinition cut_up(std::string name, SizesOf sizes, bool copies = false);
// Along another dim than the one that `dim` names.
OpDefinition cut_up(std::string name, DimOf along, SizesOf sizes);

// The sizes with a lone -1 made what the element count leaves for it.
Dims resolve_sizes(const TensorMeta& self, std::span<const std::int64_t> sizes);
Dims dims_of(std::span<const std::int64_t> sizes);

// --- Factories ---

using LengthOf = std::function<std::int64_t(const OpCall&)>;
// A vector made from numbers.
OpDefinition vector_of(std::string name, LengthOf length);
// A tensor made from numbers, of which each rank makes its part by a program.
OpDefinition made_of_numbers(std::string name, ShapeOf shape,
                             std::string_view program);

// --- Along dims ---

// Elements move along the named dims: flip, roll.
OpDefinition moved(std::string_view dims_argument);
OpDefinition moved(std::string name, DimsOf dims);
// The last two dims are matrices, of which places count.
OpDefinition of_matrices();
OpDefinition unsqueezed();
OpDefinition squeezed();

// --- Parts and joins of one dim ---

OpDefinition sliced();
OpDefinition narrowed();
OpDefinition selected();
OpDefinition unbound();
OpDefinition joined();
// Tensors that get dims of size 1 first: of each dim of what is joined, the
// tensor's own or kNewDim.
inline constexpr int kNewDim = -1;
using LiftOf = std::function<std::vector<int>(int rank)>;
OpDefinition joined(std::string name, LiftOf lift, DimOf along);
OpDefinition stacked();
// self with a slice, or one place, of a dim written.
OpDefinition slice_written();
OpDefinition selection_written();

// --- By an index along one dim ---

OpDefinition gathered();
OpDefinition scattered();
// By a vector of indices.
OpDefinition selected_along();
OpDefinition written_along();

// --- Windows ---

// Spatial dims of another size: what becomes of `size`, the `dim`-th of them.
using Resize = std::function<std::int64_t(const OpCall&, std::int64_t size,
                                          std::size_t dim)>;
OpDefinition resized(std::string name, Resize resize, int results = 1);
// Of `resize`, which the incoming gradient must fit; null where any fits.
OpDefinition resized_gradient(Resize resize = nullptr);
// Channels are (groups, in) and (groups, out).
OpDefinition convolved();
OpDefinition convolved_gradients();

// The windows of a dim, their elements in a new last one.
OpDefinition unfolded();
// The windows of images as columns, or (backward) the images that columns add up
// to.
OpDefinition columns(bool backward);
// Blocks of channels become space, or the other way round.
OpDefinition shuffled(bool into_space);

// --- Transforms ---

// What a Fourier transform makes: as many elements, the half that a real input
// has, or the real whole of such a half.
enum class Transform : std::uint8_t { kComplex, kHalf, kReal };
// Over `dim` or the last dims of as many sizes as `s` has, of length `n`, `s` or
// `last_dim_size` where that is given.
OpDefinition transformed(Transform kind);

// --- Norms and losses ---

// Over the dims of `normalized_shape`, with that many statistics beside.
OpDefinition normalized(int statistics);
// The gradients of these arguments that `output_mask` asks for.
OpDefinition masked_gradients(std::vector<std::string> of);
// A pointwise function of input and target, reduced as `reduction` says.
OpDefinition elementwise_loss();
// `sum`: the call of the gradient of a sum, of which a mean is a part.
OpDefinition elementwise_loss_gradient(std::string_view sum);

}  // namespace shardprop
