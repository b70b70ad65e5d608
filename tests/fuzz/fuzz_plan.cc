// Saved plans: what is read prints as text, and writes as JSON that reads back
// as the same plan.
#include "fuzz_input.h"

#include <shardprop/report/plan_json.h>
#include <shardprop/report/plan_text.h>

using namespace shardprop;  // NOLINT(google-build-using-namespace)

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const Result<Plan> plan = parse_plan_json(as_text(data, size));
  if (!plan) {
    require_reason(plan);
    return 0;
  }
  require(!plan_to_text(*plan).empty());
  const Result<Plan> again = parse_plan_json(plan_to_json(*plan));
  require(again.has_value() && *again == *plan);
  return 0;
}
