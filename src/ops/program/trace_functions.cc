// The functions of programs that are not operators: sizes, dims and dtypes.

#include "base/quantities.h"
#include "ops/program/program_functions.h"
#include "ops/program/trace_dims.h"
#include "ops/program/tracer.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace shardprop {
namespace {

void check_count(const CallExpression& call, bool asks_results) {
  const ProgramFunction* function = program_function(call.function);
  if (function == nullptr) return;
  const std::size_t count = call.positional.size();
  const std::size_t least =
      asks_results ? function->least_of_results : function->least;
  if (count < least || count > function->most) {
    call_error(call.function + "() takes " + counted(function->most, "value") +
               ", not " + std::to_string(count));
  }
  if (!call.named.empty() && call.function != "itself") {
    call_error(call.function + "() has no argument `" + call.named[0].first +
               '`');
  }
}

}  // namespace

TraceValue Tracer::called(const CallExpression& call) {
  const auto* first =
      call.positional.empty()
          ? nullptr
          : std::get_if<NameExpression>(&call.positional[0]->node);
  const bool asks_results = first != nullptr && first->name == "out";
  check_count(call, asks_results);
  const ProgramFunction* function = program_function(call.function);
  if (function != nullptr && function->is_of_rank && !out_->per_rank) {
    call_error(call.function +
               "() depends on the rank: a program on full tensors calls size() "
               "and places(), or is a per_rank program");
  }
  if (call.function == "default") return or_default(call);
  Values values;
  for (std::size_t i = asks_results ? 1 : 0; i < call.positional.size(); ++i) {
    values.push_back(value_of(*call.positional[i]));
  }
  if (asks_results) return of_results(call.function, values);
  for (const auto part : {&Tracer::size_function, &Tracer::dims_function,
                          &Tracer::list_function, &Tracer::step_function}) {
    if (auto known = (this->*part)(call.function, values)) {
      return *std::move(known);
    }
  }
  Named named;
  for (const auto& [name, expression] : call.named) {
    named.emplace_back(name, value_of(*expression));
  }
  if (call.function == "itself") return itself(std::move(named));
  return operation(call.function, values, named);
}

// itself(reduction=2) calls the operator of the program. Arguments that are not
// given have their current values. Arguments that differ between ranks have
// their local values.
TraceValue Tracer::itself(Named given) {
  for (const ArgumentSchema& declared : op_.function->arguments()) {
    const bool is_given = std::any_of(
        given.begin(), given.end(),
        [&](const auto& named) { return named.first == declared.name; });
    if (!is_given) given.emplace_back(declared.name, names_.at(declared.name));
  }
  Refusal refused;
  auto done = apply(op_.function, {}, given, refused);
  if (!done) call_error(refused.message);
  if (space_ == nullptr) return *done;
  for (const LocalArgument& own : space_->local_arguments) {
    for (auto& [name, value] : out_->steps.back().op.args) {
      if (name != own.name) continue;
      if (own.is_list) value = own.values;
      if (!own.is_list) value = own.values.front();
    }
  }
  return *done;
}

// default(step, 1) is the argument, or the second value if the argument is None
// or not declared.
TraceValue Tracer::or_default(const CallExpression& call) {
  const auto* name = std::get_if<NameExpression>(&call.positional[0]->node);
  if (name != nullptr && is_given(name->name)) return names_.at(name->name);
  return value_of(*call.positional[1]);
}

// The functions of the results: dtype(out), dtype(out, 1), numel(out),
// local_size(out, d), offset(out, d), places(out, d). Sizes and dims are those
// of the first result, as for an input.
TraceValue Tracer::of_results(const std::string& function,
                              const Values& values) {
  const std::int64_t first = values.empty() ? 0 : integer_of(values[0]);
  if (function == "dtype") {
    require(first >= 0, "a result has no negative number");
    require(!op_.outputs.empty(), "the operator has no result");
    // A result that is not produced has the dtype of the first.
    const std::size_t o = output_of(index(first)).value_or(0);
    return Argument(op_.outputs[o].dtype());
  }
  require(!op_.outputs.empty(), "the operator has no result");
  if (function == "numel") return Argument(op_.outputs[0].numel());
  if (function == "local_size" || function == "offset") {
    const int dim = wrap_dim(first, op_.outputs[0].rank());
    return function == "offset" ? RankScalar::output_offset(0, dim)
                                : RankScalar::output_size(0, dim);
  }
  const TensorValue whole{{-1, 0}, op_.outputs[0]};
  if (function == "places") {
    const int dim = wrap_dim(first, whole.meta.rank());
    return places(dim_size(whole.meta, dim), RankScalar::output_size(0, dim),
                  RankScalar::output_offset(0, dim));
  }
  Values of_whole = values;
  of_whole.insert(of_whole.begin(), whole);
  auto known = size_function(function, of_whole);
  require(known.has_value(), "a program asks too much of its results");
  return *std::move(known);
}

