#include "graph/recompute/second_runs.h"

#include "base/index.h"
#include "base/try.h"

#include <shardprop/graph/graph_builder.h>

#include <algorithm>
#include <limits>
#include <string>
#include <tuple>
#include <utility>

namespace shardprop {
namespace {

constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();

// SlotsOfRuns finds the late node before which each second run, and each node that
// moves, runs.
class SlotsOfRuns {
 public:
  SlotsOfRuns(const Graph& graph, const SecondRuns& runs)
      : graph_(graph),
        runs_(runs),
        late_(last_forward(graph) + 1),
        again_(graph.nodes().size(), kNever),
        moved_(graph.nodes().size(), kNever) {
    while (pass()) {
    }
  }

  bool is_late(std::size_t node) const { return node >= late_; }
  bool runs_again(std::size_t node) const { return again_[node] != kNever; }
  bool is_moved(std::size_t node) const { return moved_[node] != kNever; }
  std::size_t again(std::size_t node) const { return again_[node]; }
  std::size_t moved(std::size_t node) const { return moved_[node]; }

 private:
  // Returns the first late node that reads a result of the node late.
  std::size_t first_reader(const Node& node) const {
    std::size_t first = kNever;
    for (const ValueId output : node.outputs) {
      for (const Use& use : graph_.value(output).consumers) {
        const std::size_t reader = use.node.index();
        first = std::min({first, is_late(reader) ? reader : kNever,
                          again_[reader], moved_[reader]});
      }
    }
    return first;
  }

  // Returns whether a slot has changed. Readers come after what they read.
  bool pass() {
    bool has_changed = false;
    const auto set = [&](std::size_t& slot, std::size_t now) {
      has_changed = has_changed || now < slot;
      slot = std::min(slot, now);
    };
    for (std::size_t n = std::min(late_, graph_.nodes().size()); n-- > 0;) {
      const std::int32_t group = runs_.group[n];
      const bool moves = runs_.moves[n];
      if (group == SecondRuns::kOnce && !moves) continue;
      const std::size_t reader = first_reader(graph_.nodes()[n]);
      if (reader == kNever) continue;
      if (moves) {
        set(moved_[n], reader);
        continue;
      }
      if (index(group) >= of_group_.size()) {
        of_group_.resize(index(group) + 1, kNever);
      }
      std::size_t& slot = of_group_[index(group)];
      slot = std::min(slot, reader);
      set(again_[n], slot);
    }
    return has_changed;
  }

  const Graph& graph_;
  const SecondRuns& runs_;
  std::size_t late_;                   // the first late node
  std::vector<std::size_t> again_;     // by node
  std::vector<std::size_t> moved_;     // by node
  std::vector<std::size_t> of_group_;  // by group
};

// RunningGraph builds the graph.
class RunningGraph {
 public:
  RunningGraph(const Graph& graph, const OpLibrary& library,
               const SecondRuns& runs)
      : graph_(graph),
        slots_(graph, runs),
        builder_(graph.name(), library),
        first_(graph.values().size()),
        again_(graph.values().size()) {}

  Result<Graph> build() && {
    builder_.expect(graph_.nodes().size(), graph_.values().size());
    builder_.set_device(graph_.device());
    for (const Symbol& symbol : graph_.symbols()) builder_.add_symbol(symbol);
    for (const Guard& guard : graph_.guards()) builder_.add_guard(guard);
    for (const ReadingNote& note : graph_.notes()) builder_.add_note(note);
    for (const GraphInput& input : graph_.inputs()) SP_CHECK(add_input(input));
    for (const Run& run : schedule()) SP_CHECK(add_run(run));
    for (const GraphOutput& output : graph_.outputs()) {
      NewOutput added{.value = first_[output.value.index()],
                      .kind = output.kind};
      if (output.target.valid()) added.target = first_[output.target.index()];
      builder_.add_output(added);
    }
    return std::move(builder_).build();
  }

 private:
  struct Run {
    std::size_t node = 0;
    bool again = false;
  };

