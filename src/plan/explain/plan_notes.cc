#include "plan/explain/plan_notes.h"

#include "base/index.h"
#include "base/saturating.h"
#include "graph/analysis/dim_roles.h"
#include "plan/tuning.h"

#include <shardprop/plan/plan_options.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace shardprop {
namespace {

class Notes {
 public:
  Notes(const PlanProblem& problem, const PlanSolution& solution,
        const Plan& plan)
      : problem_(problem),
        graph_(problem.graph()),
        solution_(solution),
        plan_(plan) {}

  std::vector<PlanNote> run() {
    add_small_batch();
    add_heads();
    add_batch_statistics();
    add_unsupported();
    add_unlike();
    add_pipeline();
    return std::move(out_);
  }

 private:
  const IndexSpace* space_of(const Node& node) const {
    const ChoiceSet* set = problem_.choices_of(node.id);
    const bool planned =
        set != nullptr && !plan_.nodes[node.id.index()].assignment.empty();
    return planned ? set->op.space.get() : nullptr;
  }

  bool idle(const Node& node, int m) const {
    return plan_.nodes[node.id.index()].assignment[index(m)] == kUnassigned;
  }

  bool worth_saying(std::int64_t nanoseconds) const {
    return static_cast<double>(nanoseconds) >
           tuning::kLeastNotedComputeShare *
               static_cast<double>(plan_.summary.compute_nanoseconds);
  }

  // Returns the time by which replicated compute on `ranks` ranks exceeds a
  // sharded one.
  std::int64_t wasted(const Node& node, std::int64_t ranks) const {
    const std::int64_t own = plan_.nodes[node.id.index()].compute_nanoseconds;
    return own - own / ranks;
  }

  // Notes matmuls that have the batch and cannot shard it over a mesh dim,
  // since other mesh dims have used it up. Losses by uneven heads are reported
  // by add_heads() alone.
  void add_small_batch() {
    const std::int64_t batch = plan_.work.samples;
    const std::int64_t ranks = problem_.mesh().size();
    if (batch == 0 || batch >= ranks) return;
    for (int m = 0; m < problem_.mesh().ndim(); ++m) {
      const std::int64_t size = problem_.mesh().size(m);
      if (size == 1) continue;
      std::int64_t lost = 0;
      for (const Node& node : graph_.nodes()) {
        const IndexSpace* space = space_of(node);
        const auto& factor = problem_.roles().factor(node.id, DimRole::kBatch);
        if (space == nullptr || space->flops_per_point <= 0 || !factor ||
            !idle(node, m) || space->factor(factor->factor).size >= ranks ||
            uneven_heads(node, m) > 0) {
          continue;
        }
        lost = sat_add(lost, wasted(node, size));
      }
      if (!worth_saying(lost)) continue;
      out_.emplace_back(
          SmallBatchNote{batch, ranks, problem_.mesh().name(m), size, lost});
    }
  }

  // Returns whether the input is a mask: its columns are the rows of another
  // operand, the keys.
  static bool is_mask(const IndexSpace& space, const Operand& input) {
    return !input.dims[3].empty() &&
           std::any_of(space.inputs.begin(), space.inputs.end(),
                       [&](const Operand& other) {
                         return other.dims.size() == 4 &&
                                other.dims[2] == input.dims[3];
                       });
  }

  // Returns the number of heads of attention that mesh dim `m` does not shard
  // because they are not a multiple of it. Returns 0 for all other nodes.
  std::int64_t uneven_heads(const Node& node, int m) const {
    const IndexSpace* space = space_of(node);
    if (space == nullptr || !idle(node, m) ||
        plan_.nodes[node.id.index()].kind != OpKind::kAttention ||
        space->inputs[0].dims.size() != 4) {
      return 0;
    }
    std::int64_t uneven = 0;
    for (const Operand& input : space->inputs) {
      if (input.dims.size() != 4 || is_mask(*space, input)) continue;
      const std::int64_t own = space->size(input.dims[1]);
      if (own % problem_.mesh().size(m) != 0) uneven = own;
    }
    return uneven;
  }

