#include "lower/view_chain.h"

#include "base/try.h"
#include "lower/broken_plan.h"
#include "graph/analysis/op_application.h"

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

Result<const OpStrategy*> ViewChains::strategies(const Node& node) {
  auto found = known_.find(&node.op);
  if (found == known_.end()) {
    SP_ASSIGN(IndexSpace space, library_.index_space(node.op));
    const std::shared_ptr<const OpSchema> op(std::shared_ptr<void>(),
                                             &node.op);  // the graph owns it
    found =
        known_
            .emplace(&node.op, op_strategies(op,
                                             std::make_shared<const IndexSpace>(
                                                 std::move(space)),
                                             mesh_, layouts_, view_options()))
            .first;
  }
  return &found->second;
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
  for (const View& view : views) {
    SP_ASSIGN(const OpStrategy* known, strategies(*view.node));
    reached.push_back(step_on(reached.back(), *known, view.undone));
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
    SP_ASSIGN(const OpStrategy* known, strategies(*views[v].node));
    out[v] = {views[v],
              {known->space, known->strategies[at->strategy]},
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
