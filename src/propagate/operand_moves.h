// OperandMoves computes the cost of moving one operand of a call. If it can
// list layouts, one search (Reach) prices all layouts near the given one.
// Otherwise the planner prices each pair.
//
// Strided shards are not listed. On meshes of more than three dims larger than
// 1, a search per pair takes too long. OperandMoves then avoids the search: it
// gathers strided shards first, moves from there, and slices the target's
// strided shards. The actual plan may cost less than this.
#pragma once

#include "base/index.h"
#include "base/saturating.h"
#include "redistribute/recent_reaches.h"

#include <shardprop/redistribute/caching_planner.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace shardprop {

class OperandMoves {
 public:
  static constexpr std::int64_t kImpossible =
      std::numeric_limits<std::int64_t>::max();

  // `given` is canonical. `partials` and `orders` bound the layouts that may be
  // requested.
  OperandMoves(CachingPlanner& planner, redistribute::RecentReaches& recent,
               const Layout& given, const TensorMeta& meta,
               std::span<const Placement> partials,
               redistribute::Reach::Orders orders);
  ~OperandMoves() { recent_->put_back(std::move(reach_)); }
  OperandMoves(OperandMoves&&) = default;
  OperandMoves(const OperandMoves&) = delete;
  OperandMoves& operator=(const OperandMoves&) = delete;

  // Returns whether nanoseconds() knows the layouts that cost up to the limit.
  bool is_listed() const { return reach_ != nullptr; }
  void extend(std::int64_t limit) {
    if (reach_ == nullptr) return;
    if (limit >= gathers_) reach_->extend(limit - gathers_);
    beyond_ = limit < gathers_ ? gathers_ : sat_add(gathers_, reach_->beyond());
  }
  // A layout that nanoseconds() does not know costs at least beyond().
  std::int64_t beyond() const { return beyond_; }
  // Precondition of the functions below: is_listed(). The code of a layout is
  // the sum of the codes of its placements. The code of a placement consists of
  // its symbol and its place `cut` among the cuts of its tensor dim. The symbol
  // of R is 0.
  std::uint8_t symbol(Placement placement) const;
  std::uint64_t code(int mesh_dim, std::uint8_t symbol,
                     std::uint64_t cut) const {
    return (std::uint64_t{symbol} << 4 | cut) << shift(mesh_dim);
  }
  std::uint8_t shift(int mesh_dim) const { return shifts_[index(mesh_dim)]; }
  // Returns kImpossible if the move costs more than the limit.
  std::int64_t nanoseconds(std::uint64_t code) const {
    return sat_add(gathers_, reach_->nanoseconds(code));
  }

  // Errors: those of RedistributePlanner::plan().
  Result<std::int64_t> cost(const Layout& to);
  Result<std::shared_ptr<const RedistributePlan>> plan(const Layout& to);

 private:
  struct Priced {
    Layout to;
    Result<std::int64_t> cost;
  };

  // Returns nullopt if the search does not cover the layout.
  std::optional<std::uint64_t> code_of(const Layout& to) const;
  // Returns whether the move avoids a search by gathering strided shards.
  bool is_detour(const Layout& to) const;

  CachingPlanner* planner_;
  redistribute::RecentReaches* recent_;
  const Layout* given_;
  const TensorMeta* meta_;
  std::unique_ptr<redistribute::Reach> reach_;
  bool goes_around_ = false;
  std::int64_t gathers_ = 0;  // cost of the gathers before the search
  std::int64_t beyond_ = 0;
  // For each mesh dim larger than 1, the position of its placement in a code.
  InlineVector<std::uint8_t, 8> shifts_;
  std::vector<Priced> priced_;
};

}  // namespace shardprop
