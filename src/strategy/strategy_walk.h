// StrategyWalk: the strategies of op_strategies() one at a time, mesh dim by
// mesh dim, with a say in which beginnings are followed: how a search finds the
// best of them without listing all.
//
//   mm on [2,2], following what leaves the first operand whole on mesh dim 0:
//     (nothing, ...), (n, ...), partials of the second operand
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
  // Whether assignments that begin so are to be visited. Not empty; its last
  // entry is the one that was added.
  virtual bool follows(const Assignment& beginning) = 0;
  // A valid assignment and the layouts of all operands, inputs first. False
  // ends the walk.
  virtual bool visit(const Assignment& assignment,
                     std::span<const Layout> operands) = 0;
};

class StrategyWalk {
 public:
  // Holds on to its arguments, whose lifetime is the caller's.
  // Precondition: op.outputs is filled in.
  StrategyWalk(const OpSchema& op, const IndexSpace& space,
               const DeviceMesh& mesh, const StrategyOptions& options);
  ~StrategyWalk();
  StrategyWalk(const StrategyWalk&) = delete;
  StrategyWalk& operator=(const StrategyWalk&) = delete;

  // In the order of op_strategies(), whose options.limit it ignores. Several
  // assignments may have the same layouts; the first of them is the one that
  // op_strategies() keeps.
  void run(StrategyVisitor& visitor) const;

  // The layouts of all operands, inputs first; nullopt where the assignment is
  // not valid.
  std::optional<std::vector<Layout>> layouts(
      const Assignment& assignment) const;

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

}  // namespace shardprop
