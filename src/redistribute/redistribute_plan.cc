#include <shardprop/redistribute/redistribute_plan.h>

#include "base/quantities.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardprop {
namespace {

std::string dims_text(const RedistributeStep& step, const DeviceMesh& mesh) {
  std::string out;
  for (const std::int32_t dim : step.mesh_dims) {
    if (!out.empty()) out += ',';
    out += mesh.name(dim);
  }
  return out;
}

}  // namespace

std::string to_string(const RedistributePlan& plan, const DeviceMesh& mesh) {
  std::string out;
  if (plan.steps.empty()) return "  nothing to do\n";
  std::size_t width = 0;
  for (const RedistributeStep& step : plan.steps) {
    width = std::max(width, dims_text(step, mesh).size());
  }
  out += fmt::format("  {}\n", to_string(plan.steps.front().src));
  for (const RedistributeStep& step : plan.steps) {
    out += fmt::format("    | {:<14}  {:<{}}  {:>10}  {:>10.2f} us\n",
                       to_string(step.kind), dims_text(step, mesh), width,
                       bytes_text(step.bytes_per_rank),
                       microseconds(step.nanoseconds));
    out += fmt::format("  {}\n", to_string(step.dst));
  }
  out += fmt::format(
      "  {} step{}, {} sent by the busiest rank, {:.2f} us, peak {}\n",
      plan.steps.size(), plan.steps.size() == 1 ? "" : "s",
      bytes_text(plan.bytes_per_rank), microseconds(plan.nanoseconds),
      bytes_text(plan.peak_bytes));
  return out;
}

}  // namespace shardprop
