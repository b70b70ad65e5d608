// This file defines operators that create tensors from scalars, or from the
// shape of another tensor.

#include "ops/argument_reads.h"
#include "ops/definitions/families.h"
#include "ops/definitions/words.h"
#include "ops/forms/space_builder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>

namespace shardprop {
namespace {

DType given_or_i64(const OpCall& call, std::size_t) {
  return call.dtype_or("dtype", DType::kI64);
}

DType given_or_self(const OpCall& call, std::size_t) {
  return call.dtype_or("dtype", call.first().dtype());
}

DType of_fill_value(const OpCall& call, std::size_t) {
  const Argument& value = look_at(call.op(), "fill_value", Look::kKind);
  DType own = DType::kF32;
  if (std::holds_alternative<bool>(value)) own = DType::kBool;
  if (std::holds_alternative<std::int64_t>(value)) own = DType::kI64;
  if (std::holds_alternative<std::complex<double>>(value)) own = DType::kC64;
  return call.dtype_or("dtype", own);
}

Dims strides_like(const OpCall& call, const Dims& shape, DType dtype) {
  if (call.memory_format() == "contiguous_format") {
    return make_meta(shape, dtype).strides();
  }
  return dense_like(call.first(), shape, dtype).strides();
}

Dims permuted_strides(const OpCall& call, const Dims& shape, DType) {
  const std::vector<std::int64_t> layout = call.integers("physical_layout");
  require(layout.size() == shape.size(), "the layout names every dim");
  Dims strides(shape.size(), -1);
  std::int64_t step = 1;
  for (std::size_t i = layout.size(); i-- > 0;) {
    const std::size_t dim =
        index(wrap_dim(layout[i], static_cast<int>(shape.size())));
    require(strides[dim] == -1, "a dim appears twice in the layout");
    strides[dim] = step;
    step = multiply_sizes(step, std::max<std::int64_t>(shape[dim], 1));
  }
  return strides;
}

std::int64_t steps(const OpCall& call) { return call.integer("steps"); }
std::int64_t count(const OpCall& call) { return call.integer("n"); }

double number(const OpCall& call, std::string_view arg, double fallback) {
  return call.has(arg) ? call.op().float_arg(arg).value_or(fallback) : fallback;
}

bool is_integer(const OpCall& call, std::string_view arg) {
  return !call.has(arg) || call.op().int_arg(arg).has_value();
}

bool all_integers(const OpCall& call) {
  return is_integer(call, "start") && is_integer(call, "end") &&
         is_integer(call, "step");
}

// The range must contain at least one number.
DType of_randint(const OpCall& call, std::size_t result) {
  const TensorMeta* limit =
      call.has("high") ? call.optional_tensor("high") : nullptr;
  require(limit == nullptr || limit->rank() == 0, "`high` is not a scalar");
  const std::int64_t low = call.integer_or("low", 0);
  require(!call.op().int_arg("high") || call.integer("high") > low,
          "`high` is not above `low`");
  return call.op().inputs.empty() ? given_or_i64(call, result)
                                  : given_or_self(call, result);
}

// Computes the length as ATen does: in integers if the result is i64, else in
// doubles.
std::int64_t arange_length(const OpCall& call) {
  constexpr double kMost = 9e15;  // integers that a double holds exactly
  double start = number(call, "start", 0);
  double end = number(call, "end", 0);
  double step = number(call, "step", 1);
  require(std::isfinite(start) && std::isfinite(end) && std::isfinite(step),
          "the range is not finite");
  const bool whole =
      call.dtype_or("dtype", all_integers(call) ? DType::kI64 : DType::kF32) ==
      DType::kI64;
  if (whole && all_integers(call)) {
    const std::int64_t first = call.integer_or("start", 0);
    const std::int64_t last = call.integer_or("end", 0);
    const std::int64_t by = call.integer_or("step", 1);
    require(by != 0, "the step is 0");
    std::int64_t reach = 0;
    require(!__builtin_sub_overflow(last, first, &reach) &&
                reach != std::numeric_limits<std::int64_t>::min() &&
                by != std::numeric_limits<std::int64_t>::min(),
            "the range is too long");
    require(reach == 0 || (reach > 0) == (by > 0),
            "the end lies on the other side of the start");
    return reach / by + (reach % by != 0 ? 1 : 0);
  }
  if (whole) {
    start = std::trunc(start);
    end = std::trunc(end);
    step = std::trunc(step);
  }
  require(step != 0, "the step is 0");
  require(end == start || (end > start) == (step > 0),
          "the end lies on the other side of the start");
  const double length = std::ceil((end - start) / step);
  require(length >= 0 && length < kMost, "the range is empty or endless");
  return static_cast<std::int64_t>(length);
}

DType of_arange(const OpCall& call, std::size_t) {
  return call.dtype_or("dtype", all_integers(call) ? DType::kI64 : DType::kF32);
}

// Computes start + step * i for the rank's elements. This is exact only for
// integers; other dtypes use part_of().
constexpr std::string_view kArange = R"(
exact = is_integral(out) * is_integral(default(start, 0)) * is_integral(end) * is_integral(default(step, 1)) == 1
i = arange(local_size(out, 0), dtype=dtype(out)) if exact
part = i * default(step, 1) + (offset(out, 0) * default(step, 1) + default(start, 0)) if exact
all = arange(default(start, 0), end, default(step, 1), dtype=dtype(out)) if not exact
part = index_select(all, 0, arange(local_size(out, 0)) + offset(out, 0)) if not exact
return part)";

// Returns the program for numbers whose rounding depends on how they are
// computed. Each rank computes all numbers as PyTorch does, and keeps its part.
std::string part_of(std::string_view whole, int dim = 0) {
  const std::string d = std::to_string(dim);
  return "own = arange(local_size(out, " + d + ")) + offset(out, " + d +
         ")\nreturn index_select(" + std::string(whole) + ", " + d + ", own)";
}

OpDefinition vector_by_parts(std::string_view word, std::string_view whole) {
  return made_of_numbers(word, part_of(whole)).typed("given(dtype,f32)");
}

std::int64_t window_length(const OpCall& call) {
  return call.integer("window_length");
}

// The range includes both ends, as in PyTorch.
std::int64_t range_length(const OpCall& call) {
  constexpr double kMost = 9e15;  // integers that a double holds exactly
  const double start = number(call, "start", 0);
  const double end = number(call, "end", 0);
  const double step = number(call, "step", 1);
  require(std::isfinite(start) && std::isfinite(end) && step != 0 &&
              std::isfinite(step),
          "the range is not finite");
  const double length = std::floor((end - start) / step) + 1;
  require(length >= 1 && length < kMost, "the range is empty or endless");
  return static_cast<std::int64_t>(length);
}

std::int64_t frequencies(const OpCall& call) {
  const std::int64_t n = call.integer("n");
  require(n >= 0, "a size is negative");
  return n;
}

std::int64_t half_frequencies(const OpCall& call) {
  return frequencies(call) / 2 + 1;
}

// Returns how many elements are on and below a diagonal, or on and above it.
std::int64_t triangle_size(const OpCall& call, bool is_lower) {
  const std::int64_t rows = call.integer("row");
  const std::int64_t columns = call.integer("col");
  const std::int64_t offset = call.integer_or("offset", 0);
  constexpr std::int64_t kFar = std::int64_t{1} << 30;
  require(rows >= 0 && columns >= 0 && rows < kFar && columns < kFar &&
              offset > -kFar && offset < kFar,
          "a size is out of range");
  // Row i has min(columns, max(0, i + 1 + offset)) elements up to the diagonal.
  const auto below = [&](std::int64_t diagonal) {
    const std::int64_t empty = std::clamp<std::int64_t>(-diagonal - 1, 0, rows);
    const std::int64_t full_from =
        std::clamp<std::int64_t>(columns - diagonal - 1, empty, rows);
    const std::int64_t slanted = full_from - empty;
    const std::int64_t first = empty + 1 + diagonal;
    return slanted * first + slanted * (slanted - 1) / 2 +
           (rows - full_from) * columns;
  };
  return is_lower ? below(offset) : rows * columns - below(offset - 1);
}

// A position is a row and a column, so this dim is not sharded.
void keep_places(const OpCall&, IndexSpace& space) {
  for (const FactorId id : dim_of(space.outputs, 0, 0)) {
    space.factor(id).program = ProgramUse::kNever;
    space.factor(id).kind = FactorKind::kBlocked;
    space.factor(id).reason = "a row and a column are one place";
  }
}

OpDefinition triangle(std::string_view word, std::string_view name) {
  return made_of_numbers(
             word,
             part_of(std::string(name) + "(row, col, offset, dtype=dtype(out))",
                     1))
      .refine("keep_places()")
      .typed("given(dtype,i64)");
}

constexpr std::string_view kEye = R"(
rows = arange(local_size(out, 0)) + offset(out, 0)
columns = arange(local_size(out, 1)) + offset(out, 1)
return cast(eq(unsqueeze(rows, 1), columns), dtype(out)))";

