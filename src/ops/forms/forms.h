// The forms of src/ops beside those that users write rows with: views, parts
// and joins of dims, windows. Each says in a line what it is.
#pragma once

#include "ops/arithmetic.h"
#include "ops/forms/space_builder.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {

// The operands broadcast into the named one, which gives shape and strides.
OpDefinition pointwise_into(std::string_view argument);
// Results of the shape of the first operand, every dim of it parallel; the
// other operands are whole unless they are of the same shape.
OpDefinition same_shape(int results = 1);

using ShapeOf = std::function<Dims(const OpCall&)>;
using DimsOf = std::function<std::vector<int>(const OpCall&)>;

// The same elements in the same order in another shape: dims flatten and
// split. `argument`, if any, is the new shape.
OpDefinition reshaped(std::string name, ShapeOf shape,
                      std::string_view argument = {});
// The dims of the first operand in another order.
OpDefinition permuted(std::string name, DimsOf order);
// Dims of size 1 repeated without a copy.
OpDefinition expanded(std::string_view argument);

// Cuts of one dim into results: `sizes` of the pieces.
using SizesOf =
    std::function<std::vector<std::int64_t>(const OpCall&, std::int64_t size)>;
OpDefinition cut_up(std::string name, SizesOf sizes, bool copies = false);

// The sizes with a lone -1 made what the element count leaves for it.
Dims resolve_sizes(const TensorMeta& self, std::span<const std::int64_t> sizes);
Dims dims_of(std::span<const std::int64_t> sizes);

}  // namespace shardprop
