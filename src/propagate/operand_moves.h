// OperandMoves: what moving one operand of a call takes: by one search for all
// layouts near the given one where they are listed (Reach), by the planner pair
// by pair elsewhere.
//
// Strided shards are not listed, and on meshes of more than three dims larger
// than 1 a search for each pair takes too long. There they are gone around: what
// is taken for the cost is to gather them first, to move from there, and to
// slice the target's. The plan may cost less.
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

  // `given` is canonical. Of `partials` and `orders` are the layouts that may be
  // asked for.
  OperandMoves(CachingPlanner& planner, redistribute::RecentReaches& recent,
               const Layout& given, const TensorMeta& meta,
               std::span<const Placement> partials,
               redistribute::Reach::Orders orders);
  ~OperandMoves() { recent_->put_back(std::move(reach_)); }
  OperandMoves(OperandMoves&&) = default;
  OperandMoves(const OperandMoves&) = delete;
  OperandMoves& operator=(const OperandMoves&) = delete;

  // Whether nanoseconds() knows the layouts of up to the limit.
  bool is_listed() const { return reach_ != nullptr; }
  void extend(std::int64_t limit) {
    if (reach_ == nullptr) return;
    if (limit >= gathers_) reach_->extend(limit - gathers_);
    beyond_ = limit < gathers_ ? gathers_ : sat_add(gathers_, reach_->beyond());
  }
  // No layout that nanoseconds() does not know takes less.
  std::int64_t beyond() const { return beyond_; }
  // Precondition of what follows: is_listed(). The code of a layout is the sum
  // of those of its placements: symbols that come `cut`-th among the cuts of
  // their tensor dim. R's symbol is 0.
  std::uint8_t symbol(Placement placement) const;
  std::uint64_t code(int mesh_dim, std::uint8_t symbol,
                     std::uint64_t cut) const {
    return (std::uint64_t{symbol} << 4 | cut) << shift(mesh_dim);
  }
  std::uint8_t shift(int mesh_dim) const { return shifts_[index(mesh_dim)]; }
  // kImpossible where it takes more than the limit.
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

  // Nothing where the search does not answer for it.
  std::optional<std::uint64_t> code_of(const Layout& to) const;
  // By strided shards that are gone around.
  bool is_detour(const Layout& to) const;

  CachingPlanner* planner_;
  redistribute::RecentReaches* recent_;
  const Layout* given_;
  const TensorMeta* meta_;
  std::unique_ptr<redistribute::Reach> reach_;
  bool goes_around_ = false;
  std::int64_t gathers_ = 0;  // before the search begins
  std::int64_t beyond_ = 0;
  // Of each mesh dim larger than 1, where its placement is in a code.
  InlineVector<std::uint8_t, 8> shifts_;
  std::vector<Priced> priced_;
};

}  // namespace shardprop
