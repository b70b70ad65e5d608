// Training steps as an eager framework runs them: operator by operator through
// the propagator, each on its inputs as they came out of the operators before.
// The whole of it is a plan that nobody planned, which is lowered and compared
// with the unsharded run, every value and every moved input of it.

#include "support/eager_graphs.h"
#include "support/property.h"
#include "verify/verified.h"

#include <shardprop/propagate/caching_propagator.h>
#include <shardprop/redistribute/planner.h>

#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

using namespace testing;

// If every byte is expensive, collectives inside an operator pay off.
Topology dear_bytes() {
  Topology topology = default_topology();
  topology.node_bandwidth_gbps.value = 1e-4;
  topology.network_bandwidth_gbps.value = 1e-4;
  topology.all_to_all_gbps.value = 1e-4;
  return topology;
}

class EagerRun {
 public:
  EagerRun(const Graph& graph, const CachingPropagator& cache,
           std::uint64_t seed)
      : graph_(graph),
        propagator_(cache.propagator()),
        reader_(value_of(cache.reader())),
        random_(seed) {
    plan_.graph_name = graph.name();
    plan_.graph_hash = hash_text(graph.hash());
    plan_.graph_ops = graph.nodes().size();
    plan_.mesh = propagator_.mesh();
    plan_.topology = propagator_.topology();
    plan_.status = PlanStatus::kFeasible;
    plan_.objective_nanoseconds = 0;
  }

  // The run, written down as a plan.
  Plan run() {
    for (const GraphInput& input : graph_.inputs()) {
      const TensorMeta& meta = graph_.value(input.value).meta;
      hold(input.value, canonical(some_layout(plan_.mesh, meta, random_),
                                  plan_.mesh, meta.shape()));
      plan_.values.push_back({name(input.value), {}, tensor(input.value), {}});
    }
    for (const Node& node : graph_.nodes()) step(node);
    for (const GraphOutput& output : graph_.outputs()) {
      plan_.outputs.push_back(
          {output.kind,
           output.target.valid() ? name(output.target) : std::string(),
           {name(output.value), held(output.value), {}}});
    }
    plan_.summary = summarize(plan_);
    return std::move(plan_);
  }

  int moves() const { return moves_; }
  int without_row() const { return without_row_; }
  int inside() const { return inside_; }

 private:
  std::string name(ValueId id) const { return graph_.value(id).display_name(); }
  const Layout& held(ValueId id) const { return held_.at(id.index()); }
  void hold(ValueId id, Layout layout) {
    held_.insert_or_assign(id.index(), std::move(layout));
  }
  PlannedTensor tensor(ValueId id) const {
    const TensorMeta& meta = graph_.value(id).meta;
    return {meta.shape(), meta.dtype(), held(id)};
  }

  void step(const Node& node) {
    CAPTURE(node.name);
    CAPTURE(node.op_name());
    PlannedNode planned;
    planned.name = node.name;
    planned.op = node.op_name();
    for (const ValueId id : node.inputs) {
      planned.inputs.push_back({name(id), held(id), {}});
    }
    if (!node.outputs.empty()) {
      std::vector<Layout> given;
      for (const ValueId id : node.inputs) given.push_back(held(id));
      const auto found = reader_.propagate(node.op, given);
      if (found) {
        follow(node, **found, planned);
      } else {
        CHECK(found.error().code == ErrorCode::kNoStrategy);
        run_replicated(node, planned);
      }
    }
    plan_.nodes.push_back(std::move(planned));
  }

