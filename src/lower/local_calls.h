// What the ranks run for a node of a plan, with formulas of the rank for
// scalars. Nodes of repeated layers that run alike are worked out once.
#pragma once

#include <shardprop/graph/graph.h>
#include <shardprop/ops/op_library.h>
#include <shardprop/plan/plan.h>
#include <shardprop/program/rank_int.h>
#include <shardprop/strategy/local_context.h>

#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace shardprop::lowering {

struct LocalCall {
  using Argument =
      std::variant<shardprop::Argument, LocalRef, std::vector<LocalRef>,
                   RankInt, std::vector<RankInt>>;
  struct Op {
    std::string name;
    std::vector<std::pair<std::string, Argument>> args;
    // Of the tensors that it declares to return, those that it does.
    std::vector<bool> produces;
  };
  std::vector<std::variant<Op, LocalCollective>> steps;
  // By output of the node; `index` counts the results that are declared.
  std::vector<LocalRef> outputs;
  bool is_random = false;
  bool is_view = false;  // moves no data
};

// The strategy that a node of the plan runs by.
struct NodeStrategy {
  std::shared_ptr<const IndexSpace> space;
  PlacementStrategy strategy;
};

class LocalCalls {
 public:
  LocalCalls(const DeviceMesh& mesh, const OpLibrary& library)
      : mesh_(mesh), library_(library) {}

  // Errors: kPlanBroken, where the node's layouts are not those of its
  // strategy, or its local run and the collectives inside are others.
  Result<const LocalCall*> of(const Node& node, const PlannedNode& planned);

  // What a view runs that carries `input` to `output`.
  Result<LocalCall> of_view(const OpSchema& op, const NodeStrategy& strategy);

  LayoutTable& layouts() { return layouts_; }

 private:
  // What nodes that run alike have in common. Pointers into graph and plan.
  struct Key {
    const OpSchema* op;
    const PlannedNode* node;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };
  struct KeyEqual {
    bool operator()(const Key& a, const Key& b) const;
  };
  struct Entry {
    LocalCall call;
    LocalRun run;
  };

  Result<Entry> work_out(const Node& node, const PlannedNode& planned);
  Result<NodeStrategy> strategy_of(const Node& node,
                                   const PlannedNode& planned);
  LocalCall call_of(const LocalContext& context) const;

  const DeviceMesh& mesh_;
  const OpLibrary& library_;
  LayoutTable layouts_;
  std::unordered_map<Key, Entry, KeyHash, KeyEqual> known_;
};

// Of a dim or a factor, as context has it.
RankInt rank_int(const RankScalar& scalar, const LocalContext& context);

}  // namespace shardprop::lowering
