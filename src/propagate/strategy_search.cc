#include "propagate/strategy_search.h"

#include "base/index.h"
#include "base/saturating.h"
#include "propagate/assignment_bounds.h"
#include "propagate/operand_needs.h"
#include "propagate/strategy_price.h"
#include "strategy/offered_shardings.h"
#include "strategy/strategy_walk.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

namespace shardprop {
namespace {

constexpr std::int64_t kImpossible = AssignmentBounds::kImpossible;

// Returns whether the placement is the required one, apart from the order of
// cuts.
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
        offered_(offered_shardings(*call.space, context.mesh,
                                   call.space->inputs, given)),
        needs_(*call.space, given, offered_.empty()),
        walk_(*call.walk),
        written_(given.size(), false) {
    for (const WrittenOperand& write : call.writes) {
      written_[write.operand] = true;
    }
  }

  tl::expected<ChosenStrategy, NoChoice> run() {
    find_fits();
    // A strategy without cost is optimal.
    if (best_ && best_->moved_nanoseconds + best_->inside_nanoseconds == 0) {
      best_->is_only_fit = fits_ == 1;
      return *std::move(best_);
    }
    raise_the_limit();
    if (best_) {
      if (!plan_moves()) return tl::unexpected(NoChoice{false, refused_});
      return *std::move(best_);
    }
    if (!any_refused_) refused_ = bounds_->refused();
    return tl::unexpected(
        NoChoice{(written_moves_ || bounds_->written_moves()) && !any_refused_,
                 std::move(refused_)});
  }

 private:
  struct Pending {
    std::int64_t bound;
    Assignment assignment;
    FactorShardings shardings;
    std::vector<Layout> operands;
  };

  // --- Strategies that leave every input where it is. ---

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
    bool visit(const Assignment& assignment, const FactorShardings& shardings,
               std::span<const Layout> operands) override {
      if (!std::equal(s_.given_.begin(), s_.given_.end(), operands.begin()) ||
          !s_.keeps_written(operands)) {
        return true;
      }
      ++s_.fits_;
      s_.consider(assignment, shardings, {operands.begin(), operands.end()}, 0,
                  0);
      return true;
    }

   private:
    Search& s_;
  };

  void find_fits() {
    Fits fits(*this);
    walk_.run(fits, offered_);
  }

  // --- All other strategies. ---

  class Gather : public StrategyVisitor {
   public:
    explicit Gather(Search& search) : s_(search) {}
    bool follows(const Assignment& beginning) override {
      const std::int64_t bound = s_.bounds_->of(beginning);
      if (bound > s_.limit_) s_.beyond_ = std::min(s_.beyond_, bound);
      return bound <= s_.limit_;
    }
    bool visit(const Assignment& assignment, const FactorShardings& shardings,
               std::span<const Layout> operands) override {
      // An earlier pass already priced assignments up to before_.
      if (s_.bounds_->of_last(assignment.size()) > s_.before_) {
        s_.keep(assignment, shardings, operands);
      }
      return true;
    }

   private:
    Search& s_;
  };

  // An assignment that is not gathered yet, with a bound from an earlier pass.
  struct Open {
    std::int64_t bound;
    Assignment assignment;
  };

  // Opening collects the assignments whose bounds are not far above the least
  // bound. It starts with a guess of the least bound.
  class Opening : public StrategyVisitor {
   public:
    Opening(Search& search, std::int64_t guess)
        : s_(search),
          mesh_dims_(static_cast<std::size_t>(search.context_.mesh.ndim())),
          near_(guess) {}
    void forget_guess() { near_ = beyond_ = kImpossible; }
    // Returns kImpossible if no assignment is near the guess.
    std::int64_t least() const { return least_; }
    // All assignments with bounds below beyond() are open.
    std::int64_t beyond() const { return beyond_; }

    bool follows(const Assignment& beginning) override {
      const std::int64_t bound = s_.bounds_->of(beginning);
      if (bound == kImpossible) return false;
      if (bound > sat_add(near_, near_ / 2)) {
        beyond_ = std::min(beyond_, bound);
        return false;
      }
      if (beginning.size() < mesh_dims_) return true;
      least_ = std::min(least_, bound);
      near_ = std::min(near_, bound);
      s_.open_.push_back({bound, beginning});
      return false;
    }
    bool visit(const Assignment&, const FactorShardings&,
               std::span<const Layout>) override {
      return true;
    }

   private:
    Search& s_;
    std::size_t mesh_dims_;
    std::int64_t near_;
    std::int64_t least_ = kImpossible;
    std::int64_t beyond_ = kImpossible;
  };

  void raise_the_limit() {
    bounds_.emplace(context_, call_, given_, needs_, written_);
    open_.reserve(32);
    Opening opening(*this, bounds_->of_greedy_choices());
    walk_.run(opening, offered_);
    if (opening.least() == kImpossible) {
      // The walk may not visit the guessed assignment.
      opening.forget_guess();
      walk_.run(opening, offered_);
      if (opening.least() == kImpossible) return;
    }
    limit_ = sat_add(opening.least(), opening.least() / 4);
    while (true) {
      bounds_->extend(limit_);
      beyond_ = kImpossible;
      if (limit_ < opening.beyond()) {
        beyond_ = opening.beyond();
        gather_open();
      } else {
        Gather gather(*this);
        walk_.run(gather, offered_);
      }
      price_pending();
      if (beyond_ == kImpossible || (best_ && beyond_ > best_cost())) return;
      before_ = limit_;
      // Large steps keep the number of passes small.
      limit_ = sat_add(beyond_, beyond_ / 16);
      if (best_) limit_ = std::min(limit_, best_cost());
    }
  }

