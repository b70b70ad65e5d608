#include "plan/dim_roles.h"

#include "base/index.h"
#include "plan/carried.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace shardprop {
namespace {

bool is_integer(const Value& value) {
  return !is_floating(value.meta.dtype()) && value.meta.dtype() != DType::kBool;
}

// How much of a product's weight its result keeps: columns, and what else is
// not contracted.
std::int64_t kept_of(const IndexSpace& space, std::size_t weight) {
  std::int64_t kept = 1;
  for (std::size_t f = 0; f < space.factors.size(); ++f) {
    const auto factor = static_cast<FactorId>(f);
    if (space.inputs[weight].holds(factor) && space.outputs[0].holds(factor)) {
      kept *= space.factor(factor).size;
    }
  }
  return kept;
}

}  // namespace

DimRoles::DimRoles(const Graph& graph, std::vector<const IndexSpace*> spaces)
    : graph_(graph), spaces_(std::move(spaces)) {
  for (Traced& traced : traced_) {
    traced.values.resize(graph.values().size());
    traced.nodes.resize(graph.nodes().size());
  }
  find_parameters();
  find_products();
  seed_batch();
  follow(DimRole::kBatch);
  seed_tokens();
  follow(DimRole::kTokens);
  seed_experts();
  follow(DimRole::kExperts);
  follow_tensor();
}

bool DimRoles::has(DimRole role) const {
  const Traced& traced = of(role);
  return std::any_of(traced.nodes.begin(), traced.nodes.end(),
                     [](const auto& node) { return node.has_value(); });
}

void DimRoles::find_parameters() {
  parameter_.resize(graph_.values().size());
  for (const GraphInput& input : graph_.inputs()) {
    if (input.kind == InputKind::kParameter) {
      parameter_[input.value.index()] = input.value;
    }
  }
  for (const Node& node : graph_.nodes()) {
    if (carries_elements(graph_, node, spaces_[node.id.index()])) {
      parameter_[node.outputs[0].index()] = parameter_[node.inputs[0].index()];
    }
  }
}

// Products contract a factor of a parameter of rank 2 or more with something
// that is none.
void DimRoles::find_products() {
  weight_.resize(graph_.nodes().size());
  for (const Node& node : graph_.nodes()) {
    const IndexSpace* space = spaces_[node.id.index()];
    if (space == nullptr || space->flops_per_point <= 0) continue;
    std::optional<std::size_t> weight;
    bool other = false;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const Value& value = graph_.value(node.inputs[i]);
      if (value.meta.rank() < 2) continue;
      if (parameter_[value.id.index()].valid()) {
        weight = i;
      } else {
        other = true;
      }
    }
    if (weight && other) weight_[node.id.index()] = weight;
  }
}

// Dims that many inputs of the user begin with; ones are broadcast.
void DimRoles::seed_batch() {
  std::map<std::int64_t, int> votes;
  for (const GraphInput& input : graph_.inputs()) {
    const Value& value = graph_.value(input.value);
    if (input.kind != InputKind::kUser || value.meta.rank() == 0) continue;
    if (value.meta.size(0) > 1) ++votes[value.meta.size(0)];
  }
  if (votes.empty()) return;
  const auto most = std::max_element(
      votes.begin(), votes.end(),
      [](const auto& a, const auto& b) { return a.second < b.second; });
  for (const GraphInput& input : graph_.inputs()) {
    const Value& value = graph_.value(input.value);
    if (input.kind == InputKind::kUser && value.meta.rank() > 0 &&
        value.meta.size(0) == most->first) {
      of(DimRole::kBatch).values[value.id.index()] = DimTrace{0, 1};
    }
  }
}

void DimRoles::seed_tokens() {
  for (const GraphInput& input : graph_.inputs()) {
    const Value& value = graph_.value(input.value);
    if (!dim(value.id, DimRole::kBatch)) continue;
    const bool ids = is_integer(value) && value.meta.rank() == 2;
    if ((ids || value.meta.rank() == 3) && value.meta.size(1) > 1) {
      of(DimRole::kTokens).values[value.id.index()] = DimTrace{1, 1};
    }
  }
}