  void follow(const Node& node, const OutputSharding& how,
              PlannedNode& planned) {
    for (const InputMove& input : how.moves) {
      move(planned.inputs[input.input], *input.plan,
           how.inputs[input.input].layout());
    }
    REQUIRE(how.assignments.size() == 1);
    planned.assignment = how.assignments[0];
    planned.shardings = how.shardings.at(0);
    planned.inside = how.inside;
    inside_ += how.inside.empty() ? 0 : 1;
    const auto local = value_of(propagator_.local_strategy(node.op, how));
    planned.local = local_run(local->context());
    planned.is_random = local->context().space.is_random;
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      hold(node.outputs[o], how.outputs[o].layout());
      planned.outputs.push_back(
          {name(node.outputs[o]), tensor(node.outputs[o])});
    }
  }

  // Runs an operator without a definition as replicated.
  void run_replicated(const Node& node, PlannedNode& planned) {
    ++without_row_;
    const Layout whole = Layout::replicated(plan_.mesh.ndim());
    const auto planner =
        value_of(RedistributePlanner::create(plan_.mesh, plan_.topology));
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const Layout from = held(node.inputs[i]);
      if (from == whole) continue;
      move(planned.inputs[i],
           value_of(planner.plan(from, whole, node.op.inputs[i])), whole);
    }
    planned.assignment =
        Assignment(static_cast<std::size_t>(plan_.mesh.ndim()), kUnassigned);
    for (const ValueId id : node.outputs) {
      hold(id, whole);
      planned.outputs.push_back({name(id), tensor(id)});
    }
  }

  void move(PlannedInput& input, const RedistributePlan& plan,
            const Layout& to) {
    ++moves_;
    PlannedCopy copy;
    copy.from = copy.of = input.from;
    copy.src = input.layout;
    copy.dst = to;
    copy.produced_at = copy.freed_at =
        static_cast<std::int64_t>(plan_.nodes.size());
    copy.steps = plan.steps;
    input.layout = to;
    input.copy = plan_.copies.size();
    plan_.copies.push_back(std::move(copy));
  }

  const Graph& graph_;
  ShardingPropagator propagator_;
  CachingPropagator::Reader reader_;
  std::mt19937_64 random_;
  Plan plan_;
  std::map<std::size_t, Layout> held_;  // by value
  int moves_ = 0;
  int without_row_ = 0;
  int inside_ = 0;
};

TEST_CASE("training steps, operator by operator, equal the unsharded run") {
  std::vector<std::pair<const char*, Topology>> machines = {
      {"2,2", default_topology()}, {"2", dear_bytes()}};
  if (full_counts()) {
    for (const char* mesh : {"3", "4,2", "2,3"}) {
      machines.emplace_back(mesh, default_topology());
      machines.emplace_back(mesh, dear_bytes());
    }
  }
  std::int64_t compared = 0;
  int moves = 0;
  int steps = 0;
  int inside = 0;
  for (const std::string& file : tiny_graph_files()) {
    CAPTURE(file);
    const Graph graph = value_of(load_graph(file, *shared_library()));
    const auto expected = value_of(
        Expected::create(graph, shared_library(), Optimizer::kNone, {}));
    for (const auto& [mesh, topology] : machines) {
      CAPTURE(mesh);
      ShardingPropagator propagator = value_of(ShardingPropagator::create(
          value_of(DeviceMesh::parse(mesh)), topology, shared_library()));
      const CachingPropagator cache =
          value_of(CachingPropagator::create(std::move(propagator)));
      EagerRun eager(graph, cache, 7);
      const Plan plan = eager.run();
      const VerifyReport report = value_of(
          verify(value_of(lower(plan, graph, *shared_library())), expected));
      if (report.mismatch) {
        const VerifyMismatch& wrong = *report.mismatch;
        CAPTURE(wrong.node);
        CAPTURE(wrong.op);
        CAPTURE(wrong.value);
        CAPTURE(wrong.strategy);
        CAPTURE(wrong.error);
        CAPTURE(wrong.expected);
        CAPTURE(wrong.found);
        CHECK(!report.mismatch);
      }
      CHECK(report.ok);
      CHECK(report.planned == report.counted);
      compared += report.compared;
      moves += eager.moves();
      inside += eager.inside();
      steps += static_cast<int>(plan.nodes.size());
    }
  }
  MESSAGE(steps << " operators, " << moves << " inputs moved, " << inside
                << " with collectives inside, " << compared
                << " values compared");
  CHECK(moves > steps / 20);
  CHECK(inside > 0);
}

}  // namespace
}  // namespace shardprop
