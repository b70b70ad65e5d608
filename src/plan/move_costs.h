// What carrying tensors between layouts takes, each pair worked out once.
#pragma once

#include <shardprop/placement/tensor_meta.h>
#include <shardprop/redistribute/planner.h>
#include <shardprop/strategy/layout_table.h>

#include <cstdint>
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
  RedistributePlanner planner_;
  const LayoutTable& layouts_;
  std::vector<TensorMeta> tensors_;
  std::unordered_map<TensorMeta, std::uint32_t> ids_;
  mutable std::unordered_map<std::uint64_t, std::int64_t> moves_;
  mutable std::unordered_map<std::uint64_t, std::int64_t> peaks_;
  mutable std::unordered_map<std::uint64_t, std::int64_t> bytes_;
};

}  // namespace shardprop
