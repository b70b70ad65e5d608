#include "faults/failing_machine.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/io/contest.h>
#include <shardprop/io/emit_program.h>
#include <shardprop/io/load_graph.h>
#include <shardprop/io/topology_file.h>
#include <shardprop/lower/lower.h>
#include <shardprop/plan/judge_plan.h>
#include <shardprop/plan/make_plan.h>
#include <shardprop/report/plan_diff.h>
#include <shardprop/report/plan_dot.h>
#include <shardprop/report/plan_html.h>
#include <shardprop/report/plan_json.h>
#include <shardprop/report/plan_text.h>
#include <shardprop/report/plan_trace.h>
#include <shardprop/verify/verify.h>

#include <algorithm>
#include <string>

namespace shardprop {
namespace {

using testing::value_of;

const std::string kGraph = "examples/graphs/tiny/mlp_dynamic.json.gz";

// Runs the work while one allocation after another fails, at most `tries` of
// them. Each run must succeed or return an error that names the lacking
// resource.
template <class Work>
void check_refusals(const Work& work, std::int64_t tries) {
  REQUIRE(work().has_value());  // what the process makes once
  failing_machine::heal();
  REQUIRE(work().has_value());
  const std::int64_t needed = failing_machine::allocations();
  tries = std::min(tries, needed);
  std::int64_t refused = 0;
  for (std::int64_t i = 0; i < tries; ++i) {
    failing_machine::memory_after(needed * i / tries);
    const auto done = work();
    failing_machine::heal();
    if (done) continue;
    CAPTURE(i);
    ++refused;
    CAPTURE(to_string(done.error()));
    CHECK(done.error().code == ErrorCode::kOutOfMemory);
    CHECK(!done.error().help.empty());
  }
  CHECK(refused > tries / 2);
}

TEST_CASE("readers without memory") {
  const OpLibrary& library = testing::standard_library();
  for (const std::string& path :
       {kGraph, std::string("tests/fuzz/pt2/flat.pt2")}) {
    CAPTURE(path);
    check_refusals([&] { return load_graph(path, library); }, 300);
  }
  const std::string problem = "tests/fuzz/contest/two_nodes.json";
  const auto read_contest = [&] { return io::read_contest(problem, 1 << 20); };
  check_refusals(read_contest, 300);
  const auto contest = value_of(read_contest());
  check_refusals([&] { return io::write_contest(contest); }, 300);
  const std::string topology = topology_to_toml(default_topology());
  check_refusals([&] { return parse_topology_toml(topology, "a.toml"); }, 300);
}

TEST_CASE("a saved plan without memory to read, judge and run it") {
  const auto library = OpLibrary::standard();
  const Graph graph = value_of(load_graph(kGraph, *library));
  const DeviceMesh mesh = value_of(DeviceMesh::parse("dp=2,tp=2"));
  const Plan plan =
      value_of(make_plan(graph, mesh, default_topology(), *library, {}));
  const std::string text = plan_to_json(plan);
  check_refusals([&] { return parse_plan_json(text); }, 300);
  check_refusals([&] { return judge_plan(plan, graph, *library); }, 100);
  check_refusals([&] { return lower(plan, graph, *library); }, 300);

  const SpmdProgram program = value_of(lower(plan, graph, *library));
  for (const EmitFormat format : {EmitFormat::kPt2, EmitFormat::kJsonGz}) {
    check_refusals([&] { return emit_program(program, *library, 1, format); },
                   200);
  }
  check_refusals([&] { return shardings_json(program, *library); }, 200);
  check_refusals([&] { return verify(plan, graph, library, {}); }, 300);
}

// A function that returns text and no Result throws std::bad_alloc, as the
// standard library does.
template <class Write>
void check_throws(const Write& write, std::int64_t tries) {
  const std::string text = write();
  failing_machine::heal();
  CHECK(write() == text);
  const std::int64_t needed = failing_machine::allocations();
  tries = std::min(tries, needed);
  std::int64_t refused = 0;
  for (std::int64_t i = 0; i < tries; ++i) {
    CAPTURE(i);
    bool threw = false;
    failing_machine::memory_after(needed * i / tries);
    try {
      const std::string again = write();
      failing_machine::heal();
      CHECK(again == text);
    } catch (const std::bad_alloc&) {
      threw = true;
    }
    failing_machine::heal();
    refused += threw ? 1 : 0;
  }
  CHECK(refused > tries / 2);
}

TEST_CASE("a text written without memory is complete or std::bad_alloc") {
  const auto library = OpLibrary::standard();
  const Graph graph = value_of(load_graph(kGraph, *library));
  const DeviceMesh mesh = value_of(DeviceMesh::parse("dp=2,tp=2"));
  PlanOptions replicated;
  replicated.recipe = value_of(Recipe::parse("ddp=dp"));
  const Topology& topology = default_topology();
  const Plan plan = value_of(make_plan(graph, mesh, topology, *library, {}));
  const Plan other =
      value_of(make_plan(graph, mesh, topology, *library, replicated));
  const PlanDiff diff = diff_plans(plan, other);
  check_throws([&] { return plan_to_json(plan); }, 300);
  check_throws([&] { return plan_to_text(plan); }, 300);
  check_throws([&] { return plan_to_text(plan, {.detail = true}); }, 300);
  check_throws([&] { return plan_to_html(plan); }, 300);
  check_throws([&] { return plan_to_dot(plan); }, 300);
  check_throws([&] { return plan_to_trace(plan); }, 300);
  check_throws([&] { return diff_to_text(diff); }, 300);
  check_throws([&] { return diff_to_json(diff); }, 300);
  check_throws([&] { return topology_to_toml(topology); }, 300);
}

}  // namespace
}  // namespace shardprop
