#include "graph/recompute/kept_values.h"

#include "base/saturating.h"
#include "graph/analysis/index_spaces.h"
#include "graph/analysis/view_source.h"
#include "graph/recompute/min_cut.h"
#include "graph/recompute/second_runs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <set>
#include <utility>

namespace shardprop {
namespace {

// The constants of PyTorch.
constexpr double kWeightOfDistance = 1.1;
constexpr int kMostDistance = 100;
constexpr std::int64_t kWeightInsideKernel = 2;
constexpr std::int64_t kReduced = 4;
constexpr std::int64_t kLongChain = 100;

constexpr std::int64_t kFar = 1'000'000'000;

// Step is a call, or one result of a call with several results. Inputs of the graph
// are steps, too.
struct Step {
  std::vector<std::size_t> operands;
  std::vector<std::size_t> readers;
  std::int64_t bytes = 0;
  std::int64_t from_backward = kFar;  // calls up to the backward phase
  bool has_value = true;              // a call with several results has none
  bool is_input = false;
  bool is_parameter = false;
  bool is_forward = false;
  bool is_late = false;  // runs in the backward phase
  bool is_view = false;
  bool fuses = false;
  bool may_run_again = false;
  bool never_again = false;
};

class KeptValues {
 public:
  KeptValues(const Graph& graph, const OpLibrary& library)
      : graph_(graph), spaces_(library), of_value_(graph.values().size()) {
    for (const GraphInput& input : graph.inputs()) add_input(input);
    const std::size_t last = last_forward(graph);
    for (const Node& node : graph.nodes()) add_node(node, last);
  }

  std::vector<bool> run() {
    find_distances();
    ban_single_steps();
    ban_far_readers();
    ban_long_chains();
    return cut();
  }

 private:
  std::size_t add(Step step) {
    const std::size_t at = steps_.size();
    for (const std::size_t operand : step.operands) {
      steps_[operand].readers.push_back(at);
    }
    steps_.push_back(std::move(step));
    return at;
  }

  void add_input(const GraphInput& input) {
    const Value& value = graph_.value(input.value);
    Step step;
    step.bytes = value.meta.bytes();
    step.is_input = step.is_forward = true;
    step.is_parameter = input.kind != InputKind::kUser;
    of_value_[input.value.index()] = add(std::move(step));
  }

  void add_node(const Node& node, std::size_t last) {
    if (node.outputs.empty()) return;
    Step step;
    for (const ValueId input : node.inputs) {
      const std::size_t operand = of_value_[input.index()];
      if (std::find(step.operands.begin(), step.operands.end(), operand) ==
          step.operands.end()) {
        step.operands.push_back(operand);
      }
    }
    step.is_forward = node.phase == Phase::kForward;
    step.is_late = node.id.index() > last;
    classify(node, step);
    if (node.outputs.size() == 1) {
      step.bytes = graph_.value(node.outputs[0]).meta.bytes();
      of_value_[node.outputs[0].index()] = add(std::move(step));
      return;
    }
    for (const ValueId output : node.outputs) {
      step.bytes = sat_add(step.bytes, graph_.value(output).meta.bytes());
    }
    step.has_value = false;
    const bool is_forward = step.is_forward;
    const bool is_late = step.is_late;
    const bool is_view = step.is_view;
    const std::size_t call = add(std::move(step));
    for (const ValueId output : node.outputs) {
      Step result;
      result.operands = {call};
      result.bytes = graph_.value(output).meta.bytes();
      result.is_forward = is_forward;
      result.is_late = is_late;
      result.is_view = is_view;
      result.fuses = result.may_run_again = true;
      of_value_[output.index()] = add(std::move(result));
    }
  }

  void classify(const Node& node, Step& step) {
    const IndexSpace* space = spaces_.of(node.op);
    if (space == nullptr) return;
    const auto has = [&](FactorKind kind) {
      return std::any_of(space->factors.begin(), space->factors.end(),
                         [&](const Factor& f) { return f.kind == kind; });
    };
    step.is_view = runs_as_view(*space);
    const bool is_on_elements =
        space->flops_per_point == 0 && !has(FactorKind::kScanned);
    const bool writes = space->writes_into != IndexSpace::kNothing;
    const bool looks_up = has(FactorKind::kIndexed);
    step.fuses = step.is_view || (is_on_elements && !looks_up);
    step.may_run_again =
        step.is_view || (is_on_elements && !looks_up && !writes &&
                         !space->is_random && !node.op.function->is_random());
  }

  bool fuse(const Step& a, const Step& b) const { return a.fuses && b.fuses; }

  void find_distances() {
    for (std::size_t s = steps_.size(); s-- > 0;) {
      Step& step = steps_[s];
      if (!step.is_forward) {
        step.from_backward = 0;
        continue;
      }
      for (const std::size_t reader : step.readers) {
        step.from_backward =
            std::min(step.from_backward, steps_[reader].from_backward + 1);
      }
    }
  }

  void ban(Step& step) {
    if (!step.is_view) step.never_again = true;
  }

