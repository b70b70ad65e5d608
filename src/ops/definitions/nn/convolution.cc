// This file defines convolutions.

#include "ops/definitions/families.h"
#include "ops/definitions/words.h"
#include "ops/forms/mapped.h"

#include <string>
#include <string_view>

namespace shardprop {
namespace {

// The dims are time, batch, channels.
std::int64_t frames_after(const OpCall& call, const FactorName&) {
  const std::int64_t pad = call.integer("pad");
  require(pad >= 0 && pad < (std::int64_t{1} << 40), "a pad is out of range");
  const std::int64_t frames =
      add_sizes(size_of(call.tensor("self"), 0),
                2 * pad - size_of(call.tensor("weight"), 0) + 1);
  require(frames > 0, "the kernel is longer than the signal");
  return frames;
}

// Extends the image by the halo from the neighbouring ranks: `before` elements
// from the previous one, `behind` from the next one. The first and the last
// rank have no halo at the outer end.
constexpr std::string_view kWithHalo = R"(
d = cut_dim(input)
before = element(padding, d - 2)
behind = element(dilation, d - 2) * (size(weight, d) - 1) - before - element(stride, d - 2) + 1
overlaps = behind >= 1
behind = 0 if not overlaps
start = full([1], offset(input, d))
parts = all_gather_unordered(unsqueeze(cat([start, start + local_size(input, d)]), 0))
not_front = trailing(logical_not(select(parts, 1, 1) == offset(input, d)), rank(input))
not_next = trailing(logical_not(select(parts, 1, 0) - local_size(input, d) == offset(input, d)), rank(input))
edges = all_gather_unordered(unsqueeze(cat([slice(input, d, 0, behind), slice(input, d, 0 - before)], d), 0))
front = sum(masked_fill(slice(edges, d + 1, behind), not_front, 0), [0], dtype=dtype(input))
next = sum(masked_fill(slice(edges, d + 1, 0, behind), not_next, 0), [0], dtype=dtype(input))
image = cat([front, input, next], d)
inner = unpadded(padding, rank(input) - 2, d - 2))";

constexpr std::string_view kConvolution = R"(
return itself(input=image, padding=inner))";

// The gradient that a rank computes for its halo belongs to its neighbours.
constexpr std::string_view kGradients = R"(
made = itself(input=image, padding=inner)
all = result(made, 0)
weights = result(made, 1)
bias = result(made, 2)
end = None
end = 0 - behind if overlaps
from = 0
from = 0 - behind if overlaps
to = 0
to = None if overlaps
past = slice(all, d, from, to) if all
sent = all_gather_unordered(unsqueeze(cat([slice(all, d, 0, before), past], d), 0)) if all
first_rows = sum(masked_fill(slice(sent, d + 1, before), not_front, 0), [0], dtype=dtype(input)) if all
last_rows = sum(masked_fill(slice(sent, d + 1, 0, before), not_next, 0), [0], dtype=dtype(input)) if all
own = slice(all, d, before, end) if all
own = cat([slice(own, d, 0, behind) + first_rows, slice(own, d, behind)], d) if all
own = cat([slice(own, d, 0, 0 - before), slice(own, d, 0 - before) + last_rows], d) if all
return own, weights, bias)";

std::string with_halo(std::string_view program) {
  return std::string(kWithHalo) + std::string(program);
}

}  // namespace

void words_of_convolution(RuleWords& words) {
  for (const int spatial : {0, 1, 2, 3}) words.form(convolved(spatial));
  words.form(convolved_gradients());
  words.size("frames", frames_after);
}

void define_convolution(Family f) {
  f.add({"convolution", "_convolution"},
        convolved().per_rank(with_halo(kConvolution)));
  for (const int spatial : {1, 2, 3}) {
    const std::string dims = std::to_string(spatial) + "d";
    f.add("conv" + dims, convolved(spatial).per_rank(with_halo(kConvolution)));
    f.add("conv_transpose" + dims, convolved(spatial));
  }
  f.add("_convolution_mode", convolved());
  f.add("slow_conv3d", convolved(3));
  f.add("convolution_backward",
        convolved_gradients().per_rank(with_halo(kGradients)));
  f.add("conv_tbc", in_order(mapped("{t}b{i},{ki}o,o->{s:frames()}bo")
                                 .nonempty()
                                 .multiplies(ProductKind::kConvolution)));
}

}  // namespace shardprop
