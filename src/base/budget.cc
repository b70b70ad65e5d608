#include "base/budget.h"

#include <algorithm>

namespace shardprop {
namespace {

// Large amounts of work are not exact in doubles, so all of it stays as it is.
std::uint64_t fraction_of_work(std::uint64_t work, double fraction) {
  if (fraction >= 1) return work;
  return static_cast<std::uint64_t>(fraction * static_cast<double>(work));
}

}  // namespace

Budget::Budget(const BudgetLimits& limits, std::stop_token stop,
               std::optional<Clock::time_point> start, ReadClock clock)
    : clock_(clock),
      start_(start ? *start : clock()),
      seconds_(limits.seconds),
      work_limit_(limits.work),
      stop_(std::move(stop)) {}

std::optional<StoppedBy> Budget::stopped() const {
  if (stop_.stop_requested()) return StoppedBy::kRequest;
  if (is_out_of_work()) return StoppedBy::kWork;
  if (is_out_of_time()) return StoppedBy::kTime;
  return std::nullopt;
}

std::optional<std::uint64_t> Budget::work_left() const {
  if (!work_limit_) return std::nullopt;
  return *work_limit_ - std::min(*work_limit_, work_);
}

std::optional<Budget::Clock::time_point> Budget::deadline() const {
  if (seconds_ >= kUnlimitedSeconds) return std::nullopt;
  return start_ + std::chrono::duration_cast<Clock::duration>(
                      std::chrono::duration<double>(seconds_));
}

double Budget::share_of_time_spent() const {
  return seconds_ > 0 ? seconds_spent() / seconds_ : 1;
}

double Budget::share_spent() const {
  if (!work_limit_) return share_of_time_spent();
  if (*work_limit_ == 0) return 1;
  return static_cast<double>(work_) / static_cast<double>(*work_limit_);
}

Budget Budget::share(double of_time, double of_work) const {
  BudgetLimits limits{of_time * std::max(seconds_left(), 0.0), work_left()};
  if (limits.work) limits.work = fraction_of_work(*limits.work, of_work);
  return renewed(limits);
}

Budget Budget::one_of(std::size_t parts) const {
  const auto n = static_cast<double>(parts);
  BudgetLimits limits{std::max(seconds_left(), 0.0) / n, work_left()};
  if (limits.work) *limits.work /= parts;
  return renewed(limits);
}

Budget Budget::until(double of_time, double of_work) const {
  Budget out = *this;
  out.seconds_ *= of_time;
  if (work_limit_) out.work_limit_ = fraction_of_work(*work_limit_, of_work);
  return out;
}

Budget Budget::narrowed(double fraction) const {
  Budget out = *this;
  if (seconds_ < kUnlimitedSeconds) {
    out.seconds_ -= (1 - fraction) * std::max(seconds_left(), 0.0);
  }
  if (work_limit_) {
    out.work_limit_ = work_ + fraction_of_work(*work_left(), fraction);
  }
  return out;
}

Budget Budget::at_least(std::uint64_t work) const {
  Budget out = *this;
  if (work_limit_) out.work_limit_ = std::max(*work_limit_, work);
  return out;
}

Budget Budget::within(const BudgetLimits& limits) const {
  Budget out = rest();
  out.seconds_ = std::min(out.seconds_, limits.seconds);
  if (limits.work) {
    out.work_limit_ =
        std::min(out.work_limit_.value_or(*limits.work), *limits.work);
  }
  return out;
}

}  // namespace shardprop
