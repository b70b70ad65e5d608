// StridedCosts computes the costs between the layouts of one tensor that an
// alphabet with strided shards offers. RedistributePlanner::cost() of each pair
// is the same, but starts anew. Here all pairs share the moves, which are
// listed and priced once a search needs them. All targets of a source share the
// search.
//
//   StridedCosts costs(planner, meta, endpoints);
//   const auto from = costs.number(src);
//   const auto to = costs.number(dst);
//   if (from && to) costs.nanoseconds(*from, *to);
#pragma once

#include "redistribute/growing_layout_graph.h"
#include "redistribute/layout_prices.h"
#include "redistribute/path.h"

#include <shardprop/placement/layout.h>
#include <shardprop/placement/tensor_meta.h>
#include <shardprop/redistribute/planner.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace shardprop {

class StridedCosts {
 public:
  // The layouts are those of a planner's search between `endpoints`, with
  // P(sum) if the dtype can be summed. Returns null if there are too many
  // placements, or if planner.cost() depends on more than the path: with a
  // memory limit, without empty shards, or if its search may give up.
  static std::unique_ptr<StridedCosts> create(
      const RedistributePlanner& planner, const TensorMeta& meta,
      std::span<const Layout> endpoints);
  ~StridedCosts();

  // Returns the number of a layout; nullopt if it is not canonical or has other
  // placements.
  std::optional<std::uint32_t> number(const Layout& layout);
  // Returns planner.cost(); nullopt if a shard would become a partial.
  std::optional<std::int64_t> nanoseconds(std::uint32_t from, std::uint32_t to);

 private:
  class Search;
  struct SharedMove {
    std::uint32_t to;
    redistribute::Label label;  // kUnpriced until needed
  };
  // Moves with the same operation and group.
  struct Run {
    redistribute::Move move;
    redistribute::Mask group;
    redistribute::Label least;  // lower bound on the labels
    std::vector<SharedMove> moves;
  };
  static constexpr redistribute::Label kUnpriced = -1;

  StridedCosts(std::shared_ptr<const RedistributePlanner::Body> planner,
               redistribute::Alphabet alphabet, const TensorMeta& meta);
  std::vector<Run>& runs_from(std::uint32_t at);
  redistribute::Mask mesh_dims(std::uint32_t layout, bool partial) const;

  std::shared_ptr<const RedistributePlanner::Body> planner_;
  redistribute::Alphabet alphabet_;
  TensorMeta meta_;
  redistribute::GrowingLayoutGraph graph_;
  redistribute::LayoutPrices prices_;
  std::vector<std::vector<Run>> runs_;  // by layout; empty: not listed yet
  // By source: the searches without and with partials.
  std::vector<std::pair<std::unique_ptr<Search>, std::unique_ptr<Search>>>
      searches_;
};

}  // namespace shardprop
