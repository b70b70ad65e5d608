#include "base/index.h"
#include "plan/layered_training.h"
#include "plan/small_graphs.h"
#include "support/dear_topology.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/io/load_graph.h>
#include <shardprop/lower/lower.h>
#include <shardprop/plan/make_plan.h>
#include <shardprop/program/footprint.h>
#include <shardprop/program/rank_program.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>

namespace shardprop {
namespace {

using testing::dear_compute;
using testing::standard_library;
using testing::value_of;

Graph llama() {
  return value_of(load_graph("examples/graphs/tiny/llama3_train.json.gz",
                             standard_library()));
}

Plan planned(const Graph& graph, const char* mesh,
             const PlanOptions& options = {}) {
  return value_of(make_plan(graph, value_of(DeviceMesh::parse(mesh)),
                            dear_compute(), standard_library(), options));
}

// x w -> mm -> view, with the rows of x and w sharded.
TEST_CASE("a program reads as it runs") {
  const OpLibrary& library = standard_library();
  GraphBuilder b("tiny", library);
  const ValueId x = test::add_input(b, InputKind::kUser, "x", "f32[8,16]");
  const ValueId w = test::add_input(b, InputKind::kParameter, "w", "f32[16,4]");
  const ValueId mm =
      test::add_op(b, "aten.mm.default",
                   {{"", TensorArg{0}}, {"", TensorArg{1}}}, {x, w}, "mm");
  const std::vector<std::int64_t> size = {32};
  const ValueId view = test::add_op(
      b, "aten.view.default", {{"", TensorArg{0}}, {"", size}}, {mm}, "view");
  b.add_output({.value = view});
  const Graph graph = value_of(std::move(b).build());
  PlanOptions options;
  options.pins = {value_of(Pin::parse("x=S(0)")),
                  value_of(Pin::parse("net.w=S(0)")),
                  value_of(Pin::parse("mm=S(0)"))};
  const Plan plan = planned(graph, "dp=2", options);
  const SpmdProgram program = value_of(lower(plan, graph, library));
  CHECK(to_string(program) ==
        "program of tiny on dp=2\n"
        "input  x       f32[8,16] S(0)  user_input\n"
        "input  net.w   f32[16,4] S(0)  parameter\n"
        "       net.w.0 f32[16,4] R  = all_gather over dp (net.w)  128 B  "
        "copy 0\n"
        "       mm      f32[8,4] S(0)  = aten.mm.default(self=x, mat2=net.w.0)"
        "  node mm\n"
        "free   net.w.0\n"
        "       view    f32[32] S(0)  = aten.view.default(self=mm, "
        "size=[local(32, S(0))])  node view\n"
        "free   mm\n"
        "output view    f32[32] S(0)  user\n");
  CHECK(spec_of(program, program.inputs[0].value) ==
        value_of(TensorSpec::parse("f32[8,16] S(0)", plan.mesh)));
}

// Two layers of matmuls on a sharded batch. The gather of w2 runs next to the
// matmul of layer 1, and the reduction of a gradient in the window after it.
TEST_CASE("a program issues transfers early and waits late") {
  PlanOptions options;
  options.optimizer = Optimizer::kNone;
  options.overlap = 1;
  options.pins = test::pins_of_batch(2);
  options.pins.push_back(value_of(Pin::parse("w*=S(0)")));
  const Graph graph = test::layered_training(2);
  const Plan plan = planned(graph, "dp=2", options);
  const std::string text =
      to_string(value_of(lower(plan, graph, standard_library())));
  CHECK(text.find(
            "       net.w1.0    f32[512,512] R  = all_gather over dp (net.w1)  "
            "524288 B  copy 0\n"
            "       net.w2.1    f32[512,512] R  = start all_gather over dp "
            "(net.w2)  524288 B  copy 1\n"
            "       h1          f32[512,512] S(0)  = "
            "aten.mm.default(self=x, mat2=net.w1.0)  node h1\n"
            "wait   net.w2.1\n"
            "free   net.w1.0\n"
            "       h2          f32[512,512] S(0)  = "
            "aten.mm.default(self=h1, mat2=net.w2.1)  node h2\n") !=
        std::string::npos);
  CHECK(text.find(
            "       g2.3        f32[512,512] S(0)  = start reduce_scatter sum "
            "over dp (g2)  524288 B  copy 3\n"
            "       wt2         f32[512,512]{1,512} S(0)  = "
            "aten.permute.default(self=net.w2.2, dims=[1, 0])  node wt2\n"
            "wait   g2.3\n"
            "free   g2\n") != std::string::npos);
}

TEST_CASE("a flight that a plan cannot have is refused") {
  PlanOptions options;
  options.optimizer = Optimizer::kNone;
  options.overlap = 1;
  options.pins = test::pins_of_batch(2);
  const Graph graph = test::layered_training(2);
  const Plan plan = planned(graph, "dp=2", options);
  const auto first =
      std::find_if(plan.copies.begin(), plan.copies.end(),
                   [](const PlannedCopy& copy) { return copy.in_flight; }) -
      plan.copies.begin();
  const auto at = static_cast<std::size_t>(first);
  REQUIRE(at < plan.copies.size());
  const PlannedFlight flight = *plan.copies[at].in_flight;
  const PlannedFlight changes[] = {
      {flight.issued_at, flight.issued_at},  // no time to run in
      {flight.issued_at, 1 << 20},           // no wait
      {1 << 20, (1 << 20) + 1},              // no start
  };
  for (const PlannedFlight& change : changes) {
    CAPTURE(change.issued_at);
    CAPTURE(change.waited_at);
    Plan changed = plan;
    changed.copies[at].in_flight = change;
    CHECK_CODE(lower(changed, graph, standard_library()),
               ErrorCode::kPlanBroken);
  }
  // A wait that is too late for the reader comes before the reader.
  Plan late = plan;
  late.copies[at].in_flight->waited_at =
      static_cast<std::int64_t>(plan.nodes.size());
  CHECK(lower(late, graph, standard_library()));
}

TEST_CASE("a rank's operators have its own numbers") {
  const Graph graph = llama();
  const Plan plan = planned(graph, "3");
  const SpmdProgram program = value_of(lower(plan, graph, standard_library()));
  std::size_t uneven = 0;
  for (const ProgramStep& step : program.steps) {
    const auto* op = std::get_if<ProgramOp>(&step.action);
    if (op == nullptr) continue;
    const auto first = rank_op(program, *op, {0});
    const auto last = rank_op(program, *op, {2});
    CHECK(first.tensors == last.tensors);
    REQUIRE(first.args.size() == last.args.size());
    for (std::size_t a = 0; a < first.args.size(); ++a) {
      uneven += first.args[a].value == last.args[a].value ? 0 : 1;
    }
  }
  CHECK(uneven > 0);
}

TEST_CASE("the unsharded program has every node and moves nothing") {
  const Graph graph = llama();
  const SpmdProgram program =
      value_of(lower_unsharded(graph, standard_library(), Optimizer::kAdamW));
  CHECK(program.mesh.size() == 1);
  CHECK(traffic(program) == ProgramTraffic{});
  CHECK(program.copies.empty());
  const auto parameters = static_cast<std::size_t>(
      std::count_if(program.inputs.begin(), program.inputs.end(),
                    [](const ProgramInput& input) {
                      return input.kind == InputKind::kParameter;
                    }));
  CHECK(program.nodes.size() == graph.nodes().size() + parameters + 1);
  CHECK(std::count_if(program.outputs.begin(), program.outputs.end(),
                      [](const ProgramOutput& output) {
                        return output.kind == OutputKind::kUpdate;
                      }) == static_cast<std::ptrdiff_t>(3 * parameters));
}

// A gradient takes the copies that bring the updated parameter to its layout.
TEST_CASE("a program without the optimizer's step returns gradients") {
  const OpLibrary& library = standard_library();
  const Graph graph = llama();
  PlanOptions options;
  options.optimizer = Optimizer::kAdamW;
  std::size_t moved = 0;
  // The search chooses a finer layout for the state of used-replicated weights.
  options.pins = {value_of(Pin::parse("used:*.weight=R,R"))};
  for (const std::string recipe : {"", "hsdp=d0:d1", "fsdp=d0:d1"}) {
    CAPTURE(recipe);
    if (!recipe.empty()) {
      options.pins = {};
      options.recipe = value_of(Recipe::parse(recipe));
    }
    const Plan plan = planned(graph, "2,2", options);
    REQUIRE_FALSE(plan.updates.empty());
    const SpmdProgram whole = value_of(lower(plan, graph, library));
    const SpmdProgram program =
        value_of(lower(plan, graph, library, {.optimizer_step = false}));
    // The program sends the collectives that the plan reports, with the gathers
    // after the step. It has no slices of parameters for the step.
    ProgramTraffic sent = traffic(program);
    ProgramTraffic expected = traffic(whole);
    const auto slice = index(CollectiveKind::kSlice);
    CHECK(sent.collectives[slice] <= expected.collectives[slice]);
    sent.collectives[slice] = expected.collectives[slice];
    CHECK(sent == expected);
    for (const ProgramInput& input : program.inputs) {
      CHECK(is_of_graph(input.kind));
    }
    std::map<std::string, const PlannedValue*> planned_values;
    for (const PlannedValue& value : plan.values) {
      planned_values.emplace(value.name, &value);
    }
    std::size_t gradients = 0;
    for (const ProgramOutput& output : program.outputs) {
      if (output.kind != OutputKind::kGradient) continue;
      ++gradients;
      const std::string& name =
          program.value(program.inputs[*output.target].value).name;
      const PlannedValue& parameter = *planned_values.at(name);
      CHECK(program.value(output.value).layout == parameter.tensor.layout);
      CHECK(program.value(output.value).meta.shape() == parameter.tensor.shape);
      moved += parameter.state_layout &&
                       *parameter.state_layout != parameter.tensor.layout
                   ? 1
                   : 0;
    }
    CHECK(gradients == plan.updates.size());
    // Copies and nodes keep their places.
    CHECK(program.copies.size() == whole.copies.size());
    CHECK(program.nodes.size() == whole.nodes.size());
  }
  // Some gradients are gathered to the layout of their parameter.
  CHECK(moved > 0);
}

TEST_CASE("plans of another graph, and those that are none, are refused") {
  const OpLibrary& library = standard_library();
  const Graph graph = llama();
  const Plan plan = planned(graph, "2");
  const Graph other =
      value_of(load_graph("examples/graphs/tiny/mlp_dynamic.json.gz", library));
  CHECK_CODE(lower(plan, other, library), ErrorCode::kPlanOtherGraph);
  Plan none = plan;
  none.objective_nanoseconds.reset();
  none.status = PlanStatus::kInfeasible;
  CHECK_CODE(lower(none, graph, library), ErrorCode::kPlanNotRunnable);
  Plan first_schema = plan;
  for (PlannedNode& node : first_schema.nodes) node.assignment = {};
  CHECK_CODE(lower(first_schema, graph, library), ErrorCode::kPlanNotRunnable);
}

// Every way to change a plan that leaves its totals alone.
TEST_CASE("plans that were changed are refused") {
  const OpLibrary& library = standard_library();
  const Graph graph = llama();
  PlanOptions options;
  options.optimizer = Optimizer::kAdamW;
  const Plan plan = planned(graph, "2,2", options);
  REQUIRE(lower(plan, graph, library));
  const auto moved = static_cast<std::size_t>(
      std::find_if(plan.copies.begin(), plan.copies.end(),
                   [](const PlannedCopy& copy) {
                     return !copy.steps.empty() && copy.undone.empty() &&
                            copy.views.empty();
                   }) -
      plan.copies.begin());
  const auto sharded = static_cast<std::size_t>(
      std::find_if(plan.nodes.begin(), plan.nodes.end(),
                   [](const PlannedNode& node) {
                     return !node.outputs.empty() && !node.inputs.empty() &&
                            !node.outputs[0].tensor.layout.is_replicated() &&
                            !node.local.arguments.empty();
                   }) -
      plan.nodes.begin());
  const Layout whole = Layout::replicated(2);
  const std::function<void(Plan&)> changes[] = {
      [&](Plan& p) { p.nodes[sharded].outputs[0].tensor.layout = whole; },
      [&](Plan& p) { p.nodes[sharded].inputs[0].layout = whole; },
      [&](Plan& p) {
        p.nodes[sharded].assignment = {kUnassigned, kUnassigned};
      },
      [&](Plan& p) { p.nodes[sharded].assignment = {99, 99}; },
      [&](Plan& p) {
        p.nodes[sharded].shardings =
            FactorShardings(value_of(Layout::parse("SS(0,2),S(0)")));
      },
      [&](Plan& p) { p.nodes[sharded].shardings = FactorShardings(whole); },
      [&](Plan& p) { p.nodes[sharded].local = {}; },
      [&](Plan& p) { p.nodes[sharded].name += "x"; },
      [&](Plan& p) { p.nodes[sharded].inputs[0].copy = 1u << 20; },
      [&](Plan& p) { p.nodes[sharded].inputs.pop_back(); },
      [&](Plan& p) { p.nodes.pop_back(); },
      [&](Plan& p) { p.copies[moved].of = "nothing"; },
      [&](Plan& p) { p.copies[moved].src = p.copies[moved].dst; },
      [&](Plan& p) { p.copies[moved].dst = p.copies[moved].src; },
      [&](Plan& p) { p.copies[moved].views = {plan.nodes[0].name}; },
      [&](Plan& p) { p.copies[moved].source = moved; },
      [&](Plan& p) { p.copies[moved].produced_at = 1 << 20; },
      [&](Plan& p) {
        p.copies[moved].freed_at = p.copies[moved].produced_at - 1;
      },
      [&](Plan& p) { ++p.summary.bytes_per_rank; },
      [&](Plan& p) { p.values.pop_back(); },
      [&](Plan& p) { p.values[0].tensor.layout = Layout::replicated(3); },
      [&](Plan& p) { p.updates[0].gradient.reset(); },
      [&](Plan& p) { p.outputs[1].target = "nothing"; },
  };
  std::size_t number = 0;
  for (const auto& change : changes) {
    ++number;
    CAPTURE(number);
    Plan changed = plan;
    change(changed);
    CHECK_CODE(lower(changed, graph, library), ErrorCode::kPlanBroken);
  }
}

TEST_CASE("collectives inside that are not their program's are refused") {
  const OpLibrary& library = standard_library();
  std::size_t found = 0;
  for (const char* name : {"t5_train", "gpt2_train", "llama3_train"}) {
    const Graph graph = value_of(load_graph(
        "examples/graphs/tiny/" + std::string(name) + ".json.gz", library));
    PlanOptions options;
    options.work_limit = 20'000'000;
    // Classes that are cut: the sum of their exponentials is exchanged inside.
    options.pins = {value_of(Pin::parse("op:aten._log_softmax.default=S(1)"))};
    Plan plan = planned(graph, "2", options);
    for (PlannedNode& node : plan.nodes) {
      if (node.inside.empty()) continue;
      ++found;
      node.inside[0].reduce_op = ReduceOp::kProduct;
      CHECK_CODE(lower(plan, graph, library), ErrorCode::kPlanBroken);
      break;
    }
  }
  CHECK(found == 3);
}

// Returns a graph of attention with dropout: queries have `heads` heads, keys
// have `groups`.
Graph dropped_attention(const OpLibrary& library, std::int64_t heads,
                        std::int64_t groups) {
  GraphBuilder b("attention", library);
  const auto input = [&](const char* name, std::int64_t n) {
    const std::string meta = "f32[2," + std::to_string(n) + ",4,8]";
    return test::add_input(b, InputKind::kUser, name, meta.c_str());
  };
  const ValueId q = input("q", heads);
  const ValueId k = input("k", groups);
  const ValueId v = input("v", groups);
  const ValueId out =
      test::add_op(b, "aten._scaled_dot_product_efficient_attention.default",
                   {{"query", TensorArg{0}},
                    {"key", TensorArg{1}},
                    {"value", TensorArg{2}},
                    {"attn_bias", NoneArg{}},
                    {"compute_log_sumexp", true},
                    {"dropout_p", 0.25}},
                   {q, k, v}, "attend");
  b.add_output({.value = out});
  return value_of(std::move(b).build());
}

TEST_CASE("attention that drops weights has them at hand") {
  const OpLibrary& library = standard_library();
  const SpmdProgram program =
      value_of(lower_unsharded(dropped_attention(library, 4, 4), library));
  std::size_t draws = 0;
  for (const ProgramStep& step : program.steps) {
    const auto* op = std::get_if<ProgramOp>(&step.action);
    if (op == nullptr) continue;
    CHECK(op->op.find("attention") == std::string::npos);
    draws += op->op == "shardprop.random_bits" ? 1 : 0;
  }
  CHECK(draws == 1);
  const auto refused =
      lower_unsharded(dropped_attention(library, 4, 2), library);
  CHECK_CODE(refused, ErrorCode::kNotLowered);
  CHECK(refused.error().location == "attend");
}

}  // namespace
}  // namespace shardprop
