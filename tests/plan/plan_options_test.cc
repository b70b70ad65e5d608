#include <shardprop/plan/plan_options.h>

#include "plan/small_graphs.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/plan/make_plan.h>

#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

PlanOptions with(const char* name, const char* text) {
  PlanOptions options;
  const auto set = set_option(options, name, text);
  if (!set) FAIL(to_string(set.error()));
  return options;
}

TEST_CASE("options are set by name and text, and read back") {
  CHECK(with("memory", "80GiB").memory_limit == std::int64_t{80} << 30);
  CHECK(!with("memory", "none").memory_limit);
  CHECK(with("optimizer", "adamw").optimizer == Optimizer::kAdamW);
  CHECK(with("overlap", "0.25").overlap == 0.25);
  CHECK(with("overlap", "none").overlap == 0);
  CHECK(with("time_limit", "0").time_limit_seconds == 0);
  CHECK(with("work_limit", "0").work_limit == 0U);
  CHECK(with("threads", "1024").threads == 1024);
  CHECK(with("seed", "18446744073709551615").seed == ~std::uint64_t{0});
  CHECK(with("strict", "true").strict);
  PlanOptions options = with("pin", "w=S(0)");
  REQUIRE(set_option(options, "pin", "x=R"));
  CHECK(options.pins.size() == 2);
  CHECK(get_option(options, "pin") == "w=S(0) x=R");
  // The table has the gap and the rule of the command line. A default run asks
  // for a proof, and plans the graph as it is.
  PlanOptions defaults;
  CHECK(defaults.gap == 0);
  defaults.gap = kDefaultGap;
  CHECK(defaults.recompute == Recompute{});
  defaults.recompute.reset();
  for (const OptionInfo& info : plan_option_table()) {
    CAPTURE(info.name);
    CHECK(get_option(defaults, info.name) == info.fallback);
    CHECK(!info.description.empty());
  }
}

TEST_CASE("a graph that trains is planned with adamw unless told otherwise") {
  const OpLibrary& library = testing::standard_library();
  const auto optimizer_of = [&](const Graph& graph,
                                const PlanOptions& options) {
    const Plan plan =
        value_of(make_plan(graph, value_of(DeviceMesh::parse("2")),
                           default_topology(), library, options));
    for (const auto& [name, value] : plan.options) {
      if (name == "optimizer") return value;
    }
    return std::string("no such option");
  };
  const Graph training = test::residual_training(library, 1, "16", "8", "16");
  const Graph forward = test::mlp(library);
  CHECK(optimizer_of(training, {}) == "adamw");
  CHECK(optimizer_of(forward, {}) == "none");
  CHECK(optimizer_of(training, with("optimizer", "none")) == "none");
  CHECK(optimizer_of(training, with("optimizer", "sgd")) == "sgd");
  CHECK(optimizer_of(forward, with("optimizer", "adamw")) == "adamw");
}

// docs/planning.md contains exactly this table.
TEST_CASE("the docs list the options") {
  std::ifstream file("docs/planning.md");
  std::stringstream text;
  text << file.rdbuf();
  for (const OptionInfo& info : plan_option_table()) {
    std::string row = "| `" + std::string(info.name);
    if (!info.value.empty()) row += " " + std::string(info.value);
    for (std::size_t i = 0; (i = row.find('|', i + 1)) != std::string::npos;) {
      row.insert(i++, "\\");
    }
    row += "` | " + std::string(info.description) + " | " + info.fallback +
           " | " + info.range + " |";
    CAPTURE(row);
    CHECK(text.str().find(row) != std::string::npos);
  }
}

TEST_CASE("a malformed option is rejected and changes no other option") {
  const std::pair<const char*, std::vector<const char*>> wrong[] = {
      {"memory", {"0", "-1", "lots", "1e30", "nan"}},
      {"optimizer", {"", "adam"}},
      {"overlap", {"nan", "inf", "-0.1", "1.1", "x", ""}},
      {"gap", {"nan", "inf", "-0.1", "1.1", "1%", ""}},
      {"time_limit", {"nan", "inf", "-1", "1e13", "5s"}},
      {"work_limit", {"-1", "1.5", "9223372036854775807"}},
      {"threads", {"0", "-1", "1025", "1000000000", "99999999999999999999"}},
      {"seed", {"-1", "18446744073709551616"}},
      {"strict", {"yes", ""}},
  };
  for (const auto& [name, texts] : wrong) {
    for (const char* text : texts) {
      CAPTURE(name);
      CAPTURE(text);
      PlanOptions options;
      const auto set = set_option(options, name, text);
      CHECK_CODE(set, ErrorCode::kInvalidArgument);
      CHECK(set.error().location == name);
      CHECK(!set.error().help.empty());
      CHECK(get_option(options, name) == get_option(PlanOptions{}, name));
    }
  }
  PlanOptions options;
  CHECK_CODE(set_option(options, "pin", "w"), ErrorCode::kPinSyntax);
  const auto unknown = set_option(options, "thread", "1");
  CHECK_CODE(unknown, ErrorCode::kInvalidArgument);
  CHECK(unknown.error().help == "did you mean `threads`?");
  CHECK_CODE(get_option(options, "colour"), ErrorCode::kInvalidArgument);
}

