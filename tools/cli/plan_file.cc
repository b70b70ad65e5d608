#include "cli/plan_file.h"

#include "base/try.h"
#include "io/input_file.h"

#include <shardprop/report/plan_json.h>

#include <utility>

namespace shardprop::cli {

Result<Plan> read_plan_file(const std::string& path, const std::string& place,
                            std::int64_t max_input) {
  auto text = read_file(path, max_input);
  if (!text) {
    Error error = std::move(text).error();
    error.code = ErrorCode::kPlanFile;
    error.location = place;
    return fail(std::move(error));
  }
  Result<Plan> plan = parse_plan_json(*text);
  if (!plan) return fail(std::move(plan).error().at(place));
  return plan;
}

}  // namespace shardprop::cli