Dims eye_shape(const OpCall& call) {
  const std::int64_t n = call.integer("n");
  return Dims{n, call.has("m") ? call.integer("m") : n};
}

void define_windows(Family& f) {
  const auto add = [&](std::string_view name, std::string_view arguments) {
    f.add(name,
          vector_by_parts("vector(window_length)",
                          std::string(name) +
                              "(window_length, "
                              "periodic=default(periodic, True), " +
                              std::string(arguments) + "dtype=dtype(out))"));
  };
  add("hann_window", "");
  add("blackman_window", "");
  add("bartlett_window", "");
  add("hamming_window",
      "alpha=default(alpha, 0.54), beta=default(beta, 0.46), ");
  add("kaiser_window", "beta=default(beta, 12.0), ");
}

// Adds the factories of tensors with a given shape.
void define_shapes(Family& f) {
  f.add({"empty", "zeros", "ones", "_efficientzerotensor"},
        factory("size").typed("given(dtype,f32)"));
  f.add("full", factory("size").typed("fill_value()"));
  f.add("empty_permuted",
        factory("size").typed("given(dtype,f32)").strided("permuted"));
  f.add("empty_strided",
        factory("size").typed("given(dtype,f32)").strided("stated"));
  f.add({"new_empty", "new_zeros", "new_ones", "new_full"},
        factory("size").typed("given(dtype,first)").ignores_values());
  f.add("scalar_tensor", factory("").typed("given(dtype,f32)"),
        "replicated: it has one element");
  f.add({"empty_like", "zeros_like", "ones_like", "full_like"},
        same_shape()
            .typed("given(dtype,first)")
            .strided("formatted")
            .ignores_values());
}

