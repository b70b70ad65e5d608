// `DemandedShardings` lists the factor shardings besides mesh order that the
// space of a plan contains because the graph demands them
// (docs/how_planning_works.md). Operators with the same rule share an entry.
//
//   views of 2 sequences on cp=4 demand:
//     aten.mm.default  ab,bc->ac  a  SS(0,2)  12 operators
#pragma once

#include <shardprop/strategy/factor_sharding.h>

#include <cstdint>
#include <string>
#include <vector>

namespace shardprop {

// `DemandedSharding` is a sharding that a factor of some operators may have.
struct DemandedSharding {
  std::string op;      // "aten.mm.default"
  std::string rule;    // the operands of its index space, "ab,bc->ac"
  std::string factor;  // name of the factor in the rule, "a"
  FactorSharding sharding;
  std::int64_t operators = 0;
  friend bool operator==(const DemandedSharding&,
                         const DemandedSharding&) = default;
};

struct DemandedShardings {
  // The caps: a factor of an operator has at most so many demanded shardings,
  // and a value so many demanded layouts. 0 if the graph demands nothing.
  std::int64_t most_of_factor = 0;
  std::int64_t most_of_value = 0;
  // Demanded shardings and layouts that the space lacks because of the caps.
  std::int64_t left_out_of_factors = 0;
  std::int64_t left_out_of_values = 0;
  // Splits, slices and cats whose equal pieces may be sharded.
  std::int64_t split_operators = 0;
  std::vector<DemandedSharding> demanded;  // by op, rule, factor and sharding

  // Returns whether the graph demands nothing.
  bool empty() const { return demanded.empty() && split_operators == 0; }
  friend bool operator==(const DemandedShardings&,
                         const DemandedShardings&) = default;
};

}  // namespace shardprop
