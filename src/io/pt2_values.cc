#include "io/pt2_values.h"

#include "base/index.h"
#include "base/try.h"
#include "io/pt2_region.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace shardprop::pt2 {

std::optional<DType> dtype_of(std::int64_t number) {
  switch (number) {
    case 1:
      return DType::kU8;
    case 2:
      return DType::kI8;
    case 3:
      return DType::kI16;
    case 4:
      return DType::kI32;
    case 5:
      return DType::kI64;
    case 6:
      return DType::kF16;
    case 7:
      return DType::kF32;
    case 8:
      return DType::kF64;
    case 9:
      return DType::kC32;
    case 10:
      return DType::kC64;
    case 11:
      return DType::kC128;
    case 12:
      return DType::kBool;
    case 13:
      return DType::kBF16;
    case 28:
      return DType::kU16;
    case 29:
      return DType::kF8E4M3FN;
    case 30:
      return DType::kF8E5M2;
    case 31:
      return DType::kF8E4M3FNUZ;
    case 32:
      return DType::kF8E5M2FNUZ;
    case 33:
      return DType::kF8E8M0FNU;
    case 34:
      return DType::kU32;
    case 35:
      return DType::kU64;
    default:
      return std::nullopt;
  }
}

std::string name_in_quotes(std::string_view name) {
  constexpr std::size_t kMostShown = 80;
  return '`' + std::string(name.substr(0, kMostShown)) + '`';
}

namespace {

std::string tensor_path(std::string_view name) {
  return "$.graph_module.graph.tensor_values." +
         std::string(name.substr(0, 80));
}

std::string scalar_path(std::string_view name) {
  return "$.graph_module.graph.sym_int_values." +
         std::string(name.substr(0, 80));
}

}  // namespace

Result<SymExpr> Values::parse(std::string_view expression) const {
  const auto known = parsed_.find(expression);
  if (known != parsed_.end()) return known->second;
  // A tree takes tens of times the memory of its text.
  constexpr std::size_t kMostText = 1 << 20;
  parsed_bytes_ += expression.size();
  if (parsed_bytes_ > kMostText) {
    return fail(ErrorCode::kListTooLong,
                "the symbolic sizes of the program are longer than 1 MiB");
  }
  SP_ASSIGN(SymExpr parsed, SymExpr::parse(expression));
  parsed_.emplace(expression, parsed);
  return parsed;
}

Result<void> Values::learn_symbols(const SymValue& value) {
  if (!value.is_symbolic()) return {};
  SP_ASSIGN(const SymExpr expression, parse(value.expression));
  const std::vector<std::string> names = expression.symbols();
  for (const std::string& name : names) {
    Symbol& symbol = symbols_.try_emplace(name).first->second;
    symbol.name = name;
    if (!value.value || symbol.hint) continue;
    if (expression == SymExpr::symbol(name)) {
      symbol.hint = value.value;
      hints_.emplace(name, *value.value);
    } else {
      computed_hints_.emplace(value.expression, *value.value);
    }
  }
  return {};
}

namespace {

// Returns the least x for which `value` is `wanted`. `value` must be
// nondecreasing (`sign` 1) or nonincreasing (-1). A value that cannot be
// computed counts as too large.
std::optional<std::int64_t> place_of(
    const std::function<std::optional<std::int64_t>(std::int64_t)>& value,
    std::int64_t wanted, std::int64_t least, std::int64_t most, int sign) {
  while (least < most) {
    const std::int64_t middle = least + (most - least) / 2;
    const auto found = value(middle);
    const bool is_less =
        found && (sign > 0 ? *found < wanted : *found > wanted);
    (is_less ? least : most) = is_less ? middle + 1 : middle;
  }
  if (value(least) != wanted) return std::nullopt;
  return least;
}

}  // namespace

// Derives the hints of symbols that appear only in expressions: if 2*s39 was
// 16, s39 was 8. An expression is monotonic in each of its symbols.
void Values::solve_symbols() {
  // A derived hint may determine another; programs rarely need more rounds.
  constexpr int kMostRounds = 4;
  bool is_new = true;
  for (int round = 0; round < kMostRounds && is_new; ++round) {
    is_new = false;
    for (const auto& [text, wanted] : computed_hints_) {
      const SymExpr& expression = parsed_.at(text);
      std::string unknown;
      int count = 0;
      for (const std::string& name : expression.symbols()) {
        if (symbols_.at(name).hint) continue;
        unknown = name;
        ++count;
      }
      if (count != 1) continue;
      Symbol& symbol = symbols_.at(unknown);
      SymExpr::Bindings known = hints_;
      const auto value = [&](std::int64_t size) {
        known[unknown] = size;
        return expression.evaluate(known);
      };
      const std::int64_t least =
          std::max<std::int64_t>(symbol.min.value_or(0), 0);
      const std::int64_t most =
          std::min(symbol.max.value_or(kMostBounded), kMostBounded);
      for (const int sign : {1, -1}) {
        if (!symbol.hint) {
          symbol.hint = place_of(value, wanted, least, most, sign);
        }
      }
      if (!symbol.hint) continue;
      hints_.emplace(unknown, *symbol.hint);
      is_new = true;
    }
  }
}

