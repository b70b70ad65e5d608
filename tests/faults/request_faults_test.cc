// Requests whose memory is refused.
#include <shardprop/request/plan_request.h>

#include "faults/failing_machine.h"
#include "graph/marked_graph.h"
#include "request/layer_requests.h"
#include "support/result_checks.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;

// Returns a request for which `auto` tries several rules.
PlanRequest checkpointed_request(const std::string& rule,
                                 const std::string& memory) {
  PlanRequest request = request_of_layers(rule, memory, "dddd", "3000");
  request.graph =
      std::make_shared<const Graph>(with_marked_layers(*request.graph, 3));
  return request;
}

TEST_CASE("auto keeps a plan, wherever memory is refused after it") {
  const std::int64_t peak =
      value_of(plan(checkpointed_request("full", "none"))).memory.peak_bytes;
  const std::string memory = std::to_string(peak * 5 / 4);
  const PlanRequest first = checkpointed_request("none", memory);
  const PlanRequest request = checkpointed_request("auto", memory);
  const Plan whole = value_of(plan(request));
  REQUIRE(whole.has_plan());
  REQUIRE(tried_rules(whole).size() > 2);
  const auto allocations_of = [](const PlanRequest& asked) {
    failing_machine::heal();
    REQUIRE(plan(asked));
    return failing_machine::allocations();
  };
  const std::int64_t before = allocations_of(first);
  const std::int64_t all = allocations_of(request);
  REQUIRE(before < all);
  // The copies of plans and requests follow the end of a search.
  std::vector<std::int64_t> places;
  for (std::int64_t at = before - 100; at < before + 200; ++at) {
    places.push_back(at);
  }
  for (std::int64_t i = 0; i < 100; ++i) places.push_back(all * i / 100);
  int plans = 0;
  int errors = 0;
  for (const std::int64_t at : places) {
    CAPTURE(at);
    failing_machine::memory_after(at);
    const Result<Plan> found = plan(request);
    failing_machine::heal();
    if (found) {
      plans += found->has_plan() ? 1 : 0;
    } else {
      ++errors;
      CHECK(found.error().code == ErrorCode::kOutOfMemory);
    }
  }
  CHECK(plans > 0);
  CHECK(errors > 0);
}

TEST_CASE("a rule without memory is an error") {
  const PlanRequest request = checkpointed_request("model", "none");
  failing_machine::heal();
  REQUIRE(plan(request));
  const std::int64_t all = failing_machine::allocations();
  for (std::int64_t i = 0; i < 200; ++i) {
    CAPTURE(i);
    // Half of the places are among those of the graph and the request.
    failing_machine::memory_after(i < 100 ? i * 3 : all * (i - 100) / 100);
    const Result<Plan> found = plan(request);
    failing_machine::heal();
    if (!found) CHECK(found.error().code == ErrorCode::kOutOfMemory);
  }
}

}  // namespace
}  // namespace shardprop
