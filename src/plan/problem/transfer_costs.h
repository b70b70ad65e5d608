// TransferCosts prices redistributions between layouts and caches each result.
#pragma once

#include "plan/problem/merged_transfers.h"
#include "redistribute/redistribute_rows.h"
#include "redistribute/strided_costs.h"

#include <shardprop/graph/graph.h>
#include <shardprop/placement/tensor_meta.h>
#include <shardprop/redistribute/planner.h>
#include <shardprop/strategy/layout_table.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace shardprop {

// Returns the most bytes of a bucket: 25 MiB, or the bytes of all parameters and
// one more if they are fewer, so that a bucket is never empty. Small transfers are charged their share of such a bucket.
std::int64_t bucket_bytes(const Graph& graph);

class TransferCosts {
 public:
  // If `merge` is set, neighbouring mesh dims that source and target treat
  // alike move together (merged_transfers.h). `bucketed` prices tensors that are
  // sent in buckets.
  TransferCosts(RedistributePlanner planner, RedistributePlanner bucketed,
                const Topology& topology, const LayoutTable& layouts,
                bool merge);
  ~TransferCosts();
  TransferCosts(const TransferCosts&) = delete;
  TransferCosts& operator=(const TransferCosts&) = delete;

  // Returns the class of the tensor: tensors of the same shape and dtype share
  // one, unless only one of them is sent in buckets.
  std::uint32_t tensor_class(const TensorMeta& meta, bool in_buckets);

  // Returns kUnreachable if no redistribution leads to `dst`. Cached.
  std::int64_t nanoseconds(std::uint32_t tensor, LayoutId src,
                           LayoutId dst) const;
  // Precondition: reachable.
  RedistributePlan plan(std::uint32_t tensor, LayoutId src, LayoutId dst) const;
  // Returns the steps of plan(). Precondition: reachable. Cached; the reference
  // is valid as long as this object.
  const std::vector<RedistributeStep>& steps(std::uint32_t tensor, LayoutId src,
                                             LayoutId dst) const;
  // Returns the peak bytes of a rank during the redistribution, source and
  // result included. Precondition: reachable. Cached.
  std::int64_t peak_bytes(std::uint32_t tensor, LayoutId src,
                          LayoutId dst) const;
  std::int64_t local_bytes(std::uint32_t tensor, LayoutId layout) const;

  // Set if too many single pairs were priced of tensors that have too many
  // layouts on the mesh to list. Costs are kUnreachable from then on.
  const std::optional<Error>& refusal() const { return refusal_; }

 private:
  struct Tensor {
    TensorMeta meta;
    bool in_buckets = false;
    friend bool operator==(const Tensor&, const Tensor&) = default;
  };
  struct TensorHash {
    std::size_t operator()(const Tensor& tensor) const;
  };
  struct Key {
    std::uint32_t tensor;
    LayoutId src;
    LayoutId dst;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };
  using Ties = MergedTransfers::Ties;
  // Rows caches the costs of one tensor class with the same mesh dims merged.
  // They are those of pairs without partials or with P(sum), or of pairs with
  // exactly these partials.
  struct Rows {
    Ties ties = 0;
    std::vector<Placement> partials;  // sorted; empty: none or P(sum)
    std::optional<RedistributeRows> rows;
    std::optional<Error> refused;  // why `rows` is empty
    // By LayoutId: its index in `rows`, or kUnasked, or kElsewhere.
    std::vector<std::int32_t> place;
    std::vector<std::vector<std::int64_t>> costs;  // by source; empty: not yet
  };
  // Strided caches the costs of one tensor class with the same strided shards.
  struct Strided {
    std::unique_ptr<StridedCosts> costs;  // null if there are none
    std::vector<std::int32_t> place;      // by LayoutId, as in Rows
  };
  static constexpr std::int32_t kUnasked = -1;
  static constexpr std::int32_t kElsewhere = -2;

  // Returns the index of the layout in the rows, or kElsewhere if they lack it.
  // Pairs with such a layout are priced one by one.
  std::int32_t place(Rows& rows, std::uint32_t tensor, LayoutId layout) const;

  bool is_on_single_rank(LayoutId layout) const;
  // Returns the cost of a pair with strided shards; nullopt if it must be priced
  // as a single pair.
  std::optional<std::int64_t> strided(std::uint32_t tensor, LayoutId src,
                                      LayoutId dst) const;

  Ties ties_of(LayoutId src, LayoutId dst) const;
  Rows& rows_of(std::uint32_t tensor, Ties ties,
                std::vector<Placement> partials = {}) const;
  // Returns the cost of a pair; nullopt if the rows lack one of its layouts.
  std::optional<std::int64_t> listed(Rows& rows, std::uint32_t tensor,
                                     LayoutId src, LayoutId dst) const;
  // Returns the partials of a pair in order; empty if the rows without own
  // partials or single searches price it.
  std::vector<Placement> own_partials(LayoutId src, LayoutId dst) const;
  const RedistributePlanner& planner(std::uint32_t tensor, Ties ties) const {
    const bool in_buckets = tensors_[tensor].in_buckets;
    if (ties == 0) return in_buckets ? bucketed_ : planner_;
    return (in_buckets ? merged_bucketed_ : merged_)
        .planner(planner_.mesh(), ties);
  }
  Layout merged(LayoutId layout, Ties ties) const {
    return ties == 0 ? layouts_[layout]
                     : MergedTransfers::merged(layouts_[layout], ties);
  }

  // Returns whether one more single pair would take too long.
  bool is_refused(const Rows& rows, std::uint32_t tensor) const;

  RedistributePlanner planner_;
  RedistributePlanner bucketed_;
  mutable MergedTransfers merged_;
  mutable MergedTransfers merged_bucketed_;
  const LayoutTable& layouts_;
  bool merge_;
  std::vector<Tensor> tensors_;
  // By tensor class: whether its bytes exceed the size that a redistribution
  // may have.
  std::vector<bool> is_too_large_;
  std::unordered_map<Tensor, std::uint32_t, TensorHash> ids_;
  mutable std::vector<std::deque<Rows>> rows_;  // by tensor class
  mutable std::map<std::pair<std::uint32_t, std::vector<Placement>>, Strided>
      strided_;                        // by tensor class and strided shards
  mutable std::vector<Ties> uniform_;  // by LayoutId
  mutable int lone_pairs_ = 0;
  mutable std::optional<Error> refusal_;
  mutable std::unordered_map<Key, std::int64_t, KeyHash> moves_;
  mutable std::unordered_map<Key, std::vector<RedistributeStep>, KeyHash>
      steps_;
  mutable std::unordered_map<Key, std::int64_t, KeyHash> peaks_;
  mutable std::unordered_map<Key, std::int64_t, KeyHash> bytes_;
};

}  // namespace shardprop
