// Operators applied, and their factor maps and strategies in words.
#pragma once

#include <doctest/doctest.h>
#include <shardprop/mesh/device_mesh.h>
#include <shardprop/ops/op_registry.h>
#include <shardprop/ops/op_schema.h>
#include <shardprop/strategy/local_context.h>
#include <shardprop/strategy/op_strategy.h>
#include <shardprop/strategy/rule_book.h>

#include "support/result_checks.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardprop::testing {

inline const OpRegistry& registry() {
  static const OpRegistry kRegistry;
  return kRegistry;
}

inline const RuleBook& rules() {
  static const RuleBook kRules;
  return kRules;
}

// TensorArgs of `given` count in `tensors`; outputs are inferred.
inline OpSchema applied_to(std::string_view name,
                           std::vector<GivenArgument> given,
                           const std::vector<std::string_view>& tensors) {
  std::vector<TensorMeta> metas;
  for (const std::string_view text : tensors) {
    metas.push_back(value_of(TensorMeta::parse(text)));
  }
  const auto function = registry().find(name);
  REQUIRE(function);
  OpSchema op =
      value_of(make_op_schema(function, std::move(given), std::move(metas)));
  op.outputs = value_of(infer_outputs(op));
  return op;
}

// The tensors come first, in order; then other arguments by name.
inline OpSchema applied(std::string_view name,
                        const std::vector<std::string_view>& tensors,
                        const std::vector<GivenArgument>& others = {}) {
  std::vector<GivenArgument> given;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    given.push_back({"", TensorArg{static_cast<std::int32_t>(i)}});
  }
  given.insert(given.end(), others.begin(), others.end());
  return applied_to(name, std::move(given), tensors);
}

inline FactorMap map_of(const OpSchema& op) {
  return value_of(factor_map(op, rules(), registry()));
}

// "[a][b],[b][c]->[a][c]": factors by index, a for the first; a dim of none
// is [].
inline std::string in_words(const FactorMap& map) {
  std::string text;
  const auto add = [&](const std::vector<Operand>& operands) {
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (i > 0) text += ',';
      for (const DimFactors& dim : operands[i].dims) {
        text += '[';
        for (const std::int8_t f : dim) text += static_cast<char>('a' + f);
        text += ']';
      }
    }
  };
  add(map.inputs);
  text += "->";
  add(map.outputs);
  return text;
}

inline std::vector<std::int64_t> sizes_of(const FactorMap& map) {
  std::vector<std::int64_t> sizes;
  for (const Factor& factor : map.factors) sizes.push_back(factor.size);
  return sizes;
}

// The strategies of one application on a mesh; keeps what they refer to.
class Strategies {
 public:
  Strategies(OpSchema op, std::string_view mesh,
             const StrategyOptions& options = {},
             const RuleBook& book = rules())
      : mesh_(value_of(DeviceMesh::parse(mesh))) {
    auto map = std::make_shared<const FactorMap>(
        value_of(factor_map(op, book, registry())));
    all_ = op_strategies(std::make_shared<const OpSchema>(std::move(op)),
                         std::move(map), mesh_, layouts_, options);
  }

  const OpStrategy& all() const { return all_; }
  const LayoutTable& layouts() const { return layouts_; }

  // In their order: "S(0),R->S(0)".
  std::vector<std::string> texts() const {
    std::vector<std::string> out;
    for (const PlacementStrategy& strategy : all_.strategies) {
      out.push_back(to_string(strategy, layouts_));
    }
    return out;
  }
  bool has(std::string_view text) const {
    const std::vector<std::string> every = texts();
    return std::find(every.begin(), every.end(), text) != every.end();
  }

  // The strategy with that text, for questions about its local program.
  LocalContext context(std::string_view text) const {
    const std::vector<std::string> every = texts();
    const auto at = std::find(every.begin(), every.end(), text);
    REQUIRE_MESSAGE(at != every.end(), "no strategy ", std::string(text));
    return {*all_.op, *all_.map, mesh_, layouts_,
            all_.strategies[static_cast<std::size_t>(at - every.begin())]};
  }

 private:
  DeviceMesh mesh_;
  LayoutTable layouts_;
  OpStrategy all_;
};

}  // namespace shardprop::testing
