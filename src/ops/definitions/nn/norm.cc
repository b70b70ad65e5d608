// This file defines norms. The statistics over a sharded dim are two small
// sums, which the local program exchanges. Synchronised batch norm does the
// same.

#include "ops/definitions/families.h"
#include "ops/definitions/words.h"
#include "ops/forms/norms.h"
#include "ops/space/windows.h"

#include <algorithm>

namespace shardprop {
namespace {

// --- Over the last dims ---

constexpr std::string_view kLayerNorm = R"(
x = upcast(input)
dims = last_dims(input, normalized_shape)
mean = sum(x, dims, True) / count(input, dims)
c = x - mean
rstd = rsqrt(sum(c * c, dims, True) / count(input, dims) + eps)
y = c * rstd
y = y * weight if weight
y = y + bias if bias
return cast(y, dtype(out)), cast(mean, dtype(out, 1)), cast(rstd, dtype(out, 2)))";

constexpr std::string_view kRmsNorm = R"(
x = upcast(input)
dims = last_dims(input, normalized_shape)
rstd = rsqrt(sum(x * x, dims, True) / count(input, dims) + epsilon(eps, input))
y = x * rstd
y = y * weight if weight
return cast(y, dtype(out)), cast(rstd, dtype(out, 1)))";

// The gradient of the input needs two sums over a row. The gradients of weight
// and bias are sums over all rows, of terms in their dtype; they stay partial.
std::string rows_backward(bool centred) {
  return std::string(R"(
dims = last_dims(input, normalized_shape)
g = upcast(grad_out)
rows = unsqueeze(g, 0)
outer = all_dims_but(rows, last_dims(rows, normalized_shape))
y = )") + (centred ? "(upcast(input) - mean)" : "upcast(input)") +
         R"( * rstd
w = g
w = g * weight if weight
n = count(input, dims)
)" +
         (centred ? R"(
sums = whole(stack([sum(w * y, dims, True), sum(w, dims, True)])) / n
b = select(sums, 0, 0)
return cast((w - y * b - select(sums, 0, 1)))"
                  : R"(
b = sum(w * y, dims, True) / n
return cast((w - y * b))") +
         R"( * rstd, dtype(out)), sum(cast(unsqueeze(g * y, 0), dtype(out, 1)), outer, dtype=dtype(out, 1)))" +
         (centred
              ? ", sum(cast(rows, dtype(out, 2)), outer, dtype=dtype(out, 2))"
              : "");
}

// --- Over batch and space, by channel: batch norm ---

// Both running statistics are given or neither; evaluation requires them.
void check_running(const OpCall& call, bool training) {
  const auto given = [&](std::string_view argument) {
    return call.has(argument) && call.optional_tensor(argument) != nullptr;
  };
  require(given("running_mean") == given("running_var"),
          "one of the running statistics is missing");
  require(training || given("running_mean"),
          "the running statistics are missing");
}

