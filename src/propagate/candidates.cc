// Lists and prices every strategy of a call and says why each one lost.

#include "base/guard.h"
#include "base/index.h"
#include "base/quantities.h"
#include "base/saturating.h"
#include "base/try.h"
#include "placement/single_ranks.h"
#include "propagate/operand_needs.h"
#include "propagate/propagator_body.h"
#include "strategy/offered_shardings.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace shardprop {
namespace {

auto rank_of(const Candidate& c) {
  return std::make_tuple(!c.possible, c.cost(), c.moved_inputs,
                         c.compute_nanoseconds);
}

std::string why_not(const Candidate& lost, const Candidate& won) {
  if (lost.cost() != won.cost()) {
    std::string text = "costs " + time_text(lost.cost() - won.cost()) +
                       " more: moves take " +
                       time_text(lost.redistribute_nanoseconds);
    if (lost.inside_nanoseconds > 0) {
      text += ", collectives inside " + time_text(lost.inside_nanoseconds);
    }
    return text;
  }
  if (lost.moved_inputs != won.moved_inputs) {
    return "costs the same and moves " + std::to_string(lost.moved_inputs) +
           (lost.moved_inputs == 1 ? " input, not " : " inputs, not ") +
           std::to_string(won.moved_inputs);
  }
  if (lost.compute_nanoseconds != won.compute_nanoseconds) {
    return "costs the same and computes " +
           time_text(lost.compute_nanoseconds - won.compute_nanoseconds) +
           " longer";
  }
  return "as good, and later in the order of strategies";
}

// Returns an empty text if the written operands keep their layouts.
std::string change_of_written(const BoundOp& call,
                              std::span<const Layout> given,
                              const Candidate& candidate) {
  for (const WrittenOperand& write : call.writes) {
    const Layout& before = given[write.operand];
    const Layout& after = write.output ? candidate.outputs[*write.output]
                                       : candidate.inputs[write.operand];
    for (const Layout* other : {&candidate.inputs[write.operand], &after}) {
      if (*other == before) continue;
      return "operand " + std::to_string(write.operand) +
             " is written and would go from " + to_string(before) + " to " +
             to_string(*other);
    }
  }
  return {};
}

Candidate priced(const SearchContext& context, const BoundOp& call,
                 std::span<const Layout> given, const LayoutTable& layouts,
                 const PlacementStrategy& strategy) {
  Candidate out;
  out.assignment = strategy.assignment;
  if (strategy.shardings.valid()) {
    out.shardings = FactorShardings(layouts[strategy.shardings]);
  }
  std::vector<Layout> operands;
  for (const LayoutId id : strategy.inputs) out.inputs.push_back(layouts[id]);
  for (const LayoutId id : strategy.outputs) out.outputs.push_back(layouts[id]);
  operands = out.inputs;
  operands.insert(operands.end(), out.outputs.begin(), out.outputs.end());
  const LocalPrice inside =
      price_inside(context, call, out.assignment, out.shardings, operands);
  out.inside_nanoseconds = inside.inside_nanoseconds;
  out.compute_nanoseconds =
      price_compute(context, call, out.assignment, out.shardings, operands);
  for (const std::size_t i : call.space->unread) out.inputs[i] = given[i];
  out.why_not = change_of_written(call, given, out);
  for (std::size_t i = 0; i < given.size() && out.why_not.empty(); ++i) {
    if (out.inputs[i] == given[i]) continue;
    ++out.moved_inputs;
    auto cost =
        context.planner.cost(given[i], out.inputs[i], call.op->inputs[i]);
    if (!cost) {
      out.why_not = std::move(cost).error().message;
      break;
    }
    out.redistribute_nanoseconds = sat_add(out.redistribute_nanoseconds, *cost);
  }
  out.possible = out.why_not.empty();
  return out;
}

}  // namespace

Result<std::vector<Candidate>> ShardingPropagator::candidates(
    const OpSchema& op, std::span<const Layout> inputs,
    const StrategyOptions& options) const {
  return guarded([&]() -> Result<std::vector<Candidate>> {
    const Body& body = *body_;
    SP_CHECK(body.check_inputs(op, inputs));
    SP_ASSIGN(const auto call, body.calls.get(op));
    std::vector<Layout> given;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      given.push_back(without_single_ranks(
          canonical(inputs[i], body.mesh, op.inputs[i].shape()), body.mesh));
    }
    // propagate() also searches without the linearities that no partial input
    // feeds.
    IndexSpace space = with_unread_whole(*call->space);
    std::erase_if(space.linearities, [&](const Linearity& linearity) {
      return !is_fed(linearity, given);
    });
    BoundOp narrowed = *call;
    narrowed.space = std::make_shared<const IndexSpace>(std::move(space));
    narrowed.walk = nullptr;
    LayoutTable layouts;
    StrategyOptions listed = options;
    for (OfferedSharding& sharding : offered_shardings(
             *narrowed.space, body.mesh, narrowed.space->inputs, given)) {
      listed.shardings.push_back(std::move(sharding));
    }
    const OpStrategy all =
        op_strategies(narrowed.op, narrowed.space, body.mesh, layouts, listed);
    const SearchContext context = body.context();
    std::vector<Candidate> out;
    out.reserve(all.strategies.size());
    for (const PlacementStrategy& strategy : all.strategies) {
      out.push_back(priced(context, narrowed, given, layouts, strategy));
    }
    std::stable_sort(out.begin(), out.end(),
                     [](const Candidate& a, const Candidate& b) {
                       return rank_of(a) < rank_of(b);
                     });
    for (std::size_t i = 1; i < out.size(); ++i) {
      if (out[i].possible) out[i].why_not = why_not(out[i], out[0]);
    }
    return out;
  });
}

}  // namespace shardprop
