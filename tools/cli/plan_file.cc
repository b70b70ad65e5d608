#include "cli/plan_file.h"

#include "base/try.h"
#include "io/inflate.h"

#include <shardprop/report/plan_json.h>

#include <utility>

namespace shardprop::cli {

Option local_args_option() {
  return {.name = "--local-args",
          .value = "HOW",
          .help =
              "numbers of a plan in which the ranks differ: one of each "
              "rank, or one of each coordinate on the mesh dims that they "
              "depend on, which is far less for thousands of ranks",
          .fallback = "by-rank",
          .choices = {"by-rank", "by-dim"}};
}

std::string saved_plan(const Plan& plan, const Arguments& arguments) {
  return plan_to_json(plan, arguments.get("--local-args") == "by-dim"
                                ? RankForm::kByDim
                                : RankForm::kEachRank);
}

Result<Plan> read_plan_file(const std::string& path, const std::string& place,
                            std::int64_t max_input, Deadline deadline) {
  auto text = read_file(path, max_input, deadline);
  if (text && is_gzip(*text)) text = inflate_gzip(*text, max_input);
  if (!text) {
    Error error = std::move(text).error();
    if (error.code != ErrorCode::kStopped) error.code = ErrorCode::kPlanFile;
    error.location = place;
    return fail(std::move(error));
  }
  Result<Plan> plan = parse_plan_json(*text);
  if (!plan) return fail(std::move(plan).error().at(place));
  return plan;
}

}  // namespace shardprop::cli
