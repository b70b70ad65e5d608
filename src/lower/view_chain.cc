#include "lower/view_chain.h"

#include "base/try.h"
#include "graph/analysis/op_application.h"
#include "lower/broken_plan.h"
#include "strategy/offered_shardings.h"

#include <algorithm>
#include <set>

namespace shardprop::lowering {
namespace {

// Returns the planner's options (plan_problem.h), with empty shards allowed.
StrategyOptions view_options() {
  StrategyOptions options;
  options.most_assignments = 256;
  return options;
}

}  // namespace

bool ViewChains::SameView::operator()(const OpSchema* a,
                                      const OpSchema* b) const {
  return same_application(*a, *b);
}

std::size_t ViewChains::HashView::operator()(const OpSchema* op) const {
  return hash_application(*op);
}

Result<std::shared_ptr<const OpStrategy>> ViewChains::strategies(
    const Node& node) {
  auto found = known_.find(&node.op);
  if (found == known_.end()) {
    SP_ASSIGN(IndexSpace space, library_.index_space(node.op));
    const std::shared_ptr<const OpSchema> op(std::shared_ptr<void>(),
                                             &node.op);  // the graph owns it
    auto all = std::make_shared<const OpStrategy>(
        op_strategies(op, std::make_shared<const IndexSpace>(std::move(space)),
                      mesh_, layouts_, view_options()));
    found = known_.emplace(&node.op, std::move(all)).first;
  }
  return found->second;
}

Result<std::shared_ptr<const OpStrategy>> ViewChains::strategies(
    const View& view, std::span<const LayoutId> from) {
  SP_ASSIGN(auto known, strategies(*view.node));
  const IndexSpace& space = *known->space;
  const auto& operands = view.undone ? space.outputs : space.inputs;
  StrategyOptions options = view_options();
  for (const LayoutId id : from) {
    const Layout held = layouts_[id];
    for (OfferedSharding& sharding : offered_shardings(
             space, mesh_, std::span(operands).first(1), std::span(&held, 1))) {
      options.shardings.push_back(std::move(sharding));
    }
  }
  if (options.shardings.empty()) return known;
  return std::make_shared<const OpStrategy>(
      op_strategies(known->op, known->space, mesh_, layouts_, options));
}

namespace {

// A layout that the chain can produce so far, and the strategy that produces
// it.
struct Reached {
  LayoutId layout;
  std::size_t before = 0;  // among those one link earlier
  std::size_t strategy = 0;
};

std::vector<Reached> step_on(const std::vector<Reached>& from,
                             const OpStrategy& view, bool undone) {
  std::vector<Reached> out;
  std::set<LayoutId> seen;
  for (std::size_t b = 0; b < from.size(); ++b) {
    for (std::size_t s = 0; s < view.strategies.size(); ++s) {
      const PlacementStrategy& strategy = view.strategies[s];
      LayoutId here = strategy.inputs[0];
      LayoutId there = strategy.outputs[0];
      if (undone) std::swap(here, there);
      if (here != from[b].layout || !seen.insert(there).second) continue;
      out.push_back({there, b, s});
    }
  }
  return out;
}

}  // namespace

Result<std::vector<ViewLink>> ViewChains::between(std::span<const View> views,
                                                  const Layout& from,
                                                  const Layout& to,
                                                  const std::string& where) {
  std::vector<std::vector<Reached>> reached = {{{layouts_.intern(from)}}};
  std::vector<std::shared_ptr<const OpStrategy>> links;
  for (const View& view : views) {
    std::vector<LayoutId> held;
    for (const Reached& one : reached.back()) held.push_back(one.layout);
    SP_ASSIGN(auto link, strategies(view, held));
    reached.push_back(step_on(reached.back(), *link, view.undone));
    links.push_back(std::move(link));
  }
  const LayoutId wanted = layouts_.intern(to);
  const auto last =
      std::find_if(reached.back().begin(), reached.back().end(),
                   [&](const Reached& one) { return one.layout == wanted; });
  if (last == reached.back().end()) {
    return broken_plan(where, "its views do not lead from " + to_string(from) +
                                  " to " + to_string(to));
  }
  std::vector<ViewLink> out(views.size());
  const Reached* at = &*last;
  for (std::size_t v = views.size(); v-- > 0;) {
    out[v] = {views[v],
              {links[v]->space, links[v]->strategies[at->strategy]},
              layouts_[at->layout]};
    at = &reached[v][at->before];
  }
  return out;
}

namespace {

// Returns the factors of all dims, from major to minor.
std::vector<FactorId> factors_of(const Operand& operand) {
  std::vector<FactorId> out;
  for (const DimFactors& dim : operand.dims) {
    out.insert(out.end(), dim.begin(), dim.end());
  }
  return out;
}

std::vector<FactorId> shared(const std::vector<FactorId>& of,
                             const Operand& with) {
  std::vector<FactorId> out;
  std::copy_if(of.begin(), of.end(), std::back_inserter(out),
               [&](FactorId factor) { return with.holds(factor); });
  return out;
}

// Returns the dim of the result that each dim of the operand becomes. Returns
// an empty list if a dim is split or merged.
std::vector<std::int64_t> permutation(const Operand& input,
                                      const Operand& output) {
  std::vector<std::int64_t> out;
  std::vector<bool> taken(output.dims.size(), false);
  if (input.dims.size() != output.dims.size()) return {};
  for (const DimFactors& dim : input.dims) {
    std::size_t o = 0;
    while (o < output.dims.size() && (taken[o] || output.dims[o] != dim)) ++o;
    if (o == output.dims.size()) return {};
    taken[o] = true;
    out.push_back(static_cast<std::int64_t>(o));
  }
  return out;
}

}  // namespace

Result<Inverse> inverse_of(const Node& node, const IndexSpace& space) {
  const Operand& input = space.inputs[0];
  const Operand& output = space.outputs[0];
  if (space.is_free &&
      shared(factors_of(input), output) == shared(factors_of(output), input)) {
    return Inverse{};
  }
  Inverse out{permutation(input, output)};
  if (space.is_free && !out.permutation.empty()) return out;
  return fail(Error{ErrorCode::kNotLowered,
                    "the view `" + node.op_name() + "` cannot be taken back",
                    node.name,
                    {},
                    "pin what it views to the layout that its users want"});
}

}  // namespace shardprop::lowering
