// OperandNeeds is the placement that each choice (a factor or a linearity) for
// a mesh dim requires of each input of a call. It follows from the index space.
//
//   mm ab,bc->ac: given to a: S(0), R; to b: S(1), S(0); to c: R, S(1)
#pragma once

#include <shardprop/ops/index_space.h>
#include <shardprop/placement/layout.h>
#include <shardprop/strategy/op_strategy.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/index.h"

namespace shardprop {

// Returns whether an input is partial as the linearity requires; true if it
// requires no partial. Other linearities turn replicated tensors into partials,
// which never costs less than keeping them.
bool is_fed(const Linearity& linearity, std::span<const Layout> given);

class OperandNeeds {
 public:
  // `in_mesh_order`: strategies shard all factors in mesh order.
  OperandNeeds(const IndexSpace& space, std::span<const Layout> given,
               bool in_mesh_order = true);

  // Choices are those of an Assignment; kUnassigned requires R.
  std::size_t choices() const { return fed_.size(); }
  // Returns false for a linearity if no input is partial as it requires.
  bool is_fed_choice(std::int16_t choice) const {
    return choice == kUnassigned || fed_[index(choice)];
  }
  Placement of(std::int16_t choice, std::size_t input) const {
    return choice == kUnassigned ? Placement::replicate()
                                 : needs_[index(choice) * inputs_ + input];
  }
  // Returns whether the placements of an assignment are the layout of the
  // input, with cuts in the order of the mesh dims. This is false if a tensor
  // dim consists of several factors, if averages may become sums, or if factors
  // may have other shardings.
  bool is_exact(std::size_t input) const { return exact_[input]; }
  // Returns the partials that choices require of the input.
  std::vector<Placement> partials(std::size_t input) const;

 private:
  std::size_t inputs_;
  std::vector<Placement> needs_;  // [choice][input]
  std::vector<bool> fed_;
  std::vector<bool> exact_;
};

}  // namespace shardprop
