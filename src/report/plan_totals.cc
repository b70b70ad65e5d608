#include "report/plan_totals.h"

#include "base/index.h"
#include "base/quantities.h"
#include "report/once_a_step.h"
#include "report/wrapped_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

class Totals {
 public:
  explicit Totals(const Plan& plan) : plan_(plan) {}

  std::string text() const {
    const PlanSummary& sum = plan_.summary;
    return row("compute", time_text(sum.compute_nanoseconds), kinds_text()) +
           kernels_row() +
           row("communication", time_text(sum.communication_nanoseconds),
               "of which " + time_text(sum.overlapped_nanoseconds) +
                   " overlaps with compute") +
           row("total", time_text(*plan_.objective_nanoseconds),
               time_text(sum.compute_nanoseconds +
                         sum.communication_nanoseconds) +
                   " without overlap" + rate_text()) +
           second_runs_row() +
           row("memory", bytes_text(plan_.memory.peak_bytes), memory_text()) +
           row("sent", bytes_text(sum.bytes_per_rank),
               collectives_text(sum) + once_text()) +
           micro_batches_text();
  }

 private:
  static std::string row(std::string_view name, const std::string& amount,
                         const std::string& rest) {
    // Lines are not broken at leading blanks.
    const std::string head = fmt::format("  {:<13}  {:>12}   ", name, amount);
    std::string text =
        wrapped(rest, {.indent = head.size(), .behind = head.size()});
    return text.replace(0, head.size(), head);
  }

