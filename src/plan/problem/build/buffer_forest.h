// BufferForest holds the views of every buffer as trees, and the layouts that
// their users read.
#pragma once

#include "plan/problem/plan_variable.h"

#include <shardprop/graph/graph.h>

#include <cstddef>
#include <memory>
#include <vector>

namespace shardprop {

// LayoutSet keeps layouts in order of first appearance.
class LayoutSet {
 public:
  void add(LayoutId id) {
    if (contains(id)) return;
    if (has_.size() <= id.index()) has_.resize(id.index() + 1, false);
    has_[id.index()] = true;
    layouts_.push_back(id);
  }
  bool contains(LayoutId id) const {
    return id.index() < has_.size() && has_[id.index()];
  }
  const std::vector<LayoutId>& layouts() const { return layouts_; }

 private:
  std::vector<LayoutId> layouts_;
  std::vector<bool> has_;
};

// BufferForest holds the values of every buffer as a tree of views.
class BufferForest {
 public:
  explicit BufferForest(const Graph& graph) : links_(graph.values().size()) {}

  // Notes that `value` is a view of `of`, by one of the strategies in
  // `choices`. A view is added after the value that it views.
  void add_view(ValueId value, ValueId of,
                std::shared_ptr<const ChoiceSet> choices);
  // Returns the value that a view views; invalid for a value that is not a
  // view.
  ValueId parent(ValueId value) const { return links_[value.index()].parent; }
  const ChoiceSet* view(ValueId value) const {
    return links_[value.index()].view.get();
  }
  ValueId root(ValueId value) const;

  // Returns, by value, the layouts in which users read it. They include the
  // layouts that users read its views in, if views can produce these. Variables
  // without choices demand none. `copied_to`, by value or empty, are layouts of
  // copies that are read as well.
  std::vector<LayoutSet> required_layouts(
      const std::vector<PlanVariable>& variables,
      const std::vector<std::vector<LayoutId>>& copied_to) const;
  // Computes the layouts of views from those of their roots. On entry,
  // layouts[v] holds the layouts that each root v may have. On return, it also
  // holds the layouts that each view v may have.
  void see(std::vector<std::vector<LayoutId>>& layouts) const;

 private:
  struct Link {
    ValueId parent;
    ValueId root;
    std::shared_ptr<const ChoiceSet> view;
  };
  std::vector<Link> links_;
};

}  // namespace shardprop
