#include "plan/problem/build/buffers.h"

#include "base/index.h"
#include "base/try.h"
#include "graph/analysis/view_source.h"
#include "plan/problem/build/buffer_class.h"
#include "plan/problem/problem_data.h"
#include "plan/tuning.h"

#include <algorithm>
#include <utility>

namespace shardprop {
namespace {

std::vector<UseSegment> segments_of(const Graph& graph,
                                    const std::vector<BufferUse>& uses) {
  const auto end = static_cast<std::int64_t>(graph.nodes().size());
  const auto phase_at = [&](const BufferUse& use) {
    return use.until == end
               ? -1
               : static_cast<int>(graph.nodes()[index(use.slot)].phase);
  };
  std::vector<UseSegment> segments;
  for (std::size_t u = 0; u < uses.size(); ++u) {
    const bool starts =
        u == 0 || phase_at(uses[u]) != phase_at(uses[u - 1]) ||
        uses[u].slot - uses[u - 1].slot > tuning::kLongPauseNodes;
    if (starts) segments.push_back({u, 0});
    ++segments.back().count;
  }
  return segments;
}

class BufferCollector {
 public:
  BufferCollector(ProblemData& data, const BufferForest& forest,
                  const InPlace& in_place)
      : data_(data), graph_(data.graph), forest_(forest), in_place_(in_place) {}

  Result<void> run() {
    for (const Value& value : graph_.values()) add_value(value);
    for (std::size_t v = 0; v < data_.variables.size(); ++v) add_producer(v);
    for (std::size_t v = 0; v < data_.variables.size(); ++v) add_uses(v);
    for (PlanBuffer& buffer : data_.buffers) finish(buffer);
    for (PlanBuffer& buffer : data_.buffers) {
      buffer.inside_kernel = is_inside_kernel(buffer);
    }
    find_written();
    for (PlanVariable& variable : data_.variables) {
      variable.use_places.resize(variable.uses.size());
    }
    for (const PlanBuffer& buffer : data_.buffers) note_places(buffer);
    BufferClasses classes(data_, forest_);
    for (PlanBuffer& buffer : data_.buffers) {
      SP_CHECK(data_.check_stop());
      SP_ASSIGN(buffer.kind, classes.of(buffer));
    }
    return {};
  }

 private:
  // Values come in the order in which they are produced: parents first.
  void add_value(const Value& value) {
    PlanValue& planned = data_.values[value.id.index()];
    const ValueId root = forest_.root(value.id);
    if (root == value.id) {
      planned.buffer = PlanBufferId(data_.buffers.size());
      data_.buffers.emplace_back();
    } else {
      planned.buffer = data_.values[root.index()].buffer;
    }
    PlanBuffer& buffer = data_.buffers[planned.buffer.index()];
    planned.place = static_cast<std::uint32_t>(buffer.values.size());
    buffer.values.push_back(value.id);
  }

  PlanBuffer& buffer_of(ValueId value) {
    return data_.buffers[data_.values[value.index()].buffer.index()];
  }

  void add_producer(std::size_t v) {
    const PlanVariable& variable = data_.variables[v];
    for (std::size_t o = 0; o < variable.makes.size(); ++o) {
      PlanBuffer& buffer = buffer_of(variable.makes[o]);
      buffer.producer = PlanVariableId(v);
      buffer.operand = static_cast<std::uint32_t>(variable.uses.size() + o);
      buffer.persistent = variable.kind == PlanVariable::Kind::kInput;
      buffer.produced_at =
          buffer.persistent ? 0 : static_cast<std::int64_t>(variable.index);
      if (variable.kind == PlanVariable::Kind::kOperator) {
        buffer.view_of_use = viewed_by(graph_.node(NodeId(variable.index)), o);
      }
    }
  }

  std::optional<std::uint32_t> viewed_by(const Node& node,
                                         std::size_t output) const {
    const OpStrategy& op = data_.choices_of_node[node.id.index()]->op;
    if (runs_as_view(*op.space)) return viewed_operand(graph_, node, output);
    return output == 0 ? in_place_.operand(node) : std::nullopt;
  }

  void add_uses(std::size_t v) {
    const PlanVariable& variable = data_.variables[v];
    const bool at_node = variable.kind == PlanVariable::Kind::kOperator;
    for (std::size_t u = 0; u < variable.uses.size(); ++u) {
      const ValueId value = variable.uses[u];
      BufferUse use;
      use.variable = PlanVariableId(v);
      use.operand = static_cast<std::uint32_t>(u);
      use.value = data_.values[value.index()].place;
      // An output is read after all other uses; see finish().
      use.slot = at_node ? static_cast<std::int64_t>(variable.index) : kAtEnd;
      use.until = use.slot;
      buffer_of(value).uses.push_back(use);
    }
  }

  void finish(PlanBuffer& buffer) const {
    std::stable_sort(
        buffer.uses.begin(), buffer.uses.end(),
        [](const BufferUse& a, const BufferUse& b) { return a.slot < b.slot; });
    const auto end = static_cast<std::int64_t>(graph_.nodes().size());
    std::int64_t last = buffer.persistent ? -1 : buffer.produced_at;
    for (BufferUse& use : buffer.uses) {
      if (use.slot != kAtEnd) {
        last = use.slot;
        continue;
      }
      use.slot = last + 1;
      use.until = end;
    }
    buffer.segments = segments_of(graph_, buffer.uses);
    buffer.in_flight = in_flight(buffer);
  }

  InFlight in_flight(const PlanBuffer& buffer) const {
    const bool may_overlap =
        data_.options.overlap > 0 && !buffer.uses.empty() &&
        std::any_of(buffer.values.begin(), buffer.values.end(),
                    [&](ValueId value) {
                      return data_.values[value.index()].overlappable;
                    });
    if (!may_overlap) return InFlight::kNever;
    if (buffer.persistent) return InFlight::kAhead;
    const auto end = static_cast<std::int64_t>(graph_.nodes().size());
    return buffer.uses.back().until == end ? InFlight::kLater
                                           : InFlight::kNever;
  }

  bool is_inside_kernel(const PlanBuffer& buffer) const {
    const Value& value = graph_.value(buffer.values[0]);
    return data_.fusion && !value.is_input() &&
           data_.fusion->group(value.producer) != FusionGroups::kAlone &&
           data_.fusion->stays_inside(value.id);
  }

  // A buffer is written if another kernel reads a view of it. Views come after the
  // buffers that they alias.
  void find_written() {
    for (std::size_t b = data_.buffers.size(); b-- > 0;) {
      const PlanBuffer& view = data_.buffers[b];
      if (!view.view_of_use || view.inside_kernel) continue;
      const PlanVariable& producer = data_.variables[view.producer.index()];
      buffer_of(producer.uses[*view.view_of_use]).inside_kernel = false;
    }
  }

  void note_places(const PlanBuffer& buffer) {
    for (std::size_t u = 0; u < buffer.uses.size(); ++u) {
      const BufferUse& use = buffer.uses[u];
      data_.variables[use.variable.index()].use_places[use.operand] =
          static_cast<std::uint32_t>(u);
    }
  }

  static constexpr std::int64_t kAtEnd = std::int64_t{1} << 60;

  ProblemData& data_;
  const Graph& graph_;
  const BufferForest& forest_;
  const InPlace& in_place_;
};

}  // namespace

Result<void> build_buffers(ProblemData& data, const BufferForest& forest,
                           const InPlace& in_place) {
  return BufferCollector(data, forest, in_place).run();
}

}  // namespace shardprop
