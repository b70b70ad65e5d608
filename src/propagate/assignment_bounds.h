// AssignmentBounds: what an assignment of strategies to mesh dims, or the
// beginning of one, asks for at least: the moves of its inputs.
//
// Assignments are followed mesh dim by mesh dim, as a StrategyWalk does: what a
// beginning adds to the one before is worked out from that one alone.
#pragma once

#include "propagate/bound_op.h"
#include "propagate/operand_moves.h"
#include "propagate/operand_needs.h"
#include "propagate/strategy_price.h"

#include <shardprop/strategy/op_strategy.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace shardprop {

class AssignmentBounds {
 public:
  static constexpr std::int64_t kImpossible =
      std::numeric_limits<std::int64_t>::max();

  // All must outlive the object. `written`: the inputs that may not be moved.
  AssignmentBounds(const SearchContext& context, const BoundOp& call,
                   std::span<const Layout> given, const OperandNeeds& needs,
                   const std::vector<bool>& written);

  // Moves that cost no more than this are known from now on, not bounded.
  void extend(std::int64_t limit);

  // Of all assignments with this beginning; that which is one shorter was asked
  // for before. kImpossible where there is none.
  std::int64_t of(const Assignment& beginning);
  // What of() last said at this depth.
  std::int64_t of_last(std::size_t depth) const;
  // As sharp as it gets for a whole assignment with these operands.
  std::int64_t of_last(std::size_t depth,
                       std::span<const Layout> operands) const;

  OperandMoves& moves(std::size_t input) { return moves_[input]; }

  // Whether something was impossible since a written input would be moved, and
  // the first shard that no strategy takes.
  bool written_moves() const { return written_moves_; }
  const Error& refused() const { return refused_; }

 private:
  // What a choice for one mesh dim asks of one input.
  struct Ask {
    std::int64_t bound = 0;     // of the collective that it takes
    std::int64_t parts = 1;     // into which it cuts
    std::uint64_t code = 0;     // in that of the layout, if it cuts first
    std::uint8_t cut_code = 0;  // where the place among the cuts is in it
    std::int8_t dim = -1;       // that it cuts
    Change change = Change::kNone;
    bool reduces = false;
  };

  // What an assignment that begins so asks of one input.
  struct Beginning {
    std::int64_t bound = 0;  // of its move
    std::int64_t parts = 1;  // into which it is cut
    std::uint64_t code = 0;  // of its layout, so far
    std::uint64_t cuts = 0;  // of each tensor dim, four bits each
    bool reduces = false;

    void add(const Ask& ask);
  };

  void list_asks();
  Ask ask_of(int mesh_dim, std::int16_t choice, std::size_t input) const;
  // Of all inputs.
  std::span<const Ask> asks(std::size_t mesh_dim, std::int16_t choice) const {
    const std::size_t row = mesh_dim * (needs_.choices() + 1) +
                            static_cast<std::size_t>(choice + 1);
    return {asks_.data() + row * given_.size(), given_.size()};
  }
  std::span<const Beginning> beginning(std::size_t depth) const {
    return {beginnings_.data() + depth * given_.size(), given_.size()};
  }
  std::span<Beginning> beginning(std::size_t depth) {
    return {beginnings_.data() + depth * given_.size(), given_.size()};
  }
  void bound_whole(std::span<Beginning> now) const;
  std::int64_t bound_bytes(const Beginning& of, std::size_t input) const;
  void refuse(std::size_t input, int mesh_dim);

  const SearchContext& context_;
  const BoundOp& call_;
  std::span<const Layout> given_;
  const OperandNeeds& needs_;
  const std::vector<bool>& written_;
  std::vector<bool> empty_;
  std::vector<Beginning> beginnings_;  // [depth][input], of what is followed
  std::size_t mesh_dims_;
  std::vector<OperandMoves> moves_;
  std::vector<Ask> asks_;           // [mesh dim][choice + 1][input]
  std::vector<std::int64_t> held_;  // bytes of each input on a rank
  bool written_moves_ = false;
  Error refused_;
};

}  // namespace shardprop
