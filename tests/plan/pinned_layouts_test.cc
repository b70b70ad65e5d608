// Parameters pinned to every way to cut them: out of order, strided, in three
// mesh dims. There is a plan or a clear error, never a bug.
#include "support/property.h"
#include "support/result_checks.h"
#include "support/sanitizers.h"
#include "support/standard_library.h"

#include <shardprop/io/load_graph.h>
#include <shardprop/placement/local_region.h>
#include <shardprop/placement/tensor_spec.h>
#include <shardprop/plan/make_plan.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;

// Parameters that differ in shape and in what takes them, a few of each graph.
std::vector<std::string> some_parameters(const Graph& graph, std::size_t most) {
  std::vector<std::string> names;
  std::vector<std::string> kinds;
  for (const GraphInput& input : graph.inputs()) {
    const Value& value = graph.value(input.value);
    if (input.kind != InputKind::kParameter || value.meta.rank() == 0) continue;
    std::string kind = to_string(value.meta);
    for (const Use& user : value.consumers) {
      kind += " " + graph.node(user.node).op_name();
    }
    if (std::find(kinds.begin(), kinds.end(), kind) != kinds.end()) continue;
    kinds.push_back(std::move(kind));
    names.push_back(value.qualified_name);
    if (names.size() == most) break;
  }
  return names;
}

// `Counts` counts the outcomes of pins.
struct Counts {
  int planned = 0;
  int empty_rank = 0;  // refused: a dim is cut into more parts than it has
  int no_dim = 0;      // refused: the tensor lacks the dim that is cut
  int no_plan = 0;     // infeasible: operators cannot take it so
  int all() const { return planned + empty_rank + no_dim + no_plan; }
};

std::string to_string(const Counts& counts) {
  return std::to_string(counts.planned) + " planned, " +
         std::to_string(counts.empty_rank) + " refused for an empty rank, " +
         std::to_string(counts.no_plan) + " infeasible";
}

// Whether some rank holds no element.
bool leaves_a_rank_empty(const Layout& layout, const DeviceMesh& mesh,
                         const TensorMeta& meta) {
  Coordinate at(static_cast<std::size_t>(mesh.ndim()), 0);
  while (true) {
    if (local_region(layout, mesh, meta.shape(), at).empty()) return true;
    int m = mesh.ndim();
    while (m > 0 &&
           at[static_cast<std::size_t>(m - 1)] == mesh.size(m - 1) - 1) {
      at[static_cast<std::size_t>(--m)] = 0;
    }
    if (m == 0) return false;
    ++at[static_cast<std::size_t>(m - 1)];
  }
}

bool names_no_dim(const Layout& layout, int rank) {
  return std::any_of(
      layout.placements().begin(), layout.placements().end(),
      [&](const Placement& p) { return p.is_shard() && p.dim() >= rank; });
}

