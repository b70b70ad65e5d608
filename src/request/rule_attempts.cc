#include "request/rule_attempts.h"

#include "base/guard.h"
#include "base/try.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>
#include <variant>

namespace shardprop {
namespace {

constexpr const char* kFreeBound = "free-layers-bound";

std::string rule_of(const Plan& plan) {
  for (const auto& [name, text] : plan.options) {
    if (name == "recompute") return text;
  }
  return {};
}

// Returns the bytes by which a plan of the rule exceeds the limit at least.
std::int64_t bytes_short(const Plan& plan) {
  // If several slots cannot hold together, each lacks less by itself.
  if (plan.status != PlanStatus::kInfeasible ||
      plan.conflict.memory.size() != 1) {
    return std::numeric_limits<std::int64_t>::max();
  }
  return plan.conflict.memory.front().bytes_short;
}

// Returns whether the plan lacks memory, or the limit excludes a cheaper one.
bool may_another_rule_help(const Plan& plan) {
  if (plan.has_plan()) return plan.search.limit_binds;
  return plan.status != PlanStatus::kInfeasible ||
         !plan.conflict.memory.empty();
}

bool is_better(const Plan& a, const Plan& b) {
  if (a.has_plan() != b.has_plan()) return a.has_plan();
  if (a.has_plan()) return *a.objective_nanoseconds < *b.objective_nanoseconds;
  // A search that found neither a plan nor a proof leaves the answer open.
  const bool is_open = a.status == PlanStatus::kUnknown;
  if (is_open != (b.status == PlanStatus::kUnknown)) return is_open;
  return bytes_short(a) < bytes_short(b);
}

RuleOutcome outcome_of(const Plan& plan, std::int64_t memory_limit) {
  RuleOutcome outcome;
  outcome.has_plan = plan.has_plan();
  if (plan.has_plan()) {
    outcome.nanoseconds = static_cast<double>(*plan.objective_nanoseconds);
    outcome.second_run_nanoseconds =
        static_cast<double>(plan.summary.recompute_nanoseconds);
    outcome.limit_binds = plan.search.limit_binds;
  } else if (const std::int64_t lacking = bytes_short(plan);
             lacking < std::numeric_limits<std::int64_t>::max()) {
    outcome.needed_bytes = memory_limit + lacking;
  }
  for (const Procedure& procedure : plan.procedures) {
    if (procedure.improvements > 0) {
      outcome.improvers.push_back(procedure.name);
    }
  }
  return outcome;
}

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

bool RuleOutcome::has_improved(std::string_view procedure) const {
  return contains(improvers, procedure);
}

RuleAttempts::RuleAttempts(const PlanRequest& request)
    : request_(request), begun_(request.options.start.value_or(Clock::now())) {}

Result<bool> RuleAttempts::begin(double share) {
  const double begun = seconds_spent();
  SP_ASSIGN(best_, guarded([&] {
              PlanRequest own = with_rule({});
              own.options.share_if_limit_binds = share;
              return plan_graph(own);
            }));
  fastest_seconds_ = seconds_spent() - begun;
  if (!may_another_rule_help(best_->plan)) return false;
  // Without memory for the notes, there is none for another search.
  return guarded([&]() -> Result<void> {
           first_ = outcome_of(best_->plan, *request_.options.memory_limit);
           note(best_->plan, first_);
           return {};
         })
      .has_value();
}

std::optional<RuleOutcome> RuleAttempts::attempt(const Recompute& rule,
                                                 double share) {
  const std::stop_token& stop = request_.options.stop;
  if (seconds_left() <= 0) {
    missed_by_ = RanOut::kTime;
  } else if (!stop.stop_requested()) {
    auto outcome = guarded([&] { return try_rule(rule, share); });
    if (outcome) return *std::move(outcome);
    const ErrorCode code = outcome.error().code;
    if (code == ErrorCode::kStopped) {
      missed_by_ = RanOut::kTime;
    } else if (code == ErrorCode::kOutOfMemory) {
      missed_by_ = RanOut::kMemory;
    }
  }
  if (stop.stop_requested()) missed_by_ = RanOut::kInterrupted;
  return std::nullopt;
}

Result<RuleOutcome> RuleAttempts::try_rule(const Recompute& rule,
                                           double share) {
  const double begun = seconds_spent();
  // The graph is made before the time counts, so that the search does not take it
  // for a slow set-up, and searches no smaller space first.
  SP_ASSIGN(PlanRequest own, running(with_rule(rule)));
  if (const std::uint64_t hash = own.graph->hash();
      std::find(tried_.begin(), tried_.end(), hash) != tried_.end()) {
    return fail(ErrorCode::kInvalidArgument,
                "another rule runs the same program");
  } else {
    tried_.push_back(hash);
  }
  limit(own.options, share);
  if (best_->plan.has_plan() && !own.options.start_from) {
    own.options.start_from = std::make_shared<const Plan>(best_->plan);
  }
  own.options.known_cost = best_->plan.objective_nanoseconds;
  std::vector<std::string>& off = own.options.switched_off;
  off.insert(off.end(), left_out_.begin(), left_out_.end());
  // A bound for free layers is one of all rules.
  const bool has_no_free_bound = free_bound_ == 0 && !contains(off, kFreeBound);
  if (has_no_free_bound) off.emplace_back(kFreeBound);
  SP_ASSIGN(PlannedGraph made, plan_graph(own));
  last_seconds_ = seconds_spent() - begun;
  const auto hide = [&](const std::string& name) {
    std::erase(made.plan.options,
               std::pair<std::string, std::string>{"without", name});
    std::erase_if(made.plan.procedures,
                  [&](const Procedure& one) { return one.name == name; });
  };
  for (const std::string& name : left_out_) hide(name);
  if (has_no_free_bound) hide(kFreeBound);
  if (!request_.options.start_from) {
    std::erase_if(made.plan.notes, [](const PlanNote& note) {
      return std::holds_alternative<EarlierPlanNote>(note);
    });
  }
  RuleOutcome outcome = outcome_of(made.plan, *request_.options.memory_limit);
  const std::uint64_t work_before = work_;
  note(made.plan, outcome);
  last_work_ = work_ - work_before;
  fastest_seconds_ = std::min(fastest_seconds_, last_seconds_);
  if (is_better(made.plan, best_->plan)) best_ = std::move(made);
  return outcome;
}

PlanRequest RuleAttempts::with_rule(const Recompute& rule) const {
  PlanRequest own = request_;
  own.options.recompute = rule;
  own.options.bounds_free_layers_if_infeasible = true;
  return own;
}

void RuleAttempts::limit(PlanOptions& options, double share) const {
  options.start = Clock::now();
  options.time_limit_seconds =
      std::min(share * std::max(0.0, seconds_left()), most_seconds_);
  if (options.work_limit) {
    // With the least work, each recipe still leads to a plan.
    const std::uint64_t least = *request_.options.work_limit > 0 ? 1 : 0;
    options.work_limit = std::clamp<std::uint64_t>(
        static_cast<std::uint64_t>(share * static_cast<double>(work_left())),
        least, std::max(most_work_, least));
  }
}

void RuleAttempts::cap_by_last(double factor, double share) {
  most_seconds_ = std::max(factor * last_seconds_,
                           share * request_.options.time_limit_seconds);
  if (const auto& limit = request_.options.work_limit) {
    most_work_ = static_cast<std::uint64_t>(
        std::max(factor * static_cast<double>(last_work_),
                 share * static_cast<double>(*limit)));
  }
}

void RuleAttempts::leave_out(const std::string& procedure) {
  if (!contains(request_.options.switched_off, procedure) &&
      !contains(left_out_, procedure)) {
    left_out_.push_back(procedure);
  }
}

std::optional<Recompute> RuleAttempts::rule_of_start() const {
  const std::shared_ptr<const Plan>& start = request_.options.start_from;
  if (!start) return std::nullopt;
  Result<Recompute> rule = Recompute::parse(rule_of(*start));
  if (!rule || *rule == Recompute()) return std::nullopt;
  return *std::move(rule);
}

// A search keeps to its part of the rest except for its report, so that the fastest
// one so far fits the time.
bool RuleAttempts::has_rest_for_another(double share) const {
  const PlanOptions& all = request_.options;
  return seconds_left() >
             std::max(fastest_seconds_, share * all.time_limit_seconds) &&
         work_left() > 0 &&
         static_cast<double>(work_left()) >=
             share * static_cast<double>(all.work_limit.value_or(0));
}

double RuleAttempts::best_nanoseconds() const {
  return static_cast<double>(*best_->plan.objective_nanoseconds);
}

void RuleAttempts::note(const Plan& plan, const RuleOutcome& outcome) {
  work_ += plan.search.work;
  if (limits_.empty()) {
    std::copy_if(plan.options.begin(), plan.options.end(),
                 std::back_inserter(limits_), [](const auto& option) {
                   return option.first == "time_limit" ||
                          option.first == "work_limit";
                 });
  }
  // A refuted rule has no bound. A search without a plan may still have one.
  if (plan.status != PlanStatus::kInfeasible &&
      plan.lower_bound_nanoseconds < bound_) {
    bound_ = plan.lower_bound_nanoseconds;
    ran_out_ = plan.ran_out;
  }
  // Without a plan of equal layers, there may still be one of free layers.
  free_bound_ =
      std::min(free_bound_, plan.free_lower_bound_nanoseconds.value_or(0));
  RecomputeRulesNote::Tried tried{.rule = rule_of(plan),
                                  .needed_bytes = outcome.needed_bytes};
  if (plan.has_plan()) tried.nanoseconds = *plan.objective_nanoseconds;
  rules_.tried.push_back(std::move(tried));
}

PlannedGraph RuleAttempts::answer() && {
  // A rule that was not tried may lead to a plan.
  Plan& plan = best_->plan;
  if (plan.status == PlanStatus::kInfeasible && missed_by_) {
    plan.status = PlanStatus::kUnknown;
    plan.ran_out = *missed_by_;
    plan.conflict = {};
  }
  if (rules_.tried.size() > 1) {
    const auto concluded = guarded([&]() -> Result<void> {
      conclude(best_->plan);
      return {};
    });
    static_cast<void>(concluded);
  }
  return *std::move(best_);
}

// Adds to the answer what holds for the plans of all rules.
void RuleAttempts::conclude(Plan& plan) const {
  plan.solve_seconds = seconds_spent();
  plan.free_lower_bound_nanoseconds.reset();
  if (free_bound_ > 0) plan.free_lower_bound_nanoseconds = free_bound_;
  if (plan.has_plan() && bound_ < plan.lower_bound_nanoseconds) {
    plan.lower_bound_nanoseconds = bound_;
    plan.status = PlanStatus::kFeasible;
    plan.ran_out = ran_out_;
  }
  // A rule that was not tried may lead to a cheaper plan.
  if (plan.status == PlanStatus::kOptimal) {
    plan.status = PlanStatus::kFeasible;
    plan.ran_out = RanOut::kAttempts;
  }
  // Only the rest can lack memory.
  for (auto& [name, text] : plan.options) {
    for (const auto& [limit, given] : limits_) {
      if (name == limit) text = given;
    }
  }
  plan.notes.emplace_back(rules_);
}

double RuleAttempts::seconds_spent() const {
  return std::chrono::duration<double>(Clock::now() - begun_).count();
}

double RuleAttempts::seconds_left() const {
  return request_.options.time_limit_seconds - seconds_spent();
}

std::uint64_t RuleAttempts::work_left() const {
  constexpr auto kUnlimited = std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t limit = request_.options.work_limit.value_or(kUnlimited);
  return limit - std::min(limit, work_);
}

}  // namespace shardprop
