#include "plan/storages.h"

#include "base/index.h"
#include "base/try.h"
#include "plan/problem_body.h"
#include "plan/shown_operand.h"
#include "plan/stop.h"
#include "plan/storage_class.h"

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
  StorageCollector(PlanProblem::Body& body, const StorageForest& forest)
      : body_(body), graph_(body.graph), forest_(forest) {}

  Result<void> run() {
    for (const Value& value : graph_.values()) add_value(value);
    for (std::size_t v = 0; v < body_.variables.size(); ++v) add_maker(v);
    for (std::size_t v = 0; v < body_.variables.size(); ++v) add_uses(v);
    for (PlanStorage& storage : body_.storages) finish(storage);
    for (PlanStorage& storage : body_.storages) {
      storage.inside_kernel = is_inside_kernel(storage);
    }
    for (PlanVariable& variable : body_.variables) {
      variable.use_places.resize(variable.uses.size());
    }
    for (const PlanStorage& storage : body_.storages) note_places(storage);
    StorageClasses classes(body_, forest_);
    for (PlanStorage& storage : body_.storages) {
      SP_CHECK(body_.check_stop());
      SP_ASSIGN(storage.kind, classes.of(storage));
    }
    return {};
  }

 private:
  // Values come in the order in which they are produced: parents first.
  void add_value(const Value& value) {
    PlanValue& planned = body_.values[value.id.index()];
    const ValueId root = forest_.root(value.id);
    if (root == value.id) {
      planned.storage = PlanStorageId(body_.storages.size());
      body_.storages.emplace_back();
    } else {
      planned.storage = body_.values[root.index()].storage;
    }
    PlanStorage& storage = body_.storages[planned.storage.index()];
    planned.place = static_cast<std::uint32_t>(storage.values.size());
    storage.values.push_back(value.id);
  }

  PlanStorage& storage_of(ValueId value) {
    return body_.storages[body_.values[value.index()].storage.index()];
  }

  void add_maker(std::size_t v) {
    const PlanVariable& variable = body_.variables[v];
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
    const OpStrategy& op = body_.choices_of_node[node.id.index()]->op;
    if (!runs_as_view(*op.space)) return std::nullopt;
    return shown_operand(graph_, node, output);
  }

  void add_uses(std::size_t v) {
    const PlanVariable& variable = body_.variables[v];
    const bool at_node = variable.kind == PlanVariable::Kind::kOperator;
    for (std::size_t u = 0; u < variable.uses.size(); ++u) {
      const ValueId value = variable.uses[u];
      StorageUse use;
      use.variable = PlanVariableId(v);
      use.operand = static_cast<std::uint32_t>(u);
      use.value = body_.values[value.index()].place;
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
    return body_.fusion && !value.is_input() &&
           body_.fusion->group(value.producer) != FusionGroups::kAlone &&
           body_.fusion->stays_inside(value.id);
  }

  void note_places(const PlanStorage& storage) {
    for (std::size_t u = 0; u < storage.uses.size(); ++u) {
      const StorageUse& use = storage.uses[u];
      body_.variables[use.variable.index()].use_places[use.operand] =
          static_cast<std::uint32_t>(u);
    }
  }

  static constexpr std::int64_t kAtEnd = std::int64_t{1} << 60;

  PlanProblem::Body& body_;
  const Graph& graph_;
  const StorageForest& forest_;
};

}  // namespace

bool StorageForest::keeps_every_element(const Graph& graph, const Node& node) {
  if (node.inputs.size() != 1 || node.outputs.size() != 1) return false;
  const Value& out = graph.value(node.outputs[0]);
  return out.view_of == node.inputs[0] &&
         out.meta.dtype() == graph.value(node.inputs[0]).meta.dtype() &&
         out.meta.numel() == graph.value(node.inputs[0]).meta.numel();
}

void StorageForest::add_view(ValueId value, ValueId of,
                             std::shared_ptr<const ChoiceSet> choices) {
  links_[value.index()] = {of, root(of), std::move(choices)};
}

ValueId StorageForest::root(ValueId value) const {
  const ValueId root = links_[value.index()].root;
  return root.valid() ? root : value;
}

std::vector<LayoutSet> StorageForest::wanted_layouts(
    const std::vector<PlanVariable>& variables) const {
  std::vector<LayoutSet> wanted(links_.size());
  for (const PlanVariable& variable : variables) {
    if (!variable.choices) continue;
    for (std::size_t u = 0; u < variable.uses.size(); ++u) {
      LayoutSet& of_value = wanted[variable.uses[u].index()];
      for (const LayoutId id : variable.choices->layouts[u]) of_value.add(id);
    }
  }
  // A view comes after the value that it views.
  for (std::size_t v = links_.size(); v-- > 0;) {
    if (!links_[v].parent.valid()) continue;
    const ChoiceSet& view = *links_[v].view;
    for (std::size_t c = 0; c < view.size(); ++c) {
      if (wanted[v].contains(view.layout(c, 1))) {
        wanted[links_[v].parent.index()].add(view.layout(c, 0));
      }
    }
  }
  return wanted;
}

void StorageForest::see(std::vector<std::vector<LayoutId>>& layouts) const {
  // A view comes after the value that it views.
  for (std::size_t v = 0; v < links_.size(); ++v) {
    if (!links_[v].parent.valid()) continue;
    LayoutSet of_parent;
    for (const LayoutId id : layouts[links_[v].parent.index()]) {
      of_parent.add(id);
    }
    const ChoiceSet& view = *links_[v].view;
    layouts[v].clear();
    for (std::size_t c = 0; c < view.size(); ++c) {
      if (of_parent.contains(view.layout(c, 0))) {
        layouts[v].push_back(view.layout(c, 1));
      }
    }
  }
}

Result<void> build_storages(PlanProblem::Body& body,
                            const StorageForest& forest) {
  return StorageCollector(body, forest).run();
}

}  // namespace shardprop