  void add_heads() {
    for (int m = 0; m < problem_.mesh().ndim(); ++m) {
      const std::int64_t size = problem_.mesh().size(m);
      if (size == 1) continue;
      std::set<std::int64_t> heads;
      std::int64_t lost = 0;
      for (const Node& node : graph_.nodes()) {
        const std::int64_t uneven = uneven_heads(node, m);
        if (uneven == 0) continue;
        heads.insert(uneven);
        lost = sat_add(lost, wasted(node, size));
      }
      if (heads.empty() || !worth_saying(lost)) continue;
      out_.emplace_back(UnevenHeadsNote{
          {heads.begin(), heads.end()}, problem_.mesh().name(m), size, lost});
    }
  }

  // Notes batch norm that sums over all ranks. The backward pass sums again,
  // over the results of the module's own nodes.
  void add_batch_statistics() {
    std::set<std::string> modules;
    std::set<int> dims;
    std::int64_t layers = 0;
    std::int64_t forward = 0;
    std::int64_t backward = 0;
    for (const PlannedNode& node : plan_.nodes) {
      if (node.op.find("batch_norm") == std::string::npos ||
          node.inside.empty())
        continue;
      modules.insert(node.module_path);
      const bool first = node.phase == Phase::kForward;
      if (first) ++layers;
      for (const CollectiveStep& step : node.inside) {
        dims.insert(step.mesh_dims.begin(), step.mesh_dims.end());
        std::int64_t& spent = first ? forward : backward;
        spent = sat_add(spent, step.nanoseconds);
      }
    }
    if (layers == 0) return;
    modules.erase("");  // an empty path identifies no module
    std::set<std::string> summed;
    for (const PlannedNode& node : plan_.nodes) {
      if (node.phase != Phase::kBackward || !modules.contains(node.module_path))
        continue;
      for (const PlannedResult& produced : node.outputs)
        summed.insert(produced.name);
    }
    for (const PlannedCopy& copy : plan_.copies) {
      const bool reduces = std::any_of(
          copy.steps.begin(), copy.steps.end(),
          [](const RedistributeStep& step) { return step.reduce_op; });
      if (!reduces || !summed.contains(copy.from)) continue;
      backward = sat_add(backward, copy.nanoseconds());
    }
    BatchNormNote note{layers, {}, forward, backward};
    for (const int m : dims) note.mesh_dims.push_back(problem_.mesh().name(m));
    out_.emplace_back(std::move(note));
  }

  // Notes the time of operators without a rule, and of the gathers before them.
  void add_unsupported() {
    std::map<std::string, std::int64_t> compute;
    std::set<std::size_t> copies;
    for (const Node& node : graph_.nodes()) {
      const ChoiceSet* set = problem_.choices_of(node.id);
      if (set == nullptr || set->unsupported.empty()) continue;
      const PlannedNode& planned = plan_.nodes[node.id.index()];
      compute[node.op_name()] += planned.compute_nanoseconds;
      for (const PlannedInput& input : planned.inputs) {
        if (input.copy) copies.insert(*input.copy);
      }
    }
    if (compute.empty()) return;
    ReplicatedOpsNote note;
    for (const auto& [name, nanoseconds] : compute) {
      note.ops.push_back(name);
      note.compute_nanoseconds = sat_add(note.compute_nanoseconds, nanoseconds);
    }
    for (const std::size_t copy : copies) {
      note.communication_nanoseconds = sat_add(
          note.communication_nanoseconds, plan_.copies[copy].nanoseconds());
    }
    out_.emplace_back(std::move(note));
  }

  void add_unlike() {
    if (!solution_.uniform_costs_more) return;
    out_.emplace_back(UnlikeLayersNote{*solution_.uniform_costs_more});
  }

  void add_pipeline() {
    static constexpr std::string_view kNames[] = {"pp", "pipe", "pipeline",
                                                  "stage"};
    for (const MeshDim& dim : problem_.mesh().dims()) {
      if (dim.size == 1 || std::find(std::begin(kNames), std::end(kNames),
                                     dim.name) == std::end(kNames)) {
        continue;
      }
      out_.emplace_back(PipelineDimNote{dim.name, dim.size});
    }
  }

  const PlanProblem& problem_;
  const Graph& graph_;
  const PlanSolution& solution_;
  const Plan& plan_;
  std::vector<PlanNote> out_;
};

}  // namespace

std::vector<PlanNote> plan_notes(const PlanProblem& problem,
                                 const PlanSolution& solution,
                                 const Plan& plan) {
  return Notes(problem, solution, plan).run();
}

}  // namespace shardprop
