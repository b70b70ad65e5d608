// The functions of programs that are not operators: sizes, dims, dtypes, and
// the collectives of per-rank programs.

#include "base/quantities.h"
#include "ops/trace/choice.h"
#include "ops/trace/program_functions.h"
#include "ops/trace/tracer.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace shardprop {
namespace {

// Unit: dims. The limit bounds the work of a call with a number from a text.
constexpr std::int64_t kMostDimsOfProgram = 64;

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

// Returns the size of a dim; a number counts as one element.
std::int64_t dim_size(const TensorMeta& meta, int dim) {
  return meta.rank() == 0 ? 1 : meta.size(dim);
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
  for (const auto function : {&Tracer::size_function, &Tracer::dims_function,
                              &Tracer::list_function, &Tracer::step_function}) {
    if (auto known = (this->*function)(call.function, values)) {
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

int wrapped(const TensorValue& x, const TraceValue& dim) {
  return wrap_dim(integer_of(dim), x.meta.rank());
}

// Returns the offset or the size of the rank's part of an input.
RankScalar of_the_rank(const std::string& name, const TensorValue& x,
                       const TraceValue& dim) {
  require(x.ref.step < 0, "only inputs have local sizes");
  const int d = wrapped(x, dim);
  return name == "offset" ? RankScalar::input_offset(x.ref.index, d)
                          : RankScalar::input_size(x.ref.index, d);
}

}  // namespace

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

namespace {

const TensorValues& list_of(const TraceValue& value) {
  const auto* list = std::get_if<TensorValues>(&value);
  require(list != nullptr, "a program needs a list of tensors");
  return *list;
}

std::size_t first_given(const TensorValues& list) {
  const auto found = std::find_if(list.begin(), list.end(),
                                  [](const auto& one) { return bool{one}; });
  require(found != list.end(), "a program needs a tensor in a list");
  return index(found - list.begin());
}

// Returns the number of dims of x[i, :, j] after those of the indices. The
// indexed dims have the position of the first index if the indices are
// adjacent. Otherwise they come first.
std::int64_t dims_behind(const TensorValue& x, const TensorValues& list) {
  const std::size_t first = first_given(list);
  std::size_t last = first;
  std::int64_t count = 0;
  for (std::size_t i = first; i < list.size(); ++i) {
    if (!list[i]) continue;
    last = i;
    ++count;
  }
  const auto run = static_cast<std::int64_t>(last - first + 1);
  return x.meta.rank() -
         (run == count ? static_cast<std::int64_t>(last + 1) : count);
}

std::int64_t element(const std::vector<std::int64_t>& list, std::int64_t i) {
  require(i >= 0, "a list has no negative index");
  const std::size_t at = list.size() == 1 ? 0 : index(i);
  require(at < list.size(), "a list has too few numbers");
  return list[at];
}

}  // namespace

std::optional<TraceValue> Tracer::list_function(const std::string& name,
                                                const Values& v) {
  if (name == "first_given") {
    return Argument(static_cast<std::int64_t>(first_given(list_of(v.at(0)))));
  }
  if (name == "dims_behind") {
    return Argument(dims_behind(tensor_of(v.at(0)), list_of(v.at(1))));
  }
  if (name == "element") {
    // The list has one number for each dim, or one for all.
    return Argument(element(integers_of(v.at(0)), integer_of(v.at(1))));
  }
  if (name == "unpadded") {
    // unpadded(padding, n, i) is the padding of n dims, with 0 for the i-th.
    const auto given = integers_of(v.at(0));
    require(integer_of(v.at(1)) <= kMostDimsOfProgram,
            "unpadded() has too many dims");
    std::vector<std::int64_t> padding;
    for (std::int64_t i = 0; i < integer_of(v.at(1)); ++i) {
      padding.push_back(i == integer_of(v.at(2)) ? 0 : element(given, i));
    }
    return Argument(std::move(padding));
  }
  if (name == "local_indices") return local_indices(v.at(0), v.at(1));
  if (name == "outside") return outside(v.at(0), list_of(v.at(1)));
  if (name == "indices_or") {
    // indices_or(list, mask, other): if the mask is true, the first index is
    // `other` and the other indices are 0.
    TensorValues out = list_of(v.at(0));
    TraceValue fill = v.at(2);
    for (auto& one : out) {
      if (!one) continue;
      one = tensor_of(operation("masked_fill", {*one, v.at(1), fill}, {}));
      fill = Argument(std::int64_t{0});
    }
    return out;
  }
  return std::nullopt;
}

// local_indices(x, indices) are the indices of x[i, :, j], relative to the
// rank's part.
TraceValue Tracer::local_indices(const TraceValue& x,
                                 const TraceValue& indices) {
  TensorValues out = list_of(indices);
  require(std::cmp_less_equal(out.size(), tensor_of(x).meta.rank()),
          "there are more indices than dims");
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (!out[i]) continue;
    const Argument dim(static_cast<std::int64_t>(i));
    const Argument size(tensor_of(x).meta.size(static_cast<int>(i)));
    out[i] =
        tensor_of(combined("-", operation("remainder", {*out[i], size}, {}),
                           of_the_rank("offset", tensor_of(x), dim)));
  }
  return out;
}

// outside(x, local) is true if one of the indices is outside of the rank's
// part.
TraceValue Tracer::outside(const TraceValue& x, const TensorValues& local) {
  std::optional<TraceValue> out;
  for (std::size_t i = 0; i < local.size(); ++i) {
    if (!local[i]) continue;
    const Argument dim(static_cast<std::int64_t>(i));
    const TraceValue before =
        combined("<", *local[i], Argument(std::int64_t{0}));
    const TraceValue behind =
        combined(">=", *local[i], of_the_rank("local_size", tensor_of(x), dim));
    const TraceValue either = combined("|", before, behind);
    out = out ? combined("|", *out, either) : either;
  }
  require(out.has_value(), "there is no index");
  return *out;
}

std::optional<TraceValue> Tracer::step_function(const std::string& name,
                                                const Values& v) {
  if (name == "cast") return cast(v.at(0), v.at(1));
  if (name == "upcast") {
    // Casts to the dtype in which sums are computed.
    const DType dtype = tensor_of(v.at(0)).meta.dtype();
    const bool narrow = is_floating(dtype) && item_size(dtype) < 4;
    return narrow ? cast(v.at(0), Argument(DType::kF32)) : v.at(0);
  }
  if (name == "as_index") return cast(v.at(0), Argument(DType::kI64));
  if (name == "result") return result(v.at(0), integer_of(v.at(1)));
  if (name == "whole") {
    // The operator reduces a partial here, because a maximum rejects terms of a
    // sum.
    return operation("maximum", {v.at(0), v.at(0)}, {});
  }
  if (name == "places") {
    const TensorValue& x = tensor_of(v.at(0));
    return places(dim_size(x.meta, wrapped(x, v.at(1))),
                  of_the_rank("local_size", x, v.at(1)),
                  of_the_rank("offset", x, v.at(1)));
  }
  if (const auto condition = condition_named(name)) {
    return chosen(*condition, v);
  }
  if (name == "additive") {
    // A mask becomes a term that is added to scores: 0 if it is true, else
    // -inf.
    const bool is_mask = tensor_of(v.at(0)).meta.dtype() == DType::kBool;
    if (!is_mask) return v.at(0);
    return operation("log", {cast(v.at(0), Argument(DType::kF32))}, {});
  }
  if (name == "trailing") return trailing(v.at(0), integer_of(v.at(1)));
  if (name == "places_along") return places_along(v.at(0), v.at(1));
  if (name == "unkept") {
    // unkept(x, dims, keepdim) removes reduced dims, which are kept with size 1
    // until then.
    const bool keeps = number_of(v.at(2)).value_or(0) != 0;
    return keeps ? v.at(0)
                 : operation("aten.squeeze.dims", {v.at(0), v.at(1)}, {});
  }
  if (name == "all_gather" || name == "all_gather_unordered") {
    return collective(CollectiveKind::kAllGather, std::nullopt, v.at(0),
                      name == "all_gather");
  }
  const std::pair<std::string_view, ReduceOp> reductions[] = {
      {"all_reduce_sum", ReduceOp::kSum},
      {"all_reduce_max", ReduceOp::kMax},
      {"all_reduce_min", ReduceOp::kMin}};
  for (const auto& [function, op] : reductions) {
    if (name == function) {
      return collective(CollectiveKind::kAllReduce, op, v.at(0));
    }
  }
  return std::nullopt;
}

// cut_dim(x) is the dim of an input that the program shards.
TraceValue Tracer::cut_dim(const TensorValue& x) const {
  require(space_ != nullptr && x.ref.step < 0, "only inputs are cut");
  const auto& dims = space_->inputs[index(x.ref.index)].dims;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    for (const FactorId id : dims[d]) {
      if (space_->factor(id).program == ProgramUse::kWhenSharded) {
        return Argument(static_cast<std::int64_t>(d));
      }
    }
  }
  call_error("a program cuts no dim of an input");
}

// result(made, 2) is another result of the step that produced `made`, or None
// if the call does not produce it.
TraceValue Tracer::result(const TraceValue& made, std::int64_t slot) const {
  const LocalRef ref = tensor_of(made).ref;
  require(ref.step >= 0, "an argument has one value");
  const OpSchema& op = out_->steps[index(ref.step)].schema;
  require(slot >= 0 && std::cmp_less(slot, op.output_slots.size()),
          "a step has fewer results");
  const std::int32_t output = op.output_slots[index(slot)];
  if (output == OpSchema::kNotProduced) return Argument(NoneArg{});
  return TensorValue{{ref.step, output}, op.outputs[index(output)]};
}

TraceValue Tracer::cast(const TraceValue& value, const TraceValue& dtype) {
  const auto* argument = std::get_if<Argument>(&dtype);
  const auto* to = argument == nullptr ? nullptr : std::get_if<DType>(argument);
  require(to != nullptr, "cast() takes a dtype");
  if (tensor_of(value).meta.dtype() == *to) return value;
  return operation("_to_copy", {value}, {{"dtype", Argument(*to)}});
}

// if_cut(x, dim, there, elsewhere) is `there` if that dim of an input is
// sharded. choice.h has the other conditions.
TraceValue Tracer::chosen(Choice::If condition, const Values& v) {
  const TensorValue& x = tensor_of(v[0]);
  require(x.ref.step < 0 && x.meta.rank() > 0, "only dims of inputs are cut");
  const TensorValue& there = tensor_of(v[2]);
  return add_step(step_of({condition, x.ref.index, wrapped(x, v[1]), there.ref,
                           tensor_of(v[3]).ref}),
                  there.meta);
}

// by_program(x, dim) is true if the program of the call shards that dim of an
// input.
bool Tracer::runs_program(const TensorValue& x, int dim) const {
  require(space_ != nullptr && x.ref.step < 0 && x.meta.rank() > 0,
          "only dims of inputs are cut");
  const auto by_program = [&](FactorId id) {
    return space_->factor(id).program == ProgramUse::kWhenSharded;
  };
  const Operand& operand = space_->inputs[index(x.ref.index)];
  const auto joined = operand.joined_factor(dim);
  if (joined && by_program(*joined)) return true;
  const DimFactors& factors = operand.dims[index(dim)];
  return std::any_of(factors.begin(), factors.end(), by_program);
}

TraceValue Tracer::trailing(TraceValue value, std::int64_t count) {
  require(count <= kMostDimsOfProgram, "trailing() adds too many dims");
  for (std::int64_t i = 0; i < count; ++i) {
    value = operation("aten.unsqueeze.default",
                      {value, Argument(std::int64_t{-1})}, {});
  }
  return value;
}

// Returns the position of each element of the rank's part along these dims of
// the full input. The last dim varies fastest.
TraceValue Tracer::places_along(const TraceValue& value,
                                const TraceValue& dims) {
  const TensorMeta& x = tensor_of(value).meta;
  std::vector<std::int64_t> along = integers_of(dims);
  std::int64_t stride = 1;
  std::optional<TraceValue> places;
  for (auto dim = along.rbegin(); dim != along.rend(); ++dim) {
    const Values of_dim = {value, Argument(*dim)};
    TraceValue own =
        operation("arange", {*size_function("local_size", of_dim)}, {});
    own = combined("+", own, *size_function("offset", of_dim));
    if (stride != 1) own = combined("*", own, Argument(stride));
    own = trailing(own, x.rank() - 1 - *dim);
    places = places ? combined("+", own, *places) : own;
    stride = multiply_sizes(stride, x.size(wrap_dim(*dim, x.rank())));
  }
  require(places.has_value(), "places are counted along no dim");
  return *places;
}

// Returns the positions of the rank's part along a dim of that size, as a
// vector.
TraceValue Tracer::places(std::int64_t size, const RankScalar& local_size,
                          const RankScalar& offset) {
  const TraceValue held =
      operation("aten.arange.default", {Argument(size)}, {});
  out_->steps.back().op.args.front().second = local_size;
  return combined("+", held, offset);
}

// The collective runs over the mesh dims that shard the program's factors.
// Metas are those of one rank's value.
TraceValue Tracer::collective(CollectiveKind kind, std::optional<ReduceOp> op,
                              const TraceValue& value, bool in_order) {
  const TensorValue& x = tensor_of(value);
  DecompositionStep step;
  step.collective = RankCollective{kind, in_order, x.ref, op, x.meta, {}};
  return add_step(std::move(step), x.meta);
}

}  // namespace shardprop
