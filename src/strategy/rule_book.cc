#include <shardprop/strategy/rule_book.h>

#include "base/try.h"
#include "strategy/rules/families.h"

#include <algorithm>

namespace shardprop {
namespace {

// "aten.add_.Tensor" -> "aten.add.Tensor"; "aten.add.out" and
// "aten.sum.IntList_out" -> the overload that differs in its out arguments
// only, which has no fixed name and is searched for.
std::vector<std::string> functional_names(const FunctionSchema& function,
                                          const RuleBook& book) {
  const std::string prefix = std::string(function.ns()) + ".";
  std::vector<std::string> names;
  if (function.is_inplace() && function.base_name().ends_with('_')) {
    const std::string_view base = function.base_name();
    names.push_back(prefix + std::string(base.substr(0, base.size() - 1)) +
                    "." + std::string(function.overload()));
  }
  if (function.is_out()) {
    const std::string stem = prefix + std::string(function.base_name()) + ".";
    for (auto it = book.entries().lower_bound(stem);
         it != book.entries().end() && it->first.starts_with(stem); ++it) {
      names.push_back(it->first);
    }
  }
  return names;
}

bool is_written_keyword(const ArgumentSchema& argument) {
  return argument.keyword_only && argument.alias && argument.alias->writes;
}

// Whether `function` is `base` plus out arguments, or `base` in place.
bool derives_from(const FunctionSchema& function, const FunctionSchema& base) {
  std::vector<const ArgumentSchema*> own;
  for (const ArgumentSchema& argument : function.arguments()) {
    if (!is_written_keyword(argument)) own.push_back(&argument);
  }
  if (own.size() > base.arguments().size()) return false;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const ArgumentSchema& other = base.arguments()[i];
    if (own[i]->name != other.name || own[i]->type != other.type ||
        own[i]->is_list != other.is_list) {
      return false;
    }
  }
  return true;
}

std::shared_ptr<const FunctionSchema> functional_base(
    const FunctionSchema& function, const RuleBook& book,
    const OpRegistry& registry) {
  for (const std::string& name : functional_names(function, book)) {
    if (book.find(name) == nullptr) continue;
    auto base = registry.find(name);
    if (base && derives_from(function, *base)) return base;
  }
  return nullptr;
}

auto no_strategy(const OpSchema& op) {
  return fail(Error{ErrorCode::kNoStrategy,
                    "no sharding rule for `" + op.name() + "`",
                    {},
                    {"declared as " + to_string(*op.function)},
                    "the operator is known, a rule for it is not; "
                    "`shardprop ops` lists those with a rule"});
}

// What an out argument or a written tensor shares with the result it becomes.
Result<FactorMap> derived_map(const OpSchema& op,
                              std::shared_ptr<const FunctionSchema> base,
                              const RuleBook& book) {
  OpSchema functional;
  functional.function = std::move(base);
  functional.outputs = op.outputs;
  const auto& arguments = op.function->arguments();
  std::vector<std::size_t> out_operands;
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto* tensor = std::get_if<TensorArg>(&op.args[i]);
    if (is_written_keyword(arguments[i])) {
      if (tensor != nullptr && tensor->operand != TensorArg::kNone) {
        out_operands.push_back(static_cast<std::size_t>(tensor->operand));
      }
      continue;
    }
    functional.args.push_back(op.args[i]);
  }
  // Out arguments come last, so the operands before them keep their numbers.
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    if (std::find(out_operands.begin(), out_operands.end(), i) ==
        out_operands.end()) {
      functional.inputs.push_back(op.inputs[i]);
    }
  }
  for (std::size_t i = functional.args.size();
       i < functional.function->arguments().size(); ++i) {
    functional.args.push_back(
        functional.function->arguments()[i].default_value);
  }
  SP_ASSIGN(FactorMap map,
            book.find(functional.name())->rule.instantiate(functional));
  for (std::size_t k = 0; k < out_operands.size(); ++k) {
    map.inputs.push_back(map.outputs[k]);
    std::vector<Placement> without(map.factors.size());
    for (std::size_t f = 0; f < map.factors.size(); ++f) {
      without[f] = map.outputs_without[k][f].value_or(Placement());
    }
    map.inputs_without.push_back(std::move(without));
    for (Carry& carry : map.carries) carry.inputs.push_back(carry.outputs[k]);
  }
  if (op.function->is_inplace()) {
    // What is written stays where it is: in and out are laid out alike.
    std::erase_if(map.carries, [](const Carry& carry) {
      return carry.inputs[0] != carry.outputs[0];
    });
    for (std::size_t f = 0; f < map.factors.size(); ++f) {
      const int factor = static_cast<int>(f);
      const bool changes =
          map.inputs[0].holds(factor) != map.outputs[0].holds(factor) ||
          (!map.outputs[0].holds(factor) && map.outputs_without[0][f] &&
           *map.outputs_without[0][f] != map.inputs_without[0][f]);
      if (changes) {
        map.factors[f].blocked = "the tensor written in place lacks it";
      }
    }
  }
  return map;
}

}  // namespace

RuleBook::RuleBook() { add_all_families(*this); }

void RuleBook::add(std::string_view family, std::string name, ShardingRule rule,
                   std::string note) {
  entries_.insert_or_assign(
      std::move(name),
      Entry{std::string(family), std::move(rule), std::move(note)});
}

const RuleBook::Entry* RuleBook::find(std::string_view name) const {
  const auto it = entries_.find(name);
  return it == entries_.end() ? nullptr : &it->second;
}

const RuleBook::Entry* RuleBook::find(const FunctionSchema& function,
                                      const OpRegistry& registry) const {
  if (const Entry* own = find(function.name())) return own;
  const auto base = functional_base(function, *this, registry);
  return base == nullptr ? nullptr : find(base->name());
}

bool RuleBook::covers(const FunctionSchema& function,
                      const OpRegistry& registry) const {
  return find(function, registry) != nullptr;
}

Result<FactorMap> factor_map(const OpSchema& op, const RuleBook& book,
                             const OpRegistry& registry) {
  const auto located = [&](Result<FactorMap> map) -> Result<FactorMap> {
    if (map) return map;
    return fail(std::move(map).error().at(op.name()));
  };
  if (const RuleBook::Entry* entry = book.find(op.name())) {
    return located(entry->rule.instantiate(op));
  }
  if (auto base = functional_base(*op.function, book, registry)) {
    return located(derived_map(op, std::move(base), book));
  }
  return no_strategy(op);
}

}  // namespace shardprop
