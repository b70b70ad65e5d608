// Plans saved by `explain --format json`, read back.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/plan/plan.h>

#include <cstdint>
#include <string>

namespace shardprop::cli {

// `place` names the file in errors. Errors: kPlanFile, kPlanSchemaVersion.
Result<Plan> read_plan_file(const std::string& path, const std::string& place,
                            std::int64_t max_input);

}  // namespace shardprop::cli