  void gather_open() {
    Gather gather(*this);
    std::erase_if(open_, [&](Open& open) {
      // A bound grows when more costs of moves become known.
      if (open.bound <= limit_) open.bound = bounds_->of_whole(open.assignment);
      if (open.bound > limit_) {
        beyond_ = std::min(beyond_, open.bound);
        return false;
      }
      walk_.visit(open.assignment, offered_, gather);
      return true;
    });
  }

  void keep(const Assignment& assignment, const FactorShardings& shardings,
            std::span<const Layout> operands) {
    if (!keeps_written(operands)) {
      written_moves_ = true;
      return;
    }
    const std::int64_t bound = bounds_->of_last(assignment.size(), operands);
    if (best_ && bound > best_cost()) return;
    pending_.push_back(
        {bound, assignment, shardings, {operands.begin(), operands.end()}});
  }

  void price_pending() {
    std::sort(pending_.begin(), pending_.end(),
              [](const Pending& a, const Pending& b) {
                return std::tie(a.bound, a.assignment, a.shardings) <
                       std::tie(b.bound, b.assignment, b.shardings);
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
      consider(pending.assignment, pending.shardings,
               std::move(pending.operands), moved, count);
    }
    pending_.clear();
  }

  std::int64_t move_cost(std::size_t input, const Layout& to) {
    auto cost = bounds_->moves(input).cost(to);
    if (cost) return *cost;
    any_refused_ = true;
    refused_ = std::move(cost).error();
    return kImpossible;
  }

  // Plans the moves of the best strategy.
  bool plan_moves() {
    best_->plans.resize(given_.size());
    // A plan may cost less than the price that the search used.
    best_->moved_nanoseconds = 0;
    for (std::size_t i = 0; i < given_.size(); ++i) {
      if (best_->operands[i] == given_[i]) continue;
      auto plan = bounds_->moves(i).plan(best_->operands[i]);
      if (!plan) {
        refused_ = std::move(plan).error();
        return false;
      }
      best_->plans[i] = *std::move(plan);
      best_->moved_nanoseconds =
          sat_add(best_->moved_nanoseconds, best_->plans[i]->nanoseconds);
    }
    return true;
  }

  // --- Used for both kinds of strategies. ---

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

  void consider(const Assignment& assignment, const FactorShardings& shardings,
                std::vector<Layout> operands, std::int64_t moved, int count) {
    if (best_ && moved > best_cost()) return;
    LocalPrice price =
        price_inside(context_, call_, assignment, shardings, operands);
    ChosenStrategy made;
    made.assignment = assignment;
    made.shardings = shardings;
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
    return std::tie(a.assignment, a.shardings) <
           std::tie(b.assignment, b.shardings);
  }

  std::int64_t compute(ChosenStrategy& strategy) {
    if (strategy.compute_nanoseconds < 0) {
      strategy.compute_nanoseconds =
          price_compute(context_, call_, strategy.assignment,
                        strategy.shardings, strategy.operands);
    }
    return strategy.compute_nanoseconds;
  }

  const SearchContext& context_;
  const BoundOp& call_;
  std::span<const Layout> given_;
  // Shardings of factors that some inputs have, besides mesh order.
  std::vector<OfferedSharding> offered_;
  OperandNeeds needs_;
  const StrategyWalk& walk_;
  std::vector<bool> written_;

  std::optional<AssignmentBounds> bounds_;
  std::int64_t limit_ = -1;
  std::int64_t before_ = -1;           // limit of the previous pass
  std::int64_t beyond_ = kImpossible;  // least bound above the limit
  std::vector<Open> open_;
  std::vector<Pending> pending_;

  std::optional<ChosenStrategy> best_;
  int fits_ = 0;
  bool written_moves_ = false;
  bool any_refused_ = false;
  Error refused_;
};

}  // namespace

tl::expected<ChosenStrategy, NoChoice> choose_strategy(
    const SearchContext& context, const BoundOp& call,
    std::span<const Layout> given) {
  const std::vector<std::size_t>& unread = call.space->unread;
  if (unread.empty()) return Search(context, call, given).run();
  // An operand that is not read does not affect the choice. The search treats
  // it as replicated and required to be replicated; its real layout stays.
  BoundOp read = call;
  read.space =
      std::make_shared<const IndexSpace>(with_unread_whole(*call.space));
  read.walk = std::make_shared<const StrategyWalk>(
      *read.op, *read.space, context.mesh, StrategyOptions{});
  std::vector<Layout> searched(given.begin(), given.end());
  for (const std::size_t i : unread) {
    searched[i] = Layout::replicated(context.mesh.ndim());
  }
  auto chosen = Search(context, read, searched).run();
  if (!chosen) return chosen;
  for (const std::size_t i : unread) chosen->operands[i] = given[i];
  return chosen;
}

}  // namespace shardprop
