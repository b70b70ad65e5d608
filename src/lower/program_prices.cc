#include <shardprop/lower/program_prices.h>

#include "base/saturating.h"

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
  out.overlappable.resize(plan.copies.size());
  for (std::size_t c = 0; c < plan.copies.size(); ++c) {
    const PlannedCopy& copy = plan.copies[c];
    out.copies.push_back(copy.cut_nanoseconds);
    // The steps of a bucket belong to its first copy.
    std::int64_t& overlappable = out.overlappable.at(copy.bucket.value_or(c));
    overlappable =
        sat_add(overlappable,
                saturated(static_cast<double>(copy.nanoseconds()) * overlap));
  }
  return out;
}

}  // namespace shardprop
