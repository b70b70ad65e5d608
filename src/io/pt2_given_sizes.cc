#include "base/index.h"
#include "base/try.h"
#include "io/pt2_conditions.h"
#include "io/pt2_values.h"

#include <algorithm>
#include <utility>

// The sizes of a program that the user gives, and the sizes assumed for dims
// that depend on data.
namespace shardprop::pt2 {
namespace {

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
      sum.total > Values::kMostBounded) {
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
  Error error{
      ErrorCode::kInvalidArgument,
      name_in_quotes(name) + (is_fixed
                                  ? " is a size of the example inputs, not "
                                    "one that depends on data"
                                  : " is not a size of this program"),
      "bound " + name + "=" + std::to_string(value),
      {},
      to_bound.empty() ? "leave the bound out" : "sizes to bound: " + to_bound};
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
    return fail(Error{ErrorCode::kInvalidArgument,
                      name_in_quotes(name) + ' ' + why,
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
    return refuse(
        "is not one size: " + place_of_dim + " is " + symbol_list(found), help);
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
                        name_in_quotes(same->second) + " and " +
                            name_in_quotes(given) + " are one size",
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

}  // namespace shardprop::pt2
