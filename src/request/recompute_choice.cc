#include "request/recompute_choice.h"

#include "base/try.h"
#include "request/rule_attempts.h"

#include <shardprop/graph/recompute.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

namespace shardprop {
namespace {

class RecomputeChoice {
 public:
  explicit RecomputeChoice(const PlanRequest& request)
      : request_(request), attempts_(request) {}

  Result<PlannedGraph> run() && {
    // The other rules get the rest once the limit is known to bind.
    SP_ASSIGN(const bool may_help, attempts_.begin(kFirstShare));
    if (may_help) try_rules();
    return std::move(attempts_).answer();
  }

 private:
  using Rule = Recompute::Rule;

  static constexpr const char* kJoinedDims = "joined-dims";
  // It takes 35 s on Llama 3 405B at any time limit.
  static constexpr const char* kScratchBounds = "scratch-bounds";

  // Shares of the rest of the limits.
  static constexpr double kFirstShare = 0.3;
  static constexpr double kStartShare = 0.5;
  static constexpr double kFullShare = 0.5;
  static constexpr double kModelShare = 0.5;
  static constexpr double kSelectiveShare = 0.4;
  static constexpr double kCountShare = 0.5;
  // Once `full` has led to a plan, the search of another rule may take this
  // multiple of what that one took, or this share of the limits if that is more.
  // Otherwise a rule that barely lacks memory takes all of its share: on Llama 3
  // 70B, `selective` 35 of 60 s, and `full` 4 s.
  static constexpr double kMostOfFull = 1.5;
  static constexpr double kLeastShare = 0.05;

  void try_rules() {
    const Recompute all_blocks = {Rule::kFull, 0};
    // The answer costs no more than the plan to start from if that is still valid.
    const std::optional<Recompute> start = attempts_.rule_of_start();
    std::optional<RuleOutcome> by_start;
    if (start) by_start = attempts_.attempt(*start, kStartShare);
    // `full` needs the least memory, so that it leads to a plan first.
    const std::optional<RuleOutcome> full =
        start == all_blocks ? by_start
                            : attempts_.attempt(all_blocks, kFullShare);
    const bool has_plan = full && full->has_plan;
    if (has_plan) {
      attempts_.cap_by_last(kMostOfFull, kLeastShare);
      for (const char* procedure : {kJoinedDims, kScratchBounds}) {
        if (!full->has_improved(procedure)) attempts_.leave_out(procedure);
      }
    }
    // The answer then costs no more than a plan by the marks of the model.
    if (is_checkpointed(*request_.graph)) {
      attempts_.attempt({Rule::kModel}, kModelShare);
    }
    if (has_plan) {
      std::optional<Count> known;
      if (by_start && start->rule == Rule::kFull && start != all_blocks) {
        known = count_of(start->first_blocks, *by_start);
      }
      choose_count(*full, known);
    }
    // A graph without `full` has no blocks.
    if (full && (!has_plan || attempts_.has_rest_for_another(kLeastShare))) {
      attempts_.attempt({Rule::kSelective}, kSelectiveShare);
    }
  }

  // Count is a number of blocks that run again, and the time of the plan; infinite
  // without a plan.
  struct Count {
    std::int64_t blocks = 0;
    double nanoseconds = std::numeric_limits<double>::infinity();
    bool limit_binds = true;
  };

  static Count count_of(std::int64_t blocks, const RuleOutcome& found) {
    return {blocks, found.nanoseconds, found.limit_binds};
  }

  // Searches the number of blocks of each row that run again. With fewer of them, a
  // plan takes less time and more memory; its transfers may then take longer. So
  // the time falls up to the best number and rises after it. `full` is the plan of
  // all of them, and `known` that of another number.
  void choose_count(const RuleOutcome& full,
                    const std::optional<Count>& known) {
    const std::int64_t blocks = longest_row_of_blocks(*request_.graph);
    const bool has_equal_rows = has_rows_of_equal_length(*request_.graph);
    // The time of the second runs of `count` blocks of each row in the plan `full`.
    // If the rows differ in length, a few blocks may take most of it.
    const auto time_of = [&](std::int64_t count) {
      return has_equal_rows
                 ? full.second_run_nanoseconds * static_cast<double>(count) /
                       static_cast<double>(blocks)
                 : full.second_run_nanoseconds;
    };
    Count low{has_equal_rows ? too_few(blocks) : 0};
    Count high = count_of(blocks, full);
    std::optional<Count> middle;  // takes less time than both
    // Returns how many of the numbers after `from` promise a cheaper plan. Fewer
    // blocks than `to` are expected to save at most the time of their second runs.
    // A plan that the limit does not change gains nothing by more of them.
    const auto promising = [&](const Count& from, const Count& to) {
      if (!from.limit_binds) return std::int64_t{0};
      const double enough =
          (1 - request_.options.gap) * attempts_.best_nanoseconds();
      std::int64_t count = to.blocks - from.blocks - 1;
      while (count > 0 &&
             to.nanoseconds - time_of(to.blocks - from.blocks - count) >=
                 enough) {
        --count;
      }
      return count;
    };
    const auto take = [&](const Count& here) {
      if (!middle) {
        if (here.nanoseconds < high.nanoseconds) {
          middle = here;
        } else {
          low = here;
        }
      } else if (here.nanoseconds < middle->nanoseconds) {
        (here.blocks < middle->blocks ? high : low) = *middle;
        middle = here;
      } else {
        (here.blocks < middle->blocks ? low : high) = here;
      }
    };
    if (known && known->blocks > low.blocks && known->blocks < blocks) {
      take(*known);
    }
    while (attempts_.has_rest_for_another(kLeastShare)) {
      Count from = low;
      std::int64_t left = promising(low, middle.value_or(high));
      if (middle && promising(*middle, high) > left) {
        from = *middle;
        left = promising(*middle, high);
      }
      if (left <= 0) return;
      const std::int64_t count = from.blocks + (left + 1) / 2;
      const std::optional<RuleOutcome> found =
          attempts_.attempt({Rule::kFull, count}, kCountShare);
      if (!found) return;
      take(count_of(count, *found));
    }
  }

  // Returns a number of blocks that leaves too little memory. Each block that runs
  // again saves at most its part of the bytes that are needed if none does.
  std::int64_t too_few(std::int64_t blocks) const {
    const std::int64_t needed = attempts_.first().needed_bytes;
    if (needed == 0) return 0;
    const double saved =
        1 - static_cast<double>(*request_.options.memory_limit) /
                static_cast<double>(needed);
    const auto count =
        static_cast<std::int64_t>(saved * static_cast<double>(blocks));
    return std::clamp<std::int64_t>(count - 1, 0, blocks - 1);
  }

  const PlanRequest& request_;
  RuleAttempts attempts_;
};

}  // namespace

Result<PlannedGraph> plan_by_cheapest_rule(const PlanRequest& request) {
  return RecomputeChoice(request).run();
}

}  // namespace shardprop
