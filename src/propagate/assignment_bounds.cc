#include "propagate/assignment_bounds.h"

#include "base/saturating.h"

#include <shardprop/placement/local_region.h>

#include <algorithm>
#include <string>

namespace shardprop {
namespace {}  // namespace

void AssignmentBounds::Beginning::add(const Ask& ask) {
  parts *= ask.parts;
  reduces = reduces || ask.reduces;
  code += ask.code;
  if (ask.dim < 0) return;
  const auto at = static_cast<unsigned>(4 * ask.dim);
  code += (cuts >> at & 15U) << ask.cut_code;
  cuts += std::uint64_t{1} << at;
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
      beginnings_((index(context.mesh.ndim()) + 1) * given.size()),
      mesh_dims_(index(context.mesh.ndim())) {
  using Orders = redistribute::Reach::Orders;
  empty_.reserve(given.size());
  held_.reserve(given.size());
  moves_.reserve(given.size());
  for (std::size_t i = 0; i < given.size(); ++i) {
    const TensorMeta& meta = call.op->inputs[i];
    empty_.push_back(meta.numel() == 0);
    held_.push_back(max_local_bytes(given[i], context.mesh, meta));
    moves_.emplace_back(context.planner, context.recent, given[i], meta,
                        needs.partials(i),
                        needs.is_exact(i) ? Orders::kOfMesh : Orders::kAll);
  }
  list_asks();
}

void AssignmentBounds::list_asks() {
  const auto choices = static_cast<std::int16_t>(needs_.choices());
  asks_.reserve(index(context_.mesh.ndim()) * (needs_.choices() + 1) *
                given_.size());
  for (int m = 0; m < context_.mesh.ndim(); ++m) {
    for (std::int16_t choice = kUnassigned; choice < choices; ++choice) {
      for (std::size_t i = 0; i < given_.size(); ++i) {
        asks_.push_back(ask_of(m, choice, i));
      }
    }
  }
}

AssignmentBounds::Ask AssignmentBounds::ask_of(int mesh_dim,
                                               std::int16_t choice,
                                               std::size_t input) const {
  Ask ask;
  if (!needs_.is_fed_choice(choice) || context_.mesh.size(mesh_dim) == 1) {
    return ask;
  }
  const Placement given = given_[input][mesh_dim];
  const Placement needed = needs_.of(choice, input);
  ask.change = shardprop::change(given, needed);
  if (ask.change == Change::kCollective && !empty_[input]) {
    ask.bound = context_.bound.at_least(mesh_dim, given, needed);
  }
  if (needed.is_shard()) ask.parts = context_.mesh.size(mesh_dim);
  ask.reduces = given.is_partial() && !needed.is_partial();
  const OperandMoves& moves = moves_[input];
  if (!moves.is_listed()) return ask;
  ask.code = moves.code(mesh_dim, moves.symbol(needed), 0);
  ask.cut_code = moves.shift(mesh_dim);
  if (needed.is_shard()) ask.dim = static_cast<std::int8_t>(needed.dim());
  return ask;
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
    sum = sat_add(sum, moves_[i].is_listed() && needs_.is_exact(i)
                           ? beginning(depth)[i].bound
                           : context_.bound.at_least(given_[i], operands[i],
                                                     call_.op->inputs[i]));
  }
  return sum;
}

std::int64_t AssignmentBounds::of_whole(const Assignment& assignment) {
  Assignment beginning;
  std::int64_t bound = 0;
  for (const std::int16_t choice : assignment) {
    beginning.push_back(choice);
    bound = of(beginning);
  }
  return bound;
}

std::int64_t AssignmentBounds::of_greedy_choices() {
  if (context_.mesh.ndim() < 3) return kImpossible;
  const auto choices = static_cast<std::int16_t>(needs_.choices());
  Assignment assignment;
  std::int64_t least = 0;
  for (int m = 0; m < context_.mesh.ndim(); ++m) {
    std::int16_t best = kUnassigned;
    least = kImpossible;
    assignment.push_back(best);
    for (std::int16_t choice = kUnassigned; choice < choices; ++choice) {
      assignment[assignment.size() - 1] = choice;
      const std::int64_t bound = of(assignment);
      if (bound >= least) continue;
      least = bound;
      best = choice;
    }
    if (least == kImpossible) return kImpossible;
    // The bounds of longer prefixes need this prefix as the last one.
    assignment[assignment.size() - 1] = best;
    (void)of(assignment);
  }
  return least;
}

std::int64_t AssignmentBounds::of(const Assignment& assignment) {
  const std::size_t depth = assignment.size();
  const std::int16_t choice = assignment[depth - 1];
  if (!needs_.is_fed_choice(choice)) return kImpossible;
  const std::span<const Ask> asks_now = asks(depth - 1, choice);
  const std::span<const Beginning> before = beginning(depth - 1);
  const std::span<Beginning> now = beginning(depth);
  for (std::size_t i = 0; i < given_.size(); ++i) {
    const Ask& ask = asks_now[i];
    if (ask.change == Change::kImpossible) {
      refuse(i, static_cast<int>(depth) - 1);
      return kImpossible;
    }
    if (ask.change == Change::kCollective && written_[i]) {
      written_moves_ = true;
      return kImpossible;
    }
    now[i] = before[i];
    now[i].bound = std::max(now[i].bound, ask.bound);
    now[i].add(ask);
  }
  if (depth == mesh_dims_) bound_whole(now);
  return of_last(depth);
}

// Bounds the moves of a complete assignment. If the cost of a move is known, it
// is the bound. Otherwise the bound also considers the bytes that a rank must
// receive.
void AssignmentBounds::bound_whole(std::span<Beginning> now) const {
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
      now[i].bound = std::max(now[i].bound, bound_bytes(now[i], i));
    }
  }
}

// This is a lower bound: with uneven cuts, the largest part is larger.
std::int64_t AssignmentBounds::bound_bytes(const Beginning& of,
                                           std::size_t input) const {
  const double wanted = static_cast<double>(call_.op->inputs[input].bytes()) /
                        static_cast<double>(of.parts);
  const double lacking =
      of.reduces ? wanted : wanted - static_cast<double>(held_[input]);
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