  // Returns whether a backward operator reads the step, or a view of it, and cannot
  // share its kernel.
  bool is_written_for_backward(const Step& step) const {
    if (step.is_view) return false;
    std::vector<const Step*> open{&step};
    while (!open.empty()) {
      const Step& at = *open.back();
      open.pop_back();
      for (const std::size_t r : at.readers) {
        const Step& reader = steps_[r];
        if (!reader.is_forward && !fuse(at, reader)) return true;
        if (reader.is_view) open.push_back(&reader);
      }
    }
    return false;
  }

  void ban_single_steps() {
    for (Step& step : steps_) {
      if (step.is_input) {
        step.never_again = true;
        continue;
      }
      const bool is_result =
          step.operands.size() == 1 && !steps_[step.operands[0]].has_value;
      if (!step.is_forward || is_result) continue;
      std::int64_t read = 0;
      for (const std::size_t operand : step.operands) {
        read = sat_add(read, steps_[operand].bytes);
      }
      if (!step.may_run_again || is_written_for_backward(step) ||
          sat_mul(step.bytes, kReduced) < read) {
        ban(step);
      }
    }
  }

  // Returns the first forward step that cannot share a kernel with a step before it
  // on a way from one of `starts`. Steps after `last` do not count.
  std::size_t first_unfused(const std::vector<std::size_t>& starts,
                            std::size_t last) const {
    using Entry = std::pair<std::size_t, bool>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
    std::set<Entry> seen;
    for (const std::size_t start : starts) {
      if (seen.insert({start, true}).second) open.emplace(start, true);
    }
    while (!open.empty()) {
      const auto [at, is_fused] = open.top();
      open.pop();
      if (!is_fused) return at;
      for (const std::size_t reader : steps_[at].readers) {
        if (!steps_[reader].is_forward || reader > last) continue;
        const Entry next{reader, fuse(steps_[at], steps_[reader])};
        if (seen.insert(next).second) open.push(next);
      }
    }
    return last;
  }

  void ban_far_readers() {
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      if (!steps_[s].is_forward) continue;
      std::vector<std::size_t> readers;
      for (const std::size_t reader : steps_[s].readers) {
        if (steps_[reader].is_forward) readers.push_back(reader);
      }
      if (readers.size() < 2) continue;
      const std::size_t last =
          *std::max_element(readers.begin(), readers.end());
      const std::size_t unfused = first_unfused(readers, last);
      for (const std::size_t reader : readers) {
        if (reader > unfused && fuse(steps_[s], steps_[reader])) {
          ban(steps_[reader]);
        }
      }
    }
  }

  void ban_long_chains() {
    std::vector<bool> visited(steps_.size(), false);
    for (std::size_t start = 0; start < steps_.size(); ++start) {
      if (!steps_[start].is_forward) continue;
      std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>>
          open;
      open.push(start);
      while (!open.empty()) {
        const std::size_t at = open.top();
        open.pop();
        if (visited[at]) continue;
        visited[at] = true;
        if (static_cast<std::int64_t>(at - start) > kLongChain &&
            open.empty()) {
          ban(steps_[at]);
          break;
        }
        for (const std::size_t reader : steps_[at].readers) {
          const Step& step = steps_[reader];
          if (step.is_forward && !step.never_again && fuse(steps_[at], step)) {
            open.push(reader);
          }
        }
      }
    }
  }

  std::int64_t weight(const Step& step) const {
    if (!step.has_value) return MinCut::kUncut;
    if (step.is_parameter) return 0;
    const double distance = static_cast<double>(
        std::clamp<std::int64_t>(step.from_backward, 1, kMostDistance));
    const double scaled =
        static_cast<double>(step.bytes) * std::pow(kWeightOfDistance, distance);
    const auto most = static_cast<double>(MinCut::kUncut >> 8U);
    const auto bytes = static_cast<std::int64_t>(std::min(scaled, most));
    const bool is_written =
        step.is_input ||
        std::any_of(step.readers.begin(), step.readers.end(),
                    [&](std::size_t r) { return !fuse(step, steps_[r]); });
    return is_written ? bytes : kWeightInsideKernel * bytes;
  }

  // Each step has two vertices. The edge between them is cut if its value is kept.
  std::vector<bool> cut() {
    const std::size_t source = 2 * steps_.size();
    MinCut cut(source + 2);
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      const Step& step = steps_[s];
      if (step.is_late) {
        cut.add_edge(2 * s, source + 1, MinCut::kUncut);
        continue;
      }
      if (step.never_again) cut.add_edge(source, 2 * s, MinCut::kUncut);
      cut.add_edge(2 * s, 2 * s + 1, weight(step));
      for (const std::size_t reader : step.readers) {
        cut.add_edge(2 * s + 1, 2 * reader, MinCut::kUncut);
      }
    }
    const std::vector<bool> behind = cut.reaches_sink(source, source + 1);
    std::vector<bool> kept(graph_.values().size(), true);
    if (behind.empty()) return kept;
    for (const Value& value : graph_.values()) {
      const std::size_t step = of_value_[value.id.index()];
      kept[value.id.index()] = !behind[2 * step];
    }
    return kept;
  }

  const Graph& graph_;
  IndexSpaces spaces_;
  std::vector<Step> steps_;
  std::vector<std::size_t> of_value_;  // by value: its step
};

}  // namespace

std::vector<bool> kept_by_compiler(const Graph& graph,
                                   const OpLibrary& library) {
  return KeptValues(graph, library).run();
}

}  // namespace shardprop
