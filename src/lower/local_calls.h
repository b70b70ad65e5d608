// `LocalCalls` derives the calls that ranks run for a node of a plan, with
// formulas of the rank for scalars. Nodes of repeated layers with the same call
// share one derivation.
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
    // By tensor that the operator declares to return: true if the call produces
    // it.
    std::vector<bool> produces;
  };
  std::vector<std::variant<Op, LocalCollective>> steps;
  // By output of the node; `index` counts declared results.
  std::vector<LocalRef> outputs;
  bool is_random = false;
  bool is_view = false;  // moves no data
};

// The strategy by which a node of the plan runs.
struct NodeStrategy {
  std::shared_ptr<const IndexSpace> space;
  PlacementStrategy strategy;
};

class LocalCalls {
 public:
  LocalCalls(const DeviceMesh& mesh, const OpLibrary& library)
      : mesh_(mesh), library_(library) {}

  // Errors: kPlanBroken if the node's layouts differ from those of its
  // strategy, or if its local run or the collectives inside differ.
  Result<const LocalCall*> of(const Node& node, const PlannedNode& planned);

  // Returns the call of a view from `input` to `output`.
  Result<LocalCall> of_view(const OpSchema& op, const NodeStrategy& strategy);

  LayoutTable& layouts() { return layouts_; }

 private:
  // The properties that nodes with the same call share. The pointers refer to
  // the graph and the plan.
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

// Returns the value on each rank of a scalar of a dim or a factor.
RankInt rank_int(const RankScalar& scalar, const LocalContext& context);

}  // namespace shardprop::lowering