// Each index of the dim is a matrix of its own: its columns are in the result
// beside it, or values say which of them a row is multiplied with. Kernels of a
// convolution are no such matrices.
void DimRoles::seed_experts() {
  for (const Node& node : graph_.nodes()) {
    const auto& weight = weight_[node.id.index()];
    if (!weight) continue;
    const IndexSpace& space = *spaces_[node.id.index()];
    if (space.product == ProductKind::kConvolution) continue;
    for (std::size_t f = 0; f < space.factors.size(); ++f) {
      const auto factor = static_cast<FactorId>(f);
      const bool by_values = space.factor(factor).kind == FactorKind::kIndexed;
      if (!by_values && !space.outputs[0].holds(factor)) continue;
      const std::vector<Hop> way = way_back(node, *weight, {factor, 1});
      if (way.empty() || way.back().dim != DimTrace{0, 1}) continue;
      const Value& parameter = graph_.value(way.back().value);
      const TensorMeta& meta = parameter.meta;
      if (!parameter.is_input() || meta.rank() < 3 || meta.size(0) < 2)
        continue;
      if (by_values || kept_of(space, *weight) > meta.size(0)) {
        of(DimRole::kExperts).values[parameter.id.index()] = DimTrace{0, 1};
      }
    }
  }
}

std::optional<FactorTrace> DimRoles::strongest(const Node& node,
                                               DimRole role) const {
  const IndexSpace& space = *spaces_[node.id.index()];
  std::map<std::pair<FactorId, std::int64_t>, double> votes;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId input = node.inputs[i];
    const auto& at = dim(input, role);
    if (!at) continue;
    const auto factor = factor_at(space, space.inputs[i], *at);
    if (!factor) continue;
    // What is computed decides before what is stored.
    const double weight = parameter_[input.index()].valid() ? 0.5 : 1e18;
    votes[{factor->factor, factor->outer}] +=
        weight + static_cast<double>(graph_.value(input).meta.numel());
  }
  if (votes.empty()) return std::nullopt;
  const auto best = std::max_element(
      votes.begin(), votes.end(),
      [](const auto& a, const auto& b) { return a.second < b.second; });
  return FactorTrace{best->first.first, best->first.second};
}

void DimRoles::mark_outputs(const Node& node, DimRole role,
                            const FactorTrace& trace) {
  const IndexSpace& space = *spaces_[node.id.index()];
  of(role).nodes[node.id.index()] = trace;
  for (std::size_t o = 0; o < node.outputs.size(); ++o) {
    of(role).values[node.outputs[o].index()] =
        dim_at(space, space.outputs[o], trace);
  }
}

void DimRoles::follow(DimRole role) {
  for (const Node& node : graph_.nodes()) {
    if (spaces_[node.id.index()] == nullptr) continue;
    if (const auto trace = strongest(node, role)) {
      mark_outputs(node, role, *trace);
    }
  }
}

// Part of what the batch flows through.
bool DimRoles::is_stream(ValueId value) const {
  return dim(value, DimRole::kBatch).has_value();
}

// Back through views and casts to the parameter itself, as far as it goes.
std::vector<DimRoles::Hop> DimRoles::way_back(const Node& node,
                                              std::size_t operand,
                                              const FactorTrace& trace) const {
  std::vector<Hop> way;
  const IndexSpace& space = *spaces_[node.id.index()];
  ValueId value = node.inputs[operand];
  auto at = dim_at(space, space.inputs[operand], trace);
  while (at) {
    way.push_back({value, *at, {}, {}});
    const Value& made = graph_.value(value);
    if (made.is_input()) break;
    const Node& maker = graph_.node(made.producer);
    const IndexSpace* through = spaces_[maker.id.index()];
    if (through == nullptr) break;
    const auto factor = factor_at(*through, through->outputs[0], *at);
    if (!factor) break;
    way.back().maker = maker.id;
    way.back().factor = factor;
    at = dim_at(*through, through->inputs[0], *factor);
    value = maker.inputs[0];
  }
  return way;
}

