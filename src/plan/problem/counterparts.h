// `Counterparts` finds the variables with the same place in the equal blocks of
// a run (graph/analysis/blocks.h).
//
//   layers.0.w, layers.1.w, layers.2.w    one group
//
// Counterparts are in one group if two conditions hold:
//   1. They have the same choices (plan_variable.h).
//   2. They are inputs or outputs of the graph, or operators with counterparts
//      as producers and as readers. An operator at the end of a run may read or
//      feed operators outside the run. It then chooses alone.
//
// A reader of a second run counts as a reader of the first run. Blocks thus
// choose alike, even if other operators run again in them.
#pragma once

#include "graph/analysis/blocks.h"
#include "plan/problem/buffer.h"

#include <shardprop/graph/node.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace shardprop {

struct PlanBuffer;
struct PlanVariable;
struct ProblemData;

class Counterparts {
 public:
  // The variables and buffers of `data` must be complete. `data` must outlive
  // the object.
  explicit Counterparts(const ProblemData& data);

  // Returns, by variable, the first one of its group.
  std::vector<PlanVariableId> firsts() const;

  // Returns the slots of operators that are counterparts, in the order of their
  // blocks: a list for each position in neighbouring blocks with the same second
  // runs.
  std::vector<std::vector<std::int64_t>> slots() const;

 private:
  using Key = std::vector<std::size_t>;

  // Place is the place of a variable in a block of a run.
  struct Place {
    std::size_t run = 0;
    std::size_t block = 0;     // of the run
    std::size_t position = 0;  // of the input, or of the operator
  };

  const PlanVariable& variable(PlanVariableId id) const;
  const PlanBuffer& buffer_of(ValueId value) const;
  // Returns the variable of the first run if that of a second run is given.
  PlanVariableId first_run(PlanVariableId id) const;
  std::optional<Place> place_in(std::size_t block, std::size_t position) const;
  std::optional<Place> place_of_value(ValueId id) const;
  std::optional<Place> place_of(const PlanVariable& variable) const;
  // Keys of counterparts are equal.
  Key key_of(PlanVariableId id) const;
  void add_neighbours(const Node& node, const Place& place, Key& key) const;
  void add_readers(ValueId result, const Place& place,
                   std::vector<Key>& readers) const;
  // Adds the neighbour as seen from `place`.
  void add_neighbour(PlanVariableId id, const Place& place, Key& key) const;

  const ProblemData& data_;
  Blocks blocks_;
  std::map<ValueId, std::size_t> input_positions_;
  std::vector<NodeId> second_runs_;  // by node; invalid if it runs once
  std::vector<std::optional<Place>> places_;  // by variable; empty outside runs
};

}  // namespace shardprop