// A pin must give a plan with that layout, or an error for a dim that the
// tensor lacks or for a rank without elements.
void check_pin(const Graph& graph, const OpLibrary& library, const char* mesh,
               const std::string& prefix, const std::string& name,
               const std::string& layout, Counts& counts) {
  PlanOptions options;
  options.time_limit_seconds = 1e6;
  options.work_limit = 4'000'000;
  options.pins.push_back(value_of(Pin::parse(prefix + name + "=" + layout)));
  CAPTURE(graph.name());
  CAPTURE(std::string(mesh));
  CAPTURE(to_string(options.pins[0]));
  const DeviceMesh ranks = value_of(DeviceMesh::parse(mesh));
  const auto plan =
      make_plan(graph, ranks, default_topology(), library, options);
  if (!plan) {
    const Error& error = plan.error();
    CAPTURE(error.message);
    CHECK(error.code == ErrorCode::kPinDoesNotFit);
    CHECK(!error.help.empty());
    const TensorMeta& meta = graph.value(*graph.find_value(name)).meta;
    if (names_no_dim(options.pins[0].layout, meta.rank())) {
      CHECK(error.message.find("does not have") != std::string::npos);
      ++counts.no_dim;
    } else {
      CHECK(error.message.find("is cut into") != std::string::npos);
      CHECK(leaves_a_rank_empty(options.pins[0].layout, ranks, meta));
      ++counts.empty_rank;
    }
    return;
  }
  if (!plan->has_plan()) {
    CHECK(plan->status == PlanStatus::kInfeasible);
    MESSAGE("no plan: " << graph.name() << " " << mesh << " "
                        << to_string(options.pins[0]));
    ++counts.no_plan;
    return;
  }
  const PlanSummary sum = summarize(*plan);
  CHECK(*plan->objective_nanoseconds == sum.compute_nanoseconds +
                                            sum.communication_nanoseconds -
                                            sum.overlapped_nanoseconds);
  const auto pinned = std::find_if(
      plan->values.begin(), plan->values.end(),
      [&](const PlannedValue& value) { return value.name == name; });
  REQUIRE(pinned != plan->values.end());
  CHECK(pinned->tensor.layout ==
        canonical(options.pins[0].layout, plan->mesh, pinned->tensor.shape));
  ++counts.planned;
}

int check_pins(const std::string& graph_name, const char* mesh,
               const std::vector<const char*>& layouts, std::size_t most) {
  const OpLibrary& library = testing::standard_library();
  const Graph graph = value_of(
      load_graph("examples/graphs/tiny/" + graph_name + ".json.gz", library));
  Counts counts;
  for (const std::string& name : some_parameters(graph, most)) {
    for (const char* layout : layouts) {
      check_pin(graph, library, mesh, "", name, layout, counts);
    }
  }
  return counts.planned;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) {
    text += (text.empty() ? "" : ",") + part;
  }
  return text;
}

// The daily run pins one parameter of each graph, the full run four.
TEST_CASE("orders and strides on two mesh dims") {
  const std::vector<const char*> layouts = {
      "S(0)@1,S(0)@0",   "S(1)@1,S(1)@0", "SS(0,2),S(0)", "S(0),SS(0,2)",
      "SS(0,4),SS(0,2)", "SS(1,2),S(0)",  "S(0),SS(1,4)", "SS(0,2)@1,S(0)@0",
      "R,SS(0,2)",       "SS(0,3),R",     "S(1),SS(1,2)"};
  if (testing::kThreadSanitizer) {
    CHECK(check_pins("mlp_dynamic", "2,2", layouts, 1) > 3);
    return;
  }
  int planned = 0;
  const int parameters = testing::full_counts() ? 4 : 1;
  std::vector<const char*> graphs = {"gpt2_train", "vit_infer", "mlp_dynamic"};
  if (testing::full_counts()) {
    graphs.insert(graphs.end(), {"llama3_train", "t5_train"});
  }
  for (const char* graph : graphs) {
    planned +=
        check_pins(graph, "2,2", layouts, static_cast<std::size_t>(parameters));
  }
  CHECK(planned > 3 * std::ssize(graphs) * parameters);
}

TEST_CASE("orders and strides on three mesh dims") {
  const std::vector<const char*> layouts = {
      "S(0)@2,S(0)@1,S(0)@0", "S(0)@1,S(0)@0,S(1)", "SS(0,2),R,S(0)",
      "S(1)@1,R,S(1)@0", "S(0)@1,S(0)@2,S(0)@0"};
  if (testing::kThreadSanitizer) {
    CHECK(check_pins("mlp_dynamic", "2,2,2", layouts, 1) > 0);
    return;
  }
  int planned = 0;
  for (const char* graph : {"llama3_train", "mlp_dynamic"}) {
    // Plans of the larger graph take longer, so that it has fewer every day.
    const bool is_small = std::string(graph) == "mlp_dynamic";
    const std::vector<const char*> some =
        is_small || testing::full_counts()
            ? layouts
            : std::vector<const char*>(layouts.begin(), layouts.begin() + 2);
    planned += check_pins(graph, "2,2,2", some, testing::counted(1, 2));
  }
  CHECK(planned > (testing::full_counts() ? 5 : 2));
}

