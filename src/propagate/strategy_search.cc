#include "propagate/strategy_search.h"

#include "base/saturating.h"

#include <shardprop/placement/local_region.h>
#include <shardprop/strategy/op_cost.h>
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

// What mesh dims given to a factor or a linearity ask of every input.
class Needs {
 public:
  Needs(const IndexSpace& space, std::span<const Layout> given)
      : inputs_(space.inputs.size()) {
    const std::size_t factors = space.factors.size();
    needs_.resize((factors + space.linearities.size()) * inputs_);
    fed_.assign(factors + space.linearities.size(), true);
    for (std::size_t f = 0; f < factors; ++f) {
      for (std::size_t i = 0; i < inputs_; ++i) {
        needs_[f * inputs_ + i] = of_factor(space, f, i);
      }
    }
    for (std::size_t c = 0; c < space.linearities.size(); ++c) {
      const Linearity& linearity = space.linearities[c];
      fed_[factors + c] = is_fed(linearity, given);
      for (std::size_t i = 0; i < inputs_; ++i) {
        if (!linearity.inputs[i]) continue;
        needs_[(factors + c) * inputs_ + i] =
            Placement::partial(*linearity.inputs[i]);
      }
    }
  }

  bool is_fed_choice(std::int16_t choice) const {
    return choice == kUnassigned || fed_[index(choice)];
  }
  Placement of(std::int16_t choice, std::size_t input) const {
    return choice == kUnassigned ? Placement::replicate()
                                 : needs_[index(choice) * inputs_ + input];
  }

 private:
  static Placement of_factor(const IndexSpace& space, std::size_t f,
                             std::size_t i) {
    const auto& dims = space.inputs[i].dims;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      if (std::find(dims[d].begin(), dims[d].end(), static_cast<FactorId>(f)) !=
          dims[d].end()) {
        return Placement::shard(static_cast<int>(d));
      }
    }
    const Without without = space.inputs_without[i][f];
    return without.is_partial() ? Placement::partial(without.reduce_op())
                                : Placement::replicate();
  }

  std::size_t inputs_;
  std::vector<Placement> needs_;
  std::vector<bool> fed_;
};

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
    if (best_) return *std::move(best_);
    return tl::unexpected(
        NoChoice{written_moves_ && !any_refused_, std::move(refused_)});
  }

 private:
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

  void raise_the_limit() {
    for (std::size_t i = 0; i < given_.size(); ++i) {
      held_.push_back(
          max_local_bytes(given_[i], context_.mesh, call_.op->inputs[i]));
    }
    bounds_.assign(index(context_.mesh.ndim()) + 1,
                   std::vector<std::int64_t>(given_.size(), 0));
    while (true) {
      beyond_ = kImpossible;
      Gather gather(*this);
      walk_.run(gather);
      price_pending();
      if (beyond_ == kImpossible || (best_ && beyond_ > best_cost())) return;
      before_ = limit_;
      // Steps large enough that few passes do.
      limit_ = std::max(beyond_, limit_ + limit_ / 2);
      if (best_) limit_ = std::min(limit_, std::max(beyond_, best_cost()));
    }
  }

  std::int64_t sum_of_bounds(std::size_t depth) const {
    std::int64_t sum = 0;
    for (const std::int64_t bound : bounds_[depth]) sum += bound;
    return sum;
  }

  // Of all moves that an assignment with this beginning asks for.
  std::int64_t bound_of(const Assignment& beginning) {
    const std::size_t depth = beginning.size();
    const auto m = static_cast<int>(depth) - 1;
    const std::int16_t choice = beginning[depth - 1];
    if (!needs_.is_fed_choice(choice)) return kImpossible;
    std::vector<std::int64_t>& now = bounds_[depth];
    now = bounds_[depth - 1];
    for (std::size_t i = 0; i < given_.size() && context_.mesh.size(m) > 1;
         ++i) {
      switch (change(given_[i][m], needs_.of(choice, i))) {
        case Change::kImpossible:
          refuse(i, m);
          return kImpossible;
        case Change::kCollective:
          if (written_[i]) {
            written_moves_ = true;
            return kImpossible;
          }
          if (!empty_[i]) now[i] = std::max(now[i], context_.bound.at_least(m));
          break;
        case Change::kNone:
          break;
      }
    }
    if (depth + 1 == bounds_.size()) bound_bytes(beginning);
    return sum_of_bounds(depth);
  }

  // Of a whole assignment, also by the bytes that must come in. Uneven cuts
  // leave the largest part larger.
  void bound_bytes(const Assignment& assignment) {
    std::vector<std::int64_t>& now = bounds_.back();
    for (std::size_t i = 0; i < given_.size(); ++i) {
      if (now[i] == 0) continue;
      const TensorMeta& meta = call_.op->inputs[i];
      double wanted = static_cast<double>(meta.bytes());
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
      now[i] = std::max(
          now[i], context_.bound.coming(static_cast<std::int64_t>(lacking)));
    }
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
      bound +=
          context_.bound.at_least(given_[i], operands[i], call_.op->inputs[i]);
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
    if (given_[input] == to) return 0;
    for (const Priced& priced : priced_) {
      if (priced.input == input && priced.to == to) return priced.cost;
    }
    auto cost =
        context_.planner.cost(given_[input], to, call_.op->inputs[input]);
    if (!cost) {
      any_refused_ = true;
      refused_ = std::move(cost).error();
    }
    priced_.push_back({input, to, cost ? *cost : kImpossible});
    return priced_.back().cost;
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

  struct Priced {
    std::size_t input;
    Layout to;
    std::int64_t cost;
  };

  const SearchContext& context_;
  const BoundOp& call_;
  std::span<const Layout> given_;
  Needs needs_;
  StrategyWalk walk_;
  std::vector<bool> written_;
  std::vector<bool> empty_;

  // [depth][input]: bounds of the beginning that is being followed.
  std::vector<std::vector<std::int64_t>> bounds_;
  std::vector<std::int64_t> held_;  // bytes of each input on a rank
  std::int64_t limit_ = 0;
  std::int64_t before_ = -1;           // the limit of the pass before
  std::int64_t beyond_ = kImpossible;  // the least bound above the limit
  std::vector<Pending> pending_;
  std::vector<Priced> priced_;

  std::optional<ChosenStrategy> best_;
  int fits_ = 0;
  bool written_moves_ = false;
  bool any_refused_ = false;
  Error refused_;
};

