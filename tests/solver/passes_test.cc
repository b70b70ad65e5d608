#include "solver/random_problem.h"

#include "solver/eliminate/bucket_elimination.h"
#include "solver/presolve/core.h"
#include "solver/presolve/passes.h"
#include "solver/presolve/reduce.h"
#include "solver/search/forest_search.h"
#include "solver/search/recombination.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>

namespace shardprop::solver {
namespace {

constexpr std::int64_t kNever = kForbidden;
using Costs2 = std::array<std::int64_t, 2>;
using Costs4 = std::array<std::int64_t, 4>;

TEST_CASE("arc consistency removes what has no support, all along a chain") {
  ProblemBuilder builder;
  const TableId equal = builder.add_table(2, 2, Costs4{0, kNever, kNever, 0});
  const VariableId a = builder.add_variable(Costs2{0, kNever});
  const VariableId b = builder.add_variable(Costs2{3, 1});
  const VariableId c = builder.add_variable(Costs2{5, 1});
  builder.add_edge(a, b, equal);
  builder.add_edge(b, c, equal);
  Network network(*std::move(builder).build());
  CHECK(arc_consistency(network));
  for (const NetVariable& v : network.variables) CHECK(v.num_choices() == 1);
  CHECK(network.expand({0, 0, 0}) == Assignment{0, 0, 0});
}

TEST_CASE("a choice that overflows beside everyone's least is removed") {
  ProblemBuilder builder;
  const VariableId a = builder.add_variable(Costs2{9, 0});
  const VariableId b = builder.add_variable(Costs2{0, 0});
  builder.add_usage(a, {0, 2}, Costs2{1, 8});
  builder.add_usage(b, {1, 3}, Costs2{3, 4});
  builder.set_limit(10);
  Network network(*std::move(builder).build());
  for (int v = 0; v < 2; ++v) network.tidy_segments(v);
  network.tidy_rows();
  CHECK(network.capacity == std::vector<std::int64_t>{6});  // 10 - 1 - 3
  CHECK(arc_consistency(network));
  CHECK(network.variables[0].num_choices() == 1);
  CHECK(network.variables[1].num_choices() == 2);
}

TEST_CASE("a chain of copies contracts to one variable with everyone's bytes") {
  ProblemBuilder builder;
  const TableId equal = builder.add_table(2, 2, Costs4{0, kNever, kNever, 0});
  for (int v = 0; v < 5; ++v) {
    const VariableId id = builder.add_variable(Costs2{v, 10 - v});
    builder.add_usage(id, {v, v + 2}, Costs2{4, 0});
    if (v > 0)
      builder.add_edge(VariableId(static_cast<std::size_t>(v - 1)), id, equal);
  }
  builder.set_limit(7);
  Network network(*std::move(builder).build());
  CHECK(contract_determined(network));
  CHECK(network.num_alive() == 1);
  PassTable clock;
  reduce(network, PassSet{}, clock, Budget());
  // Two neighbours live at once: the first choice needs 8 of 7 bytes.
  CHECK(network.num_alive() == 0);
  CHECK(network.expand(std::vector<int>(5, 0)) == Assignment{1, 1, 1, 1, 1});
  CHECK(to_string(network.offset) == "40");
}

TEST_CASE("a separable edge goes; the sum stays") {
  ProblemBuilder builder;
  const VariableId a = builder.add_variable(Costs2{0, 0});
  const VariableId b = builder.add_variable(Costs2{0, 0});
  builder.add_edge(a, b, builder.add_table(2, 2, Costs4{1, 3, 11, 13}));
  Network network(*std::move(builder).build());
  CHECK(drop_separable_edges(network));
  CHECK(network.live_edges(0).empty());
  CHECK(network.variables[0].costs == std::vector<double>{0, 10});
  CHECK(network.variables[1].costs == std::vector<double>{1, 3});
}

TEST_CASE("dominance compares bytes as well as costs") {
  for (const std::int64_t bytes : {std::int64_t{1}, std::int64_t{2}}) {
    ProblemBuilder builder;
    const VariableId a = builder.add_variable(Costs2{5, 3});
    const VariableId b = builder.add_variable(Costs2{0, 0});
    builder.add_usage(a, {0, 1}, Costs2{1, bytes});
    builder.add_edge(a, b, builder.add_table(2, 2, Costs4{0, 2, 1, 3}));
    builder.set_limit(2);
    Network network(*std::move(builder).build());
    // Choice 1 of a costs one less at every choice of b.
    const bool removed =
        dominance(network) && network.variables[0].num_choices() == 1;
    CHECK(removed == (bytes == 1));
  }
}

TEST_CASE("every single pass keeps the optimum of random problems") {
  Rng rng(31);
  bool (*const passes[])(Network&) = {
      merge_parallel_edges, arc_consistency, contract_determined,
      drop_separable_edges, dominance,       eliminate_low_degree};
  for (int i = 0; i < 300; ++i) {
    const Problem problem =
        testing::random_problem(rng, {.most_assignments = 300});
    const auto truth = testing::brute_force(problem);
    for (const auto pass : passes) {
      Network network(problem);
      if (network.infeasible) {
        CHECK(!truth.has_value());
        continue;
      }
      merge_parallel_edges(network);
      for (std::size_t v = 0; v < network.variables.size(); ++v) {
        network.normalise(static_cast<int>(v));
        network.tidy_segments(static_cast<int>(v));
      }
      network.tidy_rows();
      if (!network.infeasible) pass(network);
      // `best` is the least cost of the remaining assignments, each expanded
      // and evaluated on the whole problem.
      std::optional<Int128> best;
      std::vector<int> choices(network.variables.size(), 0);
      while (!network.infeasible) {
        const auto judged = evaluate(problem, network.expand(choices));
        if (judged->feasible() && (!best.has_value() || judged->cost < *best)) {
          best = judged->cost;
        }
        std::size_t v = 0;
        for (; v < choices.size(); ++v) {
          if (!network.variables[v].alive) continue;
          if (++choices[v] < network.variables[v].num_choices()) break;
          choices[v] = 0;
        }
        if (v == choices.size()) break;
      }
      CAPTURE(i);
      REQUIRE(best.has_value() == truth.has_value());
      if (best.has_value()) CHECK(to_string(*best) == to_string(*truth));
    }
  }
}

TEST_CASE("bucket elimination is exact without memory and respects its cap") {
  Rng rng(77);
  for (int i = 0; i < 300; ++i) {
    Problem problem = testing::random_problem(rng, {.most_assignments = 2000});
    if (problem.limit().has_value()) continue;
    Network network(problem);
    const auto truth = testing::brute_force(problem);
    if (network.infeasible) continue;
    std::uint64_t work = 0;
    const auto solved = eliminate_all(network, 1U << 20, work);
    REQUIRE(solved.has_value());
    CAPTURE(i);
    CHECK(std::isfinite(solved->cost) == truth.has_value());
    if (!truth.has_value()) continue;
    CHECK(to_string(network.offset + static_cast<Int128>(solved->cost)) ==
          to_string(*truth));
    CHECK(to_string(evaluate(problem, network.expand(solved->choices))->cost) ==
          to_string(*truth));
    CHECK(!eliminate_all(network, 0, work).has_value());
  }
}

// The entries are 32-bit integers or doubles, and some are at the ceiling.
TEST_CASE("elimination under a ceiling finds what costs less, and only that") {
  Rng rng(78);
  for (int i = 0; i < 600; ++i) {
    Problem problem = testing::random_problem(
        rng, {.most_choices = i % 3 == 0 ? 19 : 5, .most_assignments = 3000});
    if (problem.limit().has_value()) continue;
    const auto truth = testing::brute_force(problem);
    Network network(problem);
    if (network.infeasible) continue;
    merge_parallel_edges(network);
    for (std::size_t v = 0; v < network.variables.size(); ++v) {
      network.normalise(static_cast<int>(v));
    }
    network.normalise_edges();
    const auto order = order_elimination(network, {1e9, 1e9}, Budget());
    REQUIRE(order.has_value());
    const double room =
        truth ? static_cast<double>(*truth - network.offset) : 1000;
    for (const double ceiling : {1.0, room, room + 1, 2e9, kInfinity}) {
      if (ceiling < 1) continue;
      std::uint64_t work = 0;
      const auto solved =
          eliminate_in_order(network, *order, ceiling, 1, Budget(), work);
      REQUIRE(solved.has_value());
      CAPTURE(i);
      CAPTURE(ceiling);
      CHECK(solved->cost == (truth ? std::min(room, ceiling) : ceiling));
      if (!truth || room >= ceiling) continue;
      CHECK(
          to_string(evaluate(problem, network.expand(solved->choices))->cost) ==
          to_string(*truth));
    }
  }
}

TEST_CASE("elimination stops at a stop request") {
  Rng rng(79);
  const Problem problem =
      testing::random_problem(rng, {.most_assignments = 300});
  Network network(problem);
  for (NetVariable& v : network.variables) v.segments.clear();
  std::stop_source stop;
  stop.request_stop();
  std::uint64_t work = 0;
  const auto order = order_elimination(network, {1e9, 1e9}, Budget());
  REQUIRE(order.has_value());
  const Budget stopped({}, stop.get_token());
  CHECK(!eliminate_in_order(network, *order, kInfinity, 2, stopped, work)
             .has_value());
  CHECK(!order_elimination(network, {1e9, 1e9}, stopped).has_value());
}

TEST_CASE("no order is found where finding one takes too many steps") {
  Rng rng(81);
  ProblemBuilder builder;
  const TableId table = builder.add_table(2, 2, Costs4{0, 1, 2, 5});
  std::vector<VariableId> variables;
  for (int v = 0; v < 1500; ++v) {
    variables.push_back(builder.add_variable(Costs2{0, 0}));
  }
  for (int e = 0; e < 6000; ++e) {
    const int a = rng.below(1500);
    const int b = rng.below(1499);
    builder.add_edge(variables[static_cast<std::size_t>(a)],
                     variables[static_cast<std::size_t>(b < a ? b : b + 1)],
                     table);
  }
  Network network(*std::move(builder).build());
  merge_parallel_edges(network);
  CHECK(!order_elimination(network, {kInfinity, kInfinity}, Budget())
             .has_value());
}

// The cost of `choices`, or +inf where a row overflows.
double cost_in(const Core& core, const std::vector<int>& choices) {
  ForestSearch at(core, 1);
  at.assign(choices);
  return at.feasible() ? at.cost() : kInfinity;
}

TEST_CASE("recombination swaps groups in chains where bytes must be freed") {
  ProblemBuilder builder;
  const auto add = [&](Costs2 costs, Costs2 bytes, Interval when) {
    builder.add_usage(builder.add_variable(costs), when, bytes);
  };
  // At time 0 the second choices are better, but only both together fit; at
  // time 1 the same holds of the first ones.
  add({10, 0}, {0, 5}, {0, 1});
  add({0, 1}, {5, 0}, {0, 1});
  add({0, 10}, {5, 0}, {1, 2});
  add({1, 0}, {0, 5}, {1, 2});
  builder.set_limit(5);
  Network network(*std::move(builder).build());
  const Core core(network, 1e15);
  const Recombined both = recombine(core, {0, 0, 0, 0}, {1, 1, 1, 1});
  CHECK(both.choices == std::vector<int>{1, 1, 0, 0});
  CHECK(both.cost_change == -9);
}

TEST_CASE("recombination takes the better of two assignments, group by group") {
  Rng rng(80);
  int mixed = 0;
  for (int i = 0; i < 3000; ++i) {
    const Problem problem = testing::random_problem(rng, {.most_choices = 3});
    Network network(problem);
    if (network.infeasible) continue;
    const Core core(network, 1e15);
    const auto draw = [&] {
      std::vector<int> out;
      for (int v = 0; v < core.size(); ++v) {
        out.push_back(rng.below(core.choices(v)));
      }
      return out;
    };
    const std::vector<int> a = draw();
    const std::vector<int> b = draw();
    const double of_a = cost_in(core, a);
    const double of_b = cost_in(core, b);
    if (!std::isfinite(of_a) || !std::isfinite(of_b)) continue;
    const Recombined both = recombine(core, a, b);
    CAPTURE(i);
    CHECK(cost_in(core, both.choices) == of_a + both.cost_change);
    CHECK(of_a + both.cost_change <= std::min(of_a, of_b));
    bool swaps_only = true;
    for (std::size_t v = 0; v < a.size(); ++v) {
      swaps_only =
          swaps_only && (both.choices[v] == a[v] || both.choices[v] == b[v]);
    }
    CHECK(swaps_only);
    mixed += both.choices != a && both.choices != b ? 1 : 0;
  }
  CHECK(mixed > 100);
}

}  // namespace
}  // namespace shardprop::solver
