// `RuleAttempts` plans a request by several rules of recomputation in turn, within
// the limits of the request. It holds the best answer so far.
//
//   RuleAttempts attempts(request);
//   SP_ASSIGN(const bool may_help, attempts.begin(0.3));     // the rule `none`
//   attempts.attempt({Recompute::Rule::kFull, 0}, 0.5);      // half of the rest
//   return std::move(attempts).answer();
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/graph/recompute.h>
#include <shardprop/plan/plan_note.h>
#include <shardprop/request/plan_request.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardprop {

// `RuleOutcome` has the facts of one answer that the choice of further rules needs.
struct RuleOutcome {
  // Cost of the plan; infinite without a plan.
  double nanoseconds = std::numeric_limits<double>::infinity();
  // The part of it that second runs take.
  double second_run_nanoseconds = 0;
  bool has_plan = false;
  bool limit_binds = true;  // the memory limit excludes a cheaper plan
  // The least bytes a rank, if no plan fits; 0 if that is not known.
  std::int64_t needed_bytes = 0;
  // The procedures that improved the plan.
  std::vector<std::string> improvers;

  bool has_improved(std::string_view procedure) const;
};

class RuleAttempts {
 public:
  // The request must outlive the object. Preconditions: those of
  // plan_by_cheapest_rule().
  explicit RuleAttempts(const PlanRequest& request);

  // Plans by the rule `none`. If the limit binds, the search takes `share` of the
  // limits. Returns whether another rule may lead to a cheaper plan. Errors: those of
  // plan_graph().
  Result<bool> begin(double share);
  // Plans by one more rule in `share` of the rest of the limits. Returns null if the
  // graph has no such rule, if an earlier attempt runs the same program, if the
  // search is to stop, or if memory is refused.
  std::optional<RuleOutcome> attempt(const Recompute& rule, double share);
  // Further attempts take at most `factor` times the time and work of the last one,
  // or this share of the limits if that is more.
  void cap_by_last(double factor, double share);
  // Further attempts do without the procedure, and their plans do not show that.
  void leave_out(const std::string& procedure);

  // Returns the rule of RunControl::start_from. Null without such a plan, and if its
  // rule is `none`.
  std::optional<Recompute> rule_of_start() const;
  // Returns whether the rest of the limits is worth another search, which needs at
  // least `share` of them.
  bool has_rest_for_another(double share) const;
  double best_nanoseconds() const;  // precondition: the best answer has a plan
  const RuleOutcome& first() const { return first_; }

  // Returns the best answer. Without a plan it is unknown if a rule was not tried
  // because time or memory ended, or because of an interruption. If several rules
  // were tried, it has a RecomputeRulesNote, and its bounds hold for all of them. Its status is not optimal,
  // because another rule may lead to a cheaper plan. The note is left out if
  // memory is refused.
  PlannedGraph answer() &&;

 private:
  using Clock = std::chrono::steady_clock;
  using Options = std::vector<std::pair<std::string, std::string>>;

  Result<RuleOutcome> try_rule(const Recompute& rule, double share);
  PlanRequest with_rule(const Recompute& rule) const;
  void limit(PlanOptions& options, double share) const;
  void note(const Plan& plan, const RuleOutcome& outcome);
  void conclude(Plan& plan) const;

  double seconds_spent() const;
  double seconds_left() const;
  std::uint64_t work_left() const;

  const PlanRequest& request_;
  Clock::time_point begun_;
  std::optional<PlannedGraph> best_;
  RuleOutcome first_;
  std::vector<std::uint64_t> tried_;  // hashes of the programs of attempts
  std::uint64_t work_ = 0;            // of the searches so far
  // Limits of each further search.
  double most_seconds_ = std::numeric_limits<double>::infinity();
  std::uint64_t most_work_ = std::numeric_limits<std::uint64_t>::max();
  std::vector<std::string> left_out_;  // procedures that they do without
  // The last search, with its set-up and report.
  double last_seconds_ = 0;
  std::uint64_t last_work_ = 0;
  double fastest_seconds_ = 0;  // of all searches
  // The least bound of the rules, and why its search ended.
  std::int64_t bound_ = std::numeric_limits<std::int64_t>::max();
  RanOut ran_out_ = RanOut::kNothing;
  std::optional<RanOut> missed_by_;  // why a rule was not tried
  // The least bound of plans with free layers; 0 if that of a rule is not known.
  std::int64_t free_bound_ = std::numeric_limits<std::int64_t>::max();
  Options limits_;  // those of the request, as plans record them
  RecomputeRulesNote rules_;
};

}  // namespace shardprop
