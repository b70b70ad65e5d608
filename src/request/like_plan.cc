#include <shardprop/request/like_plan.h>

#include "base/glob.h"
#include "base/name_folding.h"
#include "base/try.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace shardprop {
namespace {

// Layouts of one tensor between steps.
struct KeptLayouts {
  Layout stored;
  std::optional<Layout> state;
  friend bool operator==(const KeptLayouts&, const KeptLayouts&) = default;
};

bool is_kept(InputKind kind) {
  return kind == InputKind::kParameter || kind == InputKind::kBuffer;
}

// Returns whether the glob stands for the value, as in a pin.
bool is_named(const Value& value, std::string_view glob) {
  return matches_glob(glob, value.name) ||
         matches_glob(glob, value.display_name()) ||
         std::any_of(value.aliases.begin(), value.aliases.end(),
                     [&](const std::string& alias) {
                       return matches_glob(glob, alias);
                     });
}

class LikePins {
 public:
  LikePins(const Plan& plan, const Graph& graph) : graph_(graph) {
    for (const PlannedValue& value : plan.values) {
      planned_.emplace(value.name, &value);
    }
    for (const GraphInput& input : graph.inputs()) {
      if (auto layouts = layouts_of(plan, input)) {
        by_pattern_[starred_name(name(input))].push_back(
            {&input, *std::move(layouts)});
      }
    }
  }

  std::vector<Pin> pins() {
    for (const auto& [pattern, tensors] : by_pattern_) {
      if (is_alike(pattern, tensors)) {
        add(pattern, tensors[0].second);
      } else {
        for (const auto& [input, layouts] : tensors) add(name(*input), layouts);
      }
    }
    return std::move(pins_);
  }

 private:
  using Tensors = std::vector<std::pair<const GraphInput*, KeptLayouts>>;

  const std::string& name(const GraphInput& input) const {
    return graph_.value(input.value).display_name();
  }

  std::optional<KeptLayouts> layouts_of(const Plan& plan,
                                        const GraphInput& input) const {
    const auto found = planned_.find(name(input));
    if (!is_kept(input.kind) || found == planned_.end()) return std::nullopt;
    const PlannedValue& value = *found->second;
    const TensorMeta& meta = graph_.value(input.value).meta;
    if (value.kind != input.kind || value.tensor.shape != meta.shape()) {
      return std::nullopt;
    }
    KeptLayouts out{value.tensor.layout, std::nullopt};
    if (input.kind == InputKind::kParameter && !plan.updates.empty() &&
        graph_.gradient_of(input.value)) {
      out.state = value.state_layout.value_or(value.tensor.layout);
    }
    return out;
  }

  // Returns whether all inputs of the graph that the pattern names are these, with
  // equal layouts.
  bool is_alike(const std::string& pattern, const Tensors& tensors) const {
    const bool are_equal = std::all_of(
        tensors.begin(), tensors.end(),
        [&](const auto& tensor) { return tensor.second == tensors[0].second; });
    if (!are_equal) return false;
    const auto named =
        std::count_if(graph_.inputs().begin(), graph_.inputs().end(),
                      [&](const GraphInput& input) {
                        return is_named(graph_.value(input.value), pattern);
                      });
    return static_cast<std::size_t>(named) == tensors.size();
  }

  void add(const std::string& glob, const KeptLayouts& layouts) {
    const std::vector<PinTerm> terms{{PinTerm::Kind::kName, glob}};
    pins_.push_back({Pin::Place::kStored, terms, layouts.stored});
    if (layouts.state) {
      pins_.push_back({Pin::Place::kState, terms, *layouts.state});
    }
  }

  const Graph& graph_;
  std::unordered_map<std::string_view, const PlannedValue*> planned_;
  std::map<std::string, Tensors> by_pattern_;
  std::vector<Pin> pins_;
};

Result<void> check_mesh(const Plan& plan, const DeviceMesh& mesh) {
  const bool are_equal =
      plan.mesh.ndim() == mesh.ndim() &&
      std::equal(
          plan.mesh.dims().begin(), plan.mesh.dims().end(), mesh.dims().begin(),
          [](const MeshDim& a, const MeshDim& b) { return a.size == b.size; });
  if (are_equal) return {};
  return fail(
      {ErrorCode::kPlanOtherGraph,
       "the plan to lay parameters out like is of another mesh",
       {},
       {"found " + to_string(plan.mesh) + ", expected " + to_string(mesh)},
       "plan for the mesh of that plan"});
}

}  // namespace

Result<std::vector<Pin>> pins_like(const Plan& plan, const Graph& graph,
                                   const DeviceMesh& mesh) {
  if (!plan.has_plan()) {
    return fail({ErrorCode::kPlanNotRunnable,
                 "the plan to lay parameters out like holds no plan",
                 {},
                 {"its status is `" + std::string(to_string(plan.status)) +
                  "`, expected `optimal` or `feasible`"},
                 "name another plan"});
  }
  SP_CHECK(check_mesh(plan, mesh));
  std::vector<Pin> pins = LikePins(plan, graph).pins();
  if (pins.empty()) {
    return fail({ErrorCode::kPlanOtherGraph,
                 "the plan to lay parameters out like has no parameter and no "
                 "buffer of `" +
                     graph.name() + "`",
                 {},
                 {"its graph is `" + plan.graph_name +
                  "`; tensors are matched by name, kind and shape"},
                 "name a plan of the same model"});
  }
  return pins;
}

}  // namespace shardprop
