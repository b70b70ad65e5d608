// What carrying tensors between layouts takes, each pair worked out once.
#pragma once

#include <shardprop/placement/tensor_meta.h>
#include <shardprop/redistribute/planner.h>
#include <shardprop/redistribute/redistribute_rows.h>
#include <shardprop/strategy/layout_table.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

namespace shardprop {

class MoveCosts {
 public:
  MoveCosts(RedistributePlanner planner, const LayoutTable& layouts)
      : planner_(std::move(planner)), layouts_(layouts) {}

  // The class of tensors of the same shape and dtype.
  std::uint32_t tensor_class(const TensorMeta& meta);

  // kUnreachable where there is no way. Remembered.
  std::int64_t nanoseconds(std::uint32_t tensor, LayoutId src,
                           LayoutId dst) const;
  // Precondition: reachable.
  RedistributePlan plan(std::uint32_t tensor, LayoutId src, LayoutId dst) const;
  // Most bytes that a rank holds while it runs, source and result included.
  // Precondition: reachable. Remembered.
  std::int64_t peak_bytes(std::uint32_t tensor, LayoutId src,
                          LayoutId dst) const;
  std::int64_t local_bytes(std::uint32_t tensor, LayoutId layout) const;

 private:
  struct Key {
    std::uint32_t tensor;
    LayoutId src;
    LayoutId dst;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };
  // All that is known of one tensor class.
  struct Rows {
    std::optional<RedistributeRows> rows;
    // By LayoutId: where it stands in the rows; kUnasked and kElsewhere if not.
    std::vector<std::int32_t> place;
    std::vector<std::vector<std::int64_t>> costs;  // by source; empty: not yet
  };
  static constexpr std::int32_t kUnasked = -1;
  static constexpr std::int32_t kElsewhere = -2;

  // Where the layout stands in the rows, or kElsewhere: then pairs are asked
  // one by one.
  std::int32_t place(Rows& rows, std::uint32_t tensor, LayoutId layout) const;

  RedistributePlanner planner_;
  const LayoutTable& layouts_;
  std::vector<TensorMeta> tensors_;
  std::unordered_map<TensorMeta, std::uint32_t> ids_;
  mutable std::deque<Rows> rows_;  // by tensor class
  mutable std::unordered_map<Key, std::int64_t, KeyHash> moves_;
  mutable std::unordered_map<Key, std::int64_t, KeyHash> peaks_;
  mutable std::unordered_map<Key, std::int64_t, KeyHash> bytes_;
};

}  // namespace shardprop
