#include "plan/problem/build/buffers.h"

#include "base/index.h"
#include "base/try.h"
#include "plan/problem/problem_data.h"
#include "graph/analysis/view_source.h"
#include "plan/problem/stop.h"
#include "plan/problem/build/buffer_class.h"

#include <algorithm>
#include <utility>

namespace shardprop {
namespace {

std::vector<UseSegment> segments_of(const Graph& graph,
                                    const std::vector<StorageUse>& uses) {
  const auto end = static_cast<std::int64_t>(graph.nodes().size());
  const auto phase_at = [&](const StorageUse& use) {
    return use.until == end
               ? -1
               : static_cast<int>(graph.nodes()[index(use.slot)].phase);
  };
  std::vector<UseSegment> segments;
  for (std::size_t u = 0; u < uses.size(); ++u) {
    const bool starts = u == 0 || phase_at(uses[u]) != phase_at(uses[u - 1]) ||
                        uses[u].slot - uses[u - 1].slot > kLongPause;
    if (starts) segments.push_back({u, 0});
    ++segments.back().count;
  }
  return segments;
}

class StorageCollector {
 public:
  StorageCollector(ProblemData& data, const StorageForest& forest)
      : data_(data), graph_(data.graph), forest_(forest) {}

  Result<void> run() {
    for (const Value& value : graph_.values()) add_value(value);
    for (std::size_t v = 0; v < data_.variables.size(); ++v) add_maker(v);
    for (std::size_t v = 0; v < data_.variables.size(); ++v) add_uses(v);
    for (PlanStorage& storage : data_.storages) finish(storage);
    for (PlanStorage& storage : data_.storages) {
      storage.inside_kernel = is_inside_kernel(storage);
    }
    for (PlanVariable& variable : data_.variables) {
      variable.use_places.resize(variable.uses.size());
    }
    for (const PlanStorage& storage : data_.storages) note_places(storage);
    StorageClasses classes(data_, forest_);
    for (PlanStorage& storage : data_.storages) {
      SP_CHECK(data_.check_stop());
      SP_ASSIGN(storage.kind, classes.of(storage));
    }
    return {};
  }

 private:
  // Values come in the order in which they are produced: parents first.
  void add_value(const Value& value) {
    PlanValue& planned = data_.values[value.id.index()];
    const ValueId root = forest_.root(value.id);
    if (root == value.id) {
      planned.storage = PlanStorageId(data_.storages.size());
      data_.storages.emplace_back();
    } else {
      planned.storage = data_.values[root.index()].storage;
    }
    PlanStorage& storage = data_.storages[planned.storage.index()];
    planned.place = static_cast<std::uint32_t>(storage.values.size());
    storage.values.push_back(value.id);
  }

  PlanStorage& storage_of(ValueId value) {
    return data_.storages[data_.values[value.index()].storage.index()];
  }

  void add_maker(std::size_t v) {
    const PlanVariable& variable = data_.variables[v];
    for (std::size_t o = 0; o < variable.makes.size(); ++o) {
      PlanStorage& storage = storage_of(variable.makes[o]);
      storage.maker = PlanVariableId(v);
      storage.operand = static_cast<std::uint32_t>(variable.uses.size() + o);
      storage.persistent = variable.kind == PlanVariable::Kind::kInput;
      storage.made_at =
          storage.persistent ? 0 : static_cast<std::int64_t>(variable.index);
      if (variable.kind == PlanVariable::Kind::kOperator) {
        storage.shows = shown_by(graph_.node(NodeId(variable.index)), o);
      }
    }
  }

  std::optional<std::uint32_t> shown_by(const Node& node,
                                        std::size_t output) const {
    const OpStrategy& op = data_.choices_of_node[node.id.index()]->op;
    if (!runs_as_view(*op.space)) return std::nullopt;
    return shown_operand(graph_, node, output);
  }

  void add_uses(std::size_t v) {
    const PlanVariable& variable = data_.variables[v];
    const bool at_node = variable.kind == PlanVariable::Kind::kOperator;
    for (std::size_t u = 0; u < variable.uses.size(); ++u) {
      const ValueId value = variable.uses[u];
      StorageUse use;
      use.variable = PlanVariableId(v);
      use.operand = static_cast<std::uint32_t>(u);
      use.value = data_.values[value.index()].place;
      // An output is read after all other uses; see finish().
      use.slot = at_node ? static_cast<std::int64_t>(variable.index) : kAtEnd;
      use.until = use.slot;
      storage_of(value).uses.push_back(use);
    }
  }

  void finish(PlanStorage& storage) const {
    std::stable_sort(storage.uses.begin(), storage.uses.end(),
                     [](const StorageUse& a, const StorageUse& b) {
                       return a.slot < b.slot;
                     });
    const auto end = static_cast<std::int64_t>(graph_.nodes().size());
    std::int64_t last = storage.persistent ? -1 : storage.made_at;
    for (StorageUse& use : storage.uses) {
      if (use.slot != kAtEnd) {
        last = use.slot;
        continue;
      }
      use.slot = last + 1;
      use.until = end;
    }
    storage.segments = segments_of(graph_, storage.uses);
  }

  bool is_inside_kernel(const PlanStorage& storage) const {
    const Value& value = graph_.value(storage.values[0]);
    return data_.fusion && !value.is_input() &&
           data_.fusion->group(value.producer) != FusionGroups::kAlone &&
           data_.fusion->stays_inside(value.id);
  }

  void note_places(const PlanStorage& storage) {
    for (std::size_t u = 0; u < storage.uses.size(); ++u) {
      const StorageUse& use = storage.uses[u];
      data_.variables[use.variable.index()].use_places[use.operand] =
          static_cast<std::uint32_t>(u);
    }
  }

  static constexpr std::int64_t kAtEnd = std::int64_t{1} << 60;

  ProblemData& data_;
  const Graph& graph_;
  const StorageForest& forest_;
};

}  // namespace

Result<void> build_storages(ProblemData& data,
                            const StorageForest& forest) {
  return StorageCollector(data, forest).run();
}

}  // namespace shardprop
