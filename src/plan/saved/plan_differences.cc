#include "plan/saved/plan_differences.h"

#include "base/quantities.h"
#include "plan/tuning.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace shardprop {
namespace {

class Differences {
 public:
  std::vector<std::string> take() && { return std::move(found_); }

  void figure(const std::string& where, std::int64_t said, std::int64_t is) {
    if (said != is)
      add(fmt::format("{}: {} in the file, is {}", where, said, is));
  }
  void time(const std::string& where, std::int64_t said, std::int64_t is) {
    if (said == is) return;
    add(fmt::format("{}: {} in the file, is {}", where,
                    static_cast<double>(said) / 1000,
                    static_cast<double>(is) / 1000));
  }
  void steps(const std::string& where, const std::vector<CollectiveStep>& said,
             const std::vector<CollectiveStep>& is) {
    if (said.size() != is.size()) {
      return add(fmt::format("{}: {} in the file, {} by the plan", where,
                             counted(said.size(), "step"), is.size()));
    }
    for (std::size_t s = 0; s < is.size(); ++s) {
      step(fmt::format("{}[{}]", where, s), said[s], is[s]);
    }
  }
  // The times may differ by `tolerance` nanoseconds.
  void step(const std::string& where, const CollectiveStep& said,
            const CollectiveStep& is, std::int64_t tolerance = 0) {
    if (said.nanoseconds < is.nanoseconds - tolerance ||
        said.nanoseconds - tolerance > is.nanoseconds) {
      time(where + ".us", said.nanoseconds, is.nanoseconds);
    }
    figure(where + ".bytes_per_rank", said.bytes_per_rank, is.bytes_per_rank);
    if (said.kind != is.kind || said.mesh_dims != is.mesh_dims ||
        said.reduce_op != is.reduce_op || said.dtype != is.dtype ||
        said.message_bytes != is.message_bytes) {
      add(where + ": another collective in the file");
    }
  }
  void copy(const std::string& where, const PlannedCopy& said,
            const PlannedCopy& is) {
    time(where + ".us", said.nanoseconds(), is.nanoseconds());
    time(where + ".hidden_us", said.overlapped_nanoseconds,
         is.overlapped_nanoseconds);
    // Plans of older versions do not state flights.
    if (said.in_flight && said.in_flight != is.in_flight) {
      add(where + ": issued or waited for at another time in the file");
    }
    if (said.bucket != is.bucket) {
      add(where + ": another bucket in the file");
    }
    if (said.from != is.from || said.src != is.src || said.dst != is.dst ||
        said.of != is.of || said.undone != is.undone ||
        said.views != is.views || said.steps.size() != is.steps.size()) {
      return add(where + ": another copy in the file");
    }
    for (std::size_t s = 0; s < is.steps.size(); ++s) {
      const std::string at = fmt::format("{}.steps[{}]", where, s);
      step(at, said.steps[s], is.steps[s]);
      if (said.steps[s].src != is.steps[s].src ||
          said.steps[s].dst != is.steps[s].dst) {
        add(at + ": another step in the file");
      }
    }
  }
  void add(std::string text) {
    if (found_.size() < tuning::kMostListedDifferences)
      found_.push_back(std::move(text));
  }

