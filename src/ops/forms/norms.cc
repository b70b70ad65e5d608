// This file has the forms of norms over the last dims, and of the gradients of
// norms.

#include "ops/forms/norms.h"
#include "ops/forms/forms.h"
#include "ops/forms/shared_form.h"
#include "ops/rules/rule_words.h"
#include "ops/text_with_arguments.h"

#include <algorithm>
#include <string>
#include <utility>

namespace shardprop {
namespace {

// Sharding these factors requires the program.
void by_program(IndexSpace& space, const DimFactors& factors) {
  for (const FactorId id : factors) {
    space.factor(id).program = ProgramUse::kWhenSharded;
  }
}

BoundForm bind_layer_norm(const OpCall& call, int statistics) {
  const TensorMeta& input = call.tensor("input");
  require(is_floating(input.dtype()), "the input is of integers");
  const std::vector<std::int64_t> normalized =
      call.integers("normalized_shape");
  require(!normalized.empty() && normalized.size() <= input.shape().size(),
          "the normalized shape does not match the rank");
  const std::size_t first = input.shape().size() - normalized.size();
  SpaceBuilder b;
  const Operand whole = b.per_dim(input.shape());
  for (std::size_t i = 0; i < normalized.size(); ++i) {
    require(input.shape()[first + i] == normalized[i],
            "the input does not end in the normalized shape");
    by_program(b.space, whole.dims[first + i]);
  }
  Dims kept = input.shape();
  std::fill(kept.begin() + static_cast<std::ptrdiff_t>(first), kept.end(), 1);
  for (const TensorMeta& meta : call.op().inputs) {
    require(&meta == &input || meta.shape() == dims_of(normalized) ||
                &meta == &call.op().inputs[0],
            "weight and bias have the normalized shape");
    b.input(b.aligned(whole, meta.shape()));
  }
  b.output(whole);
  const Operand rest = b.aligned(whole, kept);
  for (int i = 0; i < statistics; ++i) {
    b.output(rest, {.shape = kept,
                    .dtype = statistics_dtype(input.dtype()),
                    .or_dtype = input.dtype()});
  }
  for (int i = 0; i < statistics; ++i) {
    for (std::size_t dim = first; dim < whole.dims.size(); ++dim) {
      b.without(1 + i, whole.dims[dim], Without::same());
    }
  }
  return b.bound();
}

// Checks that weight and bias have one dtype, which is the input's, or f32 if the
// input is in half precision. The kernels of PyTorch refuse other calls; those of
// RMS norms and of other libraries may accept them.
void check_affine_dtypes(const OpCall& call, const IndexSpace&) {
  const DType input = call.tensor("input").dtype();
  const DType wide = statistics_dtype(input);
  const auto wrong = [](std::string_view name, DType found,
                        const std::string& expected) {
    call_error('`' + std::string(name) + "` is " +
               std::string(to_string(found)) + ", expected " + expected);
  };
  const auto given = [&](const char* name) {
    return call.has(name) ? call.optional_tensor(name) : nullptr;
  };
  const TensorMeta* weight = given("weight");
  for (const char* name : {"weight", "bias"}) {
    const TensorMeta* vector = given(name);
    if (vector == nullptr) continue;
    const DType found = vector->dtype();
    if (found != input && found != wide) {
      wrong(name, found,
            std::string(to_string(input)) + ", as `input`" +
                (wide == input ? "" : ", or " + std::string(to_string(wide))));
    }
    if (weight != nullptr && found != weight->dtype()) {
      wrong(name, found,
            std::string(to_string(weight->dtype())) + ", as `weight`");
    }
  }
}

void check_gradient(const OpCall& call) {
  const TensorMeta& input = call.tensor("input");
  require(call.first().shape() == input.shape(),
          "the gradient does not have the shape of the input");
  const Dims normalized = dims_of(call.integers("normalized_shape"));
  require(!normalized.empty() && normalized.size() <= input.shape().size() &&
              std::equal(normalized.begin(), normalized.end(),
                         input.shape().end() - normalized.size()),
          "the input does not end in the normalized shape");
  // The gradients of weight and bias are sums, in their dtype.
  for (const char* name : {"weight", "bias"}) {
    const TensorMeta* of =
        call.has(name) ? call.optional_tensor(name) : nullptr;
    require(of == nullptr || of->shape() == normalized,
            "weight and bias have the normalized shape");
    require(of == nullptr ||
                (is_floating(of->dtype()) && item_size(of->dtype()) > 1),
            "weight and bias are not of floats");
  }
  // The statistics have one element per sample.
  std::int64_t statistics = 1;
  for (std::size_t d = 0; d + normalized.size() < input.shape().size(); ++d) {
    statistics = multiply_sizes(statistics, input.shape()[d]);
  }
  for (const char* name : {"mean", "rstd"}) {
    require(!call.has(name) || call.tensor(name).numel() == statistics,
            "the statistics are not those of the input");
  }
}

// --- Gradients of input, weight and bias that output_mask selects ---

// Returns the tensor whose gradient is computed; null if it is not computed.
const TensorMeta* differentiated(const OpCall& call, std::string_view argument,
                                 bool wanted) {
  if (!wanted) return nullptr;
  const TensorMeta* meta =
      call.has(argument) ? call.optional_tensor(argument) : nullptr;
  // The bias has the weight's shape, and some backwards do not have it as an
  // argument.
  if (meta == nullptr && argument == "bias" && call.has("weight")) {
    meta = call.optional_tensor("weight");
  }
  return meta;
}

// The norm runs over the last dims: each row has its own input gradient. The
// gradients of weight and bias are sums over the rows.
BoundForm bind_gradients_by_row(const OpCall& call,
                                const std::vector<std::string>& of) {
  const std::vector<bool> mask = call.mask("output_mask", of.size());
  check_gradient(call);
  const TensorMeta& input = call.tensor("input");
  const std::size_t first =
      input.shape().size() - call.integers("normalized_shape").size();
  Dims kept = input.shape();
  std::fill(kept.begin() + static_cast<std::ptrdiff_t>(first), kept.end(), 1);
  for (const char* name : {"mean", "rstd"}) {
    require(!call.has(name) || call.tensor(name).shape() == kept,
            "the statistics do not have the outer dims of the input");
  }
  SpaceBuilder b;
  const Operand whole = b.per_dim(input.shape());
  for (std::size_t dim = first; dim < whole.dims.size(); ++dim) {
    by_program(b.space, whole.dims[dim]);
  }
  for (const TensorMeta& meta : call.op().inputs) {
    b.input(b.aligned(whole, meta.shape()));
  }
  for (std::size_t part = 0; part < of.size(); ++part) {
    const TensorMeta* meta = differentiated(call, of[part], mask[part]);
    if (meta == nullptr) {
      b.not_produced();
    } else {
      b.output(b.aligned(whole, meta->shape()), {.dtype = meta->dtype()});
    }
  }
  const auto outputs = static_cast<int>(b.space.outputs.size());
  for (int o = mask[0] ? 1 : 0; o < outputs; ++o) {
    for (std::size_t dim = 0; dim < first; ++dim) {
      b.without(o, whole.dims[dim], Without::partial(ReduceOp::kSum));
    }
  }
  return b.bound();
}

std::string gradients_text(const std::vector<std::string>& of) {
  return text_with_arguments("masked_gradients", of);
}

}  // namespace

OpDefinition normalized(int statistics) {
  return form("normalized" + results_text("normalized_shape", statistics + 1));
}

OpDefinition masked_gradients(const std::vector<std::string>& of) {
  return form(gradients_text(of));
}

void words_of_norms(RuleWords& words) {
  for (const int statistics : {0, 1, 2}) {
    words.form(shared_form(
        "normalized" + results_text("normalized_shape", statistics + 1),
        [statistics](const OpCall& call) {
          return bind_layer_norm(call, statistics);
        }));
  }
  const std::vector<std::string> with_bias = {"input", "weight", "bias"};
  const std::vector<std::string> without_bias = {"input", "weight"};
  for (const auto& of : {with_bias, without_bias}) {
    words.form(shared_form(gradients_text(of), [of](const OpCall& call) {
      return bind_gradients_by_row(call, of);
    }));
  }
  words.check("affine_dtypes()", check_affine_dtypes);
}

}  // namespace shardprop
