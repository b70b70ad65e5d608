#include "propagate/strategy_search.h"

#include "base/saturating.h"
#include "propagate/operand_moves.h"
#include "propagate/operand_needs.h"
#include "propagate/strategy_price.h"

#include <shardprop/placement/local_region.h>
#include <shardprop/strategy/strategy_walk.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

namespace shardprop {
namespace {

constexpr std::int64_t kImpossible = std::numeric_limits<std::int64_t>::max();

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

// Whether the placement is the one needed, however cut.
bool may_be(Placement given, Placement needed) {
  if (given.is_shard() && needed.is_shard()) return given.dim() == needed.dim();
  if (given.is_partial() && needed.is_partial()) {
    return change(given, needed) == Change::kNone;
  }
  return given.kind() == needed.kind();
}

class Search {
 public:
  Search(const SearchContext& context, const BoundOp& call,
         std::span<const Layout> given)
      : context_(context),
        call_(call),
        given_(given),
        needs_(*call.space, given),
        walk_(*call.op, *call.space, context.mesh, StrategyOptions{}),
        written_(given.size(), false),
        empty_(given.size(), false) {
    for (const WrittenOperand& write : call.writes) {
      written_[write.operand] = true;
    }
    for (std::size_t i = 0; i < given.size(); ++i) {
      empty_[i] = call.op->inputs[i].numel() == 0;
    }
  }

  tl::expected<ChosenStrategy, NoChoice> run() {
    find_fits();
    // Nothing is cheaper than nothing.
    if (best_ && best_->moved_nanoseconds + best_->inside_nanoseconds == 0) {
      best_->is_only_fit = fits_ == 1;
      return *std::move(best_);
    }
    raise_the_limit();
    if (best_) {
      if (!plan_moves()) return tl::unexpected(NoChoice{false, refused_});
      return *std::move(best_);
    }
    return tl::unexpected(
        NoChoice{written_moves_ && !any_refused_, std::move(refused_)});
  }

 private:
  // What an assignment that begins so asks of one input.
  struct Beginning {
    std::int64_t bound = 0;  // of its move
    std::uint64_t code = 0;  // of its layout, so far
    std::uint64_t cuts = 0;  // of each tensor dim, four bits each

    void add(int mesh_dim, Placement needed, std::uint8_t symbol,
             const OperandMoves& moves) {
      std::uint64_t cut = 0;
      if (needed.is_shard()) {
        const auto at = static_cast<unsigned>(4 * needed.dim());
        cut = cuts >> at & 15U;
        cuts += std::uint64_t{1} << at;
      }
      code += moves.code(mesh_dim, symbol, cut);
    }
  };

  struct Pending {
    std::int64_t bound;
    Assignment assignment;
    std::vector<Layout> operands;
  };

  // --- what leaves every input where it is ---

  class Fits : public StrategyVisitor {
   public:
    explicit Fits(Search& search) : s_(search) {}
    bool follows(const Assignment& beginning) override {
      const std::size_t m = beginning.size() - 1;
      const std::int16_t choice = beginning[m];
      if (!s_.needs_.is_fed_choice(choice)) return false;
      for (std::size_t i = 0; i < s_.given_.size(); ++i) {
        if (!may_be(s_.given_[i][static_cast<int>(m)],
                    s_.needs_.of(choice, i))) {
          return false;
        }
      }
      return true;
    }
    bool visit(const Assignment& assignment,
               std::span<const Layout> operands) override {
      if (!std::equal(s_.given_.begin(), s_.given_.end(), operands.begin()) ||
          !s_.keeps_written(operands)) {
        return true;
      }
      ++s_.fits_;
      s_.consider(assignment, {operands.begin(), operands.end()}, 0, 0);
      return true;
    }

   private:
    Search& s_;
  };

  void find_fits() {
    Fits fits(*this);
    walk_.run(fits);
  }

  // --- all others ---

  class Gather : public StrategyVisitor {
   public:
    explicit Gather(Search& search) : s_(search) {}
    bool follows(const Assignment& beginning) override {
      const std::int64_t bound = s_.bound_of(beginning);
      if (bound > s_.limit_) s_.beyond_ = std::min(s_.beyond_, bound);
      return bound <= s_.limit_;
    }
    bool visit(const Assignment& assignment,
               std::span<const Layout> operands) override {
      // Those of an earlier pass have had their turn.
      if (s_.sum_of_bounds(assignment.size()) > s_.before_) {
        s_.keep(assignment, operands);
      }
      return true;
    }