  // Second runs and moved nodes come before the late node that needs them, in their
  // old order.
  std::vector<Run> schedule() const {
    using Key = std::tuple<std::size_t, bool, std::size_t>;
    std::vector<std::pair<Key, Run>> runs;
    for (std::size_t n = 0; n < graph_.nodes().size(); ++n) {
      if (slots_.is_moved(n)) {
        runs.push_back({{slots_.moved(n), false, n}, {n, false}});
      } else {
        runs.push_back({{n, true, n}, {n, false}});
      }
      if (slots_.runs_again(n)) {
        runs.push_back({{slots_.again(n), false, n}, {n, true}});
      }
    }
    std::sort(runs.begin(), runs.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Run> out;
    out.reserve(runs.size());
    for (const auto& [key, run] : runs) out.push_back(run);
    return out;
  }

  Result<void> add_input(const GraphInput& input) {
    const Value& value = graph_.value(input.value);
    NewInput added{.kind = input.kind,
                   .name = value.name,
                   .qualified_name = value.qualified_name,
                   .aliases = value.aliases,
                   .meta = value.meta,
                   .persistent = input.persistent,
                   .symbolic = value.symbolic};
    const ValueId base = graph_.buffer(value.buffer).base();
    if (base != value.id && graph_.value(base).is_input()) {
      added.shares_storage_with = first_[base.index()];
    }
    SP_ASSIGN(first_[input.value.index()],
              builder_.add_input(std::move(added)));
    return {};
  }

  std::string name_again(const std::string& name) const {
    std::string wanted = name + "_again";
    while (graph_.find_node(wanted) || graph_.find_value(wanted)) {
      wanted += "_again";
    }
    return wanted;
  }

  // Returns the value that a run reads.
  ValueId operand(const Run& run, ValueId value) const {
    const bool is_late =
        run.again || slots_.is_late(run.node) || slots_.is_moved(run.node);
    const ValueId again = again_[value.index()];
    return is_late && again.valid() ? again : first_[value.index()];
  }

  Result<void> add_run(const Run& run) {
    const Node& node = graph_.nodes()[run.node];
    NewNode added{.name = run.again ? name_again(node.name) : node.name,
                  .op = node.op,
                  .symbolic = node.symbolic,
                  .module_path = node.module_path,
                  .module_class = node.module_class,
                  .source = node.source,
                  .decomposed_from = node.decomposed_from,
                  .as_written = true};
    for (const ValueId input : node.inputs) {
      added.inputs.push_back(operand(run, input));
    }
    for (const ValueId output : node.outputs) {
      const Value& value = graph_.value(output);
      added.output_names.push_back(run.again ? name_again(value.name)
                                             : value.name);
      added.output_symbolic.push_back(value.symbolic);
    }
    if (node.forward_node.valid()) {
      added.forward_node = graph_.node(node.forward_node).name;
    }
    if (node.runs_again()) {
      added.second_run_of = graph_.node(node.second_run_of).name;
    }
    if (run.again) added.second_run_of = node.name;
    added.draws_as = node.drawn_by();
    SP_ASSIGN(const std::vector<ValueId> results,
              builder_.add_node(std::move(added)));
    for (std::size_t o = 0; o < results.size(); ++o) {
      (run.again ? again_ : first_)[node.outputs[o].index()] = results[o];
    }
    return {};
  }

  const Graph& graph_;
  SlotsOfRuns slots_;
  GraphBuilder builder_;
  // By old value: the new value of the first and of the second run.
  std::vector<ValueId> first_;
  std::vector<ValueId> again_;
};

}  // namespace

std::size_t last_forward(const Graph& graph) {
  std::size_t last = 0;
  for (const Node& node : graph.nodes()) {
    if (node.phase == Phase::kForward) last = node.id.index();
  }
  return last;
}

Result<Graph> with_second_runs(const Graph& graph, const OpLibrary& library,
                               const SecondRuns& runs) {
  return RunningGraph(graph, library, runs).build();
}

}  // namespace shardprop