// Each operand is a full image or a vector of channels.
BoundForm bind_batch_norm(const OpCall& call, bool functional, bool reserve) {
  const TensorMeta& input = call.tensor("input");
  require(input.rank() >= 2, "the input has no channels");
  require(is_floating(input.dtype()), "the input is of integers");
  // An operator with a reserve updates the running statistics.
  const bool training = call.boolean_or("training", reserve);
  check_running(call, training);
  SpaceBuilder b;
  const Operand whole = b.per_dim(input.shape());
  // The program returns no reserve, and does not write running statistics in
  // place.
  const bool writes = !functional && call.has("running_mean") &&
                      call.optional_tensor("running_mean") != nullptr;
  const bool has_program = !reserve && !writes;
  for (std::size_t dim = 0; dim < whole.dims.size(); ++dim) {
    for (const FactorId id : whole.dims[dim]) {
      Factor& factor = b.space.factor(id);
      // The operator itself rejects a tensor without channels.
      if (dim == 1) factor.least = 1;
      if (dim == 1 || !training) continue;
      if (has_program) {
        factor.program = ProgramUse::kWhenSharded;
      } else {
        factor.kind = FactorKind::kBlocked;
        factor.reason = "the statistics run over it";
      }
    }
  }
  const Operand channels{{whole.dims[1]}};
  for (const TensorMeta& meta : call.op().inputs) {
    if (&meta == &input) {
      b.input(whole);
      continue;
    }
    require(meta.rank() == 1 && size_of(meta, 0) == size_of(input, 1),
            "a vector does not have one element per channel");
    b.input(channels);
  }
  b.output(
      whole,
      {.strides = dense_like(input, input.shape(), input.dtype()).strides()});
  // Saved statistics are empty if the running ones are used.
  const DType dtype = statistics_dtype(input.dtype());
  for (int i = 0; i < 2; ++i) {
    if (training) {
      b.output(channels, {.dtype = dtype, .or_dtype = input.dtype()});
    } else {
      b.output(SpaceBuilder::whole(1),
               {.shape = Dims{0}, .dtype = dtype, .or_dtype = input.dtype()});
    }
  }
  if (reserve) {
    b.output(SpaceBuilder::whole(1), {.shape = Dims{0}, .dtype = DType::kU8});
  }
  if (functional) {
    for (const char* running : {"running_mean", "running_var"}) {
      b.output(channels, {.dtype = call.tensor(running).dtype()});
    }
  }
  const auto outputs = static_cast<int>(b.space.outputs.size());
  for (int o = 1; o < outputs; ++o) {
    for (const DimFactors& dim : whole.dims) b.without(o, dim, Without::same());
  }
  return b.bound();
}

constexpr std::string_view kBatchNorm = R"(
x = upcast(input)
dims = all_dims_but(input, 1)
mean = sum(x, dims, True) / count(input, dims)
c = x - mean
var = sum(c * c, dims, True) / count(input, dims)
rstd = rsqrt(var + eps)
y = c * rstd
y = y * trailing(weight, rank(input) - 2) if weight
y = y + trailing(bias, rank(input) - 2) if bias
m = squeeze(mean, dims)
v = squeeze(var, dims) * (count(input, dims) / (count(input, dims) - 1))
return cast(y, dtype(out)), m, squeeze(rstd, dims), running_mean * (1 - momentum) + m * momentum, running_var * (1 - momentum) + v * momentum)";

// --- Batch and instance norm, which return only the image ---

// Returns whether the statistics are those of the input.
bool normalises_by_input(const OpCall& call) {
  return call.boolean_or("use_input_stats", call.boolean_or("training", false));
}

// The statistics of the input run over all dims except the channels and, for an
// instance norm, the samples. The program exchanges them.
BoundForm bind_norm_by_channel(const OpCall& call, bool by_instance) {
  const TensorMeta& input = call.tensor("input");
  require(input.rank() >= 2, "the input has no channels");
  const bool own = normalises_by_input(call);
  check_running(call, own);
  SpaceBuilder b;
  const Operand whole = b.per_dim(input.shape());
  for (std::size_t dim = by_instance ? 0 : 1; dim < 2; ++dim) {
    for (const FactorId id : whole.dims[dim]) b.space.factor(id).least = 1;
  }
  for (int dim = 0; own && dim < input.rank(); ++dim) {
    if (dim == 1 || (by_instance && dim == 0)) continue;
    b.block(whole.dims[index(dim)], "the statistics run over it");
  }
  const Operand channels{{whole.dims[1]}};
  for (const TensorMeta& meta : call.op().inputs) {
    require(&meta == &input ||
                (meta.rank() == 1 && size_of(meta, 0) == size_of(input, 1)),
            "a vector does not have one element per channel");
    b.input(&meta == &input ? whole : channels);
  }
  b.output(whole);
  return b.bound();
}

