// Notes on lost time: none is charged twice.
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/io/load_graph.h>
#include <shardprop/plan/make_plan.h>

#include <string>

namespace shardprop {
namespace {

using testing::value_of;

TEST_CASE("what uneven heads lose is not charged to a small batch, too") {
  const OpLibrary& library = testing::standard_library();
  const Graph graph =
      value_of(load_graph("examples/graphs/gpt2_124m_train.json.gz", library));
  PlanOptions options;
  options.recipe = value_of(Recipe::parse("fsdp=dp,megatron=tp"));
  options.time_limit_seconds = 1e6;
  options.work_limit = 0;
  const Plan plan =
      value_of(make_plan(graph, value_of(DeviceMesh::parse("dp=8,tp=8")),
                         default_topology(), library, options));
  int heads = 0;
  int batch = 0;
  for (const std::string& note : plan.notes) {
    CAPTURE(note);
    if (note.find("12 heads are not a multiple of tp=8") == 0) ++heads;
    if (note.find("a batch of 8 does not fill") == 0) ++batch;
  }
  CHECK(heads == 1);
  CHECK(batch == 0);
}

}  // namespace
}  // namespace shardprop