   private:
    Search& s_;
  };

  // The least bound of any assignment.
  class Least : public StrategyVisitor {
   public:
    explicit Least(Search& search) : s_(search) {}
    std::int64_t least() const { return least_; }
    bool follows(const Assignment& beginning) override {
      const std::int64_t bound = s_.bound_of(beginning);
      if (bound >= least_) return false;
      const bool whole = index(s_.context_.mesh.ndim()) == beginning.size();
      if (whole) least_ = bound;
      return !whole;
    }
    bool visit(const Assignment&, std::span<const Layout>) override {
      return true;
    }

   private:
    Search& s_;
    std::int64_t least_ = kImpossible;
  };

  void raise_the_limit() {
    prepare_bounds();
    Least least(*this);
    walk_.run(least);
    if (least.least() == kImpossible) return;
    limit_ = sat_add(least.least(), least.least() / 4);
    while (true) {
      for (OperandMoves& moves : moves_) moves.extend(limit_);
      beyond_ = kImpossible;
      Gather gather(*this);
      walk_.run(gather);
      price_pending();
      if (beyond_ == kImpossible || (best_ && beyond_ > best_cost())) return;
      before_ = limit_;
      // Steps large enough that few passes do.
      limit_ = sat_add(beyond_, beyond_ / 16);
      if (best_) limit_ = std::min(limit_, best_cost());
    }
  }

