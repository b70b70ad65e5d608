// Lists the strategies of a call: assignments of mesh dims to factors and
// linearities, with different layouts.

#include "strategy/assignment_walk.h"
#include "strategy/strategy_composer.h"
#include "strategy/strategy_of.h"
#include "strategy/strategy_walk.h"

#include <shardprop/strategy/op_strategy.h>

#include <deque>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <unordered_set>
#include <utility>

namespace shardprop {
namespace {

struct StrategyHash {
  std::size_t operator()(const PlacementStrategy* s) const {
    return hash_range(hash_range(0, s->inputs), s->outputs);
  }
};
struct StrategyEqual {
  bool operator()(const PlacementStrategy* a,
                  const PlacementStrategy* b) const {
    return a->inputs == b->inputs && a->outputs == b->outputs;
  }
};

PlacementStrategy interned(const Assignment& assignment,
                           const FactorShardings& shardings,
                           const std::vector<Layout>& operands,
                           std::size_t inputs, LayoutTable& layouts) {
  PlacementStrategy strategy;
  strategy.assignment = assignment;
  if (!shardings.is_mesh_order()) {
    strategy.shardings = layouts.intern(shardings.of_all());
  }
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const LayoutId id = layouts.intern(operands[i]);
    (i < inputs ? strategy.inputs : strategy.outputs).push_back(id);
  }
  return strategy;
}

// Calls visit(shardings, operands) for each valid strategy of one assignment,
// until it returns false.
template <class Visit>
bool visit_shardings(const StrategyComposer& composer,
                     const Assignment& assignment,
                     std::span<const OfferedSharding> offered,
                     const Visit& visit) {
  if (auto operands = composer.layouts(assignment)) {
    if (!visit(FactorShardings(), *operands)) return false;
  }
  if (offered.empty()) return true;
  for (Layout& choice : composer.sharding_choices(assignment, offered)) {
    const auto operands = composer.layouts(assignment, &choice);
    if (operands && !visit(FactorShardings(std::move(choice)), *operands)) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::optional<PlacementStrategy> strategy_of(
    const OpSchema& op, const IndexSpace& space, const DeviceMesh& mesh,
    const Assignment& assignment, const FactorShardings& shardings,
    LayoutTable& layouts, const StrategyOptions& options) {
  const StrategyComposer composer(op, space, mesh, options);
  if (!composer.accepts(shardings)) return std::nullopt;
  const auto operands = shardings.is_mesh_order()
                            ? composer.layouts(assignment)
                            : composer.layouts(assignment, &shardings.of_all());
  if (!operands) return std::nullopt;
  return interned(assignment, shardings, *operands, space.inputs.size(),
                  layouts);
}

OpStrategy op_strategies(std::shared_ptr<const OpSchema> op,
                         std::shared_ptr<const IndexSpace> space,
                         const DeviceMesh& mesh, LayoutTable& layouts,
                         const StrategyOptions& options) {
  OpStrategy out;
  const StrategyComposer composer(*op, *space, mesh, options);
  std::unordered_set<const PlacementStrategy*, StrategyHash, StrategyEqual>
      seen;
  std::deque<PlacementStrategy> kept;
  const std::span<const OfferedSharding> offered = options.shardings;
  AssignmentWalk(composer, mesh, options, offered.empty())
      .run([](const Assignment&) { return true; },
           [&](const Assignment& assignment) {
             return visit_shardings(
                 composer, assignment, offered,
                 [&](const FactorShardings& shardings,
                     const std::vector<Layout>& operands) {
                   kept.push_back(interned(assignment, shardings, operands,
                                           space->inputs.size(), layouts));
                   if (!seen.insert(&kept.back()).second) {
                     kept.pop_back();
                   } else if (kept.size() == options.limit) {
                     out.truncated = true;
                     return false;
                   }
                   return true;
                 });
           });
  out.strategies.assign(std::make_move_iterator(kept.begin()),
                        std::make_move_iterator(kept.end()));
  out.op = std::move(op);
  out.space = std::move(space);
  return out;
}

struct StrategyWalk::Body {
  Body(const OpSchema& op, const IndexSpace& space, const DeviceMesh& the_mesh,
       const StrategyOptions& the_options)
      : mesh(the_mesh),
        options(the_options),
        composer(op, space, mesh, options) {}

  DeviceMesh mesh;
  StrategyOptions options;
  StrategyComposer composer;

  bool visit_valid(const Assignment& assignment,
                   std::span<const OfferedSharding> offered,
                   StrategyVisitor& visitor) const {
    return visit_shardings(composer, assignment, offered,
                           [&](const FactorShardings& shardings,
                               const std::vector<Layout>& operands) {
                             return visitor.visit(assignment, shardings,
                                                  operands);
                           });
  }
};

StrategyWalk::StrategyWalk(const OpSchema& op, const IndexSpace& space,
                           const DeviceMesh& mesh,
                           const StrategyOptions& options)
    : body_(std::make_unique<Body>(op, space, mesh, options)) {}
StrategyWalk::~StrategyWalk() = default;

void StrategyWalk::run(StrategyVisitor& visitor,
                       std::span<const OfferedSharding> offered) const {
  AssignmentWalk(body_->composer, body_->mesh, body_->options, offered.empty())
      .run([&](const Assignment& prefix) { return visitor.follows(prefix); },
           [&](const Assignment& assignment) {
             return body_->visit_valid(assignment, offered, visitor);
           });
}

bool StrategyWalk::visit(const Assignment& assignment,
                         std::span<const OfferedSharding> offered,
                         StrategyVisitor& visitor) const {
  Assignment beginning;
  for (const std::int16_t choice : assignment) {
    beginning.push_back(choice);
    if (!body_->composer.may_begin(beginning, offered.empty())) return true;
  }
  return body_->visit_valid(assignment, offered, visitor);
}

std::string to_string(const PlacementStrategy& strategy,
                      const LayoutTable& layouts) {
  const auto list = [&](const InlineVector<LayoutId, 4>& ids) {
    std::string text;
    for (const LayoutId id : ids) {
      const Layout& layout = layouts[id];
      if (!text.empty()) text += ',';
      text += layout.mesh_ndim() == 1 ? to_string(layout)
                                      : "[" + to_string(layout) + "]";
    }
    return text;
  };
  return list(strategy.inputs) + "->" + list(strategy.outputs);
}

}  // namespace shardprop