void define_draws(Family& f) {
  constexpr std::pair<std::string_view, Distribution> kOfF32[] = {
      {"rand", Distribution::kUnit}, {"randn", Distribution::kNormal}};
  for (const auto& [name, how] : kOfF32) {
    f.add(name, factory("size").typed("given(dtype,f32)").random().draws(how));
    f.add(std::string(name) + "_like", same_shape()
                                           .typed("given(dtype,first)")
                                           .strided("formatted")
                                           .random()
                                           .ignores_values()
                                           .draws(how));
  }
  f.add("randint", factory("size")
                       .typed("randint()")
                       .random()
                       .draws(Distribution::kIntegers));
  f.add("randint_like", same_shape()
                            .typed("randint()")
                            .strided("formatted")
                            .random()
                            .ignores_values({"self"})
                            .draws(Distribution::kIntegers));
  f.add("randperm",
        form("vector(n)")
            .typed("given(dtype,i64)")
            .random()
            .draws(Distribution::kPermutation)
            .refine("drawn_together()"),
        "replicated: its elements are drawn together");
}

void define_ranges(Family& f) {
  f.add("arange", made_of_numbers("arange()", kArange).typed("arange()"));
  f.add("linspace",
        vector_by_parts("vector(steps)",
                        "linspace(start, end, steps, dtype=dtype(out))"));
  f.add("logspace",
        vector_by_parts("vector(steps)",
                        "logspace(start, end, steps, base, dtype=dtype(out))"));
  f.add("range",
        vector_by_parts(
            "range()",
            "range(start, end, step=default(step, 1), dtype=dtype(out))"));
  f.add("fft_fftfreq", vector_by_parts("frequencies(n)",
                                       "fft_fftfreq(n, d, dtype=dtype(out))"));
  f.add("fft_rfftfreq",
        vector_by_parts("half_frequencies(n)",
                        "fft_rfftfreq(n, d, dtype=dtype(out))"));
  f.add("tril_indices", triangle("triangle(lower)", "tril_indices"));
  f.add("triu_indices", triangle("triangle(upper)", "triu_indices"));
  f.add("eye", made_of_numbers("eye()", kEye).typed("given(dtype,f32)"));
}