void DimRoles::mark_parameter(const Node& node, std::size_t operand,
                              const FactorTrace& trace) {
  Traced& traced = of(DimRole::kTensor);
  for (const Hop& hop : way_back(node, operand, trace)) {
    traced.values[hop.value.index()] = hop.dim;
    if (hop.factor) traced.nodes[hop.maker.index()] = hop.factor;
  }
}

void DimRoles::follow_tensor() {
  std::vector<bool> alone(graph_.nodes().size(), false);
  // Leaving a product out may leave others without a second.
  constexpr int kMostWalks = 8;
  for (int walk = 0; walk < kMostWalks; ++walk) {
    Traced& traced = of(DimRole::kTensor);
    traced.values.assign(graph_.values().size(), std::nullopt);
    traced.nodes.assign(graph_.nodes().size(), std::nullopt);
    const std::vector<NodeId> unpaired = walk_tensor(alone);
    if (unpaired.empty()) return;
    for (const NodeId node : unpaired) alone[node.index()] = true;
  }
}

namespace {

// Products that begin a pair, in groups that end together.
class Beginnings {
 public:
  explicit Beginnings(const Graph& graph) : of_value_(graph.values().size()) {}

  std::size_t begin(NodeId node) {
    parents_.push_back(parents_.size());
    nodes_.push_back(node);
    paired_.push_back(false);
    normed_.push_back(false);
    return parents_.back();
  }
  void set(ValueId value, std::optional<std::size_t> group) {
    of_value_[value.index()] = group;
  }
  const std::optional<std::size_t>& of(ValueId value) const {
    return of_value_[value.index()];
  }
  std::size_t joined(std::size_t a, std::size_t b) {
    a = root(a);
    b = root(b);
    parents_[b] = a;
    if (paired_[b]) paired_[a] = true;
    if (normed_[b]) normed_[a] = true;
    return a;
  }
  void pair(std::size_t group) { paired_[root(group)] = true; }
  // That a norm or a softmax on the way needs the columns whole: what it is a
  // norm of is the stream between pairs, or the last result.
  void norm(std::size_t group) { normed_[root(group)] = true; }
  bool is_normed(std::size_t group) { return normed_[root(group)]; }

  std::vector<NodeId> unpaired() {
    std::vector<NodeId> out;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (!paired_[root(i)]) out.push_back(nodes_[i]);
    }
    return out;
  }

 private:
  std::size_t root(std::size_t group) {
    while (parents_[group] != group) group = parents_[group];
    return group;
  }

  std::vector<std::optional<std::size_t>> of_value_;
  std::vector<std::size_t> parents_;
  std::vector<NodeId> nodes_;
  std::vector<bool> paired_;
  std::vector<bool> normed_;
};

// The columns of a product: the largest factor that the parameter and the
// result have and the other operands have not.
std::optional<FactorTrace> columns_of(const IndexSpace& space,
                                      std::size_t weight) {
  std::optional<FactorTrace> best;
  for (std::size_t f = 0; f < space.factors.size(); ++f) {
    const auto id = static_cast<FactorId>(f);
    if (!space.factors[f].shardable() || !space.inputs[weight].holds(id) ||
        !space.outputs[0].holds(id)) {
      continue;
    }
    bool elsewhere = false;
    for (std::size_t i = 0; i < space.inputs.size(); ++i) {
      // A bias has the columns, too.
      elsewhere = elsewhere || (i != weight && space.inputs[i].holds(id) &&
                                space.inputs[i].dims.size() > 1);
    }
    if (elsewhere) continue;
    if (!best || space.factor(best->factor).size < space.factors[f].size) {
      best = FactorTrace{id, 1};
    }
  }
  return best;
}

// Every output has the factor or is reduced over it.
bool may_cut(const IndexSpace& space, FactorId factor) {
  if (!space.factor(factor).shardable()) return false;
  for (std::size_t o = 0; o < space.outputs.size(); ++o) {
    if (!space.outputs[o].holds(factor) &&
        space.outputs_without[o][index(factor)].is_forbidden()) {
      return false;
    }
  }
  return true;
}

bool any_output_holds(const IndexSpace& space, FactorId factor) {
  return std::any_of(
      space.outputs.begin(), space.outputs.end(),
      [&](const Operand& output) { return output.holds(factor); });
}

