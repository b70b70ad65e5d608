// evaluate() applies the definitions in plan_assignment.h. It shares no code
// with the network that an assignment came from.
#include "base/index.h"
#include "base/saturating.h"
#include "plan/evaluate/buckets.h"
#include "plan/evaluate/copy_times.h"
#include "plan/evaluate/live_memory.h"
#include "plan/evaluate/plan_assignment.h"
#include "plan/transfer_time.h"

#include <algorithm>

namespace shardprop {
namespace {

class Evaluator {
 public:
  Evaluator(const PlanProblem& problem, const PlanAssignment& plan)
      : problem_(problem), plan_(plan), loads_(problem.window_loads()) {
    out_.windows.resize(loads_.size());
    once_a_step_ = copies_once_a_step(problem, plan);
    times_ = copy_times(problem, plan);
  }

  PlanEvaluation run() {
    add_choices();
    for (std::size_t c = 0; c < plan_.copies.size(); ++c) add_copy(c);
    for (std::size_t s = 0; s < problem_.buffers().size(); ++s) check_uses(s);
    out_.objective = sat_add(out_.objective, out_.waited);
    out_.objective = sat_add(out_.objective, out_.exposed());
    if (out_.broken.empty()) add_memory();
    return out_;
  }

 private:
  const BufferClass& kind(PlanBufferId id) const {
    return *problem_.buffer(id).kind;
  }
  BufferLayout produced_layout(PlanBufferId id) const {
    const PlanBuffer& buffer = problem_.buffer(id);
    return problem_.layout_produced(buffer,
                                    plan_.choices[buffer.producer.index()]);
  }
  std::string name(PlanBufferId id) const {
    return "`" +
           problem_.graph()
               .value(problem_.buffer(id).values[0])
               .display_name() +
           "`";
  }

  void add_choices() {
    for (std::size_t v = 0; v < plan_.choices.size(); ++v) {
      const PlanVariable& variable = problem_.variables()[v];
      const std::uint32_t choice = plan_.choices[v];
      out_.objective = sat_add(out_.objective, variable.choices->costs[choice]);
      if (variable.kind == PlanVariable::Kind::kOperator) {
        loads_.divide(
            problem_.window_of(static_cast<std::int64_t>(variable.index)),
            variable.choices->compute[choice],
            [&](std::size_t load, std::int64_t part) {
              std::int64_t& compute = out_.windows[load].compute;
              compute = sat_add(compute, part);
            });
      } else if (!variable.choices->overlapped.empty()) {
        const std::int64_t time = variable.choices->overlapped[choice];
        const auto window = problem_.window_after_update(variable);
        window ? add_overlappable(loads_.first(*window), time) : wait(time);
      }
      if (variable.kind != PlanVariable::Kind::kInput ||
          problem_.graph().inputs()[variable.index].kind !=
              InputKind::kParameter) {
        continue;
      }
      const KeptParameter kept = kept_parameter(problem_, variable, choice);
      out_.parameter_bytes = sat_add(out_.parameter_bytes, kept.parameter);
      out_.optimizer_bytes = sat_add(out_.optimizer_bytes, kept.optimizer);
    }
  }

  // Without a window, the program waits for the transfer.
  void wait(std::int64_t nanoseconds) {
    out_.waited = sat_add(out_.waited, nanoseconds);
  }

  void add_overlappable(std::size_t load, std::int64_t nanoseconds) {
    std::int64_t& sum = out_.windows[load].overlappable;
    sum = sat_add(sum, nanoseconds);
  }

  void add_in_flight(std::size_t c, std::int64_t nanoseconds) {
    const auto window = times_[c].window;
    if (!window) {
      wait(nanoseconds);
    } else if (once_a_step_[c]) {
      add_overlappable(loads_.last(*window), nanoseconds);
    } else {
      loads_.divide(*window, nanoseconds,
                    [&](std::size_t load, std::int64_t part) {
                      add_overlappable(load, part);
                    });
    }
  }

  void add_copy(std::size_t c) {
    const AssignedCopy& copy = plan_.copies[c];
    const PlanBuffer& buffer = problem_.buffer(copy.buffer);
    BufferLayout source = produced_layout(copy.buffer);
    std::int64_t from = buffer.produced_at;
    std::int64_t until = plan_.freed_at[copy.buffer.index()];
    if (copy.source) {
      if (*copy.source >= c) return broke(copy.buffer, "comes of a later one");
      const AssignedCopy& other = plan_.copies[*copy.source];
      if (other.buffer != copy.buffer) {
        return broke(copy.buffer, "comes of another storage");
      }
      source = other.state;
      from = other.produced_at;
      until = other.freed_at;
    }
    if (copy.produced_at < from || copy.produced_at > until) {
      return broke(copy.buffer, "is made of what is not there");
    }
    const LayoutId src = kind(copy.buffer).layouts[copy.value][source];
    const LayoutId dst = kind(copy.buffer).layouts[copy.value][copy.state];
    if (!src.valid() || !dst.valid()) {
      return broke(copy.buffer, "is moved as a value that it cannot be");
    }
    const std::int64_t cost =
        problem_.move_nanoseconds(buffer.values[copy.value], src, dst);
    if (cost >= kUnreachable) return broke(copy.buffer, "cannot be made");
    const CopyCost price = copy_cost(problem_, plan_, c, once_a_step_[c]);
    add_in_flight(c, price.overlappable);
    out_.objective = sat_add(out_.objective, price.nanoseconds);
  }