TEST_CASE("a plan is not made with options out of their bounds") {
  std::vector<std::pair<std::string, PlanOptions>> wrong;
  const auto add = [&](const char* name, const auto& change) {
    PlanOptions options;
    change(options);
    wrong.emplace_back(name, options);
  };
  for (const double value : {kNaN, kInf, -kInf, -1e-9, 1.5}) {
    add("overlap", [&](PlanOptions& o) { o.overlap = value; });
  }
  for (const double value : {kNaN, kInf, -kInf, -1.0, 1e300}) {
    add("time_limit", [&](PlanOptions& o) { o.time_limit_seconds = value; });
  }
  for (const int value : {0, -1, 1025, std::numeric_limits<int>::max(),
                          std::numeric_limits<int>::min()}) {
    add("threads", [&](PlanOptions& o) { o.threads = value; });
  }
  for (const std::int64_t value : {std::int64_t{0}, std::int64_t{-1},
                                   std::numeric_limits<std::int64_t>::min()}) {
    add("memory", [&](PlanOptions& o) { o.memory_limit = value; });
  }
  add("work_limit", [](PlanOptions& o) { o.work_limit = ~std::uint64_t{0}; });
  add("optimizer",
      [](PlanOptions& o) { o.optimizer = static_cast<Optimizer>(7); });

  const OpLibrary& library = testing::standard_library();
  const Graph graph = test::mlp(library);
  for (const auto& [name, options] : wrong) {
    CAPTURE(name);
    const auto valid = validate(options);
    CHECK_CODE(valid, ErrorCode::kInvalidArgument);
    CHECK(valid.error().location == name);
    CHECK(!valid.error().help.empty());
    CHECK_CODE(make_plan(graph, value_of(DeviceMesh::parse("2")),
                         default_topology(), library, options),
               ErrorCode::kInvalidArgument);
  }
}

TEST_CASE("any options within bounds make a plan or say why not") {
  const OpLibrary& library = testing::standard_library();
  const Graph graph = test::mlp(library);
  for (const char* memory : {"1", "1KiB", "none", "8000000TiB"}) {
    for (const char* work : {"0", "1", "4611686018427387904"}) {
      for (const char* time : {"0", "1", "1e12"}) {
        PlanOptions options = with("memory", memory);
        REQUIRE(set_option(options, "work_limit", work));
        REQUIRE(set_option(options, "time_limit", time));
        REQUIRE(set_option(options, "threads", "3"));
        const Plan plan =
            value_of(make_plan(graph, value_of(DeviceMesh::parse("2,2")),
                               default_topology(), library, options));
        CHECK(plan.has_plan() == (plan.status == PlanStatus::kOptimal ||
                                  plan.status == PlanStatus::kFeasible));
      }
    }
  }
}

TEST_CASE(
    "without work a small program is planned by the solver's reductions "
    "alone") {
  const OpLibrary& library = testing::standard_library();
  const Plan plan =
      value_of(make_plan(test::mlp(library), value_of(DeviceMesh::parse("2,2")),
                         default_topology(), library, with("work_limit", "0")));
  CHECK(plan.status == PlanStatus::kOptimal);
}

TEST_CASE("progress is reported for each phase") {
  const OpLibrary& library = testing::standard_library();
  const Graph graph = test::residual_training(library, 2, "512", "256", "1024");
  std::vector<PlanProgress> told;
  PlanOptions options;
  options.progress = [&](const PlanProgress& now) { told.push_back(now); };
  const Plan plan =
      value_of(make_plan(graph, value_of(DeviceMesh::parse("2,2")),
                         default_topology(), library, options));
  REQUIRE(told.size() >= 3);
  CHECK(told.front().phase == PlanProgress::Phase::kSetUp);
  CHECK(!told.front().objective);
  CHECK(told.back().phase == PlanProgress::Phase::kReport);
  CHECK(told.back().objective == plan.objective_nanoseconds);
  CHECK(told.back().lower_bound == plan.lower_bound_nanoseconds);
  for (std::size_t i = 1; i < told.size(); ++i) {
    CHECK(told[i].phase >= told[i - 1].phase);
    CHECK(told[i].seconds >= told[i - 1].seconds);
  }
}

TEST_CASE("a stop before the search is an error, during it ends the search") {
  const OpLibrary& library = testing::standard_library();
  const Graph graph = test::residual_training(library, 3, "512", "256", "1024");
  const auto plan_until = [&](PlanProgress::Phase phase) {
    std::stop_source stop;
    PlanOptions options;
    options.stop = stop.get_token();
    options.progress = [&](const PlanProgress& now) {
      if (now.phase == phase) stop.request_stop();
    };
    return make_plan(graph, value_of(DeviceMesh::parse("2,2")),
                     default_topology(), library, options);
  };
  CHECK_CODE(plan_until(PlanProgress::Phase::kSetUp), ErrorCode::kStopped);
  const Plan unknown = value_of(plan_until(PlanProgress::Phase::kSearch));
  CHECK(unknown.status == PlanStatus::kUnknown);
  const Plan whole = value_of(plan_until(PlanProgress::Phase::kReport));
  CHECK(whole.status == PlanStatus::kOptimal);
}

}  // namespace
}  // namespace shardprop