Result<void> Values::add_names(const GraphBody& body) {
  for (const Tensor& tensor : body.tensors) {
    if (!tensors_.emplace(tensor.name, &tensor).second) {
      return fail(Error{ErrorCode::kRepeatedKey,
                        "two tensors are named " + name_in_quotes(tensor.name),
                        tensor_path(tensor.name),
                        {},
                        {}});
    }
  }
  for (const NamedSym& scalar : body.scalars) {
    if (!scalars_.emplace(scalar.name, &scalar).second) {
      return fail(Error{ErrorCode::kRepeatedKey,
                        "two scalars are named " + name_in_quotes(scalar.name),
                        scalar_path(scalar.name),
                        {},
                        {}});
    }
  }
  return learn_body(body);
}

Result<void> Values::learn_body(const GraphBody& body) {
  for (const Tensor& tensor : body.tensors) {
    for (const auto* sizes : {&tensor.sizes, &tensor.strides}) {
      for (const SymValue& size : *sizes) {
        if (auto learned = learn_symbols(size); !learned) {
          return fail(std::move(learned).error().at(tensor_path(tensor.name)));
        }
      }
    }
  }
  for (const NamedSym& scalar : body.scalars) {
    if (auto learned = learn_symbols(scalar.value); !learned) {
      return fail(std::move(learned).error().at(scalar_path(scalar.name)));
    }
  }
  return {};
}

// The regions are inlined, so their sizes become sizes of the program.
Result<void> Values::learn_regions(const GraphBody& body) {
  for (const Node& node : body.nodes) {
    const auto region = region_of(node);
    if (!region) continue;
    SP_CHECK(learn_body(*region->body));
    SP_CHECK(learn_regions(*region->body));
  }
  return {};
}

void Values::add_ranges(const Program& program) {
  for (const Range& range : program.ranges) {
    // Names are in srepr in some releases and plain in others. The others are
    // expressions: 2*s39.
    const auto expression = SymExpr::parse(range.symbol);
    const std::string name = expression ? to_string(*expression) : "";
    if (!expression || *expression != SymExpr::symbol(name)) {
      computed_.push_back(range);
      continue;
    }
    Symbol& symbol = symbols_.try_emplace(name).first->second;
    symbol.name = name;
    symbol.min = range.min;
    symbol.max = range.max;
  }
}

Result<Values> Values::create(const Program& program, const GivenSizes& given) {
  Values values;
  SP_CHECK(values.add_names(program));
  SP_CHECK(values.learn_regions(program));
  values.add_ranges(program);
  values.solve_symbols();
  SP_CHECK(values.set_sizes(program, given.sizes));
  SP_CHECK(values.bound_sizes(program, given.bounds));
  return values;
}

Result<Values> Values::within(const GraphBody& region, const Values& outer) {
  Values values;
  values.symbols_ = outer.symbols_;
  values.hints_ = outer.hints_;
  values.is_resized_ = outer.is_resized_;
  SP_CHECK(values.add_names(region));
  return values;
}

Result<Values::Scalar> Values::resolve(const SymValue& value) const {
  if (!value.is_symbolic()) return Scalar{value.value.value_or(0), {}};
  SP_ASSIGN(const SymExpr expression, parse(value.expression));
  const auto number =
      value.value && !is_resized_ ? value.value : expression.evaluate(hints_);
  if (!number) {
    return fail(ErrorCode::kNoSizeHint,
                "nothing says how large " +
                    name_in_quotes(to_string(expression)) +
                    " was when the program was exported",
                "export it with example inputs, or with fixed sizes");
  }
  return Scalar{*number, expression};
}

Result<Values::Scalar> Values::scalar(std::string_view name) const {
  const auto found = scalars_.find(name);
  if (found == scalars_.end()) {
    return fail(ErrorCode::kDanglingName,
                name_in_quotes(name) + " stands for no scalar of the graph");
  }
  return resolve(found->second->value);
}

Result<Values::Scalar> Values::scalar(const SymName& argument) const {
  if (!argument.is_name()) return Scalar{argument.value, {}};
  return scalar(argument.name);
}

Result<ResolvedTensor> Values::tensor(std::string_view name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) {
    return fail(
        ErrorCode::kDanglingName,
        name_in_quotes(name) + " has no entry among the graph's tensors");
  }
  const Tensor& tensor = *found->second;
  const auto at_place = [&](Error error) {
    return fail(std::move(error).at(tensor_path(name)));
  };
  const auto dtype = dtype_of(tensor.dtype);
  if (!dtype) {
    return at_place(
        Error{ErrorCode::kUnknownVariant,
              "the dtype " + std::to_string(tensor.dtype) + " is not known",
              {},
              {},
              {}});
  }
  ResolvedTensor resolved;
  Dims shape;
  Dims strides;
  for (const SymValue& size : tensor.sizes) {
    auto scalar = resolve(size);
    if (!scalar) return at_place(std::move(scalar).error());
    if (scalar->expression) {
      resolved.symbolic.push_back(
          {static_cast<int>(shape.size()), *std::move(scalar->expression)});
    }
    shape.push_back(scalar->value);
  }
  for (const SymValue& stride : tensor.strides) {
    auto scalar = resolve(stride);
    if (!scalar) return at_place(std::move(scalar).error());
    strides.push_back(scalar->value);
  }
  auto meta = TensorMeta::create(std::move(shape), std::move(strides), *dtype);
  if (!meta) return at_place(std::move(meta).error());
  resolved.meta = *std::move(meta);
  return resolved;
}

}  // namespace shardprop::pt2