// Each rank checks its own part.
void define_assertions(Family& f) {
  f.add("_linalg_check_errors", pointwise(0));
  f.add("_assert_async", pointwise(0), "replicated: it has one element");
  // These operators check dtype and device, which a sharding does not change.
  f.add("_assert_tensor_metadata", form("any_layout()"), "accepts any layout");
}

}  // namespace

void words_of_factory(RuleWords& words) {
  words.strides("stated", [](const OpCall& call, const Dims& shape, DType) {
    Dims strides = dims_of(call.integers("stride"));
    require(strides.size() == shape.size(), "one stride per dim");
    return strides;
  });
  words.form(made_form("arange()", [](const OpCall& call) {
    return Dims{arange_length(call)};
  }));
  words.form(made_form("triangle(lower)", [](const OpCall& call) {
    return Dims{2, triangle_size(call, true)};
  }));
  words.form(made_form("triangle(upper)", [](const OpCall& call) {
    return Dims{2, triangle_size(call, false)};
  }));
  words.form(made_form("eye()", eye_shape));
  words.form(vector_form("vector(steps)", steps));
  words.form(vector_form("vector(n)", count));
  words.form(vector_form("vector(window_length)", window_length));
  words.form(vector_form("frequencies(n)", frequencies));
  words.form(vector_form("half_frequencies(n)", half_frequencies));
  words.form(vector_form("range()", range_length));
  words.modifier("keep_places()", keep_places);
  words.modifier("drawn_together()", [](const OpCall&, IndexSpace& space) {
    for (Factor& factor : space.factors) {
      factor.kind = FactorKind::kBlocked;
      factor.reason = "its elements are drawn together";
    }
  });
  words.form(custom("any_layout()", [](const OpCall& call) {
    SpaceBuilder b;
    const bool asks_size = call.op().ints_arg("size").has_value() ||
                           call.op().ints_arg("stride").has_value();
    for (const TensorMeta& input : call.op().inputs) {
      b.input(asks_size ? SpaceBuilder::whole(input.rank())
                        : b.per_dim(input.shape()));
    }
    return b.bound();
  }));
  words.dtype("fill_value", of_fill_value);
  words.strides("permuted", permuted_strides);
  words.strides("formatted", strides_like);
  words.dtype("randint", of_randint);
  words.dtype("arange", of_arange);
}

void define_factory(Family f) {
  define_shapes(f);
  define_draws(f);
  define_ranges(f);
  define_windows(f);
  define_assertions(f);
}

}  // namespace shardprop