 private:
  std::vector<std::string> found_;
};

void compare_peak(const PlanMemory& said, const PlanMemory& is,
                  Differences& out) {
  out.figure("$.memory.peak_bytes_per_rank", said.peak_bytes, is.peak_bytes);
  out.figure("$.memory.gradient_bytes", said.gradient_bytes, is.gradient_bytes);
  out.figure("$.memory.activation_bytes", said.activation_bytes,
             is.activation_bytes);
  out.figure("$.memory.gathered_bytes", said.gathered_bytes, is.gathered_bytes);
  out.figure("$.memory.buffer_bytes", said.buffer_bytes, is.buffer_bytes);
}

void compare_memory(const PlanMemory& said, const PlanMemory& is,
                    Differences& out) {
  out.figure("$.memory.parameter_bytes", said.parameter_bytes,
             is.parameter_bytes);
  out.figure("$.memory.optimizer_bytes", said.optimizer_bytes,
             is.optimizer_bytes);
  // The limit is an option, and the memory section of the file repeats it.
  const auto limit = [](const PlanMemory& memory) {
    return memory.limit_bytes ? std::to_string(*memory.limit_bytes) : "none";
  };
  if (said.limit_bytes != is.limit_bytes) {
    out.add(fmt::format("$.memory.limit_bytes: {} in the file, is {}",
                        limit(said), limit(is)));
  }
  if (is.limit_bytes && is.peak_bytes > *is.limit_bytes) {
    out.add(fmt::format(
        "$.memory.peak_bytes_per_rank: the plan takes {}, and the limit is {}",
        is.peak_bytes, *is.limit_bytes));
  }
}

void compare_result(const Plan& saved, const Plan& plan, Differences& out) {
  out.time("$.objective_us", saved.objective_nanoseconds.value_or(0),
           plan.objective_nanoseconds.value_or(0));
  if (saved.lower_bound_nanoseconds > plan.objective_nanoseconds.value_or(0)) {
    out.add("$.lower_bound_us: more than the plan costs");
  }
  if (saved.free_lower_bound_nanoseconds.value_or(0) >
      plan.objective_nanoseconds.value_or(0)) {
    out.add("$.free_lower_bound_us: more than the plan costs");
  }
  if (saved.status != plan.status) {
    out.add(fmt::format("$.status: {} in the file, is {}",
                        to_string(saved.status), to_string(plan.status)));
  }
  compare_peak(saved.memory, plan.memory, out);
}

// Compares the steps of copies that both plans have.
void compare_steps(const Plan& saved, const Plan& plan, Differences& out) {
  const std::int64_t tolerance = has_undivided_windows(saved, plan) ? 1 : 0;
  const auto of_saved = saved_copies(saved, plan);
  for (std::size_t c = 0; c < plan.copies.size(); ++c) {
    if (!of_saved[c]) continue;
    const auto& said = saved.copies[*of_saved[c]].steps;
    const auto& is = plan.copies[c].steps;
    for (std::size_t s = 0; s < std::min(said.size(), is.size()); ++s) {
      out.step(fmt::format("$.copies[{}].steps[{}]", *of_saved[c], s), said[s],
               is[s], tolerance);
    }
  }
}

bool has_bucket(const Plan& plan) {
  return std::any_of(
      plan.copies.begin(), plan.copies.end(),
      [](const PlannedCopy& copy) { return copy.bucket.has_value(); });
}

}  // namespace

std::vector<std::optional<std::size_t>> saved_copies(const Plan& saved,
                                                     const Plan& plan) {
  const auto key = [](const PlannedCopy& copy) {
    return std::tuple(copy.from, copy.src, copy.dst);
  };
  std::map<std::tuple<std::string, Layout, Layout>, std::deque<std::size_t>>
      left;
  for (std::size_t c = 0; c < saved.copies.size(); ++c) {
    left[key(saved.copies[c])].push_back(c);
  }
  std::vector<std::optional<std::size_t>> out(plan.copies.size());
  for (std::size_t c = 0; c < plan.copies.size(); ++c) {
    const auto found = left.find(key(plan.copies[c]));
    if (found == left.end() || found->second.empty()) continue;
    out[c] = found->second.front();
    found->second.pop_front();
  }
  return out;
}

bool is_of_other_schedule(const Plan& saved, const Plan& plan) {
  return (saved.windows.empty() && !plan.windows.empty()) ||
         (!has_bucket(saved) && has_bucket(plan));
}

bool has_undivided_windows(const Plan& saved, const Plan& plan) {
  const auto is_undivided = [](const PlannedWindow& window) {
    return window.micro_batches == MicroBatches::kAll;
  };
  return !saved.windows.empty() && !plan.windows.empty() &&
         std::all_of(saved.windows.begin(), saved.windows.end(),
                     is_undivided) &&
         std::none_of(plan.windows.begin(), plan.windows.end(), is_undivided);
}

std::vector<std::string> differences(const Plan& saved, const Plan& plan) {
  const bool other_schedule =
      is_of_other_schedule(saved, plan) || has_undivided_windows(saved, plan);
  Differences out;
  if (!other_schedule) compare_result(saved, plan, out);
  compare_memory(saved.memory, plan.memory, out);
  for (std::size_t n = 0; n < plan.nodes.size(); ++n) {
    const std::string at = fmt::format("$.nodes[{}]", n);
    out.time(at + ".compute_us", saved.nodes[n].compute_nanoseconds,
             plan.nodes[n].compute_nanoseconds);
    out.steps(at + ".inside", saved.nodes[n].inside, plan.nodes[n].inside);
  }
  for (std::size_t u = 0; u < plan.updates.size(); ++u) {
    out.time(fmt::format("$.nodes[{}].compute_us", plan.nodes.size() + u),
             saved.updates[u].compute_nanoseconds,
             plan.updates[u].compute_nanoseconds);
  }
  if (other_schedule) {
    compare_steps(saved, plan, out);
  } else if (saved.copies.size() != plan.copies.size()) {
    out.add(fmt::format("$.copies: {} in the file, are {}", saved.copies.size(),
                        plan.copies.size()));
  } else {
    for (std::size_t c = 0; c < plan.copies.size(); ++c) {
      out.copy(fmt::format("$.copies[{}]", c), saved.copies[c], plan.copies[c]);
    }
  }
  if (!other_schedule && !saved.windows.empty() &&
      saved.windows != plan.windows) {
    out.add("$.overlap_windows: other windows in the file");
  }
  return std::move(out).take();
}

}  // namespace shardprop
