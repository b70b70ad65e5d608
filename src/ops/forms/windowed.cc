// Pooling and resampling: batch and channels are parallel, spatial dims are
// windowed.

#include "ops/definitions/dtypes.h"
#include "ops/forms/forms.h"
#include "ops/forms/shared_form.h"
#include "ops/rules/rule_words.h"
#include "ops/space/windows.h"

#include <utility>

namespace shardprop {
namespace {

constexpr char kWindowHalo[] = "it would need a halo exchange";

Dims channels_last_1d(const Dims& shape) {
  return Dims{multiply_sizes(shape[1], shape[2]), 1, shape[1]};
}

// PyTorch runs pools over one dim as pools over two, the first of size 1.
Dims strides_of_lines(const OpCall& call, const Dims& shape, DType dtype) {
  const TensorMeta& self = call.first();
  if (self.rank() == 3 && shape.size() == 3 && !self.is_contiguous() &&
      self.strides() == channels_last_1d(self.shape())) {
    return channels_last_1d(shape);
  }
  return strides_as_images(call, shape, dtype);
}

// The result has the leading dims of the first operand, and its spatial dims
// resized.
BoundForm bind_resized(const OpCall& call, int spatial, int results,
                       const Resize& resize) {
  const TensorMeta& self = call.first();
  require(self.rank() == spatial + 1 || self.rank() == spatial + 2,
          "the input has another rank");
  const int leading = self.rank() - spatial;
  for (int d = leading - 1; d < self.rank(); ++d) {
    require(self.size(d) > 0, "a dim beside the batch has no elements");
  }
  require(!call.has("divisor_override") ||
              call.op().int_arg("divisor_override").value_or(1) != 0,
          "the divisor is 0");
  SpaceBuilder b;
  Operand whole = b.per_dim(self.shape());
  for (Factor& factor : b.space.factors) factor.least = 1;
  // A batch may be empty.
  if (leading == 2) {
    for (const FactorId id : whole.dims[0]) b.space.factor(id).least = 0;
  }
  Operand output = whole;
  for (int d = leading; d < self.rank(); ++d) {
    b.block(whole.dims[index(d)], kWindowHalo, FactorKind::kWindowed);
    output.dims[index(d)] =
        b.blocked(resize(call, self.size(d), index(d - leading)), kWindowHalo,
                  FactorKind::kWindowed);
  }
  b.input(whole);
  for (int i = 0; i < results; ++i) b.output(output);
  return b.bound();
}

// Binds the gradient of `self` from that of its result. Both share their
// leading dims.
BoundForm bind_resized_gradient(const OpCall& call, int spatial,
                                const Resize& resize) {
  const TensorMeta& self = call.tensor("self");
  const TensorMeta& grad = call.tensor("grad_output");
  require(self.rank() == spatial + 1 || self.rank() == spatial + 2,
          "the input has another rank");
  require(grad.rank() == self.rank(), "the gradient has another rank");
  for (int d = self.rank() - spatial; resize != nullptr && d < self.rank();
       ++d) {
    const auto at = index(d - self.rank() + spatial);
    require(grad.size(d) == resize(call, self.size(d), at),
            "the gradient does not have the size of the result");
  }
  SpaceBuilder b;
  const int leading = self.rank() - spatial;
  Operand whole = b.per_dim(self.shape());
  for (Factor& factor : b.space.factors) factor.least = 1;
  for (int d = leading; d < self.rank(); ++d) {
    b.block(whole.dims[index(d)], kWindowHalo, FactorKind::kWindowed);
  }
  for (const TensorMeta& meta : call.op().inputs) {
    Operand operand = SpaceBuilder::whole(meta.rank());
    for (int d = 0; d < leading && meta.rank() == self.rank(); ++d) {
      require(meta.size(d) == self.size(d),
              "batch or channels differ between the operands");
      operand.dims[index(d)] = whole.dims[index(d)];
    }
    b.input(std::move(operand));
  }
  b.output(whole, {.dtype = self.dtype()});
  return b.bound();
}

}  // namespace

OpDefinition resize_form(std::string text, int spatial, Resize resize,
                         int results) {
  return shared_form(
      std::move(text),
      [spatial, results, resize = std::move(resize)](const OpCall& call) {
        return bind_resized(call, spatial, results, resize);
      });
}

OpDefinition resize_gradient_form(std::string text, int spatial,
                                  Resize resize) {
  return shared_form(std::move(text),
                     [spatial, resize = std::move(resize)](const OpCall& call) {
                       return bind_resized_gradient(call, spatial, resize);
                     });
}

OpDefinition resized_gradient(std::string_view word) {
  return form(word).strided("self").linear_in("grad_output");
}

void words_of_windowed(RuleWords& words) {
  words.strides("pooled_lines", strides_of_lines);
}

}  // namespace shardprop
