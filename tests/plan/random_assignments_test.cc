// Random assignments of networks at random overlap multipliers: the network's
// value is at most the cost of the plan, and its memory rows are at most the bytes
// of the plan.
#include "plan/network/plan_network.h"
#include "plan/training_graphs.h"
#include "support/property.h"

#include <shardprop/solver/checker.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;

// Draws an assignment without forbidden pairs, variable by variable. Empty if a
// variable has no choice left.
class RandomAssignments {
 public:
  explicit RandomAssignments(const solver::Problem& network)
      : network_(network), before_(network.num_variables()) {
    for (const solver::Edge& edge : network.edges()) {
      before_[std::max(edge.a.index(), edge.b.index())].push_back(&edge);
    }
  }

  std::optional<solver::Assignment> draw(std::mt19937& random) const {
    solver::Assignment out(before_.size(), 0);
    for (std::size_t v = 0; v < out.size(); ++v) {
      std::vector<std::uint32_t> left;
      const auto costs = network_.costs(solver::VariableId(v));
      for (std::uint32_t c = 0; c < costs.size(); ++c) {
        out[v] = c;
        if (!solver::is_forbidden(costs[c]) && is_possible(v, out)) {
          left.push_back(c);
        }
      }
      if (left.empty()) return std::nullopt;
      out[v] = left[random() % left.size()];
    }
    return out;
  }

 private:
  bool is_possible(std::size_t v, const solver::Assignment& at) const {
    return std::none_of(before_[v].begin(), before_[v].end(),
                        [&](const solver::Edge* edge) {
                          const auto& table = network_.table(edge->table);
                          return solver::is_forbidden(
                              table.costs[at[edge->a.index()] * table.columns +
                                          at[edge->b.index()]]);
                        });
  }

  const solver::Problem& network_;
  std::vector<std::vector<const solver::Edge*>> before_;  // by later variable
};

// Returns the bytes of the assignment in the memory rows of the network, by slot.
std::vector<std::int64_t> network_bytes(const solver::Problem& network,
                                        const solver::Assignment& choices,
                                        std::size_t slots) {
  std::vector<std::int64_t> out(slots, 0);
  for (std::size_t v = 0; v < choices.size(); ++v) {
    const solver::VariableId id(v);
    for (std::size_t u = 0; u < network.num_usages(id); ++u) {
      const solver::Usage usage = network.usage(id, u);
      for (std::int64_t slot = usage.when.lo; slot < usage.when.hi; ++slot) {
        out[static_cast<std::size_t>(slot)] += usage.bytes[choices[v]];
      }
    }
  }
  return out;
}

// Returns whether the plan of the assignment has all layouts that the assignment
// caches. A layout that nothing reads is in no plan, so that the assignment takes
// more memory than its plan.
bool has_all_cached(const PlanNetwork& network,
                    const solver::Assignment& choices,
                    const PlanAssignment& plan) {
  const PlanProblem& problem = network.problem();
  for (std::size_t s = 0; s < problem.buffers().size(); ++s) {
    const PlanBuffer& buffer = problem.buffers()[s];
    const BufferLayout produced =
        problem.layout_produced(buffer, plan.choices[buffer.producer.index()]);
    const auto exists = [&](BufferLayout layout, std::int64_t slot) {
      if (layout == produced && plan.freed_at[s] >= slot) return true;
      return std::any_of(plan.copies.begin(), plan.copies.end(),
                         [&](const AssignedCopy& copy) {
                           return copy.buffer == PlanBufferId(s) &&
                                  copy.state == layout &&
                                  copy.produced_at <= slot &&
                                  copy.freed_at >= slot;
                         });
    };
    for (const LiveInterval& here : network.live_intervals(PlanBufferId(s))) {
      const CachedLayouts cached = (*here.sets)[choices[here.variable.index()]];
      if (!exists(cached.first, here.end - 1) ||
          !exists(cached.second, here.end - 1)) {
        return false;
      }
    }
  }
  return true;
}

TEST_CASE("a network's value is at most the plan's cost at any multipliers") {
  std::mt19937 draw(57);
  const int required = testing::full_counts() ? 10'000 : 1'000;
  constexpr int kOfNetwork = 10;
  int judged = 0;
  int in_flight = 0;   // plans with overlapped time
  int remembered = 0;  // plans whose bytes are compared
  for (int i = 0; judged < required && i < 4 * required; ++i) {
    CAPTURE(i);
    const test::TrainingShape shape{1 + i % 7, /*has_input=*/i % 3 != 0};
    const Graph graph = test::random_training_graph(draw, shape);
    test::TrainingSettings settings = test::random_settings(draw);
    const bool with_memory = i % 2 == 0;
    const PlanProblem problem = test::problem_with(graph, settings);
    NetworkOptions options;
    if (with_memory) options.memory_limit = std::int64_t{1} << 60;
    for (std::size_t w = 0; w < problem.window_loads().size(); ++w) {
      options.overlap_multipliers.push_back(
          static_cast<std::int64_t>(draw() % (kOverlapMultiplierUnit + 1)));
    }
    const PlanNetwork network = value_of(PlanNetwork::create(problem, options));
    options.overlap_multipliers.assign(problem.window_loads().size(),
                                       kOverlapMultiplierUnit);
    const PlanNetwork full = value_of(PlanNetwork::create(problem, options));
    const RandomAssignments assignments(network.network());
    for (int n = 0; n < kOfNetwork; ++n) {
      const auto choices = assignments.draw(draw);
      if (!choices) continue;
      const auto of_network = solver::evaluate(network.network(), *choices);
      REQUIRE(of_network);
      const PlanAssignment plan = network.decode(network.assignment(*choices));
      const PlanEvaluation of_plan = evaluate(problem, plan);
      CHECK(of_plan.broken.empty());
      if (with_memory && has_all_cached(network, *choices, plan)) {
        ++remembered;
        const std::vector<std::int64_t> bytes = bytes_by_slot(problem, plan);
        const std::vector<std::int64_t> rows =
            network_bytes(network.network(), *choices, bytes.size());
        for (std::size_t slot = 0; slot < bytes.size(); ++slot) {
          CAPTURE(slot);
          CHECK(rows[slot] <= bytes[slot]);
        }
      }
      std::int64_t overlapped = 0;
      std::int64_t at_full = of_plan.objective;
      for (const WindowLoad& load : of_plan.windows) {
        overlapped += load.overlappable - load.exposed();
        at_full += load.overlappable - load.compute - load.exposed();
      }
      // A plan has no copy that nothing reads, and then costs less than its
      // assignment.
      const auto of_full = solver::evaluate(full.network(), *choices);
      REQUIRE(of_full);
      if (static_cast<std::int64_t>(of_full->cost) > at_full) continue;
      ++judged;
      in_flight += overlapped > 0 ? 1 : 0;
      CHECK(static_cast<std::int64_t>(of_network->cost) <= of_plan.objective);
    }
  }
  CHECK(judged >= required);
  CHECK(in_flight > required / 20);
  CHECK(remembered > required / 10);
  MESSAGE(judged << " plans, " << in_flight << " with overlapped time, "
                 << remembered << " with memory");
}

}  // namespace
}  // namespace shardprop
