// OperatorChoiceCache computes the choices of operators. Nodes share them if
// they are the same application and their inputs may have the same partials.
#pragma once

#include "plan/problem/choices/sharding_seeds.h"
#include "plan/problem/plan_problem.h"
#include "strategy/program_kernels.h"

#include <shardprop/mesh/topology.h>
#include <shardprop/ops/op_library.h>

#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

namespace shardprop {

// A PartialSet has one bit for each ReduceOp.
using PartialSet = std::uint8_t;
static_assert(std::size(kAllReduceOps) <=
                  std::numeric_limits<PartialSet>::digits,
              "a PartialSet has a bit for each ReduceOp");

PartialSet partials_of(const Layout& layout);

struct OperatorChoices {
  std::shared_ptr<const ChoiceSet> set;
  // The same choices for a node whose written input is still needed and is
  // copied first. It equals `set` if the operator writes into no input.
  std::shared_ptr<const ChoiceSet> keeping;
  std::vector<PartialSet> makes;  // by output: the partials that it may have
};

class OperatorChoiceCache {
 public:
  OperatorChoiceCache(const DeviceMesh& mesh, const Topology& topology,
                      const OpLibrary& library, LayoutTable& layouts,
                      const PlanSpace& space, StepFusion fusion);

  // `meets` lists, by input, the partials that its value may have. Factors may
  // also have the demanded shardings. If the operator has no
  // rule, the only choice is all replicated, and set->unsupported states why.
  // The reference stays valid for the life of the cache.
  const OperatorChoices& of(const OpSchema& op,
                            const std::vector<PartialSet>& meets,
                            const OperatorDemands& demands = {});
  // Returns the same choices, priced as a part of a kernel. Cached.
  std::shared_ptr<const ChoiceSet> fused(
      const std::shared_ptr<const ChoiceSet>& set, const KernelPart& part);

 private:
  struct Key {
    std::shared_ptr<const OpSchema> op;
    std::vector<PartialSet> meets;
    OperatorDemands demands;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };
  struct KeyEqual {
    bool operator()(const Key& a, const Key& b) const;
  };

  OperatorChoices work_out(const std::shared_ptr<const OpSchema>& op,
                           const std::vector<PartialSet>& meets,
                           const OperatorDemands& demands);
  template <class Compute>
  void set_costs(ChoiceSet& set, const Compute& compute) const;

  const DeviceMesh& mesh_;
  const Topology& topology_;
  const OpLibrary& library_;
  LayoutTable& layouts_;
  PlanSpace space_;
  StepFusion fusion_;
  std::unordered_map<Key, OperatorChoices, KeyHash, KeyEqual> cache_;
  std::map<std::pair<const ChoiceSet*, KernelPart>,
           std::shared_ptr<const ChoiceSet>>
      fused_;
};

}  // namespace shardprop
