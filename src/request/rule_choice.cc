#include "request/rule_choice.h"

#include "base/try.h"

#include <shardprop/graph/recompute.h>
#include <shardprop/plan/plan_note.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace shardprop {
namespace {

using Clock = std::chrono::steady_clock;

class RuleChoice {
 public:
  explicit RuleChoice(const PlanRequest& request)
      : request_(request),
        begun_(request.options.start.value_or(Clock::now())) {}

  Result<PlannedGraph> run() {
    PlanRequest first = with_rule({});
    // The other rules get the rest once the limit is known to bind.
    first.options.share_if_limit_binds = kFirstShare;
    SP_ASSIGN(PlannedGraph none, plan_graph(first));
    if (!may_another_rule_help(none.plan)) return none;
    note(none.plan);
    best_ = std::move(none);
    // `full` needs the least memory, so that it leads to a plan first.
    const std::optional<Plan> full = attempt({Rule::kFull, 0}, kFullShare);
    if (full) {
      attempt({Rule::kSelective, 0}, kSelectiveShare);
      if (full->has_plan()) choose_count(*full);
    }
    if (rules_.tried.size() > 1) conclude(best_->plan);
    return *std::move(best_);
  }

 private:
  using Rule = Recompute::Rule;

  // Shares of the rest of the limits.
  static constexpr double kFirstShare = 0.3;
  static constexpr double kFullShare = 0.5;
  static constexpr double kSelectiveShare = 0.4;
  static constexpr double kCountShare = 0.5;

  // Tried is a number of blocks that run again, and the time of the plan; infinite
  // without a plan.
  struct Tried {
    std::int64_t blocks = 0;
    double nanoseconds = 0;
    bool limit_binds = true;
  };

  static Tried tried_of(std::int64_t blocks, const Plan& plan) {
    constexpr double kNone = std::numeric_limits<double>::infinity();
    return {blocks,
            plan.has_plan() ? static_cast<double>(*plan.objective_nanoseconds)
                            : kNone,
            !plan.has_plan() || plan.search.limit_binds};
  }

  // Searches the number of blocks of each row that run again. With fewer of them, a
  // plan takes less time and more memory; its transfers may then take longer. So
  // the time falls up to the best number and rises after it. `full` is the plan of
  // all of them.
  void choose_count(const Plan& full) {
    const std::int64_t blocks = longest_row_of_blocks(*request_.graph);
    const double of_block =
        static_cast<double>(full.summary.recompute_nanoseconds) /
        static_cast<double>(std::max<std::int64_t>(1, blocks));
    Tried low{too_few(blocks), std::numeric_limits<double>::infinity()};
    Tried high = tried_of(blocks, full);
    std::optional<Tried> middle;  // takes less time than both
    // Fewer blocks save at most the time of their second runs. A plan that the
    // limit does not change gains nothing by more of them.
    const auto promises = [&](const Tried& from, const Tried& to) {
      const auto between = static_cast<double>(to.blocks - from.blocks);
      const auto best = static_cast<double>(*best_->plan.objective_nanoseconds);
      return to.blocks - from.blocks > 1 && from.limit_binds &&
             to.nanoseconds - of_block * between <
                 (1 - request_.options.gap) * best;
    };
    while (seconds_left() > last_seconds_) {
      Tried from = low;
      Tried to = middle.value_or(high);
      if (middle && (!promises(from, to) ||
                     (promises(*middle, high) &&
                      high.blocks - to.blocks > to.blocks - from.blocks))) {
        from = *middle;
        to = high;
      }
      if (!promises(from, to)) return;
      const std::int64_t count = from.blocks + (to.blocks - from.blocks) / 2;
      const std::optional<Plan> plan =
          attempt({Rule::kFull, count}, kCountShare);
      if (!plan) return;
      const Tried here = tried_of(count, *plan);
      if (!middle) {
        if (here.nanoseconds < high.nanoseconds) {
          middle = here;
        } else {
          low = here;
        }
      } else if (here.nanoseconds < middle->nanoseconds) {
        (count < middle->blocks ? high : low) = *middle;
        middle = here;
      } else {
        (count < middle->blocks ? low : high) = here;
      }
    }
  }

  // Returns a number of blocks that leaves too little memory. Each block that runs
  // again saves at most its part of the bytes that are needed if none does.
  std::int64_t too_few(std::int64_t blocks) const {
    const std::int64_t needed = rules_.tried.front().needed_bytes;
    if (needed == 0) return 0;
    const double saved =
        1 - static_cast<double>(*request_.options.memory_limit) /
                static_cast<double>(needed);
    const auto count =
        static_cast<std::int64_t>(saved * static_cast<double>(blocks));
    return std::clamp<std::int64_t>(count - 1, 0, blocks - 1);
  }

  // Plans by one more rule. Returns null if the graph has no such rule, or if the
  // search is to stop.
  std::optional<Plan> attempt(const Recompute& rule, double share) {
    if (is_stopped()) return std::nullopt;
    PlanRequest own = with_rule(rule);
    limit(own.options, share);
    if (best_->plan.has_plan() && !own.options.start_from) {
      own.options.start_from = std::make_shared<const Plan>(best_->plan);
    }
    const double begun = seconds_spent();
    Result<PlannedGraph> other = plan_graph(own);
    last_seconds_ = seconds_spent() - begun;
    if (!other) return std::nullopt;
    if (!request_.options.start_from) {
      std::erase_if(other->plan.notes, [](const PlanNote& note) {
        return std::holds_alternative<EarlierPlanNote>(note);
      });
    }
    note(other->plan);
    Plan plan = other->plan;
    if (is_better(plan, best_->plan)) best_ = *std::move(other);
    return plan;
  }

