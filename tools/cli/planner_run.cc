#include "cli/planner_run.h"

#include "base/quantities.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace shardprop::cli {
namespace {

// Prints the progress as one line that is overwritten each time.
void print_progress(const PlanProgress& now, Console& console) {
  constexpr std::string_view kPhases[] = {"set up", "search", "report"};
  const auto us = [](const std::optional<std::int64_t>& nanoseconds) {
    return nanoseconds ? fmt::format("{:.1f} us", microseconds(*nanoseconds))
                       : std::string("-");
  };
  console.messages << fmt::format("\r{:8.1f} s  {}  best {}  bound {}    ",
                                  now.seconds,
                                  kPhases[static_cast<std::size_t>(now.phase)],
                                  us(now.objective), us(now.lower_bound))
                   << std::flush;
}

}  // namespace

PlannerRun::PlannerRun(PlanRequest& request, Console& console)
    : console_(console), interruption_(std::make_shared<const Interruption>()) {
  console.until_written = interruption_;
  request.options.stop = interruption_->token();
  if (!console.progress) return;
  request.options.progress = [&console](const PlanProgress& now) {
    print_progress(now, console);
  };
}

void PlannerRun::end() {
  if (console_.progress) console_.messages << "\r\x1b[K";  // erases the line
}

}  // namespace shardprop::cli
