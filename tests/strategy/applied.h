// Operators applied, and their index spaces and strategies in words.
#pragma once

#include <doctest/doctest.h>
#include <shardprop/mesh/device_mesh.h>
#include <shardprop/ops/op_library.h>
#include <shardprop/ops/op_schema.h>
#include <shardprop/strategy/local_context.h>
#include <shardprop/strategy/op_strategy.h>

#include "ops/applied_op.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardprop::testing {

// `Strategies` has the strategies of one call on a mesh, and owns the objects
// that they reference.
class Strategies {
 public:
  Strategies(OpSchema op, std::string_view mesh,
             const StrategyOptions& options = {},
             const OpLibrary& operators = library())
      : mesh_(value_of(DeviceMesh::parse(mesh))) {
    auto space =
        std::make_shared<const IndexSpace>(value_of(operators.index_space(op)));
    all_ = op_strategies(std::make_shared<const OpSchema>(std::move(op)),
                         std::move(space), mesh_, layouts_, options);
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

  LocalContext context(const PlacementStrategy& strategy) const {
    return {*all_.op, *all_.space, mesh_, layouts_, strategy};
  }
  // Returns the strategy with that text, to ask about its local program.
  LocalContext context(std::string_view text) const {
    const std::vector<std::string> every = texts();
    const auto at = std::find(every.begin(), every.end(), text);
    REQUIRE_MESSAGE(at != every.end(), "no strategy ", std::string(text));
    return context(
        all_.strategies[static_cast<std::size_t>(at - every.begin())]);
  }

 private:
  DeviceMesh mesh_;
  LayoutTable layouts_;
  OpStrategy all_;
};

}  // namespace shardprop::testing