  static std::string rule_of(const Plan& plan) {
    for (const auto& [name, text] : plan.options) {
      if (name == "recompute") return text;
    }
    return {};
  }

  // If a plan lacks memory, or if the limit excludes a cheaper one.
  static bool may_another_rule_help(const Plan& plan) {
    if (plan.has_plan()) return plan.search.limit_binds;
    return plan.status != PlanStatus::kInfeasible ||
           !plan.conflict.memory.empty();
  }

  // The bytes by which a plan of the rule exceeds the limit at least.
  static std::int64_t bytes_short(const Plan& plan) {
    // If several slots cannot hold together, each lacks less by itself.
    if (plan.status != PlanStatus::kInfeasible ||
        plan.conflict.memory.size() != 1) {
      return std::numeric_limits<std::int64_t>::max();
    }
    return plan.conflict.memory.front().bytes_short;
  }

  static bool is_better(const Plan& a, const Plan& b) {
    if (a.has_plan() != b.has_plan()) return a.has_plan();
    if (a.has_plan())
      return *a.objective_nanoseconds < *b.objective_nanoseconds;
    // A search that found neither a plan nor a proof leaves the answer open.
    const bool is_open = a.status == PlanStatus::kUnknown;
    if (is_open != (b.status == PlanStatus::kUnknown)) return is_open;
    return bytes_short(a) < bytes_short(b);
  }

  bool is_stopped() const { return request_.options.stop.stop_requested(); }

  PlanRequest with_rule(const Recompute& rule) const {
    PlanRequest own = request_;
    own.options.recompute = rule;
    return own;
  }

  double seconds_left() const {
    return request_.options.time_limit_seconds - seconds_spent();
  }

  // Limits a search to a share of the rest.
  void limit(PlanOptions& options, double share) const {
    options.start = Clock::now();
    options.time_limit_seconds = share * std::max(0.0, seconds_left());
    if (options.work_limit) {
      const std::uint64_t left =
          *options.work_limit - std::min(*options.work_limit, work_);
      options.work_limit =
          static_cast<std::uint64_t>(share * static_cast<double>(left));
    }
  }

  void note(const Plan& plan) {
    work_ += plan.search.work;
    if (limits_.empty()) limits_ = limits_of(plan);
    // A rule that was refuted has no plan, and no bound. A rule whose search ended
    // without a plan may still have one.
    if (plan.status != PlanStatus::kInfeasible &&
        plan.lower_bound_nanoseconds < bound_) {
      bound_ = plan.lower_bound_nanoseconds;
      ran_out_ = plan.ran_out;
    }
    if (plan.has_plan()) {
      const std::int64_t free = plan.free_lower_bound_nanoseconds.value_or(0);
      free_bound_ = std::min(free_bound_, free);
    }
    const std::int64_t lacking = bytes_short(plan);
    RecomputeRulesNote::Tried tried{.rule = rule_of(plan)};
    if (plan.has_plan()) {
      tried.nanoseconds = *plan.objective_nanoseconds;
    } else if (lacking < std::numeric_limits<std::int64_t>::max()) {
      tried.needed_bytes = *request_.options.memory_limit + lacking;
    }
    rules_.tried.push_back(std::move(tried));
  }

  using Options = std::vector<std::pair<std::string, std::string>>;

  static Options limits_of(const Plan& plan) {
    Options limits;
    std::copy_if(plan.options.begin(), plan.options.end(),
                 std::back_inserter(limits), [](const auto& option) {
                   return option.first == "time_limit" ||
                          option.first == "work_limit";
                 });
    return limits;
  }

  // Adds to the answer what holds for the plans of all rules.
  void conclude(Plan& plan) const {
    plan.notes.emplace_back(rules_);
    plan.solve_seconds = seconds_spent();
    for (auto& [name, text] : plan.options) {
      for (const auto& [limit, given] : limits_) {
        if (name == limit) text = given;
      }
    }
    if (plan.free_lower_bound_nanoseconds) {
      plan.free_lower_bound_nanoseconds.reset();
      if (free_bound_ > 0) plan.free_lower_bound_nanoseconds = free_bound_;
    }
    if (!plan.has_plan() || bound_ >= plan.lower_bound_nanoseconds) return;
    plan.lower_bound_nanoseconds = bound_;
    plan.status = PlanStatus::kFeasible;
    plan.ran_out = ran_out_;
  }

  double seconds_spent() const {
    return std::chrono::duration<double>(Clock::now() - begun_).count();
  }

  const PlanRequest& request_;
  std::optional<PlannedGraph> best_;
  Clock::time_point begun_;
  std::uint64_t work_ = 0;   // of the searches so far
  double last_seconds_ = 0;  // of the last search, with its set-up and report
  // The least bound of the rules, and why its search ended.
  std::int64_t bound_ = std::numeric_limits<std::int64_t>::max();
  RanOut ran_out_ = RanOut::kNothing;
  // The least bound of plans with free layers; 0 if that of a rule is not known.
  std::int64_t free_bound_ = std::numeric_limits<std::int64_t>::max();
  Options limits_;  // those of the request, as plans record them
  RecomputeRulesNote rules_;
};

}  // namespace

Result<PlannedGraph> plan_by_cheapest_rule(const PlanRequest& request) {
  return RuleChoice(request).run();
}

}  // namespace shardprop
