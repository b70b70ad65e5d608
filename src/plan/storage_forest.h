// StorageForest is the views of every buffer as trees, and the layouts that
// their users require.
#pragma once

#include "plan/plan_variable.h"

#include <shardprop/graph/graph.h>

#include <cstddef>
#include <memory>
#include <vector>

namespace shardprop {

// Layouts in order of first appearance.
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

// The values of every storage as a tree of views.
class StorageForest {
 public:
  // Whether a node only shows all elements of its operand anew.
  static bool keeps_every_element(const Graph& graph, const Node& node);

  explicit StorageForest(const Graph& graph) : links_(graph.values().size()) {}

  // `value` is a view of `of`, by one of the strategies in `choices`. Views
  // are added behind what they view.
  void add_view(ValueId value, ValueId of,
                std::shared_ptr<const ChoiceSet> choices);
  // Invalid for what is no view.
  ValueId parent(ValueId value) const { return links_[value.index()].parent; }
  const ChoiceSet* view(ValueId value) const {
    return links_[value.index()].view.get();
  }
  ValueId root(ValueId value) const;

  // What the users of each value, and of its views as far as they can be had by
  // viewing, take it in. Variables without choices yet want nothing.
  std::vector<LayoutSet> wanted_layouts(
      const std::vector<PlanVariable>& variables) const;
  // `layouts`, by value: those that each root may be laid out in; sets those
  // that its views have then.
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
