// `Lowering` is the state that the files of src/lower share while a plan
// becomes a program.
#pragma once

#include <shardprop/ops/row_traits.h>
#include "graph/analysis/in_place.h"
#include "lower/local_calls.h"
#include "lower/program_builder.h"
#include "lower/view_chain.h"
#include "redistribute/flat_move.h"

#include <shardprop/graph/graph.h>
#include <shardprop/lower/lower.h>
#include <shardprop/plan/plan.h>
#include <shardprop/program/spmd_program.h>

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace shardprop::lowering {

class Lowering {
 public:
  Lowering(const Plan& plan, const Graph& graph, const OpLibrary& library,
           const LowerOptions& options);
  Result<SpmdProgram> run();

 private:
  // lower.cc
  Result<void> check_plan() const;
  Result<void> add_inputs();
  Result<void> add_node(const Node& node, const PlannedNode& planned);
  ProgramValueId viewed_by(const Node& node, std::size_t output,
                           const LocalCall& call,
                           const std::vector<ProgramValueId>& inputs) const;
  ProgramValueId overwritten_by(
      const Node& node, std::size_t output,
      const std::vector<ProgramValueId>& inputs) const;
  Result<void> add_outputs();
  Result<ProgramValueId> taken(const PlannedInput& input,
                               const std::string& where) const;
  Result<ProgramValueId> made(const std::string& name,
                              const std::string& where) const;

  // lower_call.cc
  // Runs a call on `inputs` and makes `results` of its outputs.
  struct Target {
    std::string name;
    TensorMeta meta;
    Layout layout;
    ProgramValueId buffer;           // of a view: whose
    ProgramValueId overwrites = {};  // see ProgramValue
  };
  Result<std::vector<ProgramValueId>> run_call(
      const LocalCall& call, const std::vector<ProgramValueId>& inputs,
      const std::vector<Target>& targets, const PlannedNode* planned,
      const std::string& where);

  // lower_copies.cc
  Result<void> plan_copies();
  void end_transfers(std::size_t slot);
  Result<void> make_copies(std::size_t slot);
  Result<void> make_copy(std::size_t index);
  void leave_copy(std::size_t index);
  Result<ProgramValueId> seen_through(const PlannedCopy& copy,
                                      ProgramValueId at, std::size_t index);
  Result<ProgramValueId> through(const ViewLink& link, ProgramValueId at,
                                 const std::string& name);
  Result<std::vector<View>> views_of(const PlannedCopy& copy,
                                     std::size_t index) const;

  Result<ProgramValueId> source_of(std::size_t index);

  // lower_buckets.cc
  struct BucketMember {
    std::size_t copy = 0;
    FlatMove move;
  };
  struct Bucket {
    std::vector<BucketMember> members;
    ProgramValueId flat;  // the buffer behind the collectives
  };
  Result<void> plan_buckets();
  std::vector<RedistributeStep> steps_of(const Bucket& bucket) const;
  ProgramValueId bucket_op(const char* name, ProgramArguments args);
  Result<ProgramValueId> row_of(const BucketMember& member);
  Result<void> fill_bucket(std::size_t first, std::size_t slot);
  void empty_bucket(std::size_t first, std::size_t slot);
  void finish_copy(const BucketMember& member, ProgramValueId part,
                   std::size_t slot);

  // lower_random.cc
  Result<void> draw(const Node& node, const PlannedNode& planned,
                    const std::vector<ProgramValueId>& inputs,
                    std::vector<ProgramValueId>& outputs);
  Distribution distribution_of(const Node& node) const;
  Result<std::int64_t> drawing_node(const Node& node) const;
  ProgramValueId seed();

  // lower_updates.cc
  Result<void> add_update(const PlannedUpdate& update);
  Result<void> leave_update(const PlannedUpdate& update,
                            ProgramValueId gradient);
  ProgramValueId scalar_input(InputKind kind, std::string name);

  const Plan& plan_;
  const Graph& graph_;
  const OpLibrary& library_;
  const LowerOptions options_;
  // Set if the program has no optimizer's step: the copies that only the step
  // reads, and the parameters that it would update.
  std::set<std::size_t> unread_copies_;
  std::set<std::string> not_updated_;
  SpmdProgram program_;
  ProgramBuilder build_;
  LocalCalls calls_;
  ViewChains chains_;
  InPlace in_place_;
  // By the name of the value in the plan: the value in the layout of its
  // producer.
  std::unordered_map<std::string, ProgramValueId> made_;
  std::unordered_map<std::string, ValueId> graph_values_;
  std::map<InputKind, ProgramValueId> scalars_;
  // The copies by the slot in which they are issued, those in flight by the slot
  // in which the program waits for them, and whether each is issued.
  std::vector<std::size_t> issue_order_;
  std::vector<std::size_t> wait_order_;
  std::vector<bool> is_issued_;
  std::map<std::size_t, Bucket> buckets_;  // by their first copy
  std::size_t next_issue_ = 0;             // index into issue_order_
  std::size_t next_wait_ = 0;              // index into wait_order_
};

}  // namespace shardprop::lowering