namespace {

// Returns a number of the rank, or an integer, divided by another.
TraceValue quotient(const TraceValue& x, std::int64_t divisor, bool rounds_up) {
  require(divisor >= 1, "a size is divided by less than 1");
  RankScalar out;
  if (const auto* scalar = std::get_if<RankScalar>(&x)) {
    require(scalar->divisor == 1 && scalar->scale == 1 && scalar->constant == 0,
            "only a size or an offset is divided");
    out = *scalar;
  }
  out.divisor = divisor;
  out.rounds_up = rounds_up;
  if (std::holds_alternative<RankScalar>(x)) return out;
  const std::int64_t number = integer_of(x);
  require(number >= 0, "quotient() divides a number that is less than 0");
  return Argument(out.of(number));
}

}  // namespace

std::optional<TraceValue> Tracer::size_function(const std::string& name,
                                                const Values& v) {
  if (name == "dtype") return Argument(tensor_of(v.at(0)).meta.dtype());
  if (name == "numel") return Argument(tensor_of(v.at(0)).meta.numel());
  if (name == "rank") {
    return Argument(std::int64_t{tensor_of(v.at(0)).meta.rank()});
  }
  if (name == "cut_dim") return cut_dim(tensor_of(v.at(0)));
  if (name == "by_program") {
    const TensorValue& x = tensor_of(v.at(0));
    return Argument(runs_program(x, wrapped(x, v.at(1))));
  }
  if (name == "wrap") {
    return Argument(std::int64_t{wrapped(tensor_of(v.at(0)), v.at(1))});
  }
  if (name == "size") {
    const TensorValue& x = tensor_of(v.at(0));
    return Argument(dim_size(x.meta, wrapped(x, v.at(1))));
  }
  if (name == "local_size" || name == "offset") {
    return of_the_rank(name, tensor_of(v.at(0)), v.at(1));
  }
  if (name == "count" || name == "count_along") {
    const TensorValue& x = tensor_of(v.at(0));
    std::int64_t count = 1;
    for (const std::int64_t dim : integers_of(v.at(1))) {
      count =
          multiply_sizes(count, dim_size(x.meta, wrap_dim(dim, x.meta.rank())));
    }
    if (name == "count_along") return Argument(count);
    return Argument(static_cast<double>(count));
  }
  if (name == "quotient" || name == "quotient_up") {
    return quotient(v.at(0), integer_of(v.at(1)), name == "quotient_up");
  }
  if (name == "larger") {
    const auto a = number_of(v.at(0));
    const auto b = number_of(v.at(1));
    require(a && b, "larger() compares numbers");
    return Argument(std::max(*a, *b));
  }
  if (name == "place_of" || name == "slice_start") {
    // A negative index counts from the end; a slice begins within the dim.
    const TensorValue& x = tensor_of(v.at(0));
    const std::int64_t size = dim_size(x.meta, wrapped(x, v.at(1)));
    std::int64_t at = is_none(v.at(2)) ? 0 : integer_of(v.at(2));
    if (at < 0) at += size;
    const std::int64_t last = name == "place_of" ? size - 1 : size;
    return Argument(
        std::clamp<std::int64_t>(at, 0, std::max<std::int64_t>(last, 0)));
  }
  if (name == "row_size") {
    // A row is one index of the first dim.
    const TensorMeta& x = tensor_of(v.at(0)).meta;
    return Argument(x.numel() / std::max<std::int64_t>(dim_size(x, 0), 1));
  }
  if (name == "class_dim") {
    // The class dim is 1 for a batch and 0 for a single sample.
    return Argument(std::int64_t{tensor_of(v.at(0)).meta.rank() == 1 ? 0 : 1});
  }
  if (name == "is_none") return Argument(is_none(v.at(0)));
  if (name == "is_floating") {
    return Argument(is_floating(tensor_of(v.at(0)).meta.dtype()));
  }
  if (name == "is_integral") {
    const auto* x = std::get_if<TensorValue>(&v.at(0));
    const auto* number = std::get_if<Argument>(&v.at(0));
    return Argument(x != nullptr
                        ? is_integral(x->meta.dtype())
                        : number != nullptr &&
                              std::holds_alternative<std::int64_t>(*number));
  }
  if (name == "epsilon") {
    if (!is_none(v.at(0))) return v.at(0);
    return Argument(tensor_of(v.at(1)).meta.dtype() == DType::kF64 ? 0x1p-52
                                                                   : 0x1p-23);
  }
  return std::nullopt;
}

std::optional<TraceValue> Tracer::dims_function(const std::string& name,
                                                const Values& v) {
  const bool known = name == "last_dims" || name == "all_dims_but" ||
                     name == "ones_among" || name == "reduced_dims";
  if (!known) return std::nullopt;
  const TensorMeta& x = tensor_of(v.at(0)).meta;
  const int rank = x.rank();
  const auto given =
      is_none(v.at(1)) ? std::vector<std::int64_t>{} : integers_of(v.at(1));
  const auto names = [&](int dim) {
    return std::any_of(given.begin(), given.end(), [&](std::int64_t d) {
      return wrap_dim(d, rank) == dim;
    });
  };
  std::vector<std::int64_t> dims;
  for (int dim = 0; dim < rank; ++dim) {
    const bool takes = name == "last_dims"
                           ? dim >= rank - static_cast<int>(given.size())
                       : name == "all_dims_but" ? !names(dim)
                       : name == "ones_among"
                           ? (given.empty() || names(dim)) && x.size(dim) == 1
                           : given.empty() || names(dim);
    if (takes) dims.push_back(dim);
  }
  return Argument(std::move(dims));
}

}  // namespace shardprop
