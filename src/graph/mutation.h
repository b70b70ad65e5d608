// Makes programs that write in place functional.
//
// The ids that users hold are handles: a handle stands for one tensor of the
// source program, and resolves to the value that this tensor has now. A handle
// that is a view knows the handle that it views, so that a write to either is
// seen through the other. Handles that share storage are a family; a family
// counts its writes, so that a handle knows at once whether it may be stale.
#pragma once

#include <shardprop/ops/overload_form.h>
#include "graph/node_list.h"

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace shardprop {

class Mutations {
 public:
  Mutations(NodeList& nodes, const OpLibrary& library)
      : nodes_(nodes), library_(library) {}

  // The value that the tensor `handle` has now; may append nodes that view
  // what was written since. Error: kNotFunctional.
  Result<ValueId> current(ValueId handle);
  // Appends the functional form of `node`, whose inputs are handles. Returns a
  // handle per output: for a written argument, the handle that was written.
  Result<std::vector<ValueId>> append_mutating(const NewNode& node);
  // Makes `value` what the tensor `handle` is, in its views and what it views.
  Result<void> write(ValueId handle, ValueId value);
  // Turns an operator that changes the shape of its tensor in place (detach_,
  // unsqueeze_) into the view that it is, of which its result is the name.
  Result<void> make_view(NewNode& node) const;
  // Remembers that `view` was made from the value `seen` of the handle `base`.
  void note_view(ValueId view, ValueId base, ValueId seen);

 private:
  struct Cell {
    ValueId now;
    ValueId base;       // the handle viewed; invalid at the root of a family
    ValueId base_seen;  // the value of the base that `now` agrees with
    ValueId root;
    int depth = 0;              // views between it and the root
    std::uint64_t version = 0;  // of the family, when `now` was known good
  };
  Cell& cell(ValueId handle);
  Result<ValueId> carry_back(ValueId handle, ValueId base_now, ValueId written);
  Result<ValueId> keep_write(const Node& view, ValueId base_now,
                             ValueId written);
  Result<void> regenerate(ValueId handle, ValueId base_now);
  Result<std::vector<ValueId>> append_generated(NewNode node,
                                                const ViewedOperands& viewed);
  Result<std::vector<ValueId>> append_generated(
      std::string_view op, std::vector<GivenArgument> arguments,
      std::vector<ValueId> inputs);

  NodeList& nodes_;
  const OpLibrary& library_;
  // Only handles that are views, or were written, have a cell.
  std::unordered_map<ValueId, Cell> cells_;
  std::unordered_map<ValueId, std::uint64_t> versions_;  // by root
  std::size_t generated_ = 0;
};

}  // namespace shardprop