  void prepare_bounds() {
    const auto mesh_dims = index(context_.mesh.ndim());
    for (std::size_t i = 0; i < given_.size(); ++i) {
      const TensorMeta& meta = call_.op->inputs[i];
      held_.push_back(max_local_bytes(given_[i], context_.mesh, meta));
      using Orders = redistribute::Reach::Orders;
      moves_.emplace_back(context_.planner, given_[i], meta, needs_.partials(i),
                          needs_.is_exact(i) ? Orders::kOfMesh : Orders::kAll);
    }
    beginnings_.assign((mesh_dims + 1) * given_.size(), {});
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

  // In the code of a layout; R's is 0.
  std::uint8_t symbol(std::int16_t choice, std::size_t input) const {
    return symbols_[index(choice + 1) * given_.size() + input];
  }

  std::span<Beginning> beginning(std::size_t depth) {
    return {beginnings_.data() + depth * given_.size(), given_.size()};
  }

  std::int64_t sum_of_bounds(std::size_t depth) {
    std::int64_t sum = 0;
    for (const Beginning& b : beginning(depth)) sum = sat_add(sum, b.bound);
    return sum;
  }

  // Of all moves that an assignment with this beginning asks for.
  std::int64_t bound_of(const Assignment& assignment) {
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
    return sum_of_bounds(depth);
  }

  // Of a whole assignment: what the move takes where that is known, else also
  // by the bytes that must come in.
  void bound_whole(const Assignment& assignment) {
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
  std::int64_t bound_bytes(const Assignment& assignment, std::size_t i) const {
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

  void refuse(std::size_t input, int mesh_dim) {
    if (any_refused_) return;
    refused_ =
        Error{ErrorCode::kShardToPartial,
              "operand " + std::to_string(input) + " of `" + call_.op->name() +
                  "` is sharded on mesh dim " + std::to_string(mesh_dim) +
                  ", where every strategy needs a partial",
              {},
              {},
              "redistribute it to R first"};
  }

  void keep(const Assignment& assignment, std::span<const Layout> operands) {
    if (!keeps_written(operands)) {
      written_moves_ = true;
      return;
    }
    std::int64_t bound = 0;
    for (std::size_t i = 0; i < given_.size(); ++i) {
      bound += moves_[i].is_listed() && needs_.is_exact(i)
                   ? beginning(assignment.size())[i].bound
                   : context_.bound.at_least(given_[i], operands[i],
                                             call_.op->inputs[i]);
    }
    if (best_ && bound > best_cost()) return;
    pending_.push_back({bound, assignment, {operands.begin(), operands.end()}});
  }

  void price_pending() {
    std::sort(pending_.begin(), pending_.end(),
              [](const Pending& a, const Pending& b) {
                return std::tie(a.bound, a.assignment) <
                       std::tie(b.bound, b.assignment);
              });
    for (Pending& pending : pending_) {
      if (best_ && pending.bound > best_cost()) break;
      std::int64_t moved = 0;
      int count = 0;
      bool reachable = true;
      for (std::size_t i = 0; i < given_.size() && reachable; ++i) {
        const std::int64_t cost = move_cost(i, pending.operands[i]);
        reachable = cost != kImpossible;
        if (!reachable) break;
        moved = sat_add(moved, cost);
        count += pending.operands[i] == given_[i] ? 0 : 1;
        reachable = !best_ || moved <= best_cost();
      }
      if (!reachable) continue;
      consider(pending.assignment, std::move(pending.operands), moved, count);
    }
    pending_.clear();
  }

  std::int64_t move_cost(std::size_t input, const Layout& to) {
    auto cost = moves_[input].cost(to);
    if (cost) return *cost;
    any_refused_ = true;
    refused_ = std::move(cost).error();
    return kImpossible;
  }

  // Of the best.
  bool plan_moves() {
    best_->plans.resize(given_.size());
    for (std::size_t i = 0; i < given_.size(); ++i) {
      if (best_->operands[i] == given_[i]) continue;
      auto plan = moves_[i].plan(best_->operands[i]);
      if (!plan) {
        refused_ = std::move(plan).error();
        return false;
      }
      best_->plans[i] = *std::move(plan);
    }
    return true;
  }

  // --- both ---

  bool keeps_written(std::span<const Layout> operands) const {
    for (const WrittenOperand& write : call_.writes) {
      const Layout& given = given_[write.operand];
      if (operands[write.operand] != given) return false;
      if (write.output && operands[given_.size() + *write.output] != given) {
        return false;
      }
    }
    return true;
  }

  std::int64_t best_cost() const {
    return best_->moved_nanoseconds + best_->inside_nanoseconds;
  }

  void consider(const Assignment& assignment, std::vector<Layout> operands,
                std::int64_t moved, int count) {
    if (best_ && moved > best_cost()) return;
    LocalPrice price = price_inside(context_, call_, assignment, operands);
    ChosenStrategy made;
    made.assignment = assignment;
    made.operands = std::move(operands);
    made.inside = std::move(price.inside);
    made.moved_nanoseconds = moved;
    made.inside_nanoseconds = price.inside_nanoseconds;
    made.moved_inputs = count;
    if (!best_ || is_better(made, *best_)) best_ = std::move(made);
  }

  bool is_better(ChosenStrategy& a, ChosenStrategy& b) {
    const auto cost = [](const ChosenStrategy& s) {
      return s.moved_nanoseconds + s.inside_nanoseconds;
    };
    if (cost(a) != cost(b)) return cost(a) < cost(b);
    if (a.moved_inputs != b.moved_inputs)
      return a.moved_inputs < b.moved_inputs;
    const std::int64_t left = compute(a);
    const std::int64_t right = compute(b);
    if (left != right) return left < right;
    return a.assignment < b.assignment;
  }

  std::int64_t compute(ChosenStrategy& strategy) {
    if (strategy.compute_nanoseconds < 0) {
      strategy.compute_nanoseconds = price_compute(
          context_, call_, strategy.assignment, strategy.operands);
    }
    return strategy.compute_nanoseconds;
  }

  const SearchContext& context_;
  const BoundOp& call_;
  std::span<const Layout> given_;
  OperandNeeds needs_;
  StrategyWalk walk_;
  std::vector<bool> written_;
  std::vector<bool> empty_;

  std::vector<Beginning> beginnings_;  // [depth][input], of what is followed
  std::vector<OperandMoves> moves_;
  std::vector<std::uint8_t> symbols_;  // [choice + 1][input]
  std::vector<std::int64_t> held_;     // bytes of each input on a rank
  std::int64_t limit_ = -1;
  std::int64_t before_ = -1;           // the limit of the pass before
  std::int64_t beyond_ = kImpossible;  // the least bound above the limit
  std::vector<Pending> pending_;

  std::optional<ChosenStrategy> best_;
  int fits_ = 0;
  bool written_moves_ = false;
  bool any_refused_ = false;
  Error refused_;
};

}  // namespace

Layout without_single_ranks(const Layout& layout, const DeviceMesh& mesh) {
  Layout out = layout;
  for (int m = 0; m < mesh.ndim(); ++m) {
    if (mesh.size(m) > 1 || out[m].is_replicate()) continue;
    auto without = out.with(m, Placement::replicate());
    if (!without) throw InternalError("R does not fit a layout");
    out = *std::move(without);
  }
  return out;
}

tl::expected<ChosenStrategy, NoChoice> choose_strategy(
    const SearchContext& context, const BoundOp& call,
    std::span<const Layout> given) {
  return Search(context, call, given).run();
}

}  // namespace shardprop
