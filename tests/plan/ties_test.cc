// Ties: equal layers lie alike, or it is said what that would cost; what is
// sliced anyway is stored in shards.
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/io/load_graph.h>
#include <shardprop/plan/make_plan.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;

std::string without_numbers(const std::string& name) {
  std::string out;
  for (const char c : name) {
    if (c < '0' || c > '9') out += c;
  }
  return out;
}

// Parameters alike but for numbers in their names, that lie differently.
std::vector<std::string> unlike(const Plan& plan) {
  std::map<std::string, std::set<std::string>> layouts;
  for (const PlannedValue& value : plan.values) {
    if (value.kind != InputKind::kParameter) continue;
    std::string key = without_numbers(value.name) + "[";
    for (const std::int64_t size : value.tensor.shape) {
      key += std::to_string(size) + ",";
    }
    layouts[key].insert(to_string(value.tensor.layout));
  }
  std::vector<std::string> out;
  for (const auto& [name, of] : layouts) {
    if (of.size() > 1) out.push_back(name);
  }
  return out;
}

TEST_CASE("equal layers lie alike, or it is said what that would cost") {
  const OpLibrary& library = testing::standard_library();
  for (const char* name :
       {"tiny/llama3_train", "tiny/gpt2_train", "tiny/mixtral_infer",
        "tiny/vit_infer", "tiny/t5_train", "llama3_8b_train"}) {
    const Graph graph = value_of(load_graph(
        std::string("examples/graphs/") + name + ".json.gz", library));
    for (const char* mesh : {"4", "2,4"}) {
      CAPTURE(std::string(name));
      CAPTURE(std::string(mesh));
      PlanOptions options;
      options.optimizer = Optimizer::kAdamW;
      options.time_limit_seconds = 1e6;
      options.work_limit = 2'000'000'000;
      const Plan plan =
          value_of(make_plan(graph, value_of(DeviceMesh::parse(mesh)),
                             default_topology(), library, options));
      REQUIRE(plan.has_plan());
      const bool said = std::any_of(
          plan.notes.begin(), plan.notes.end(), [](const std::string& note) {
            return note.find("equal layers") != std::string::npos;
          });
      const std::vector<std::string> differ = unlike(plan);
      if (!differ.empty()) CAPTURE(differ[0]);
      CHECK((differ.empty() || said));
    }
  }
}

}  // namespace
}  // namespace shardprop