// Made from all of the factor, along which it can be cut only by exchanging
// what its program needs.
bool needs_whole(const IndexSpace& space, FactorId factor) {
  return space.program != nullptr &&
         space.factor(factor).program == ProgramUse::kWhenSharded &&
         any_output_holds(space, factor);
}

}  // namespace

// The parameter whose rows are looked up by what flows in: an embedding.
std::optional<std::size_t> DimRoles::looked_up(const Node& node) const {
  const IndexSpace& space = *spaces_[node.id.index()];
  std::optional<std::size_t> table;
  bool by_stream = false;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const auto rows = factor_at(space, space.inputs[i], DimTrace{0, 1});
    if (parameter_[node.inputs[i].index()].valid() && rows &&
        space.factor(rows->factor).kind == FactorKind::kIndexed &&
        !any_output_holds(space, rows->factor)) {
      table = i;
    } else if (is_stream(node.inputs[i]) &&
               is_integer(graph_.value(node.inputs[i]))) {
      by_stream = true;
    }
  }
  return by_stream ? table : std::nullopt;
}

std::vector<NodeId> DimRoles::walk_tensor(const std::vector<bool>& alone) {
  constexpr DimRole kRole = DimRole::kTensor;
  Beginnings beginnings(graph_);
  for (const Node& node : graph_.nodes()) {
    const IndexSpace* space = spaces_[node.id.index()];
    if (space == nullptr || space->inputs.size() != node.inputs.size()) {
      continue;
    }
    const auto& weight = weight_[node.id.index()];
    const bool forward = node.phase == Phase::kForward;
    std::optional<FactorTrace> trace = strongest(node, kRole);
    std::optional<std::size_t> group;
    bool meets_stream = false;
    for (std::size_t i = 0; trace && i < node.inputs.size(); ++i) {
      const ValueId input = node.inputs[i];
      const auto& at = dim(input, kRole);
      if (at && factor_at(*space, space->inputs[i], *at) == trace) {
        if (const auto& of = beginnings.of(input)) {
          group = group ? beginnings.joined(*group, *of) : *of;
        }
      } else if (space->inputs[i].holds(trace->factor) && is_stream(input)) {
        meets_stream = true;
      }
    }
    const auto table =
        forward && !trace && !weight ? looked_up(node) : std::nullopt;
    if (table) {
      trace = factor_at(*space, space->inputs[*table], DimTrace{0, 1});
      if (!trace || !may_cut(*space, trace->factor)) continue;
      mark_outputs(node, kRole, *trace);
      mark_parameter(node, *table, *trace);
      continue;
    }
    // A product whose other operand is not cut begins a pair, unless its
    // parameter is shared with one that already did.
    const bool begins = forward && weight && !alone[node.id.index()] &&
                        (!trace || meets_stream);
    if (begins && !trace) {
      trace = columns_of(*space, *weight);
      if (!trace) continue;
      meets_stream = false;
      group = beginnings.begin(node.id);
    }
    if (!trace || meets_stream || !may_cut(*space, trace->factor)) continue;
    mark_outputs(node, kRole, *trace);
    for (const ValueId out : node.outputs) {
      if (dim(out, kRole)) beginnings.set(out, group);
    }
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (parameter_[node.inputs[i].index()].valid() && forward) {
        mark_parameter(node, i, *trace);
      }
    }
    if (!forward || !group) continue;
    if (needs_whole(*space, trace->factor)) beginnings.norm(*group);
    // The second of a pair follows the first with no norm between them.
    if (!any_output_holds(*space, trace->factor) &&
        !(weight && beginnings.is_normed(*group))) {
      beginnings.pair(*group);
    }
  }
  for (const GraphOutput& output : graph_.outputs()) {
    if (output.kind != OutputKind::kUser && output.kind != OutputKind::kLoss) {
      continue;
    }
    const auto& group = beginnings.of(output.value);
    if (group &&
        (output.kind == OutputKind::kLoss || !beginnings.is_normed(*group))) {
      beginnings.pair(*group);
    }
  }
  return beginnings.unpaired();
}

}  // namespace shardprop
