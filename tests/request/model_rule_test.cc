// The rule `model` of recomputation: the regions of torch.utils.checkpoint.
#include <shardprop/request/plan_request.h>

#include "graph/marked_graph.h"
#include "request/layer_requests.h"
#include "support/result_checks.h"

#include <shardprop/report/plan_json.h>

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <string>

namespace shardprop {
namespace {

using testing::value_of;

// The first `layers` of six layers are regions of torch.utils.checkpoint.
PlannedGraph planned_marked(const std::string& rule, const std::string& memory,
                            int layers, const std::string& work = "100000000") {
  PlanRequest request = request_of_layers(rule, memory, "dddddd", work);
  request.graph =
      std::make_shared<const Graph>(with_marked_layers(*request.graph, layers));
  return value_of(plan_graph(request));
}

TEST_CASE("model runs the regions of torch.utils.checkpoint again") {
  const PlannedGraph two = planned_marked("model", "none", 2);
  CHECK(rule_of(two.plan) == "model");
  CHECK(two.plan.memory.peak_bytes == peak_of_layers("full:2"));
  const Plan saved = value_of(parse_plan_json(plan_to_json(two.plan)));
  const PlanRequest request = request_of_layers("model", "none");
  const auto marked =
      std::make_shared<const Graph>(with_marked_layers(*request.graph, 2));
  CHECK(value_of(graph_of(saved, marked, *request.library))->hash() ==
        two.graph->hash());
  // The graph of the file has lost its marks.
  CHECK_CODE(graph_of(saved, request.graph, *request.library),
             ErrorCode::kInvalidArgument);
}

TEST_CASE("auto is never more expensive than the rule of the model") {
  bool was_tried = false;
  for (const std::int64_t bytes : tight_limits()) {
    for (const int layers : {1, 3, 6}) {
      CAPTURE(bytes);
      CAPTURE(layers);
      const std::string memory = std::to_string(bytes);
      const Plan found =
          planned_marked("auto", memory, layers, "3000000000").plan;
      const Plan model = planned_marked("model", memory, layers).plan;
      was_tried = was_tried || tried_rules(found).contains("model");
      if (!model.has_plan()) continue;
      REQUIRE(found.has_plan());
      CHECK(*found.objective_nanoseconds <= *model.objective_nanoseconds);
    }
  }
  CHECK(was_tried);
}

TEST_CASE("auto follows the model if the graph has no equal blocks") {
  PlanRequest request = request_of_layers("none", "none", "ds");
  const auto marked =
      std::make_shared<const Graph>(with_marked_layers(*request.graph, 2));
  REQUIRE(longest_row_of_blocks(*marked) == 0);
  const auto planned_within = [&](const std::string& rule,
                                  const std::string& memory) {
    PlanRequest own = request_of_layers(rule, memory, "ds");
    own.graph = marked;
    return value_of(plan_graph(own)).plan;
  };
  const Plan none = planned_within("none", "none");
  const Plan model = planned_within("model", "none");
  REQUIRE(model.memory.peak_bytes < none.memory.peak_bytes);
  const std::string memory = std::to_string(model.memory.peak_bytes);
  const Plan found = planned_within("auto", memory);
  REQUIRE(found.has_plan());
  CHECK(*found.objective_nanoseconds <=
        *planned_within("model", memory).objective_nanoseconds);
}

}  // namespace
}  // namespace shardprop
