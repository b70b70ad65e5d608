#include "propagate/assignment_bounds.h"

#include "base/saturating.h"

#include <shardprop/placement/local_region.h>

#include <algorithm>
#include <string>

namespace shardprop {
namespace {

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace

void AssignmentBounds::Beginning::add(int mesh_dim, Placement needed,
                                      std::uint8_t symbol,
                                      const OperandMoves& moves) {
  std::uint64_t cut = 0;
  if (needed.is_shard()) {
    const auto at = static_cast<unsigned>(4 * needed.dim());
    cut = cuts >> at & 15U;
    cuts += std::uint64_t{1} << at;
  }
  code += moves.code(mesh_dim, symbol, cut);
}

AssignmentBounds::AssignmentBounds(const SearchContext& context,
                                   const BoundOp& call,
                                   std::span<const Layout> given,
                                   const OperandNeeds& needs,
                                   const std::vector<bool>& written)
    : context_(context),
      call_(call),
      given_(given),
      needs_(needs),
      written_(written),
      beginnings_((index(context.mesh.ndim()) + 1) * given.size()) {
  using Orders = redistribute::Reach::Orders;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const TensorMeta& meta = call.op->inputs[i];
    empty_.push_back(meta.numel() == 0);
    held_.push_back(max_local_bytes(given[i], context.mesh, meta));
    moves_.emplace_back(context.planner, context.recent, given[i], meta,
                        needs.partials(i),
                        needs.is_exact(i) ? Orders::kOfMesh : Orders::kAll);
  }
  list_symbols();
}

void AssignmentBounds::list_symbols() {
  symbols_.assign((needs_.choices() + 1) * given_.size(), 0);
  for (std::size_t c = 0; c < needs_.choices(); ++c) {
    const auto choice = static_cast<std::int16_t>(c);
    if (!needs_.is_fed_choice(choice)) continue;
    for (std::size_t i = 0; i < given_.size(); ++i) {
      if (!moves_[i].is_listed()) continue;
      symbols_[(c + 1) * given_.size() + i] =
          moves_[i].symbol(needs_.of(choice, i));
    }
  }
}

std::uint8_t AssignmentBounds::symbol(std::int16_t choice,
                                      std::size_t input) const {
  return symbols_[index(choice + 1) * given_.size() + input];
}

void AssignmentBounds::extend(std::int64_t limit) {
  for (OperandMoves& moves : moves_) moves.extend(limit);
}

std::int64_t AssignmentBounds::of_last(std::size_t depth) const {
  std::int64_t sum = 0;
  for (const Beginning& b : beginning(depth)) sum = sat_add(sum, b.bound);
  return sum;
}

std::int64_t AssignmentBounds::of_last(std::size_t depth,
                                       std::span<const Layout> operands) const {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < given_.size(); ++i) {
    sum += moves_[i].is_listed() && needs_.is_exact(i)
               ? beginning(depth)[i].bound
               : context_.bound.at_least(given_[i], operands[i],
                                         call_.op->inputs[i]);
  }
  return sum;
}

std::int64_t AssignmentBounds::of(const Assignment& assignment) {
  const std::size_t depth = assignment.size();
  const auto m = static_cast<int>(depth) - 1;
  const std::int16_t choice = assignment[depth - 1];
  if (!needs_.is_fed_choice(choice)) return kImpossible;
  const std::span<const Beginning> before = beginning(depth - 1);
  const std::span<Beginning> now = beginning(depth);
  for (std::size_t i = 0; i < given_.size(); ++i) {
    now[i] = before[i];
    if (context_.mesh.size(m) == 1) continue;
    const Placement needed = needs_.of(choice, i);
    switch (change(given_[i][m], needed)) {
      case Change::kImpossible:
        refuse(i, m);
        return kImpossible;
      case Change::kCollective:
        if (written_[i]) {
          written_moves_ = true;
          return kImpossible;
        }
        if (!empty_[i]) {
          now[i].bound = std::max(
              now[i].bound, context_.bound.at_least(m, given_[i][m], needed));
        }
        break;
      case Change::kNone:
        break;
    }
    if (moves_[i].is_listed()) {
      now[i].add(m, needed, symbol(choice, i), moves_[i]);
    }
  }
  if (m + 1 == context_.mesh.ndim()) bound_whole(assignment);
  return of_last(depth);
}

// Of a whole assignment: what the move takes where that is known, else also
// by the bytes that must come in.
void AssignmentBounds::bound_whole(const Assignment& assignment) {
  const std::span<Beginning> now = beginning(assignment.size());
  for (std::size_t i = 0; i < given_.size(); ++i) {
    if (moves_[i].is_listed() && needs_.is_exact(i)) {
      const std::int64_t known = moves_[i].nanoseconds(now[i].code);
      if (known != OperandMoves::kImpossible) {
        now[i].bound = known;
        continue;
      }
      now[i].bound = std::max(now[i].bound, moves_[i].beyond());
    }
    if (now[i].bound > 0) {
      now[i].bound = std::max(now[i].bound, bound_bytes(assignment, i));
    }
  }
}

// Uneven cuts leave the largest part larger.
std::int64_t AssignmentBounds::bound_bytes(const Assignment& assignment,
                                           std::size_t i) const {
  double wanted = static_cast<double>(call_.op->inputs[i].bytes());
  bool reduces = false;
  for (std::size_t m = 0; m < assignment.size(); ++m) {
    const Placement needed = needs_.of(assignment[m], i);
    const auto size = context_.mesh.size(static_cast<int>(m));
    if (needed.is_shard()) wanted /= static_cast<double>(size);
    reduces = reduces || (size > 1 && !needed.is_partial() &&
                          given_[i][static_cast<int>(m)].is_partial());
  }
  const double lacking =
      reduces ? wanted : wanted - static_cast<double>(held_[i]);
  return context_.bound.coming(static_cast<std::int64_t>(lacking));
}

void AssignmentBounds::refuse(std::size_t input, int mesh_dim) {
  if (!refused_.message.empty()) return;
  refused_ =
      Error{ErrorCode::kShardToPartial,
            "operand " + std::to_string(input) + " of `" + call_.op->name() +
                "` is sharded on mesh dim " + std::to_string(mesh_dim) +
                ", where every strategy needs a partial",
            {},
            {},
            "redistribute it to R first"};
}

}  // namespace shardprop
