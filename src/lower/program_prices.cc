#include <shardprop/lower/program_prices.h>

#include "base/saturating.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace shardprop {
namespace {

// Returns the fraction of a transfer that may overlap, as the plan was asked.
double overlap_of(const Plan& plan) {
  for (const auto& [name, value] : plan.options) {
    if (name == "overlap") return std::strtod(value.c_str(), nullptr);
  }
  return 0;
}

// Returns the number of micro-batches among which the plan divides its windows.
std::int64_t micro_batches_of(const Plan& plan) {
  for (const auto& [name, value] : plan.options) {
    if (name != "accumulate") continue;
    const std::int64_t count = std::strtoll(value.c_str(), nullptr, 10);
    return divided_micro_batches(std::max<std::int64_t>(count, 1));
  }
  return 1;
}

}  // namespace

ProgramPrices program_prices(const Plan& plan) {
  ProgramPrices out;
  for (const PlannedNode& node : plan.nodes) {
    out.nodes.push_back(node.compute_nanoseconds);
  }
  for (const PlannedUpdate& update : plan.updates) {
    out.nodes.push_back(update.compute_nanoseconds);
  }
  out.nodes.push_back(0);  // the end of the program
  const double overlap = overlap_of(plan);
  out.micro_batches = micro_batches_of(plan);
  out.overlappable.resize(plan.copies.size());
  for (std::size_t c = 0; c < plan.copies.size(); ++c) {
    const PlannedCopy& copy = plan.copies[c];
    out.copies.push_back(copy.cut_nanoseconds);
    out.once_a_step.push_back(copy.once_a_step);
    std::int64_t share =
        saturated(static_cast<double>(copy.nanoseconds()) * overlap);
    // Each micro-batch overlaps the same whole number of nanoseconds.
    if (!copy.once_a_step) share -= share % out.micro_batches;
    // The steps of a bucket belong to its first copy.
    std::int64_t& overlappable = out.overlappable.at(copy.bucket.value_or(c));
    overlappable = sat_add(overlappable, share);
  }
  return out;
}

}  // namespace shardprop
