// This header declares the forms that op_definition.h does not: views, splits
// and cats of dims, windows, transforms, norms and losses.
#pragma once

#include "ops/forms/space_builder.h"
#include "ops/space/arithmetic.h"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardprop {

// A form with a function as an argument has a word of the rule language
// (src/ops/rules/rule_words.h): gather_form() makes such a word, and gathered() a
// definition that uses it.

// These return the definition with a required memory order of operands.
inline OpDefinition in_order(OpDefinition row) {
  return std::move(row).in_order();
}
inline OpDefinition in_dense_rows(OpDefinition row) {
  return std::move(row).in_dense_rows();
}

// Broadcasts the operands to the named one, which gives shape and strides.
OpDefinition pointwise_into(std::string_view argument);
// Returns the definition with contiguous results, if its form does not give
// their strides.
OpDefinition contiguous(OpDefinition row);
// Combines the first operand with a vector that has one element per channel
// (dim 1), or one element.
OpDefinition with_channels(std::string_view argument);
// The results have the shape of the first operand, and every dim of it is
// parallel. Other operands are replicated unless they have the same shape.
OpDefinition same_shape(int results = 1);

// The result is a number, not a tensor, so every rank needs the full operands.
// If `needs_all` returns false, ranks whose operands are sharded in the same
// way compute the same number. `check` rejects calls.
OpDefinition number(std::string name, std::function<void(const OpCall&)> check,
                    std::function<bool(const OpCall&)> needs_all = {});

using ShapeOf = std::function<Dims(const OpCall&)>;
using DimsOf = std::function<std::vector<int>(const OpCall&)>;
// Returns the dim that a call names, for a tensor of that rank.
using DimOf = std::function<int(const OpCall&, int rank)>;

// The elements keep their order and have another shape: dims are flattened and
// split. `argument`, if any, is the new shape. The result is a copy if no
// strides fit.
OpDefinition reshaped(std::string_view word, std::string_view argument = {});
OpDefinition reshape_form(std::string text, ShapeOf shape);
// The dims of the first operand are permuted.
OpDefinition permuted(std::string_view word);
OpDefinition permute_form(std::string text, DimsOf order);
// Dims of size 1 are repeated without a copy.
OpDefinition expanded(std::string_view argument);
// Each tensor of a list is expanded to the shape to which all broadcast.
OpDefinition expanded_together();
// Each tensor of a list gets dims of size 1 if it has too few (atleast_2d).
OpDefinition at_least_each(std::string_view least);
// The Cartesian product of vectors: a result for each vector, which runs along
// its dim (meshgrid), or a row for each point (cartesian_prod).
OpDefinition grid_of_vectors();
OpDefinition rows_of_vectors();

// Splits one dim into results; `sizes` returns the sizes of the pieces.
using SizesOf =
    std::function<std::vector<std::int64_t>(const OpCall&, std::int64_t size)>;
OpDefinition split_form(std::string text, SizesOf sizes, bool copies = false);
// Splits the dim that `along` returns instead of the argument `dim`.
OpDefinition split_form(std::string text, DimOf along, SizesOf sizes);
OpDefinition cut_up(std::string_view word);

// Returns the sizes with a single -1 replaced by the size that the element
// count implies.
Dims resolve_sizes(const TensorMeta& self, std::span<const std::int64_t> sizes);
Dims dims_of(std::span<const std::int64_t> sizes);

// --- Factories ---

using LengthOf = std::function<std::int64_t(const OpCall&)>;
// A vector that is created from numbers.
OpDefinition vector_form(std::string text, LengthOf length);
OpDefinition made_form(std::string text, ShapeOf shape);
// A tensor that is created from numbers; each rank creates its part by a
// program.
OpDefinition made_of_numbers(std::string_view word, std::string_view program);

// --- Along dims ---

// Elements move along the named dims: flip, roll.
OpDefinition move_form(std::string text, DimsOf dims);
// The last two dims are matrices, and the result depends on positions in them.
OpDefinition of_matrices();
OpDefinition unsqueezed();
OpDefinition squeezed();

// --- Parts and joins of one dim ---

OpDefinition sliced();
OpDefinition narrowed();
OpDefinition selected();
OpDefinition unbound();
// Tensors get dims of size 1 before they are concatenated. `lift` returns, for
// each dim of the result, the tensor's own dim or kNewDim.
inline constexpr int kNewDim = -1;
using LiftOf = std::function<std::vector<int>(int rank)>;
OpDefinition cat_form(std::string text, LiftOf lift, DimOf along);
OpDefinition joined(std::string_view word = "cat(dim)");
OpDefinition stacked();
// The result is self with a slice, or one index, of a dim overwritten.
OpDefinition slice_written();
OpDefinition selection_written();

// --- By an index along one dim ---

OpDefinition gathered();
// `how` is "add", or the kind of words of the argument `reduce`: "arithmetic"
// (add, multiply) or "reduction" (sum, prod, mean, amax, amin). Without it, elements
// are replaced.
OpDefinition scattered(std::string_view how = {});
// The index is a vector.
OpDefinition selected_along();
// Like scattered(); "reduction" has no sum.
OpDefinition written_along(std::string_view how = {});

// --- Windows ---

// `spatial` last dims change size: `Resize` returns the new size of `size`, the
// `dim`-th of them.
using Resize = std::function<std::int64_t(const OpCall&, std::int64_t size,
                                          std::size_t dim)>;
OpDefinition resize_form(std::string text, int spatial, Resize resize,
                         int results = 1);
// The gradient of `resize`, which the incoming gradient must fit; if it is
// null, any size fits.
OpDefinition resize_gradient_form(std::string text, int spatial,
                                  Resize resize = nullptr);
OpDefinition resized_gradient(std::string_view word);
// Channels are (groups, in) and (groups, out). The weight has `spatial` spatial
// dims; any number if it is 0.
OpDefinition convolved(int spatial = 0);
OpDefinition convolved_gradients();

// The windows of a dim, whose elements become a new last dim.
OpDefinition unfolded();
// The windows of images as columns, or (backward) the images as sums of
// columns.
OpDefinition columns(bool backward);
// Blocks of channels become spatial elements, or the reverse.
OpDefinition shuffled(bool into_space);

// --- Transforms ---

// `Transform` is the kind of a Fourier transform. kComplex returns as many
// elements, and kHalf the half that a real input needs. kReal returns the full
// real tensor for such a half. kHalfFirst is kHalf, but runs over the last dim first.
enum class Transform : std::uint8_t { kComplex, kHalf, kReal, kHalfFirst };
// The transform runs over `dim`, or over as many last dims as `s` has sizes.
// Their length is `n`, `s` or `last_dim_size` if given.
OpDefinition transformed(Transform kind);

// --- Norms and losses ---

// The norm runs over the dims of `normalized_shape`, and returns `statistics`
// statistics too.
OpDefinition normalized(int statistics);
// Returns the gradients of these arguments that `output_mask` selects.
OpDefinition masked_gradients(const std::vector<std::string>& of);
// A pointwise function of input and target, reduced according to `reduction`. Its dtype
// is that of a dtype rule; promoted if the rule is empty.
OpDefinition elementwise_loss(std::string_view dtype_rule = {});
// `sum` is the call of the gradient of a sum; the gradient of a mean is a
// fraction of it. If another operand is larger than `self`, the gradient has the
// shape of `self` if `keeps_self`, else the broadcast shape.
OpDefinition elementwise_loss_gradient(std::string_view sum,
                                       bool keeps_self = false);

}  // namespace shardprop
