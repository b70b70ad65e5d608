// RuleBook: the sharding rules by operator name. Starts with the rules of every
// family; users add or replace their own at run time.
//
//   RuleBook book;
//   book.add("mine", "mylib.scale.default", pointwise().multilinear());
//
// In-place and out= overloads need no entry: they follow from the rule of the
// functional overload and the operator's declaration.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/ops/op_registry.h>
#include <shardprop/ops/op_schema.h>
#include <shardprop/strategy/sharding_rule.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardprop {

class RuleBook {
 public:
  struct Entry {
    std::string family;
    ShardingRule rule;
    std::string note;
  };

  // Every family of src/strategy/rules.
  RuleBook();

  // Adds a rule, replacing one of the same name.
  void add(std::string_view family, std::string name, ShardingRule rule,
           std::string note = {});

  // The entry written for that very name; null when there is none.
  const Entry* find(std::string_view name) const;
  // The same, or else the one that an in-place or out= overload derives from.
  const Entry* find(const FunctionSchema& function,
                    const OpRegistry& registry) const;
  // Whether op_strategies() has a rule for the operator, derived ones included.
  bool covers(const FunctionSchema& function, const OpRegistry& registry) const;

  // All entries by name.
  const std::map<std::string, Entry, std::less<>>& entries() const {
    return entries_;
  }

 private:
  std::map<std::string, Entry, std::less<>> entries_;
};

// The factor map of one application: of its own rule, or of the functional
// overload its in-place or out= form derives from.
// Errors: kNoStrategy, with the reason and the nearest thing that has one.
Result<FactorMap> factor_map(const OpSchema& op, const RuleBook& book,
                             const OpRegistry& registry);

}  // namespace shardprop
