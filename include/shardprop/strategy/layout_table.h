// `LayoutTable` interns layouts as 32-bit ids, so that hot paths compare and
// store a number.
//
//   LayoutTable table;
//   table.intern(a) == table.intern(b);   // exactly when a == b
//
// Ids are dense, in order of first appearance, and never change. The table is
// not synchronised: use one per thread or hold a lock.
#pragma once

#include <shardprop/base/strong_id.h>
#include <shardprop/placement/layout.h>

#include <deque>
#include <unordered_map>

namespace shardprop {

using LayoutId = StrongId<struct LayoutTag>;

class LayoutTable {
 public:
  LayoutId intern(const Layout& layout) {
    const auto [it, added] =
        ids_.try_emplace(layout, LayoutId(layouts_.size()));
    if (added) layouts_.push_back(layout);
    return it->second;
  }
  // Precondition: the id is from this table.
  const Layout& operator[](LayoutId id) const { return layouts_[id.index()]; }
  std::size_t size() const { return layouts_.size(); }

 private:
  std::deque<Layout> layouts_;
  std::unordered_map<Layout, LayoutId> ids_;
};

}  // namespace shardprop