  void check_uses(std::size_t s) {
    const PlanBufferId id(s);
    const PlanBuffer& buffer = problem_.buffer(id);
    for (std::size_t u = 0; u < buffer.uses.size(); ++u) {
      const BufferUse& use = buffer.uses[u];
      BufferLayout state = produced_layout(id);
      std::int64_t from = buffer.produced_at;
      std::int64_t until = plan_.freed_at[s];
      if (const auto& copy = plan_.read[s][u]) {
        if (plan_.copies[*copy].buffer != id) {
          return broke(id, "is taken for another storage");
        }
        state = plan_.copies[*copy].state;
        from = plan_.copies[*copy].produced_at;
        until = plan_.copies[*copy].freed_at;
      }
      if (from > use.slot || until < use.until) {
        return broke(id, "is not there when it is taken");
      }
      if (kind(id).layouts[use.value][state] !=
          problem_.variable(use.variable)
              .choices->layout(plan_.choices[use.variable.index()],
                               use.operand)) {
        return broke(id, "is not as its user takes it");
      }
    }
  }

  void add_memory() {
    const std::vector<std::int64_t> bytes = bytes_by_slot(problem_, plan_);
    const auto peak = std::max_element(bytes.begin(), bytes.end());
    out_.peak_bytes = *peak;
    out_.peak_at = peak - bytes.begin();
  }

  void broke(PlanBufferId id, const char* what) {
    if (out_.broken.empty()) out_.broken = "a copy of " + name(id) + " " + what;
  }

  const PlanProblem& problem_;
  const PlanAssignment& plan_;
  WindowLoads loads_;
  std::vector<bool> once_a_step_;  // by copy
  std::vector<CopyTimes> times_;   // by copy
  PlanEvaluation out_;
};

}  // namespace

std::int64_t PlanEvaluation::exposed() const {
  std::int64_t sum = 0;
  for (const WindowLoad& window : windows) {
    sum = sat_add(sum, window.exposed());
  }
  return sum;
}

PlanEvaluation evaluate(const PlanProblem& problem,
                        const PlanAssignment& assignment) {
  return Evaluator(problem, assignment).run();
}

CopyCost copy_cost(const PlanProblem& problem, const PlanAssignment& assignment,
                   std::size_t copy, bool once_a_step) {
  const AssignedCopy& produced = assignment.copies[copy];
  const PlanBuffer& buffer = problem.buffer(produced.buffer);
  const BufferLayout source =
      produced.source
          ? assignment.copies[*produced.source].state
          : problem.layout_produced(
                buffer, assignment.choices[buffer.producer.index()]);
  const ValueId value = buffer.values[produced.value];
  const LayoutId src = buffer.kind->layouts[produced.value][source];
  const LayoutId dst = buffer.kind->layouts[produced.value][produced.state];
  TransferTime time{problem.move_nanoseconds(value, src, dst),
                    problem.overlappable_nanoseconds(value, src, dst)};
  if (once_a_step) time = share_of_step(problem.options(), time);
  return {
      sat_add(time.waited, problem.cut_nanoseconds(buffer, value, src, dst)),
      time.overlappable};
}

std::vector<bool> copies_once_a_step(const PlanProblem& problem,
                                     const PlanAssignment& assignment) {
  const std::size_t copies = assignment.copies.size();
  std::vector<bool> out(copies, false);
  if (problem.options().accumulate == 1) return out;
  // By copy: the number of its readers, which are uses and other copies. If a
  // use is the only reader, has_late_use states whether it reduces a gradient
  // once a step.
  std::vector<std::size_t> readers(copies, 0);
  std::vector<bool> has_late_use(copies, false);
  for (std::size_t s = 0; s < assignment.read.size(); ++s) {
    const PlanBuffer& buffer = problem.buffers()[s];
    for (std::size_t u = 0; u < assignment.read[s].size(); ++u) {
      const auto& copy = assignment.read[s][u];
      if (!copy || *copy >= copies) continue;
      ++readers[*copy];
      const PlanVariableId user = buffer.uses[u].variable;
      has_late_use[*copy] = problem.is_reduced_late(
          problem.variable(user), assignment.choices[user.index()]);
    }
  }
  for (const AssignedCopy& copy : assignment.copies) {
    if (copy.source && *copy.source < copies) ++readers[*copy.source];
  }
  // A source comes before the copies that are made from it.
  std::vector<bool> has_late_copy(copies, false);
  for (std::size_t c = copies; c-- > 0;) {
    out[c] = readers[c] == 1 && (has_late_use[c] || has_late_copy[c]);
    const auto& source = assignment.copies[c].source;
    if (out[c] && source && *source < copies) has_late_copy[*source] = true;
  }
  return out;
}

std::vector<std::int64_t> bytes_by_slot(const PlanProblem& problem,
                                        const PlanAssignment& assignment,
                                        KernelMemory kernels) {
  std::vector<std::int64_t> out =
      bytes_without_buckets(problem, assignment, kernels);
  const std::vector<Bucket> buckets = kernels == KernelMemory::kFused
                                          ? buckets_of(problem, assignment, out)
                                          : buckets_of(problem, assignment);
  for (const Bucket& bucket : buckets) {
    for (std::int64_t s = bucket.begins_at(); s <= bucket.emptied_at; ++s) {
      out[index(s)] = sat_add(out[index(s)], buffer_bytes(bucket, s));
    }
  }
  return out;
}

}  // namespace shardprop
