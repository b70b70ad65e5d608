// Saved plans: what is read prints as text, and writes as JSON that reads back
// as the same plan. What schema 1 leaves out cannot be written as schema 2.
#include "fuzz_input.h"

#include <shardprop/report/plan_json.h>
#include <shardprop/report/plan_text.h>

using namespace shardprop;  // NOLINT(google-build-using-namespace)

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const std::string_view text = as_text(data, size);
  const Result<Plan> plan = parse_plan_json(text);
  if (!plan) {
    require_reason(plan);
    return 0;
  }
  require(!plan_to_text(*plan).empty());
  if (text.find(kFirstPlanSchema) != std::string_view::npos) return 0;
  const Result<Plan> again = parse_plan_json(plan_to_json(*plan));
  require(again.has_value() && *again == *plan);
  return 0;
}
