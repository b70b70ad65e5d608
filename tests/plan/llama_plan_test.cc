// Llama 3 8B's training on eight ranks of one box, replicated between half
// blocks: what Megatron-LM does, where that is the cheapest.
#include "plan/invariants.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/io/load_graph.h>
#include <shardprop/plan/make_plan.h>

#include <algorithm>
#include <string>

namespace shardprop {
namespace {

using testing::value_of;

constexpr int kLayers = 32;
constexpr std::int64_t kLlamaHidden = 4096;
constexpr std::int64_t kLlamaTokens = std::int64_t{8} * 2048;

Graph llama(const OpLibrary& library) {
  return value_of(
      load_graph("examples/graphs/llama3_8b_train.json.gz", library));
}

// Returns the nodes after which the residual stream, or its gradient, is
// complete: one after every half block, in the order of the schedule.
std::vector<const Node*> boundaries(const Graph& graph, Phase phase) {
  std::vector<const Node*> out;
  ValueId stream;
  for (const Node& node : graph.nodes()) {
    if (node.phase != phase || node.outputs.size() != 1) continue;
    const Value& produced = graph.value(node.outputs[0]);
    if (produced.meta.dtype() != DType::kBF16 || produced.meta.rank() != 3 ||
        produced.meta.numel() != kLlamaTokens * kLlamaHidden) {
      continue;
    }
    // The node is the embedding, or computes the gradient of the last norm's
    // input.
    const bool begins =
        node.op_name() == (phase == Phase::kForward ? "aten.embedding.default"
                                                    : "aten._to_copy.default");
    const bool goes_on = node.op_name() == "aten.add.Tensor" &&
                         std::find(node.inputs.begin(), node.inputs.end(),
                                   stream) != node.inputs.end();
    if (!(stream.valid() ? goes_on : begins)) continue;
    stream = produced.id;
    out.push_back(&node);
  }
  return out;
}

bool inside(const Node& node, int layer, const std::string& part) {
  return node.module_path ==
         "model.layers." + std::to_string(layer) + "." + part;
}

Plan plan_with_pins(const Graph& graph, const OpLibrary& library,
                    const std::vector<std::string>& pins) {
  PlanOptions options;
  for (const std::string& pin : pins) {
    options.pins.push_back(value_of(Pin::parse(pin)));
  }
  options.optimizer = Optimizer::kAdamW;
  options.memory_limit = std::int64_t{80} << 30;
  options.work_limit = 10'000'000'000;
  options.time_limit_seconds = 1e6;
  options.threads = 2;
  return value_of(make_plan(graph, value_of(DeviceMesh::parse("tp=8")),
                            default_topology(), library, options));
}

std::string layout_of_weight(const Plan& plan, int layer,
                             const std::string& weight) {
  const std::string name =
      "model.layers." + std::to_string(layer) + "." + weight + ".weight";
  for (const PlannedValue& value : plan.values) {
    if (value.name == name) return to_string(value.tensor.layout);
  }
  return "";
}

// Collectives that carry a whole residual stream, made in [from, to).
struct Carried {
  int reductions = 0;
  int gathers = 0;
};
Carried carried(const Plan& plan, std::int64_t from, std::int64_t to) {
  Carried out;
  for (const PlannedCopy& copy : plan.copies) {
    if (copy.produced_at < from || copy.produced_at >= to) continue;
    for (const CollectiveStep& step : copy.steps) {
      if (step.bytes_per_rank < kLlamaTokens * kLlamaHidden * 2 * 7 / 8)
        continue;
      const bool reduces = step.kind == CollectiveKind::kAllReduce ||
                           step.kind == CollectiveKind::kReduceScatter;
      const bool gathers = step.kind == CollectiveKind::kAllReduce ||
                           step.kind == CollectiveKind::kAllGather;
      out.reductions += reduces ? 1 : 0;
      out.gathers += gathers ? 1 : 0;
    }
  }
  return out;
}

TEST_CASE("Llama on tp=8: columns then rows, where that is cheapest") {
  const OpLibrary& library = testing::standard_library();
  const Graph graph = llama(library);
  const auto forward = boundaries(graph, Phase::kForward);
  const auto backward = boundaries(graph, Phase::kBackward);
  REQUIRE(forward.size() == 1 + 2 * kLayers);
  REQUIRE(backward.size() == 1 + 2 * kLayers);
  std::vector<std::string> pins{"input_ids=R", "labels=R"};
  for (const auto& nodes : {forward, backward}) {
    for (const Node* node : nodes) pins.push_back(node->name + "=R");
  }
  const Plan plan = plan_with_pins(graph, library, pins);
  test::check_plan(plan);
  CHECK(plan.status == PlanStatus::kOptimal);

  const auto between = [&](const std::vector<const Node*>& nodes,
                           std::size_t half) {
    return carried(plan, static_cast<std::int64_t>(nodes[half]->id.index()) + 1,
                   static_cast<std::int64_t>(nodes[half + 1]->id.index()) + 1);
  };
  for (int layer = 0; layer < kLayers; ++layer) {
    CAPTURE(layer);
    CHECK(layout_of_weight(plan, layer, "mlp.gate_proj") == "S(0)");
    CHECK(layout_of_weight(plan, layer, "mlp.up_proj") == "S(0)");
    CHECK(layout_of_weight(plan, layer, "mlp.down_proj") == "S(1)");
    const auto half = 2 * static_cast<std::size_t>(layer) + 1;
    // The sum of the rows' products. The norm before it is one kernel, so that
    // running it on slices would save less than gathering its result costs.
    const Carried there = between(forward, half);
    CHECK(there.reductions == 1);
    CHECK(there.gathers == 1);
    // The sum of the columns' gradients, scattered; the norm's gradient runs
    // on slices and is gathered.
    const Carried back =
        between(backward, 2 * static_cast<std::size_t>(kLayers - 1 - layer));
    CHECK(back.reductions == 1);
    CHECK(back.gathers == 1);
    // Attention has a fourth of the parameters: to gather them and to reduce
    // their gradients costs less than to sum the stream.
    const Carried attention = between(forward, half - 1);
    CHECK(attention.reductions == 0);
    CHECK(attention.gathers == 1);
  }

  // Attention by heads, be it in the forward pass alone, costs more: proven.
  for (const Node& node : graph.nodes()) {
    if (node.phase != Phase::kForward || node.op_name() != "aten.mm.default") {
      continue;
    }
    for (int layer = 0; layer < kLayers; ++layer) {
      for (const char* part : {"q_proj", "k_proj", "v_proj"}) {
        if (inside(node, layer, std::string("self_attn.") + part)) {
          pins.push_back(node.name + "=S(1)");
        }
      }
      if (inside(node, layer, "self_attn.o_proj")) {
        pins.push_back(node.name + "=P(sum)");
      }
    }
  }
  const Plan by_heads = plan_with_pins(graph, library, pins);
  CHECK(by_heads.status == PlanStatus::kOptimal);
  CHECK(*by_heads.objective_nanoseconds > *plan.objective_nanoseconds);
  for (int layer = 0; layer < kLayers; ++layer) {
    CAPTURE(layer);
    const auto at = [&](std::size_t half) {
      return static_cast<std::int64_t>(forward[half]->id.index()) + 1;
    };
    const auto half = 2 * static_cast<std::size_t>(layer);
    CHECK(carried(by_heads, at(half), at(half + 1)).reductions == 1);
  }
  MESSAGE("free " << *plan.objective_nanoseconds << " ns, by heads "
                  << *by_heads.objective_nanoseconds << " ns");
}

}  // namespace
}  // namespace shardprop
