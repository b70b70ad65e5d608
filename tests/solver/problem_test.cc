#include <shardprop/solver/checker.h>
#include <shardprop/solver/pass.h>
#include <shardprop/solver/problem.h>

#include <doctest/doctest.h>

#include <array>
#include <limits>

namespace shardprop::solver {
namespace {

using Costs2 = std::array<std::int64_t, 2>;
using Costs4 = std::array<std::int64_t, 4>;

ErrorCode code_of(ProblemBuilder builder) {
  const auto problem = std::move(builder).build();
  REQUIRE(!problem.has_value());
  return problem.error().code;
}

TEST_CASE("the worked example of problem.h") {
  ProblemBuilder builder;
  const VariableId x = builder.add_variable(Costs2{5, 1});
  const VariableId y = builder.add_variable(Costs2{0, 2});
  builder.add_usage(x, {0, 10}, Costs2{64, 128});
  builder.add_edge(x, y, builder.add_table(2, 2, Costs4{0, 3, 4, 0}));
  builder.set_limit(100);
  const Problem problem = *std::move(builder).build();

  const auto good = evaluate(problem, Assignment{0, 0});
  CHECK(good->feasible());
  CHECK(to_string(good->cost) == "5");
  CHECK(good->peak_bytes == 64);
  const auto over = evaluate(problem, Assignment{1, 1});
  CHECK(over->over_limit);
  CHECK(!over->feasible());
  CHECK(to_string(over->cost) == "3");
}

TEST_CASE("problems whose parts do not fit together are refused") {
  ProblemBuilder no_choice;
  no_choice.add_variable({});
  CHECK(code_of(std::move(no_choice)) == ErrorCode::kProblemShape);

  ProblemBuilder wrong_table;
  const VariableId x = wrong_table.add_variable(Costs2{0, 0});
  wrong_table.add_edge(x, x, wrong_table.add_table(2, 1, Costs2{0, 0}));
  CHECK(code_of(std::move(wrong_table)) == ErrorCode::kProblemShape);

  ProblemBuilder ragged;
  ragged.add_table(2, 2, Costs2{0, 0});
  CHECK(code_of(std::move(ragged)) == ErrorCode::kProblemShape);

  ProblemBuilder stranger;
  stranger.add_variable(Costs2{0, 0});
  stranger.add_edge(VariableId(0), VariableId(7),
                    stranger.add_table(2, 2, Costs4{}));
  CHECK(code_of(std::move(stranger)) == ErrorCode::kProblemShape);

  ProblemBuilder bad_pin;
  bad_pin.pin(bad_pin.add_variable(Costs2{0, 0}), 2);
  CHECK(code_of(std::move(bad_pin)) == ErrorCode::kProblemShape);

  ProblemBuilder short_usage;
  short_usage.add_usage(short_usage.add_variable(Costs4{}), {0, 1},
                        Costs2{1, 1});
  CHECK(code_of(std::move(short_usage)) == ErrorCode::kProblemShape);

  ProblemBuilder negative;
  negative.add_usage(negative.add_variable(Costs2{0, 0}), {0, 1},
                     Costs2{1, -1});
  CHECK(code_of(std::move(negative)) == ErrorCode::kProblemValue);

  ProblemBuilder below_zero;
  below_zero.add_variable(Costs2{0, 0});
  below_zero.set_limit(-1);
  CHECK(code_of(std::move(below_zero)) == ErrorCode::kProblemValue);

  ProblemBuilder huge;
  const VariableId v = huge.add_variable(Costs2{0, 0});
  huge.add_usage(v, {0, 1}, Costs2{std::int64_t{1} << 62, 0});
  CHECK(code_of(std::move(huge)) == ErrorCode::kProblemTooLarge);
}

TEST_CASE("an assignment must fit its problem") {
  ProblemBuilder builder;
  builder.add_variable(Costs2{0, 0});
  const Problem problem = *std::move(builder).build();
  CHECK(evaluate(problem, Assignment{}).error().code ==
        ErrorCode::kAssignmentShape);
  CHECK(evaluate(problem, Assignment{2}).error().code ==
        ErrorCode::kAssignmentShape);
}

TEST_CASE("equal tables are stored once; shape counts") {
  ProblemBuilder builder;
  const TableId a = builder.add_table(2, 2, Costs4{1, 2, 3, 4});
  CHECK(builder.add_table(2, 2, Costs4{1, 2, 3, 4}) == a);
  CHECK(builder.add_table(1, 4, Costs4{1, 2, 3, 4}) != a);
  CHECK(builder.add_table(2, 2, Costs4{1, 2, 3, 5}) != a);
}

TEST_CASE("the checker: half-open intervals, several a variable, empty ones") {
  ProblemBuilder builder;
  const VariableId a = builder.add_variable(Costs2{0, 0});
  const VariableId b = builder.add_variable(Costs2{0, 0});
  builder.add_usage(a, {0, 5}, Costs2{10, 1});
  builder.add_usage(a, {3, 4}, Costs2{2, 1});
  builder.add_usage(b, {5, 6}, Costs2{10, 0});
  builder.add_usage(b, {9, 9}, Costs2{1000, 1000});
  builder.set_limit(12);
  const Problem problem = *std::move(builder).build();
  const auto judged = evaluate(problem, Assignment{0, 0});
  CHECK(judged->feasible());
  CHECK(judged->peak_bytes == 12);
  CHECK(judged->peak_time == 3);
}

TEST_CASE("the checker names what is forbidden and which pins are broken") {
  ProblemBuilder builder;
  const VariableId a = builder.add_variable(Costs2{kForbidden, 7});
  const VariableId b = builder.add_variable(Costs2{0, 0});
  builder.add_edge(a, b, builder.add_table(2, 2, Costs4{0, kForbidden, 0, 0}));
  builder.pin(b, 0);
  const Problem problem = *std::move(builder).build();
  const auto judged = evaluate(problem, Assignment{0, 1});
  CHECK(judged->forbidden == std::vector<VariableId>{a});
  CHECK(judged->forbidden_edges == std::vector<EdgeId>{EdgeId(0)});
  CHECK(judged->broken_pins == std::vector<Pin>{{b, 0}});
  CHECK(evaluate(problem, Assignment{1, 0})->feasible());
}

TEST_CASE("sums beyond 64 bits are exact and print in full") {
  ProblemBuilder builder;
  for (int i = 0; i < 20; ++i) {
    builder.add_variable(std::array<std::int64_t, 1>{kForbidden - 1});
  }
  const Problem problem = *std::move(builder).build();
  const auto judged = evaluate(problem, Assignment(20, 0));
  CHECK(to_string(judged->cost) == "19999999999999999980");
  CHECK(to_string(-judged->cost) == "-19999999999999999980");
  CHECK(to_string(Int128{0}) == "0");
}

TEST_CASE("pass names read back") {
  for (std::size_t i = 0; i < kNumPasses; ++i) {
    const Pass pass = static_cast<Pass>(i);
    CHECK(parse_pass(pass_name(pass)) == pass);
  }
  CHECK(!parse_pass("no-such-pass").has_value());
}

}  // namespace
}  // namespace shardprop::solver
