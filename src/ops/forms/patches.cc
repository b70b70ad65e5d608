// Windows as extra dims, and blocks of channels that become spatial elements.

#include "ops/forms/forms.h"

#include "ops/forms/shared_form.h"
#include "ops/rules/rule_words.h"
#include "ops/space/windows.h"

#include <utility>

namespace shardprop {
namespace {

constexpr char kWindows[] = "windows run over it";

// The windows of one dim follow one another; their elements are a new last dim.
BoundForm bind_unfold(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  const int dim = call.dim("dimension", self.rank());
  const std::int64_t size = call.integer("size");
  const std::int64_t step = call.integer("step");
  require(
      size >= 0 && size <= (self.rank() == 0 ? 1 : self.size(dim)) && step > 0,
      "a window is larger than the dim");
  SpaceBuilder b;
  if (self.rank() == 0) {
    b.input(Operand{});
    b.output(SpaceBuilder::whole(1), {.shape = Dims{size}, .strides = Dims{1}});
    return b.bound();
  }
  Operand whole = b.per_dim(self.shape());
  b.block(whole.dims[index(dim)], kWindows, FactorKind::kWindowed);
  b.input(whole);
  Dims shape = self.shape();
  Dims strides = self.strides();
  shape[index(dim)] = (self.size(dim) - size) / step + 1;
  shape.push_back(size);
  strides.push_back(strides[index(dim)]);
  strides[index(dim)] = multiply_sizes(strides[index(dim)], step);
  whole.dims[index(dim)].clear();
  whole.dims.emplace_back();
  b.output(std::move(whole),
           {.shape = std::move(shape), .strides = std::move(strides)});
  return b.bound();
}

// `Columns` describes one column per window of an image, with the elements of
// all channels.
struct Columns {
  std::int64_t elements = 1;  // elements of a window
  std::int64_t windows = 1;
};

Columns columns_of(const OpCall& call, const Dims& space) {
  Columns columns;
  for (const char* name : {"kernel_size", "dilation", "padding", "stride"}) {
    require_per_dim(call.integers(name), space.size(), name);
  }
  for (std::size_t d = 0; d < space.size(); ++d) {
    const std::int64_t kernel = per_dim(call.integers("kernel_size"), d, 1);
    require(kernel > 0, "a window is empty");
    columns.elements = multiply_sizes(columns.elements, kernel);
    columns.windows = multiply_sizes(
        columns.windows,
        window_count(space[d], kernel, per_dim(call.integers("stride"), d, 1),
                     per_dim(call.integers("padding"), d, 0),
                     per_dim(call.integers("dilation"), d, 1), false));
  }
  return columns;
}

BoundForm bind_columns(const OpCall& call, bool backward) {
  const TensorMeta& self = call.tensor("self");
  const int batched = backward ? 3 : 4;
  require(self.rank() == batched || self.rank() == batched - 1,
          "the operand holds no images");
  const int leading = self.rank() - (batched - 1);
  const Dims space = backward
                         ? dims_of(call.integers("output_size"))
                         : Dims{self.size(leading + 1), self.size(leading + 2)};
  require(space.size() == 2, "an image has two dims");
  const Columns columns = columns_of(call, space);
  require(columns.windows > 0, "no window fits");
  const std::int64_t held = self.size(leading);
  require(!backward || (held % columns.elements == 0 &&
                        self.size(leading + 1) == columns.windows),
          "the columns are not those of the windows");
  const std::int64_t channels = backward ? held / columns.elements : held;
  SpaceBuilder b;
  Operand image;
  if (leading == 1) image.dims.push_back(b.dim(self.size(0)));
  image.dims.push_back(b.dim(channels));
  Operand rows = image;
  for (const FactorId id : b.blocked(columns.elements, kWindows)) {
    rows.dims.back().push_back(id);
  }
  rows.dims.push_back(b.blocked(columns.windows, kWindows));
  for (const std::int64_t size : space) {
    image.dims.push_back(b.blocked(size, kWindows, FactorKind::kWindowed));
  }
  b.input(backward ? rows : image);
  b.output(backward ? std::move(image) : std::move(rows));
  for (Factor& factor : b.space.factors) factor.least = 1;
  return b.bound();
}

// Maps (c r s), h, w to c, (h r), (w s) and back.
BoundForm bind_shuffle(const OpCall& call, bool into_space) {
  const TensorMeta& self = call.tensor("self");
  const std::int64_t factor =
      call.integer(into_space ? "upscale_factor" : "downscale_factor");
  require(self.rank() >= 3 && factor > 0, "the operand holds no images");
  const int at = self.rank() - 3;
  const std::int64_t block = multiply_sizes(factor, factor);
  require(into_space ? self.size(at) % block == 0
                     : self.size(at + 1) % factor == 0 &&
                           self.size(at + 2) % factor == 0,
          "the image has no blocks of that size");
  SpaceBuilder b;
  Operand deep;
  for (int d = 0; d < at; ++d) deep.dims.push_back(b.dim(self.size(d)));
  Operand wide = deep;
  const DimFactors channels =
      b.dim(into_space ? self.size(at) / block : self.size(at));
  wide.dims.push_back(channels);
  deep.dims.push_back(channels);
  for (int d = at + 1; d < self.rank(); ++d) {
    const DimFactors outer =
        b.dim(into_space ? self.size(d) : self.size(d) / factor);
    deep.dims.push_back(outer);
    wide.dims.push_back(outer);
    for (const FactorId id : b.blocked(factor, "a block stays together")) {
      wide.dims.back().push_back(id);
      deep.dims[index(at)].push_back(id);
    }
  }
  b.input(into_space ? deep : wide);
  b.output(into_space ? std::move(wide) : std::move(deep));
  return b.bound();
}

}  // namespace

OpDefinition unfolded() {
  return shared_form("unfold(dimension)", bind_unfold);
}

OpDefinition columns(bool backward) {
  return shared_form(
      backward ? "col2im()" : "im2col()",
      [backward](const OpCall& call) { return bind_columns(call, backward); });
}

OpDefinition shuffled(bool into_space) {
  return shared_form(into_space ? "pixel_shuffle()" : "pixel_unshuffle()",
                     [into_space](const OpCall& call) {
                       return bind_shuffle(call, into_space);
                     });
}

void words_of_patches(RuleWords& words) {
  words.form(unfolded());
  for (const bool is_second : {false, true}) {
    words.form(columns(is_second));
    words.form(shuffled(is_second));
  }
}

}  // namespace shardprop