// Running statistics are updated in place, from all samples.
void keep_what_running_statistics_see(const OpCall& call, IndexSpace& space) {
  if (!normalises_by_input(call) || !call.has("running_mean") ||
      call.optional_tensor("running_mean") == nullptr) {
    return;
  }
  for (int dim = 0; dim < call.tensor("input").rank(); ++dim) {
    if (dim == 1) continue;
    for (const FactorId id : dim_of(space.inputs, 0, index(dim))) {
      Factor& factor = space.factor(id);
      factor.program = ProgramUse::kNever;
      factor.kind = FactorKind::kBlocked;
      factor.reason = "the running statistics run over it";
    }
  }
}

std::string norm_by_channel(std::string_view kept) {
  std::string text = R"(
x = upcast(input)
dims = all_dims_but(input, KEPT)
mean = sum(x, dims, True) / count(input, dims)
c = x - mean
rstd = rsqrt(sum(c * c, dims, True) / count(input, dims) + eps)
y = c * rstd
y = y * trailing(weight, rank(input) - 2) if weight
y = y + trailing(bias, rank(input) - 2) if bias
return cast(y, dtype(out)))";
  return text.replace(text.find("KEPT"), 4, kept);
}

OpDefinition normalised_by_channel(std::string_view word,
                                   std::string_view kept) {
  return form(word)
      .checked("affine_dtypes()")
      .decomposed(norm_by_channel(kept))
      .refine("keep_what_running_statistics_see()");
}

// The gradients run over the same dims as the saved statistics.
constexpr std::string_view kBatchNormBackward = R"(
dims = all_dims_but(input, 1)
rstd = trailing(default(save_invstd, save_var), rank(input) - 2)
g = upcast(grad_out)
y = (upcast(input) - trailing(save_mean, rank(input) - 2)) * rstd
sums = whole(stack([sum(g, dims, True), sum(g * y, dims, True)]))
a = select(sums, 0, 0)
b = select(sums, 0, 1)
d = (g * count(input, dims) - a - y * b) * (rstd / count(input, dims))
d = d * trailing(weight, rank(input) - 2) if weight
return cast(d, dtype(out)), cast(squeeze(b, dims), dtype(out, 1)), cast(squeeze(a, dims), dtype(out, 2)))";

// A channel may have no weight; the gradients still have one element per
// channel.
BoundForm bind_batch_norm_backward(const OpCall& call) {
  const std::vector<bool> mask = call.mask("output_mask", 3);
  const TensorMeta& input = call.tensor("input");
  require(input.rank() >= 2, "the input has no channels");
  const TensorMeta* weight = call.optional_tensor("weight");
  const bool train = call.boolean_or("train", call.boolean_or("update", true));
  require(call.optional_tensor(train ? "save_mean" : "running_mean") != nullptr,
          "the statistics are missing");
  // The gradient of the image needs the reduced gradients of the vectors, so
  // these are replicated.
  const bool by_program = train && mask[0];
  SpaceBuilder b;
  const Operand whole = b.per_dim(input.shape());
  for (std::size_t dim = 0; dim < whole.dims.size(); ++dim) {
    if (dim == 1) continue;
    for (const FactorId id : whole.dims[dim]) {
      if (by_program) b.space.factor(id).program = ProgramUse::kWhenSharded;
    }
  }
  const Operand channels{{whole.dims[1]}};
  for (const TensorMeta& meta : call.op().inputs) {
    // The gradient and the input come first.
    const bool is_image = &meta - call.op().inputs.data() < 2;
    require(!is_image || meta.shape() == input.shape(),
            "the gradient does not have the shape of the input");
    require(is_image ||
                (meta.rank() == 1 && size_of(meta, 0) == size_of(input, 1)) ||
                meta.numel() == 0 || meta.dtype() == DType::kU8,
            "a vector does not have one element per channel");
    b.input(is_image ? whole
            : meta.numel() > 0 && meta.dtype() != DType::kU8
                ? channels
                : SpaceBuilder::whole(meta.rank()));
  }
  if (mask[0]) {
    b.output(whole,
             {.strides = strides_like_image(input), .dtype = input.dtype()});
  } else {
    b.not_produced();
  }
  const DType dtype =
      weight != nullptr ? weight->dtype() : statistics_dtype(input.dtype());
  for (const std::size_t part : {std::size_t{1}, std::size_t{2}}) {
    if (mask[part]) {
      b.output(channels, {.dtype = dtype});
    } else {
      b.not_produced();
    }
  }
  for (Factor& factor : b.space.factors) factor.least = 1;
  const auto outputs = static_cast<int>(b.space.outputs.size());
  for (int o = mask[0] ? 1 : 0; o < outputs; ++o) {
    for (std::size_t dim = 0; dim < whole.dims.size(); ++dim) {
      if (dim != 1) {
        b.without(
            o, whole.dims[dim],
            by_program ? Without::same() : Without::partial(ReduceOp::kSum));
      }
    }
  }
  return b.bound();
}

