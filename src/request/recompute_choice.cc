#include "request/recompute_choice.h"

#include "base/guard.h"
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
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace shardprop {
namespace {

using Clock = std::chrono::steady_clock;

class RecomputeChoice {
 public:
  explicit RecomputeChoice(const PlanRequest& request)
      : request_(request),
        begun_(request.options.start.value_or(Clock::now())) {}

  Result<PlannedGraph> run() {
    PlanRequest first = with_rule({});
    // The other rules get the rest once the limit is known to bind.
    first.options.share_if_limit_binds = kFirstShare;
    const double begun = seconds_spent();
    SP_ASSIGN(PlannedGraph none, plan_graph(first));
    fastest_ = seconds_spent() - begun;
    if (!may_another_rule_help(none.plan)) return none;
    note(none.plan);
    best_ = std::move(none);
    // `full` needs the least memory, so that it leads to a plan first.
    const std::optional<Plan> full = attempt({Rule::kFull, 0}, kFullShare);
    if (full) {
      if (full->has_plan()) {
        cap_ = of_last(kMostOfFull, kLeastShare);
        if (!has_improved(*full, kJoinedDims)) leave_out(kJoinedDims);
        if (!has_improved(*full, kScratchBounds)) leave_out(kScratchBounds);
        choose_count(*full);
      }
      if (!full->has_plan() || has_rest_for_another()) {
        attempt({Rule::kSelective, 0}, kSelectiveShare);
      }
    }
    if (rules_.tried.size() > 1) conclude(best_->plan);
    return *std::move(best_);
  }

 private:
  using Rule = Recompute::Rule;

  static constexpr const char* kFreeBound = "free-layers-bound";
  static constexpr const char* kJoinedDims = "joined-dims";
  // This procedure takes 35 s on Llama 3 405B, whatever the time limit is.
  static constexpr const char* kScratchBounds = "scratch-bounds";

  // Shares of the rest of the limits.
  static constexpr double kFirstShare = 0.3;
  static constexpr double kFullShare = 0.5;
  static constexpr double kSelectiveShare = 0.4;
  static constexpr double kCountShare = 0.5;
  // Once `full` has led to a plan, the search of another rule may take this
  // multiple of what that one took, or this share of the limits if that is more.
  // Otherwise a rule that barely lacks memory takes all of its share: on Llama 3
  // 70B, `selective` 35 of 60 s, and `full` 4 s.
  static constexpr double kMostOfFull = 1.5;
  static constexpr double kLeastShare = 0.05;

  // Count is a number of blocks that run again, and the time of the plan; infinite
  // without a plan.
  struct Count {
    std::int64_t blocks = 0;
    double nanoseconds = std::numeric_limits<double>::infinity();
    bool limit_binds = true;
  };

  static Count count_of(std::int64_t blocks, const Plan& plan) {
    if (!plan.has_plan()) return {blocks};
    return {blocks, static_cast<double>(*plan.objective_nanoseconds),
            plan.search.limit_binds};
  }

  // Searches the number of blocks of each row that run again. With fewer of them, a
  // plan takes less time and more memory; its transfers may then take longer. So
  // the time falls up to the best number and rises after it. `full` is the plan of
  // all of them.
  void choose_count(const Plan& full) {
    const std::int64_t blocks = longest_row_of_blocks(*request_.graph);
    const bool has_equal_rows = has_rows_of_equal_length(*request_.graph);
    const auto second_runs =
        static_cast<double>(full.summary.recompute_nanoseconds);
    // The time of the second runs of `count` blocks of each row in the plan `full`.
    // If the rows differ in length, a few blocks may take most of it.
    const auto time_of = [&](std::int64_t count) {
      return has_equal_rows ? second_runs * static_cast<double>(count) /
                                  static_cast<double>(blocks)
                            : second_runs;
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
          (1 - request_.options.gap) *
          static_cast<double>(*best_->plan.objective_nanoseconds);
      std::int64_t count = to.blocks - from.blocks - 1;
      while (count > 0 &&
             to.nanoseconds - time_of(to.blocks - from.blocks - count) >=
                 enough) {
        --count;
      }
      return count;
    };
    while (has_rest_for_another()) {
      Count from = low;
      std::int64_t left = promising(low, middle.value_or(high));
      if (middle && promising(*middle, high) > left) {
        from = *middle;
        left = promising(*middle, high);
      }
      if (left <= 0) return;
      const std::int64_t count = from.blocks + (left + 1) / 2;
      const std::optional<Plan> plan =
          attempt({Rule::kFull, count}, kCountShare);
      if (!plan) return;
      const Count here = count_of(count, *plan);
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
    const double begun = seconds_spent();
    const std::uint64_t work_before = work_;
    // The graph is made before the time counts, so that the search does not take
    // it for a slow set-up, and searches no smaller space first.
    auto own = guarded([&] { return running(with_rule(rule)); });
    if (!own) return std::nullopt;
    limit(own->options, share);
    if (best_->plan.has_plan() && !own->options.start_from) {
      own->options.start_from = std::make_shared<const Plan>(best_->plan);
    }
    // A bound for free layers is one of all rules.
    if (free_bound_ == 0) leave_out(kFreeBound);
    std::vector<std::string>& off = own->options.switched_off;
    off.insert(off.end(), left_out_.begin(), left_out_.end());
    Result<PlannedGraph> other = plan_graph(*own);
    last_seconds_ = seconds_spent() - begun;
    if (!other) return std::nullopt;
    for (const std::string& name : left_out_) {
      std::erase(other->plan.options, Option{"without", name});
      std::erase_if(other->plan.procedures,
                    [&](const Procedure& one) { return one.name == name; });
    }
    if (!request_.options.start_from) {
      std::erase_if(other->plan.notes, [](const PlanNote& note) {
        return std::holds_alternative<EarlierPlanNote>(note);
      });
    }
    note(other->plan);
    last_work_ = work_ - work_before;
    fastest_ = std::min(fastest_, last_seconds_);
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

  std::uint64_t work_left() const {
    constexpr auto kUnlimited = std::numeric_limits<std::uint64_t>::max();
    const std::uint64_t limit =
        request_.options.work_limit.value_or(kUnlimited);
    return limit - std::min(limit, work_);
  }

  // Returns whether the rest is worth another search. A search keeps to its part of
  // the rest except for its report, so that the fastest one so far fits the time.
  bool has_rest_for_another() const {
    const PlanOptions& all = request_.options;
    return seconds_left() >
               std::max(fastest_, kLeastShare * all.time_limit_seconds) &&
           static_cast<double>(work_left()) >=
               kLeastShare * static_cast<double>(all.work_limit.value_or(0));
  }

  struct Cap {
    double seconds = std::numeric_limits<double>::infinity();
    std::uint64_t work = std::numeric_limits<std::uint64_t>::max();
  };
  // Returns a multiple of the time and work of the last search, or this share of
  // the limits of the request if that is more.
  Cap of_last(double factor, double share) const {
    Cap cap;
    cap.seconds = std::max(factor * last_seconds_,
                           share * request_.options.time_limit_seconds);
    if (const auto& limit = request_.options.work_limit) {
      cap.work = static_cast<std::uint64_t>(
          std::max(factor * static_cast<double>(last_work_),
                   share * static_cast<double>(*limit)));
    }
    return cap;
  }

  void limit(PlanOptions& options, double share) const {
    options.start = Clock::now();
    options.time_limit_seconds =
        std::min(share * std::max(0.0, seconds_left()), cap_.seconds);
    if (options.work_limit) {
      options.work_limit = std::min(
          static_cast<std::uint64_t>(share * static_cast<double>(work_left())),
          cap_.work);
    }
  }

  static bool has_improved(const Plan& plan, std::string_view name) {
    return std::any_of(plan.procedures.begin(), plan.procedures.end(),
                       [&](const Procedure& procedure) {
                         return procedure.name == name &&
                                procedure.improvements > 0;
                       });
  }

  void leave_out(const std::string& name) {
    const auto is_in = [&](const std::vector<std::string>& names) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    if (!is_in(request_.options.switched_off) && !is_in(left_out_)) {
      left_out_.push_back(name);
    }
  }

  void note(const Plan& plan) {
    work_ += plan.search.work;
    if (limits_.empty()) limits_ = limits_of(plan);
    // A refuted rule has no bound. A search without a plan may still have one.
    if (plan.status != PlanStatus::kInfeasible &&
        plan.lower_bound_nanoseconds < bound_) {
      bound_ = plan.lower_bound_nanoseconds;
      ran_out_ = plan.ran_out;
    }
    // Without a plan of equal layers, there may still be one of free layers.
    free_bound_ =
        std::min(free_bound_, plan.free_lower_bound_nanoseconds.value_or(0));
    const std::int64_t lacking = bytes_short(plan);
    RecomputeRulesNote::Tried tried{.rule = rule_of(plan)};
    if (plan.has_plan()) {
      tried.nanoseconds = *plan.objective_nanoseconds;
    } else if (lacking < std::numeric_limits<std::int64_t>::max()) {
      tried.needed_bytes = *request_.options.memory_limit + lacking;
    }
    rules_.tried.push_back(std::move(tried));
  }

  using Option = std::pair<std::string, std::string>;
  using Options = std::vector<Option>;

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
    plan.free_lower_bound_nanoseconds.reset();
    if (free_bound_ > 0) plan.free_lower_bound_nanoseconds = free_bound_;
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
  std::uint64_t work_ = 0;             // of the searches so far
  Cap cap_;                            // of the next searches
  std::vector<std::string> left_out_;  // procedures that they do without
  // The last search, with its set-up and report.
  double last_seconds_ = 0;
  double fastest_ = 0;  // unit: seconds; of the fastest search
  std::uint64_t last_work_ = 0;
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
  return RecomputeChoice(request).run();
}

}  // namespace shardprop
