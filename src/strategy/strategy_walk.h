// StrategyWalk enumerates the strategies of op_strategies(), one mesh dim at a
// time. A visitor decides which prefixes are followed, so a search can find the
// best strategy without listing all of them.
//
//   mm on [2,2], following prefixes that replicate operand 0 on mesh dim 0:
//     (unassigned, ...), (n, ...), partials of the second operand
#pragma once

#include <shardprop/strategy/op_strategy.h>

#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace shardprop {

class StrategyVisitor {
 public:
  virtual ~StrategyVisitor() = default;
  // Returns whether to visit assignments with this prefix. The prefix is not
  // empty, and its last entry was just added.
  virtual bool follows(const Assignment& beginning) = 0;
  // Receives a valid assignment, the shardings of its factors and the layouts
  // of all operands, inputs first. Returns false to end the walk.
  virtual bool visit(const Assignment& assignment,
                     const FactorShardings& shardings,
                     std::span<const Layout> operands) = 0;
};

class StrategyWalk {
 public:
  // Keeps references to its arguments, which must outlive it.
  // Precondition: op.outputs is filled in.
  StrategyWalk(const OpSchema& op, const IndexSpace& space,
               const DeviceMesh& mesh, const StrategyOptions& options);
  ~StrategyWalk();
  StrategyWalk(const StrategyWalk&) = delete;
  StrategyWalk& operator=(const StrategyWalk&) = delete;

  // Visits strategies in the order of op_strategies(), with `offered` shardings
  // instead of options.shardings, and ignores options.limit. Several
  // assignments may have the same layouts; op_strategies() keeps the first of
  // them.
  void run(StrategyVisitor& visitor,
           std::span<const OfferedSharding> offered = {}) const;

  // Calls visitor.visit() for the strategies of one assignment. Returns false
  // if the visitor ended the walk.
  bool visit(const Assignment& assignment,
             std::span<const OfferedSharding> offered,
             StrategyVisitor& visitor) const;

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

}  // namespace shardprop
