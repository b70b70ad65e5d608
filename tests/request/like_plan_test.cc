// Plans that lay parameters and buffers out as another plan does.
#include <shardprop/request/like_plan.h>

#include "request/refused.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/io/load_graph.h>
#include <shardprop/request/plan_request.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

using testing::refused;
using testing::value_of;

PlanRequest request_for(const std::string& graph, const char* mesh,
                        std::vector<GivenOption> given = {}) {
  PlanRequest request;
  request.library = OpLibrary::standard();
  request.graph = std::make_shared<const Graph>(value_of(load_graph(
      "examples/graphs/tiny/" + graph + ".json.gz", *request.library)));
  request.mesh = value_of(planned_mesh(mesh));
  request.topology = default_topology();
  given.push_back({"work_limit", "50000000", {}});
  request.options = value_of(plan_options(given, request.topology));
  return request;
}

std::map<std::string, Layout> parameter_layouts(const Plan& plan) {
  std::map<std::string, Layout> out;
  for (const PlannedValue& value : plan.values) {
    if (value.kind == InputKind::kParameter) {
      out.emplace(value.name, value.tensor.layout);
    }
  }
  return out;
}

void check_refused(Result<std::vector<Pin>> pins, ErrorCode code,
                   const char* words) {
  const Error error = refused(std::move(pins), code);
  CHECK(error.message.find(words) != std::string::npos);
  CHECK(error.notes.size() == 1);
  CHECK(!error.help.empty());
}

TEST_CASE("a program for inference has the layouts of its training") {
  // Without the pins, inference would replicate or shard otherwise.
  const Plan train =
      value_of(plan(request_for("llama3_train", "2,2",
                                {{"pin", "*.down_proj.weight=S(0),S(0)", {}},
                                 {"pin", "*.up_proj.weight=S(1),R", {}}})));
  PlanRequest infer = request_for("llama3_infer", "2,2");
  REQUIRE(parameter_layouts(value_of(plan(infer))) != parameter_layouts(train));
  infer.like = std::make_shared<const Plan>(train);
  CHECK(parameter_layouts(value_of(plan(infer))) == parameter_layouts(train));
}

TEST_CASE("layers that agree share a pin, other layers have their own") {
  const PlanRequest request =
      request_for("llama3_train", "2,2",
                  {{"pin", "model.layers.1.mlp.down_proj.weight=S(1),S(1)", {}},
                   {"pin", "model.layers.0.mlp.down_proj.weight=R,S(0)", {}},
                   {"pin", "*.up_proj.weight=S(1),R", {}},
                   {"pin", "state:*.up_proj.weight=S(1),S(0)", {}}});
  const std::vector<Pin> pins = value_of(
      pins_like(value_of(plan(request)), *request.graph, request.mesh));
  std::vector<std::string> texts;
  for (const Pin& pin : pins) texts.push_back(to_string(pin));
  for (const char* expected :
       {"stored:model.layers.1.mlp.down_proj.weight=S(1),S(1)",
        "stored:model.layers.0.mlp.down_proj.weight=R,S(0)",
        "stored:model.layers.*.mlp.up_proj.weight=S(1),R",
        "state:model.layers.*.mlp.up_proj.weight=S(1),S(0)"}) {
    CAPTURE(expected);
    CHECK(std::count(texts.begin(), texts.end(), expected) == 1);
  }
}

TEST_CASE("every printed layout of a plan is found again") {
  for (const char* graph :
       {"llama3_train", "gpt2_train", "t5_train", "deepseek_moe_train",
        "mixtral_infer", "vit_infer", "resnet_train"}) {
    CAPTURE(graph);
    PlanRequest request = request_for(graph, "2,2");
    const Plan first = value_of(plan(request));
    REQUIRE(first.has_plan());
    request.like = std::make_shared<const Plan>(first);
    const Plan second = value_of(plan(request));
    REQUIRE(second.has_plan());
    CHECK(parameter_layouts(second) == parameter_layouts(first));
  }
}

TEST_CASE(
    "a plan of another mesh or model, or a file without a plan, is refused") {
  const PlanRequest llama = request_for("llama3_infer", "2,2");
  const Plan made = value_of(plan(llama));
  const auto mesh = value_of(planned_mesh("4"));
  check_refused(pins_like(made, *llama.graph, mesh), ErrorCode::kPlanOtherGraph,
                "another mesh");
  const PlanRequest vit = request_for("vit_infer", "2,2");
  check_refused(pins_like(made, *vit.graph, vit.mesh),
                ErrorCode::kPlanOtherGraph, "has no parameter");
  const Plan none =
      value_of(plan(request_for("llama3_infer", "2,2", {{"memory", "1", {}}})));
  check_refused(pins_like(none, *llama.graph, llama.mesh),
                ErrorCode::kPlanNotRunnable, "holds no plan");
}

}  // namespace
}  // namespace shardprop
