#include "io/pt2_values.h"

#include "base/index.h"
#include "base/try.h"
#include "io/pt2_conditions.h"
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

namespace {

std::string name_in_quotes(std::string_view name) {
  constexpr std::size_t kMostShown = 80;
  return '`' + std::string(name.substr(0, kMostShown)) + '`';
}

std::string tensor_path(std::string_view name) {
  return "$.graph_module.graph.tensor_values." +
         std::string(name.substr(0, 80));
}

std::string scalar_path(std::string_view name) {
  return "$.graph_module.graph.sym_int_values." +
         std::string(name.substr(0, 80));
}

// No tensor has more elements. torch writes larger bounds if it knows no range.
constexpr std::int64_t kMostBounded = std::int64_t{1} << 40;

// An equation which states that these different sizes add up to `total`.
struct CheckedSum {
  std::vector<std::string> sizes;
  std::int64_t total = 0;
};

// Reads "Equality(Add(Symbol('u0'), Symbol('u1')), Integer(128))".
std::optional<CheckedSum> checked_sum(std::string_view text) {
  constexpr std::string_view kEquality = "Equality(";
  if (!text.starts_with(kEquality) || !text.ends_with("))")) return {};
  text.remove_prefix(kEquality.size());
  text.remove_suffix(1);
  const std::size_t comma = text.rfind(", ");
  if (comma == std::string_view::npos) return {};
  const auto left = SymExpr::parse(text.substr(0, comma));
  const auto right = SymExpr::parse(text.substr(comma + 2));
  if (!left || !right || !right->as_constant()) return {};
  CheckedSum sum{left->symbols(), *right->as_constant()};
  // More than any layer has experts; each is tried below.
  constexpr std::size_t kMostSizes = 1024;
  if (sum.sizes.size() < 2 || sum.sizes.size() > kMostSizes || sum.total < 0 ||
      sum.total > kMostBounded) {
    return {};
  }
  // Every coefficient must be 1.
  SymExpr::Bindings none;
  SymExpr::Bindings all;
  for (const std::string& name : sum.sizes) {
    none.emplace(name, 0);
    all.emplace(name, 1);
  }
  for (const std::string& name : sum.sizes) {
    none[name] = 1;
    if (left->evaluate(none) != 1) return {};
    none[name] = 0;
  }
  const auto count = static_cast<std::int64_t>(sum.sizes.size());
  if (left->evaluate(none) != 0 || left->evaluate(all) != count) return {};
  return sum;
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

// Splits a known size evenly among sizes that a check adds up to it, such as
// the tokens of the experts.
SizeBounds Values::shares(const Program& program,
                          const SizeBounds& bounds) const {
  SizeBounds shared;
  for (const NamedSym& scalar : program.scalars) {
    const auto sum = checked_sum(scalar.value.expression);
    if (!sum) continue;
    std::int64_t left = sum->total;
    std::vector<std::string> open;
    for (const std::string& name : sum->sizes) {
      const auto symbol = symbols_.find(name);
      if (symbol == symbols_.end() || shared.contains(name)) {
        open.clear();
        break;
      }
      const auto given = bounds.find(name);
      if (!symbol->second.hint && given == bounds.end()) {
        open.push_back(name);
        continue;
      }
      const std::int64_t known =
          symbol->second.hint ? *symbol->second.hint : given->second;
      if (known < 0 || known > left) {
        open.clear();
        break;
      }
      left -= known;
    }
    if (open.empty()) continue;
    const auto parts = static_cast<std::int64_t>(open.size());
    for (std::int64_t i = 0; i < parts; ++i) {
      shared.emplace(open[index(i)], left / parts + (i < left % parts ? 1 : 0));
    }
  }
  return shared;
}

namespace {

Result<void> check_range(const std::string& name, const Symbol& symbol,
                         std::int64_t size, const std::string& place) {
  const bool is_small = symbol.min && size < *symbol.min;
  if (!is_small && !(symbol.max && size > *symbol.max)) return {};
  return fail(Error{ErrorCode::kInvalidArgument,
                    name_in_quotes(name) + " cannot be " + std::to_string(size),
                    place,
                    {"the program says " + name +
                     (is_small ? " >= " + std::to_string(*symbol.min)
                               : " <= " + std::to_string(*symbol.max))},
                    "give a size within its range"});
}

std::optional<std::size_t> dim_named(std::string_view name) {
  if (name == "batch") return 0;
  if (name == "seq") return 1;
  return std::nullopt;
}

std::string symbol_list(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

}  // namespace

Error Values::no_bound(const std::string& name, std::int64_t value) const {
  std::string to_bound;
  std::string fixed;
  for (const auto& [other, symbol] : symbols_) {
    if (!symbol.hint) {
      to_bound += (to_bound.empty() ? "" : ", ") + other;
    } else {
      fixed += (fixed.empty() ? "" : ", ") + other + " = " +
               std::to_string(*symbol.hint);
    }
  }
  const bool is_fixed = symbols_.contains(name);
  Error error{ErrorCode::kInvalidArgument,
              name_in_quotes(name) + (is_fixed ? " is a size of the example inputs, not "
                                        "one that depends on data"
                                      : " is not a size of this program"),
              "bound " + name + "=" + std::to_string(value),
              {},
              to_bound.empty() ? "leave the bound out"
                               : "sizes to bound: " + to_bound};
  if (!fixed.empty()) {
    error.notes.push_back("sizes of the example inputs: " + fixed);
  }
  if (is_fixed) {
    error.help = "set it: --size " + name + "=" + std::to_string(value);
  }
  return error;
}

// Returns the symbol that `name` names directly or by a dim (`batch`, `seq`).
Result<std::string> Values::symbol_named(const Program& program,
                                         const std::string& name,
                                         const std::string& place) const {
  const auto known = symbols_.find(name);
  if (known != symbols_.end() && known->second.hint) return name;
  std::vector<std::string> all;
  for (const auto& [symbol, of] : symbols_) {
    if (of.hint) all.push_back(symbol);
  }
  const std::string help =
      all.empty() ? "export the model with dynamic_shapes, or leave it out"
                  : "sizes to set: " + symbol_list(all);
  const auto refuse = [&](const std::string& why, std::string advice) {
    return fail(Error{ErrorCode::kInvalidArgument, name_in_quotes(name) + ' ' + why,
                      place,
                      {},
                      std::move(advice)});
  };
  if (known != symbols_.end()) {
    return refuse("depends on data", "bound it: --bound " + name + "=N");
  }
  const auto dim = dim_named(name);
  if (!dim) return refuse("is not a symbolic size of this program", help);
  std::vector<std::string> found;
  for (const InputSpec& spec : program.input_specs) {
    if (spec.role != InputKind::kUser || spec.value.empty()) continue;
    const auto tensor = tensors_.find(spec.value);
    if (tensor == tensors_.end()) continue;
    const std::vector<SymValue>& sizes = tensor->second->sizes;
    if (*dim >= sizes.size() || !sizes[*dim].is_symbolic()) continue;
    SP_ASSIGN(const SymExpr expression, parse(sizes[*dim].expression));
    std::string text = to_string(expression);
    if (std::find(found.begin(), found.end(), text) == found.end()) {
      found.push_back(std::move(text));
    }
  }
  const std::string place_of_dim =
      "dim " + std::to_string(*dim) + " of the inputs";
  if (found.empty()) {
    return refuse("is no symbolic size: " + place_of_dim + " is fixed", help);
  }
  if (found.size() > 1) {
    return refuse("is not one size: " + place_of_dim + " is " + symbol_list(found),
                  help);
  }
  if (!symbols_.contains(found.front())) {
    return refuse("is computed: " + place_of_dim + " is " + found.front(),
                  help);
  }
  return found.front();
}

Result<void> Values::check_computed_ranges(const std::string& place) const {
  for (const Range& range : computed_) {
    const auto expression = SymExpr::parse(range.symbol);
    const auto size = expression ? expression->evaluate(hints_) : std::nullopt;
    if (!size) continue;
    Symbol symbol;
    symbol.min = range.min;
    symbol.max = range.max;
    SP_CHECK(check_range(to_string(*expression), symbol, *size, place));
  }
  return {};
}

Result<void> Values::check_conditions(const Program& program,
                                      const std::string& place) const {
  const auto refused = [&](std::string_view condition) {
    return fail(Error{ErrorCode::kInvalidArgument,
                      "the program does not hold at this size",
                      place,
                      {"the program says " + std::string(condition)},
                      "give a size at which it holds"});
  };
  constexpr std::string_view kAssert = "torch.ops.aten._assert_scalar.default";
  for (const Node& node : program.nodes) {
    if (node.target != kAssert || node.inputs.empty()) continue;
    const auto* asserted = std::get_if<SymName>(&node.inputs[0].value);
    if (asserted == nullptr || !asserted->is_name()) continue;
    const auto scalar = scalars_.find(asserted->name);
    if (scalar == scalars_.end()) continue;
    const std::string_view condition = scalar->second->value.expression;
    if (holds(condition, hints_) != false) continue;
    // The message of the assertion has the condition as people write it.
    const auto* text = node.inputs.size() < 2
                           ? nullptr
                           : std::get_if<Text>(&node.inputs[1].value);
    return refused(text == nullptr ? condition : text->text);
  }
  const auto size_of = [&](std::string_view input,
                           std::size_t dim) -> std::optional<std::int64_t> {
    const auto tensor = tensors_.find(input);
    if (tensor == tensors_.end() || dim >= tensor->second->sizes.size()) {
      return std::nullopt;
    }
    const auto size = resolve(tensor->second->sizes[dim]);
    return size ? std::optional(size->value) : std::nullopt;
  };
  for (const std::string_view guard : program.guards) {
    if (guard_holds(guard, size_of) == false) return refused(guard);
  }
  return {};
}

Result<void> Values::set_sizes(
    const Program& program, const std::map<std::string, std::int64_t>& sizes) {
  std::map<std::string, std::string> given_as;
  std::string place;
  for (const auto& [given, size] : sizes) {
    place = "size " + given + "=" + std::to_string(size);
    SP_ASSIGN(const std::string name, symbol_named(program, given, place));
    const auto [same, is_new] = given_as.emplace(name, given);
    if (!is_new) {
      return fail(Error{ErrorCode::kInvalidArgument,
                        name_in_quotes(same->second) + " and " + name_in_quotes(given) +
                            " are one size",
                        place,
                        {},
                        "give it once"});
    }
    Symbol& symbol = symbols_.at(name);
    SP_CHECK(check_range(name, symbol, size, place));
    is_resized_ = is_resized_ || symbol.hint != size;
    symbol.hint = size;
    hints_[name] = size;
    set_.insert(name);
  }
  if (!is_resized_) return {};
  SP_CHECK(check_computed_ranges(place));
  return check_conditions(program, place);
}

Result<void> Values::bound_sizes(const Program& program,
                                 const SizeBounds& bounds) {
  for (const auto& [name, value] : bounds) {
    const auto found = symbols_.find(name);
    if (found != symbols_.end() && !found->second.hint) {
      SP_CHECK(check_range(name, found->second, value,
                           "bound " + name + "=" + std::to_string(value)));
      continue;
    }
    return fail(no_bound(name, value));
  }
  const SizeBounds shared = shares(program, bounds);
  for (const auto& [name, symbol] : symbols_) {
    if (symbol.hint) continue;
    const auto given = bounds.find(name);
    const auto part = shared.find(name);
    const std::int64_t least = symbol.min.value_or(0);
    const std::int64_t most = symbol.max.value_or(kMostBounded);
    const std::int64_t value = given != bounds.end()  ? given->second
                               : part != shared.end() ? part->second
                               : most < kMostBounded  ? most
                               : least < kMostBounded
                                   ? std::max(least, kDefaultBound)
                                   : kDefaultBound;
    hints_.emplace(name, value);
    bounded_.emplace(name, value);
  }
  return {};
}

Result<Values> Values::create(const Program& program,
                              const GivenSizes& given) {
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
  const auto number = value.value && !is_resized_
                          ? value.value
                          : expression.evaluate(hints_);
  if (!number) {
    return fail(ErrorCode::kNoSizeHint,
                "nothing says how large " + name_in_quotes(to_string(expression)) +
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
    return fail(ErrorCode::kDanglingName,
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