std::string batch_norm_text(bool functional, bool reserve) {
  std::string text = "batch_norm(";
  if (functional) text += reserve ? "functional," : "functional";
  return text + (reserve ? "reserve)" : ")");
}

OpDefinition batch_norm(bool functional, bool reserve) {
  OpDefinition row =
      form(batch_norm_text(functional, reserve)).checked("affine_dtypes()");
  if (reserve) return row;
  row = std::move(row).decomposed(kBatchNorm);
  return functional
             ? row
             : std::move(row).refine("keep_what_running_statistics_see()");
}

}  // namespace

void words_of_norm(RuleWords& words) {
  for (const bool functional : {false, true}) {
    for (const bool reserve : {false, true}) {
      words.form(custom(batch_norm_text(functional, reserve),
                        [functional, reserve](const OpCall& call) {
                          return bind_batch_norm(call, functional, reserve);
                        }));
    }
  }
  words.form(custom("norm()", [](const OpCall& call) {
    return bind_norm_by_channel(call, false);
  }));
  words.form(custom("norm(instance)", [](const OpCall& call) {
    return bind_norm_by_channel(call, true);
  }));
  words.modifier("keep_what_running_statistics_see()",
                 keep_what_running_statistics_see);
  words.form(custom("batch_norm_backward()", bind_batch_norm_backward));
}

void define_norm(Family f) {
  const auto add = [&](std::initializer_list<std::string_view> names,
                       OpDefinition row) {
    // The running statistics must be positive, in definitions that have them.
    f.add(names, std::move(row).normalises().positive("running_var"));
  };
  add({"layer_norm"},
      normalized(0).checked("affine_dtypes()").decomposed(kLayerNorm));
  add({"native_layer_norm"},
      normalized(2).checked("affine_dtypes()").decomposed(kLayerNorm));
  add({"rms_norm"}, normalized(0).decomposed(kRmsNorm));
  add({"_fused_rms_norm"}, normalized(1).decomposed(kRmsNorm));
  add({"native_layer_norm_backward"},
      in_order(masked_gradients({"input", "weight", "bias"})
                   .decomposed(rows_backward(true))));
  add({"_fused_rms_norm_backward"},
      masked_gradients({"input", "weight"}).decomposed(rows_backward(false)));
  add({"native_batch_norm", "_native_batch_norm_legit",
       "_native_batch_norm_legit_no_training"},
      batch_norm(false, false));
  add({"_native_batch_norm_legit_functional"}, batch_norm(true, false));
  add({"_batch_norm_with_update"}, batch_norm(false, true));
  add({"_batch_norm_with_update_functional"}, batch_norm(true, true));
  add({"native_batch_norm_backward", "batch_norm_backward"},
      form("batch_norm_backward()").decomposed(kBatchNormBackward));
  add({"batch_norm"}, normalised_by_channel("norm()", "1").like({"input"}));
  add({"instance_norm"},
      contiguous(normalised_by_channel("norm(instance)", "[0, 1]")));
}

}  // namespace shardprop
