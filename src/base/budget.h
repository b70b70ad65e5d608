// Budget bounds a search by a time limit, by a limit of work, and by a stop
// token. The unit of work is the user's, such as table entries.
//
//   Budget all({.seconds = 60, .work = 1000}, source.get_token());
//   Budget first = all.share(0.25);  // 15 s and 250 work from now
//   first.charge(search(first));
//   all.charge(first.work_spent());
//   all.stopped();                   // why the search must end; null: go on
//
// A budget is a value. A child is made from the rest of its parent and does not
// charge it. The maker of the child charges the parent with the child's work.
// Several children may be made from one rest.
//
// Time and stop requests may end a search at any moment, so running work asks
// is_cut_off(). Work is counted between steps, so a search asks stopped()
// before its next step. A budget that has stopped once stays stopped.
#pragma once

#include <shardprop/base/stopped_by.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <stop_token>
#include <utility>

namespace shardprop {

struct BudgetLimits {
  double seconds = std::numeric_limits<double>::infinity();
  std::optional<std::uint64_t> work;  // null: unlimited
};

class Budget {
 public:
  using Clock = std::chrono::steady_clock;
  using ReadClock = Clock::time_point (*)();

  // The budget is unlimited.
  Budget() : Budget(BudgetLimits{}) {}
  // Seconds count from `start`, which may be before the call. Tests replace the
  // clock.
  explicit Budget(const BudgetLimits& limits, std::stop_token stop = {},
                  std::optional<Clock::time_point> start = std::nullopt,
                  ReadClock clock = &Clock::now);

  // ---- what is left

  // Returns the cause if the search must end at once.
  std::optional<StoppedBy> cut_off() const {
    if (stop_.stop_requested()) return StoppedBy::kRequest;
    if (is_out_of_time()) return StoppedBy::kTime;
    return std::nullopt;
  }
  bool is_cut_off() const { return cut_off().has_value(); }
  // Returns the cause if the search must not start another step. A request
  // comes before work and work before time, so that the cause does not depend
  // on the machine if the work is spent.
  std::optional<StoppedBy> stopped() const;
  bool is_stopped() const { return stopped().has_value(); }
  bool is_requested_to_stop() const { return stop_.stop_requested(); }
  bool is_out_of_work() const { return work_limit_ && work_ >= *work_limit_; }

  // Negative after the end.
  double seconds_left() const { return seconds_ - seconds_spent(); }
  // Null: unlimited.
  std::optional<std::uint64_t> work_left() const;
  // The end of the time; null if clocks cannot represent it.
  std::optional<Clock::time_point> deadline() const;

  // ---- what is spent

  double seconds_spent() const {
    return std::chrono::duration<double>(clock_() - start_).count();
  }
  std::uint64_t work_spent() const { return work_; }
  void charge(std::uint64_t work) { work_ += work; }
  // Returns the spent fraction of the time limit; 1 if the limit is 0.
  double share_of_time_spent() const;
  // Returns the spent fraction of the work limit if there is one, and otherwise
  // of the time limit.
  double share_spent() const;

  std::optional<std::uint64_t> work_limit() const { return work_limit_; }
  const std::stop_token& stop_token() const { return stop_; }

  // ---- children, which begin now unless they say otherwise
  // Fractions are above 0 and at most 1.

  // Returns a budget of the rest.
  Budget rest() const { return share(1); }
  // Returns a budget of these fractions of the rest.
  Budget share(double of_time, double of_work) const;
  Budget share(double fraction) const { return share(fraction, fraction); }
  // Returns a budget of one of `parts` equal parts of the rest.
  Budget one_of(std::size_t parts) const;
  // Returns this budget, with an earlier end: when these fractions of its own
  // limits are spent. It has the same beginning and the same work spent.
  Budget until(double of_time, double of_work) const;
  Budget until(double fraction) const { return until(fraction, fraction); }
  // Returns this budget, with an earlier end: when this fraction of the rest is
  // spent. It has the same beginning and the same work spent.
  Budget narrowed(double fraction) const;
  // Returns a budget of the rest that also has these limits.
  Budget within(const BudgetLimits& limits) const;
  // Returns this budget, with a work limit of at least `work`.
  Budget at_least(std::uint64_t work) const;
  // Returns a budget with these limits instead. It has the same stop token.
  Budget renewed(const BudgetLimits& limits) const {
    return Budget(limits, stop_, std::nullopt, clock_);
  }

 private:
  // Unit: seconds. 95 years are unlimited time: clocks in nanoseconds cannot
  // represent the sum of much longer times.
  static constexpr double kUnlimitedSeconds = 3e9;

  bool is_out_of_time() const {
    return seconds_ < kUnlimitedSeconds && seconds_left() <= 0;
  }

  ReadClock clock_;
  Clock::time_point start_;
  double seconds_;
  std::optional<std::uint64_t> work_limit_;
  std::uint64_t work_ = 0;
  std::stop_token stop_;
};

}  // namespace shardprop
