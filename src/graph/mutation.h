// Mutations makes programs that write in place functional.
//
// Users hold ids that are handles. A handle represents one tensor of the source
// program and resolves to the value that this tensor has now. A handle of a
// view knows the handle that it views, so both see a write to either. Handles
// that share a buffer are a family. A family counts its writes, so that a
// handle can tell at once whether it may be stale.
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

  // Returns the value that the tensor `handle` has now. May append nodes that
  // view values written since. Error: kNotFunctional.
  Result<ValueId> current(ValueId handle);
  // Appends the functional form of `node`, whose inputs are handles. Returns
  // one handle per output; the handle of a written argument is the handle that
  // was written.
  Result<std::vector<ValueId>> append_mutating(const NewNode& node);
  // Makes `value` the new value of the tensor `handle`, of its views and of the
  // tensors that it views.
  Result<void> write(ValueId handle, ValueId value);
  // Turns an operator that changes the shape of its tensor in place (detach_,
  // unsqueeze_) into an equivalent view. Its result is then the name of the
  // tensor.
  Result<void> make_view(NewNode& node) const;
  // Records that `view` was produced from the value `seen` of the handle
  // `base`.
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
  // Only handles that are views or were written have a cell.
  std::unordered_map<ValueId, Cell> cells_;
  std::unordered_map<ValueId, std::uint64_t> versions_;  // by root
  std::size_t generated_ = 0;
};

}  // namespace shardprop
