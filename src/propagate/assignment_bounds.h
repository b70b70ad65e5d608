// AssignmentBounds computes lower bounds on the cost of an assignment of
// strategies to mesh dims, or of a prefix of one. The cost is that of the moves
// of its inputs.
//
// A StrategyWalk extends assignments one mesh dim at a time. The bound of a
// prefix follows from the bound of the prefix that is one shorter.
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

  // All arguments must outlive the object. `written` marks the inputs that may
  // not be moved.
  AssignmentBounds(const SearchContext& context, const BoundOp& call,
                   std::span<const Layout> given, const OperandNeeds& needs,
                   const std::vector<bool>& written);

  // Makes the exact costs of moves up to `limit` known; other moves are
  // bounded.
  void extend(std::int64_t limit);

  // Returns the bound of all assignments with this prefix. Precondition: the
  // last call for the prefix without its last entry was more recent than any
  // call for another prefix of that length. Returns kImpossible if no such
  // assignment exists.
  std::int64_t of(const Assignment& beginning);
  // Returns the last result of of() at this depth.
  std::int64_t of_last(std::size_t depth) const;
  // Returns the sharpest bound of a complete assignment with these operands.
  std::int64_t of_last(std::size_t depth,
                       std::span<const Layout> operands) const;

  // Returns the bound of a complete assignment, from its first mesh dim on.
  std::int64_t of_whole(const Assignment& assignment);
  // Returns the bound of the assignment that takes the cheapest choice for one
  // mesh dim after the other. With fewer than three mesh dims it returns
  // kImpossible, since the full walk is then as short.
  std::int64_t of_greedy_choices();

  OperandMoves& moves(std::size_t input) { return moves_[input]; }

  // written_moves() returns whether an assignment was impossible because it
  // would move a written input. refused() is the error for the first shard that
  // no strategy accepts.
  bool written_moves() const { return written_moves_; }
  const Error& refused() const { return refused_; }

 private:
  // Ask is the requirement of one choice for a mesh dim on one input.
  struct Ask {
    std::int64_t bound = 0;     // bound of the required collective
    std::int64_t parts = 1;     // number of parts into which it cuts
    std::uint64_t code = 0;     // its part of the layout code, if it cuts first
    std::uint8_t cut_code = 0;  // where the place of the cut is in `code`
    std::int8_t dim = -1;       // tensor dim that it cuts
    Change change = Change::kNone;
    bool reduces = false;
  };

  // Beginning is the requirement of an assignment prefix on one input.
  struct Beginning {
    std::int64_t bound = 0;  // bound of the move
    std::int64_t parts = 1;  // number of parts of the input
    std::uint64_t code = 0;  // layout code of the prefix
    std::uint64_t cuts = 0;  // cuts of each tensor dim, four bits each
    bool reduces = false;

    void add(const Ask& ask);
  };

  void list_asks();
  Ask ask_of(int mesh_dim, std::int16_t choice, std::size_t input) const;
  // Returns the requirements for all inputs.
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
  std::vector<Beginning> beginnings_;  // [depth][input], of the current prefix
  std::size_t mesh_dims_;
  std::vector<OperandMoves> moves_;
  std::vector<Ask> asks_;           // [mesh dim][choice + 1][input]
  std::vector<std::int64_t> held_;  // bytes of each input on a rank
  bool written_moves_ = false;
  Error refused_;
};

}  // namespace shardprop
