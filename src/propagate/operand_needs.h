// OperandNeeds: what mesh dims given to a factor or a linearity ask of every
// input of a call, read off its index space.
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

// Whether some operand that the linearity takes as a partial is one; others
// turn whole tensors into terms, which never costs less than leaving them.
bool is_fed(const Linearity& linearity, std::span<const Layout> given);

class OperandNeeds {
 public:
  OperandNeeds(const IndexSpace& space, std::span<const Layout> given);

  // Choices are those of an Assignment; kUnassigned asks for R.
  std::size_t choices() const { return fed_.size(); }
  // False of a linearity without any partial that it takes.
  bool is_fed_choice(std::int16_t choice) const {
    return choice == kUnassigned || fed_[index(choice)];
  }
  Placement of(std::int16_t choice, std::size_t input) const {
    return choice == kUnassigned ? Placement::replicate()
                                 : needs_[index(choice) * inputs_ + input];
  }
  // Whether the placements of an assignment, mesh dim by mesh dim and cut in
  // the order of the mesh dims, are the layout of the input. Not where a tensor
  // dim is made of several factors, nor where averages may become sums.
  bool is_exact(std::size_t input) const { return exact_[input]; }
  // The partials that are asked of the input.
  std::vector<Placement> partials(std::size_t input) const;

 private:
  std::size_t inputs_;
  std::vector<Placement> needs_;  // [choice][input]
  std::vector<bool> fed_;
  std::vector<bool> exact_;
};

}  // namespace shardprop