// Every shard order, and strided shards with anything beside.
std::vector<std::string> all_layouts(int rank, int mesh_ndim) {
  std::vector<std::string> out;
  std::vector<int> order(static_cast<std::size_t>(mesh_ndim));
  std::iota(order.begin(), order.end(), 0);
  do {
    const int ways = static_cast<int>(std::lround(std::pow(rank, mesh_ndim)));
    for (int way = 0; way < ways; ++way) {
      std::vector<std::string> text(order.size());
      std::map<int, int> cuts;
      int rest = way;
      for (const int m : order) {
        const int dim = rest % rank;
        rest /= rank;
        text[static_cast<std::size_t>(m)] =
            "S(" + std::to_string(dim) + ")@" + std::to_string(cuts[dim]++);
      }
      out.push_back(joined(text));
    }
  } while (std::next_permutation(order.begin(), order.end()));
  for (int dim = 0; dim < rank; ++dim) {
    for (const int pieces : {2, 3, 4}) {
      for (int at = 0; at < mesh_ndim; ++at) {
        for (int other = -1; other < rank; ++other) {
          std::vector<std::string> text(
              order.size(), other < 0 ? std::string("R")
                                      : "S(" + std::to_string(other) + ")");
          text[static_cast<std::size_t>(at)] =
              "SS(" + std::to_string(dim) + "," + std::to_string(pieces) + ")";
          out.push_back(joined(text));
        }
      }
    }
  }
  return out;
}

// The pins are sampled from all parameters of all tiny graphs on 2,2 and 2,2,2:
// 2,400 at full counts.
TEST_CASE("any order or stride on any parameter is planned") {
  const OpLibrary& library = testing::standard_library();
  std::mt19937_64 random(testing::property_seed());
  const auto below = [&](std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
  };
  std::vector<std::string> graphs;
  for (const auto& entry :
       std::filesystem::directory_iterator("examples/graphs/tiny")) {
    if (!entry.path().string().ends_with(".json.gz")) continue;
    graphs.push_back(entry.path().string());
  }
  std::sort(graphs.begin(), graphs.end());
  REQUIRE(graphs.size() >= 16);
  std::map<std::string, Graph> loaded;
  std::map<std::string, Counts> counts;
  const int everyday = testing::kThreadSanitizer ? 4 : 6;
  const int cases =
      testing::scaled(everyday) * (testing::full_counts() ? 20 : 1);
  for (int i = 0; i < cases; ++i) {
    const std::string& name = graphs[below(graphs.size())];
    auto found = loaded.find(name);
    if (found == loaded.end()) {
      found = loaded.emplace(name, value_of(load_graph(name, library))).first;
    }
    const std::vector<std::string> names = some_parameters(found->second, 1000);
    const std::string& parameter = names[below(names.size())];
    const int rank =
        found->second.value(*found->second.find_value(parameter)).meta.rank();
    const bool two = below(2) == 0;
    const auto layouts = all_layouts(rank, two ? 2 : 3);
    const std::string& layout = layouts[below(layouts.size())];
    const char* prefixes[] = {"", "stored:"};
    check_pin(found->second, library, two ? "2,2" : "2,2,2", prefixes[below(2)],
              parameter, layout, counts[name]);
  }
  Counts all;
  for (const auto& [name, of] : counts) {
    MESSAGE(name << ": " << to_string(of));
    all.planned += of.planned;
    all.empty_rank += of.empty_rank;
    all.no_plan += of.no_plan;
  }
  MESSAGE(to_string(all));
  CHECK(all.all() == cases);
  CHECK(2 * all.planned > cases);
}

}  // namespace
}  // namespace shardprop
