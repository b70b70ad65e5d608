#include "cli/plan_file.h"

#include <shardprop/report/plan_json.h>

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

}  // namespace shardprop::cli