// A strategy as pricing takes it.
struct Interned {
  Interned(const BoundOp& call, const Assignment& assignment,
           std::span<const Layout> operands) {
    strategy.assignment = assignment;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      (i < call.op->inputs.size() ? strategy.inputs : strategy.outputs)
          .push_back(layouts.intern(operands[i]));
    }
  }
  LayoutTable layouts;
  PlacementStrategy strategy;
};

// P(sum) and P(avg) turn into each other.
ReduceOp kind(ReduceOp op) {
  return op == ReduceOp::kAvg ? ReduceOp::kSum : op;
}

}  // namespace

bool is_fed(const Linearity& linearity, std::span<const Layout> given) {
  bool takes_partials = false;
  for (std::size_t i = 0; i < linearity.inputs.size(); ++i) {
    if (!linearity.inputs[i]) continue;
    takes_partials = true;
    for (const Placement placement : given[i].placements()) {
      if (placement.is_partial() &&
          kind(placement.reduce_op()) == kind(*linearity.inputs[i])) {
        return true;
      }
    }
  }
  return !takes_partials;
}

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

LocalPrice price_inside(const SearchContext& context, const BoundOp& call,
                        const Assignment& assignment,
                        std::span<const Layout> operands) {
  LocalPrice price;
  if (call.space->program == nullptr) return price;
  const Interned interned(call, assignment, operands);
  price.inside = collectives_inside({*call.op, *call.space, context.mesh,
                                     interned.layouts, interned.strategy},
                                    context.topology);
  for (const CollectiveStep& step : price.inside) {
    price.inside_nanoseconds =
        sat_add(price.inside_nanoseconds, step.nanoseconds);
  }
  return price;
}

std::int64_t price_compute(const SearchContext& context, const BoundOp& call,
                           const Assignment& assignment,
                           std::span<const Layout> operands) {
  const Interned interned(call, assignment, operands);
  return compute_nanoseconds({*call.op, *call.space, context.mesh,
                              interned.layouts, interned.strategy},
                             context.topology);
}

tl::expected<ChosenStrategy, NoChoice> choose_strategy(
    const SearchContext& context, const BoundOp& call,
    std::span<const Layout> given) {
  return Search(context, call, given).run();
}

}  // namespace shardprop
