// Finds strategies for the views between a value and the source of a copy, so
// that they carry one layout to another.
//
//   w f32[8,4] S(0) -> [permute] -> wt S(1) -> [view] -> wt2 f32[4,2,4] S(1)
#pragma once

#include "lower/local_calls.h"

#include <shardprop/strategy/op_strategy.h>

#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

namespace shardprop::lowering {

struct View {
  const Node* node = nullptr;
  bool undone = false;  // from its result back to its operand
};

struct ViewLink {
  View view;
  NodeStrategy strategy;
  Layout layout;  // of what is behind the link
};

class ViewChains {
 public:
  ViewChains(const DeviceMesh& mesh, const OpLibrary& library,
             LayoutTable& layouts)
      : mesh_(mesh), library_(library), layouts_(layouts) {}

  // Error: kPlanBroken if no strategies of the views produce layout `to`.
  Result<std::vector<ViewLink>> between(std::span<const View> views,
                                        const Layout& from, const Layout& to,
                                        const std::string& where);

 private:
  // Returns the strategies of a view in mesh order.
  Result<std::shared_ptr<const OpStrategy>> strategies(const Node& node);
  // Returns the strategies by which the view may carry layout `from`.
  Result<std::shared_ptr<const OpStrategy>> strategies(
      const View& view, std::span<const LayoutId> from);

  const DeviceMesh& mesh_;
  const OpLibrary& library_;
  LayoutTable& layouts_;
  struct SameView {
    bool operator()(const OpSchema* a, const OpSchema* b) const;
  };
  struct HashView {
    std::size_t operator()(const OpSchema* op) const;
  };
  std::unordered_map<const OpSchema*, std::shared_ptr<const OpStrategy>,
                     HashView, SameView>
      known_;
};

// The inverse of a view that keeps every element.
struct Inverse {
  // By dim of the operand, its dim in the result; empty if the inverse is a
  // reshape.
  std::vector<std::int64_t> permutation;
};
// Error: kNotLowered.
Result<Inverse> inverse_of(const Node& node, const IndexSpace& space);

}  // namespace shardprop::lowering
