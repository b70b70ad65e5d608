// Second runs, equal layers, micro-batches, a memory limit, overlap and fusion in
// every combination: search, network and enumeration agree on small graphs, and
// optima make use of each feature.
#include "plan/exhaustive.h"
#include "plan/exhaustive_windows.h"
#include "plan/layered_graphs.h"
#include "plan/network/plan_network.h"
#include "plan/network_plans.h"
#include "plan/plan_features.h"
#include "plan/search/parts/restricted_problem.h"
#include "plan/search/solve_plan.h"
#include "plan/training_graphs.h"
#include "plan/two_spaces.h"
#include "support/property.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;

// Returns a restriction of one or two choices for each variable: that of an optimal
// plan, and another one for some inputs and operators, which `seed` draws by name.
Restriction choices_around_optimum(const PlanProblem& problem,
                                   std::uint32_t seed) {
  const Graph& graph = problem.graph();
  const PlanSolution solution = solve_plan(problem);
  REQUIRE(solution.assignment);
  Restriction out = no_restriction(problem);
  for (std::size_t v = 0; v < out.left.size(); ++v) {
    const PlanVariable& variable = problem.variables()[v];
    const std::size_t first =
        problem.equal_choices().first(PlanVariableId(v)).index();
    if (first != v) {
      out.left[v] = out.left[first];
      continue;
    }
    std::set<std::uint32_t> left{solution.assignment->choices[v]};
    const bool is_operator = variable.kind == PlanVariable::Kind::kOperator;
    if (is_operator || variable.kind == PlanVariable::Kind::kInput) {
      const std::string& name = is_operator
                                    ? graph.nodes()[variable.index].name
                                    : graph.value(variable.makes[0]).name;
      std::seed_seq seeds(name.begin(), name.end());
      std::mt19937 draw(seeds);
      draw.discard(seed % 1'000);
      const bool has_another = draw() % 4 != 0;
      const auto other =
          static_cast<std::uint32_t>(draw() % variable.choices->size());
      if (has_another) left.insert(other);
    }
    out.left[v].assign(left.begin(), left.end());
  }
  return out;
}

class Factorial {
 public:
  Factorial() {
    for (const char* feature :
         {kSecondRuns, kAlikeCosts, kAlikeIsFree, kLimitBinds, kNothingFits,
          kFusionSaves, kOverlapSaves, kMicroBatches}) {
      features_[feature] = 0;
    }
  }

  // Returns false if the graph has no equal layers that can run again.
  bool run(const std::shared_ptr<const Graph>& plain,
           const test::TrainingSettings& base, std::uint32_t seed,
           int percent) {
    costs_.clear();
    cut_off_keys_.clear();
    std::mt19937 draw(seed);
    for (const bool is_fused : {false, true}) {
      for (const bool has_micro_batches : {false, true}) {
        for (const bool has_overlap : {false, true}) {
          const Settings settings{is_fused, has_micro_batches, has_overlap};
          // Memory makes most of the work.
          const bool has_limits = draw() % 4 == 0;
          std::optional<std::int64_t> limit;
          for (const char* rule : {"none", "selective", "full"}) {
            CAPTURE(rule);
            const auto running =
                running_graph(plain, testing::standard_library(),
                              {is_fused, value_of(Recompute::parse(rule))});
            if (!running) return false;
            test::TrainingSettings here = base;
            here.options.fusion = is_fused ? Fusion::kCompiler : Fusion::kNone;
            here.options.accumulate = has_micro_batches ? 4 : 1;
            here.options.overlap = has_overlap ? 1 : 0;
            run_rule(**running, here, {rule, settings}, seed,
                     has_limits ? percent : 0, limit);
          }
        }
      }
    }
    compare();
    return true;
  }

  const test::PlanFeatures::Counts& features() const { return features_; }
  int enumerated() const { return enumerated_; }
  int problems() const { return problems_; }
  int missed() const { return missed_; }
  // In how many problems the work ended before the best plan was found.
  int cut_off() const { return cut_off_; }

 private:
  // Table entries. A proof takes up to 400 million, which is 3 s.
  static constexpr std::uint64_t kWorkWithLimit = 20'000'000;
  static constexpr double kMostCombinations = 4'000;
  static constexpr std::size_t kMostAssignments = 8'000;

  static constexpr const char* kSecondRuns =
      "a rule with second runs is the cheapest";
  static constexpr const char* kAlikeCosts =
      "equal layers cost more than free ones";
  static constexpr const char* kAlikeIsFree =
      "equal layers cost as much as free ones";
  static constexpr const char* kLimitBinds =
      "the memory limit makes it more expensive";
  static constexpr const char* kNothingFits = "no plan fits the memory limit";
  static constexpr const char* kFusionSaves = "fusion makes it cheaper";
  static constexpr const char* kOverlapSaves = "overlap makes it cheaper";
  static constexpr const char* kMicroBatches = "micro-batches make it cheaper";

  // Settings are one combination without the rule, the layers and the limit.
  struct Settings {
    bool is_fused = true;
    bool has_micro_batches = false;
    bool has_overlap = false;
    friend auto operator<=>(const Settings&, const Settings&) = default;
  };

  // The answers of a graph in all combinations.
  struct Key {
    std::string rule;
    Settings settings;
    Layers layers = Layers::kAlike;
    bool has_limit = false;
    friend auto operator<=>(const Key&, const Key&) = default;
  };

  // Plans without a memory limit, and with one if `percent` of the peak of the
  // first rule is positive.
  void run_rule(const Graph& graph, test::TrainingSettings settings, Key key,
                std::uint32_t seed, int percent,
                std::optional<std::int64_t>& limit) {
    CAPTURE(key.settings.is_fused);
    CAPTURE(key.settings.has_micro_batches);
    CAPTURE(key.settings.has_overlap);
    // The problems without and with a limit have the same choices, so that their
    // costs compare.
    Restriction restriction;
    for (const bool has_limit : {false, true}) {
      if (has_limit && percent == 0) return;
      CAPTURE(has_limit);
      key.has_limit = has_limit;
      settings.options.memory_limit = has_limit ? limit : std::nullopt;
      if (has_limit) settings.options.work_limit = kWorkWithLimit;
      const test::TwoSpaces spaces(
          graph, settings, [&](const PlanProblem& problem) {
            if (!has_limit) restriction = choices_around_optimum(problem, seed);
            return restriction;
          });
      std::int64_t peak = 0;
      for (const Layers layers : {Layers::kAlike, Layers::kFree}) {
        key.layers = layers;
        const PlanProblem& problem = layers == Layers::kAlike
                                         ? spaces.alike.problem()
                                         : spaces.free.problem();
        CAPTURE(std::string(to_string(layers)));
        const PlanSolution solution = solve_plan(problem);
        if (layers == Layers::kAlike) peak = solution.evaluation.peak_bytes;
        check(problem, solution, key);
      }
      if (!limit) limit = peak / 100 * percent;
    }
  }

  void check(const PlanProblem& problem, const PlanSolution& solution,
             const Key& key) {
    ++problems_;
    const auto limit = problem.options().memory_limit;
    if (solution.assignment) {
      const PlanEvaluation judged = evaluate(problem, *solution.assignment);
      CHECK(judged.broken.empty());
      CHECK(judged.objective == solution.evaluation.objective);
      CHECK(problem.equal_choices().are_alike(solution.assignment->choices));
      const auto bytes = bytes_by_slot(problem, *solution.assignment);
      CHECK(*std::max_element(bytes.begin(), bytes.end()) == judged.peak_bytes);
      if (limit) CHECK(judged.peak_bytes <= *limit);
      costs_[key] = judged.objective;
      if (solution.ran_out == RanOut::kWork) cut_off_keys_.insert(key);
      test::PlanFeatures(problem, *solution.assignment, solution.evaluation)
          .count_in(features_);
    } else {
      REQUIRE(limit);
      ++features_[kNothingFits];
    }
    const bool is_counted = !limit && count_all(problem, solution);
    const PlanNetwork network =
        value_of(PlanNetwork::create(problem, {.memory_limit = limit}));
    test::NetworkPlans plans(problem, network, limit, kMostAssignments);
    const std::int64_t most = solution.assignment
                                  ? solution.evaluation.objective
                                  : std::numeric_limits<std::int64_t>::max();
    const bool is_judged = plans.run(most);
    enumerated_ += is_counted || is_judged ? 1 : 0;
    if (!is_judged) return;
    const std::optional<std::int64_t> least = plans.least_cost();
    CHECK(solution.lower_bound <=
          least.value_or(std::numeric_limits<std::int64_t>::max()));
    if (!limit) {
      CHECK(least == solution.evaluation.objective);
      CHECK(solution.lower_bound == solution.evaluation.objective);
      CHECK(solution.status == PlanStatus::kOptimal);
    } else if (!least) {
      CHECK_FALSE(solution.assignment);
    } else {
      CHECK(solution.status != PlanStatus::kInfeasible);
      if (!solution.assignment || solution.evaluation.objective > *least) {
        // The search of all plans below the best one may be cut off.
        if (solution.ran_out == RanOut::kWork) {
          ++cut_off_;
          return;
        }
        ++missed_;
        MESSAGE("missed: " << solution.evaluation.objective << " ns, not "
                           << *least);
      }
    }
  }

  // Compares the optimum with that of all combinations of choices and of cached
  // layouts. Returns false if they are too many.
  bool count_all(const PlanProblem& problem, const PlanSolution& solution) {
    if (test::Exhaustive(problem).size() > kMostCombinations) return false;
    const std::int64_t least = test::ExhaustiveWindows(problem).least();
    const std::int64_t optimum = solution.evaluation.objective;
    // It does not tie the cached layouts of equal layers, which are cheaper so
    // if transfers overlap.
    CHECK(least <= optimum);
    if (!problem.equal_choices().have_layers() ||
        problem.options().overlap == 0) {
      CHECK(least == optimum);
    }
    return true;
  }

  const std::int64_t* cost_of(const Key& key) const {
    const auto found = costs_.find(key);
    return found == costs_.end() ? nullptr : &found->second;
  }

  // Compares the combinations that differ in one feature.
  void compare() {
    for (const auto& [key, cost] : costs_) {
      Key other = key;
      if (key.layers == Layers::kAlike) {
        other.layers = Layers::kFree;
        const std::int64_t* free = cost_of(other);
        // Free layers take more work than equal ones.
        if (free == nullptr || cut_off_keys_.contains(other)) {
          CHECK(key.has_limit);
          continue;
        }
        CHECK(*free <= cost);
        ++features_[*free < cost ? kAlikeCosts : kAlikeIsFree];
      }
      other = key;
      if (key.has_limit) {
        other.has_limit = false;
        const std::int64_t* free = cost_of(other);
        CHECK(*free <= cost);
        features_[kLimitBinds] += *free < cost ? 1 : 0;
      }
      other = key;
      if (key.settings.has_overlap) {
        other.settings.has_overlap = false;
        count_if_cheaper(cost, other, kOverlapSaves);
      }
      other = key;
      if (key.settings.is_fused) {
        other.settings.is_fused = false;
        count_if_cheaper(cost, other, kFusionSaves);
      }
      other = key;
      if (key.settings.has_micro_batches) {
        other.settings.has_micro_batches = false;
        count_if_cheaper(cost, other, kMicroBatches);
      }
      other = key;
      if (key.rule != "none" && key.has_limit) {
        other.rule = "none";
        const std::int64_t* none = cost_of(other);
        features_[kSecondRuns] += none == nullptr || cost < *none ? 1 : 0;
      }
    }
  }

  void count_if_cheaper(std::int64_t cost, const Key& other,
                        const char* feature) {
    const std::int64_t* than = cost_of(other);
    features_[feature] += than != nullptr && cost < *than ? 1 : 0;
  }

  std::map<Key, std::int64_t> costs_;
  std::set<Key> cut_off_keys_;  // of searches that their work ended
  test::PlanFeatures::Counts features_ = test::PlanFeatures::none();
  int problems_ = 0;
  int enumerated_ = 0;
  int missed_ = 0;
  int cut_off_ = 0;
};

// 2 graphs every day, 300 with SHARDPROP_FULL=1. Each has 48 combinations without a
// memory limit, and a quarter as many with one.
TEST_CASE(
    "all combinations of features are planned as enumeration plans them") {
  std::mt19937 draw(5800);
  const int graphs = testing::counted(2, 300);
  Factorial factorial;
  int counted = 0;
  for (int i = 0; counted < graphs && i < 10 * graphs; ++i) {
    CAPTURE(i);
    test::LayeredGraph::Shape shape;
    shape.layers = 2 + i % 2;
    shape.after = static_cast<test::LayeredGraph::After>(draw() % 5);
    shape.has_head = shape.layers == 2 && draw() % 2 == 0;
    if (draw() % 3 == 0) shape.dtype = "bf16";
    const auto graph =
        std::make_shared<const Graph>(test::LayeredGraph(shape).build());
    const auto settings = test::random_settings(draw);
    const std::uint32_t seed = draw();
    const int percent = std::array{70, 80, 90, 95, 99}[draw() % 5];
    counted += factorial.run(graph, settings, seed, percent) ? 1 : 0;
  }
  CHECK(counted == graphs);
  for (const auto& [feature, count] : factorial.features()) {
    CAPTURE(feature);
    MESSAGE(feature << ": " << count);
    if (testing::full_counts()) CHECK(count > 0);
  }
  MESSAGE(factorial.enumerated()
          << " of " << factorial.problems() << " problems enumerated, "
          << factorial.missed() << " missed, " << factorial.cut_off()
          << " cut off");
  CHECK(3 * factorial.enumerated() > factorial.problems());
  CHECK(factorial.missed() == 0);
}

}  // namespace
}  // namespace shardprop