  // "matmul 14.2 ms, attention 3.1 ms, optimizer 2.5 ms"
  std::string kinds_text() const {
    std::string text;
    for (const ComputeShare& share : compute_by_kind(plan_)) {
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", share.name,
                          time_text(share.nanoseconds));
    }
    return text;
  }

  // The time of operators that share kernels, and its difference from a count
  // of the bytes of each kernel.
  std::string kernels_row() const {
    const PlannedKernels& kernels = plan_.kernels;
    if (kernels.groups == 0) return "";
    const std::int64_t more = kernels.nanoseconds - kernels.priced_nanoseconds;
    return row("fused", time_text(kernels.priced_nanoseconds),
               fmt::format("{} fused kernels; a count of each one's bytes "
                           "differs by {}{}",
                           count_text(kernels.kernels), more < 0 ? "-" : "+",
                           time_text(std::abs(more))));
  }

  // The time of second runs by a rule. Those of a compiled program cost next to
  // nothing.
  std::string second_runs_row() const {
    const std::string rule = option_of(plan_, "recompute");
    if (rule.empty() || rule == "none") return "";
    const auto runs = std::count_if(
        plan_.nodes.begin(), plan_.nodes.end(),
        [](const PlannedNode& node) { return !node.second_run_of.empty(); });
    const std::int64_t time = plan_.summary.recompute_nanoseconds;
    return row("recompute", time_text(time),
               fmt::format("of the total ({:.1f} %): {} operators run again in "
                           "the backward phase, by the rule {}{}",
                           100 * static_cast<double>(time) /
                               static_cast<double>(std::max<std::int64_t>(
                                   *plan_.objective_nanoseconds, 1)),
                           count_text(runs), rule,
                           option_of(plan_, "execution") == "compiled"
                               ? " and as the compiler chooses"
                               : ""));
  }

  // "; 125,300 tokens/s, MFU 41.2 %"
  std::string rate_text() const {
    const auto seconds =
        static_cast<double>(*plan_.objective_nanoseconds) / 1e9;
    const PlanWork& work = plan_.work;
    if (seconds <= 0) return "";
    std::string text;
    const std::int64_t counted = work.tokens > 0 ? work.tokens : work.samples;
    if (counted > 0) {
      text += fmt::format("; {} {}/s",
                          count_text(static_cast<std::int64_t>(
                              static_cast<double>(counted) / seconds)),
                          work.tokens > 0 ? "tokens" : "samples");
    }
    if (work.model_flops > 0 && work.peak_flops > 0) {
      text += fmt::format("; MFU {:.1f} %",
                          100 * static_cast<double>(work.model_flops) /
                              seconds / static_cast<double>(work.peak_flops));
    }
    return text;
  }

  std::string memory_text() const {
    const PlanMemory& memory = plan_.memory;
    std::string parts;
    for (const auto& [name, bytes] :
         {std::pair{"parameters", memory.parameter_bytes},
          std::pair{"gradients", memory.gradient_bytes},
          std::pair{"optimizer", memory.optimizer_bytes},
          std::pair{"activations", memory.activation_bytes},
          std::pair{"redistributed copies", memory.gathered_bytes},
          std::pair{"buffers", memory.buffer_bytes}}) {
      if (bytes == 0) continue;
      parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", name,
                           bytes_text(bytes));
    }
    return fmt::format("{}{}; at the peak ({}): {}",
                       memory.limit_bytes
                           ? "of " + bytes_text(*memory.limit_bytes)
                           : std::string("no limit"),
                       device_text(), node_name(memory.peak_at), parts);
  }

  // " that a process can allocate on a device of 80.0 GiB", if the limit is
  // that.
  std::string device_text() const {
    const Topology& topology = plan_.topology;
    if (plan_.memory.limit_bytes != topology.allocatable_bytes() ||
        topology.allocatable_bytes() == topology.memory_bytes()) {
      return "";
    }
    return " that a process can allocate on a device of " +
           bytes_text(topology.memory_bytes());
  }

  std::string node_name(std::int64_t index) const {
    const auto at = static_cast<std::size_t>(index);
    return at < plan_.nodes.size() ? "`" + plan_.nodes[at].name + "`"
                                   : std::string("the end");
  }

  static std::string collectives_text(const PlanSummary& sum) {
    std::string text;
    for (const CollectiveKind kind : kAllCollectiveKinds) {
      const std::int64_t count = sum.collectives[index(kind)];
      // A slice sends nothing.
      if (count == 0 || kind == CollectiveKind::kSlice) continue;
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ",
                          count_text(count), to_string(kind));
    }
    return text.empty() ? "nothing" : text;
  }

  // Returns "; of this 257.7 MiB once in 8 micro-batches".
  std::string once_text() const {
    std::int64_t bytes = 0;
    for (const PlannedCopy& copy : plan_.copies) {
      if (!copy.once_a_step) continue;
      for (const RedistributeStep& step : copy.steps) {
        bytes += step.bytes_per_rank;
      }
    }
    if (bytes == 0) return "";
    return fmt::format("; of this {} {}", bytes_text(bytes), once_in(plan_));
  }

  std::string micro_batches_text() const {
    const std::string text = micro_batches(plan_);
    return text.empty() ? text : wrapped(text);
  }

  const Plan& plan_;
};

}  // namespace

std::vector<ComputeShare> compute_by_kind(const Plan& plan) {
  std::array<std::int64_t, std::size(kAllOpKinds)> times{};
  for (const PlannedNode& node : plan.nodes) {
    times[index(node.kind)] += node.compute_nanoseconds;
  }
  std::int64_t cuts = 0;
  for (const PlannedCopy& copy : plan.copies) cuts += copy.cut_nanoseconds;
  std::vector<ComputeShare> out;
  const auto add = [&](std::string_view name, std::int64_t nanoseconds) {
    if (nanoseconds != 0) out.push_back({name, nanoseconds});
  };
  for (const OpKind kind : kAllOpKinds) {
    add(to_string(kind), times[index(kind)]);
  }
  add("optimizer", plan.optimizer_nanoseconds);
  add("kernel boundaries", cuts);
  return out;
}

std::string plan_totals(const Plan& plan) { return Totals(plan).text(); }

}  // namespace shardprop
