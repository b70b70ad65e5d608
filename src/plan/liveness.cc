#include "plan/liveness.h"

#include <algorithm>
#include <map>
#include <utility>

namespace shardprop {
namespace {

// Bytes that a copy takes beyond its source and itself while it is made.
std::int64_t buffer_bytes(const PlanProblem& problem, const NeededCopy& copy) {
  const RedistributePlan plan =
      problem.redistribution(copy.value, copy.src, copy.dst);
  return std::max<std::int64_t>(
      0, plan.peak_bytes - problem.local_bytes(copy.value, copy.src) -
             problem.local_bytes(copy.value, copy.dst));
}

class Ranges {
 public:
  Ranges(const PlanProblem& problem, std::span<const std::uint32_t> choices,
         std::span<const NeededCopy> copies)
      : problem_(problem),
        graph_(problem.graph()),
        choices_(choices),
        copies_(copies),
        end_(static_cast<std::int64_t>(graph_.nodes().size())),
        range_of_value_(graph_.values().size()) {
    for (std::size_t c = 0; c < copies.size(); ++c) {
      copy_of_[{copies[c].value, copies[c].dst}] = c;
    }
    range_of_copy_.assign(copies.size(), kNone);
  }

  std::vector<LiveRange> collect() {
    for (const GraphInput& input : graph_.inputs()) {
      const std::size_t range = open(input.value, made_layout(input.value), 0);
      range_of_value_[input.value.index()] = range;
      ranges_[range].end = end_;
    }
    std::size_t next_copy = 0;
    for (const Node& node : graph_.nodes()) {
      const auto at = static_cast<std::int64_t>(node.id.index());
      for (; next_copy < copies_.size() && copies_[next_copy].made_at <= at;
           ++next_copy) {
        make_copy(next_copy);
      }
      const PlanVariableId variable = problem_.variable_of(node.id);
      if (!variable.valid()) continue;
      for (std::size_t u = 0; u < node.inputs.size(); ++u) {
        touch(range_taken(variable, u, node.inputs[u]), at);
      }
      for (const ValueId output : node.outputs) {
        range_of_value_[output.index()] =
            range_made(node, variable, output, at);
      }
    }
    for (; next_copy < copies_.size(); ++next_copy) make_copy(next_copy);
    for (std::size_t c = 0; c < copies_.size(); ++c) {
      touch(range_of_copy_[c], copies_[c].last_use);
    }
    for (const GraphOutput& output : graph_.outputs()) hold_result(output);
    return std::move(ranges_);
  }

  std::size_t range_of_copy(std::size_t copy) const {
    return range_of_copy_[copy];
  }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};

  LayoutId made_layout(ValueId value) const {
    const PlanValue& planned = problem_.value(value);
    return layout_at(problem_, choices_, planned.maker, planned.operand);
  }

  std::size_t open(ValueId value, LayoutId layout, std::int64_t at) {
    ranges_.push_back(
        {value, layout, problem_.local_bytes(value, layout), at, at});
    return ranges_.size() - 1;
  }

  void touch(std::size_t range, std::int64_t at) {
    ranges_[range].end = std::max(ranges_[range].end, at);
  }

  void make_copy(std::size_t copy) {
    const NeededCopy& needed = copies_[copy];
    range_of_copy_[copy] = open(needed.value, needed.dst, needed.made_at);
    touch(range_of_value_[needed.value.index()], needed.made_at);
  }

  // What operand `use` of a variable reads: the value or one of its copies.
  std::size_t range_taken(PlanVariableId variable, std::size_t use,
                          ValueId value) const {
    const LayoutId layout = layout_at(problem_, choices_, variable, use);
    const auto copy = copy_of_.find({value, layout});
    return copy == copy_of_.end() ? range_of_value_[value.index()]
                                  : range_of_copy_[copy->second];
  }

  // Its own memory, or for a view that of what it views.
  std::size_t range_made(const Node& node, PlanVariableId variable,
                         ValueId output, std::int64_t at) {
    const ValueId viewed = graph_.value(output).view_of;
    const auto use = std::find(node.inputs.begin(), node.inputs.end(), viewed);
    if (!viewed.valid() || use == node.inputs.end()) {
      return open(output, made_layout(output), at);
    }
    return range_taken(
        variable, static_cast<std::size_t>(use - node.inputs.begin()), viewed);
  }

  void hold_result(const GraphOutput& output) {
    // What is handed back is the copy, where one is made for it.
    const PlanValue& planned = problem_.value(output.value);
    std::size_t range = range_of_value_[output.value.index()];
    for (const PlanUse& use : planned.uses) {
      if (problem_.variable(use.variable).kind ==
          PlanVariable::Kind::kOperator) {
        continue;
      }
      range = range_taken(use.variable, use.operand, output.value);
    }
    touch(range, end_);
  }

  const PlanProblem& problem_;
  const Graph& graph_;
  std::span<const std::uint32_t> choices_;
  std::span<const NeededCopy> copies_;
  std::int64_t end_;
  std::vector<LiveRange> ranges_;
  std::vector<std::size_t> range_of_value_;
  std::vector<std::size_t> range_of_copy_;
  std::map<std::pair<ValueId, LayoutId>, std::size_t> copy_of_;
};

void find_peak(const PlanProblem& problem, std::span<const NeededCopy> copies,
               std::int64_t throughout, Liveness& out) {
  const std::size_t times = problem.graph().nodes().size() + 1;
  std::vector<std::int64_t> change(times + 1, 0);
  for (const LiveRange& range : out.ranges) {
    change[static_cast<std::size_t>(range.begin)] += range.bytes;
    change[static_cast<std::size_t>(range.end) + 1] -= range.bytes;
  }
  // The results of a node count beside the buffers of copies made for it.
  std::vector<std::int64_t> buffers(times, 0);
  for (const NeededCopy& copy : copies) {
    auto& most = buffers[static_cast<std::size_t>(copy.made_at)];
    most = std::max(most, buffer_bytes(problem, copy));
  }
  std::int64_t live = throughout;
  for (std::size_t t = 0; t < times; ++t) {
    live += change[t];
    if (live + buffers[t] > out.peak_bytes) {
      out.peak_bytes = live + buffers[t];
      out.peak_at = static_cast<std::int64_t>(t);
    }
  }
}

}  // namespace

Liveness liveness(const PlanProblem& problem,
                  std::span<const std::uint32_t> choices,
                  std::span<const NeededCopy> copies) {
  Liveness out;
  Ranges ranges(problem, choices, copies);
  out.ranges = ranges.collect();
  for (std::size_t c = 0; c < copies.size(); ++c) {
    out.copy_ends.push_back(out.ranges[ranges.range_of_copy(c)].end);
  }
  for (std::size_t v = 0; v < problem.variables().size(); ++v) {
    const PlanVariable& variable = problem.variables()[v];
    if (variable.kind != PlanVariable::Kind::kInput ||
        problem.graph().inputs()[variable.index].kind !=
            InputKind::kParameter) {
      continue;
    }
    const std::int64_t bytes = problem.local_bytes(
        variable.makes[0],
        layout_at(problem, choices, PlanVariableId(v), variable.uses.size()));
    out.parameter_bytes += bytes;
    if (!variable.uses.empty()) {
      out.optimizer_bytes += problem.optimizer_tensors() * bytes;
    }
  }
  find_peak(problem, copies, out.optimizer_bytes, out);
  return out;
}

}  // namespace shardprop
