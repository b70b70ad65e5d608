#include "graph/analysis/dim_roles.h"

#include "base/index.h"
#include "graph/analysis/pass_through.h"

#include <algorithm>
#include <map>
#include <utility>

namespace shardprop {
namespace {

// Returns the number of elements of the weight that are not contracted: its
// columns.
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

// Returns whether the result consists of the elements of several inputs.
bool is_cat(const Node& node, const IndexSpace* space) {
  if (space == nullptr || node.inputs.size() < 2 || node.outputs.size() != 1 ||
      space->flops_per_point > 0) {
    return false;
  }
  const std::vector<DimFactors>& dims = space->outputs[0].dims;
  return std::any_of(dims.begin(), dims.end(), [&](const DimFactors& dim) {
    return !dim.empty() && space->factor(dim[0]).kind == FactorKind::kSegmented;
  });
}

}  // namespace

double flops_of(const IndexSpace& space) {
  double flops = space.flops_per_point;
  for (const Factor& factor : space.factors) {
    if (factor.joins.empty()) flops *= static_cast<double>(factor.size);
  }
  return flops;
}

DimRoles::DimRoles(const Graph& graph, std::vector<const IndexSpace*> spaces)
    : graph_(graph), spaces_(std::move(spaces)) {
  for (Traced& traced : traced_) {
    traced.values.resize(graph.values().size());
    traced.nodes.resize(graph.nodes().size());
  }
  find_parameters();
  find_products();
  find_gradients();
  seed_batch();
  follow(DimRole::kBatch);
  if (!has(DimRole::kBatch)) rows_ = DimRole::kTokens;
  seed_tokens();
  follow(DimRole::kTokens);
  drop_idle_tokens();
  seed_experts();
  follow(DimRole::kExperts);
  follow_tensor();
  follow_gradients();
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
    const IndexSpace* space = spaces_[node.id.index()];
    const bool splits = space != nullptr && space->is_free &&
                        node.inputs.size() == 1 && node.outputs.size() > 1;
    if (!splits && !carries_elements(graph_, node, space)) continue;
    for (const ValueId out : node.outputs) {
      parameter_[out.index()] = parameter_[node.inputs[0].index()];
    }
  }
}

// A matmul with a parameter has one operand that is a parameter of rank 2 or
// more, and another one that is computed.
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

// Marks the matmuls whose results, through views, casts and cats, are the
// gradient.
void DimRoles::find_gradients() {
  makes_gradient_.resize(graph_.nodes().size());
  std::vector<bool> seen(graph_.values().size());
  for (const GraphOutput& output : graph_.outputs()) {
    if (output.kind != OutputKind::kGradient || !output.target.valid() ||
        !parameter_[output.target.index()].valid()) {
      continue;
    }
    std::vector<ValueId> open{output.value};
    while (!open.empty()) {
      const Value& value = graph_.value(open.back());
      open.pop_back();
      if (value.is_input() || seen[value.id.index()]) continue;
      seen[value.id.index()] = true;
      const Node& producer = graph_.node(value.producer);
      const IndexSpace* space = spaces_[producer.id.index()];
      if (carries_elements(graph_, producer, space) ||
          is_cat(producer, space)) {
        open.insert(open.end(), producer.inputs.begin(), producer.inputs.end());
      } else if (space != nullptr && space->flops_per_point > 0) {
        makes_gradient_[producer.id.index()] = true;
      }
    }
  }
}

bool DimRoles::is_row(NodeId node, FactorId factor) const {
  const IndexSpace* space = spaces_[node.index()];
  if (space == nullptr || space->product == ProductKind::kConvolution) {
    return false;
  }
  const bool kept = space->outputs[0].holds(factor);
  if (const auto& weight = weight_[node.index()]) {
    return kept && !space->inputs[*weight].holds(factor);
  }
  return makes_gradient_[node.index()] && !kept;
}

// The batch is the dim of user inputs by whose rows the matmuls with parameters
// run. Dims of size 1 are in no factor, so a candidate is the first larger dim
// of an input; if other dims are before it, the batch is 1.
//
//   ids i64[4,2048], positions i64[2048]   dim 0 of ids: x of the matmuls is
//                                          [(4 2048),D], the outer part is 4
//   ids i64[1,2048], positions i64[2048]   dim 1 of ids: the batch is 1
void DimRoles::seed_batch() {
  std::map<std::pair<int, std::int64_t>, std::vector<ValueId>> candidates;
  std::vector<ValueId> inputs;
  for (const GraphInput& input : graph_.inputs()) {
    const TensorMeta& meta = graph_.value(input.value).meta;
    if (input.kind != InputKind::kUser || meta.rank() == 0) continue;
    inputs.push_back(input.value);
    int dim = 0;
    while (dim < meta.rank() && meta.size(dim) == 1) ++dim;
    if (dim == meta.rank()) continue;
    candidates[{dim, meta.size(dim)}].push_back(input.value);
  }
  Traced& batch = of(DimRole::kBatch);
  // Unit: candidates. Rare sizes are not the batch. The number of candidates
  // bounds the time of this search.
  constexpr std::size_t kMostCandidates = 8;
  std::vector<std::pair<std::size_t, std::pair<int, std::int64_t>>> by_votes;
  for (const auto& [lead, members] : candidates) {
    by_votes.emplace_back(members.size(), lead);
  }
  std::stable_sort(
      by_votes.begin(), by_votes.end(),
      [](const auto& a, const auto& b) { return a.first > b.first; });
  if (by_votes.size() > kMostCandidates) by_votes.resize(kMostCandidates);
  std::optional<std::pair<int, std::int64_t>> best;
  double most = -1;
  for (const auto& [votes, lead] : by_votes) {
    double flops = 0;
    if (by_votes.size() > 1) {
      for (const ValueId input : candidates.at(lead)) {
        batch.values[input.index()] = DimTrace{lead.first, 1};
      }
      follow(DimRole::kBatch);
      flops = flops_by_rows();
      batch.values.assign(graph_.values().size(), std::nullopt);
      batch.nodes.assign(graph_.nodes().size(), std::nullopt);
    }
    // On a tie, inputs with a batch dim of 1 know of the batch and positions do
    // not.
    if (flops > most || (flops == most && lead.first > best->first)) {
      most = flops;
      best = lead;
    }
  }
  const std::int64_t size = best && best->first == 0 ? best->second : 1;
  for (const ValueId input : inputs) {
    const TensorMeta& meta = graph_.value(input).meta;
    // A vector of one element is a scalar of the user.
    if (meta.size(0) == size && (size > 1 || meta.rank() > 1)) {
      batch.values[input.index()] = DimTrace{0, 1};
    }
  }
}

// Returns whether the factor is the outermost row of a matmul with a parameter:
// the result has it, the parameter does not, and an operand begins with it.
bool DimRoles::runs_by_rows(const Node& node, FactorId factor) const {
  const auto& weight = weight_[node.id.index()];
  if (!weight || node.phase != Phase::kForward) return false;
  const IndexSpace& space = *spaces_[node.id.index()];
  if (space.inputs[*weight].holds(factor) || !space.outputs[0].holds(factor)) {
    return false;
  }
  const auto outermost = [&](const Operand& operand) {
    for (const DimFactors& dim : operand.dims) {
      for (const FactorId each : dim) {
        if (space.factor(each).size > 1) return each == factor;
      }
    }
    return false;
  };
  return std::any_of(space.inputs.begin(), space.inputs.end(), outermost);
}

double DimRoles::flops_by_rows() const {
  double flops = 0;
  for (const Node& node : graph_.nodes()) {
    const auto& trace = factor(node.id, DimRole::kBatch);
    if (trace && trace->is_outermost() && runs_by_rows(node, trace->factor)) {
      flops += flops_of(*spaces_[node.id.index()]);
    }
  }
  return flops;
}

void DimRoles::seed_tokens() {
  for (const GraphInput& input : graph_.inputs()) {
    const Value& value = graph_.value(input.value);
    if (!dim(value.id, DimRole::kBatch)) continue;
    const bool ids = is_integral(value.meta.dtype()) && value.meta.rank() == 2;
    if ((ids || value.meta.rank() == 3) && value.meta.size(1) > 1) {
      of(DimRole::kTokens).values[value.id.index()] = DimTrace{1, 1};
    }
  }
}

// A dim has the experts if each of its indices is a matrix: the result has the
// columns next to the dim, or values select the matrix for each row. Kernels of
// a convolution are excluded.
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
    // A computed operand decides before a stored one.
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

// Returns whether the rows of the batch, or the tokens of a batch of 1, flow
// through the value.
bool DimRoles::is_stream(ValueId value) const {
  return dim(value, rows()).has_value();
}

// Tokens that no matmul with a parameter runs over are rows of a lookup: the
// indices of a bag.
void DimRoles::drop_idle_tokens() {
  const bool used = std::any_of(
      graph_.nodes().begin(), graph_.nodes().end(), [&](const Node& node) {
        const auto& trace = factor(node.id, DimRole::kTokens);
        return trace && weight_[node.id.index()] &&
               spaces_[node.id.index()]->outputs[0].holds(trace->factor);
      });
  if (used) return;
  Traced& tokens = of(DimRole::kTokens);
  tokens.values.assign(graph_.values().size(), std::nullopt);
  tokens.nodes.assign(graph_.nodes().size(), std::nullopt);
}

// Returns the way back through views and casts to the parameter, as far as the
// trace reaches.
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
    const auto factor =
        factor_at(*through, through->outputs[made.output_index], *at);
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
  // Unit: walks over the graph. A walk without some matmuls may leave others
  // without a second.
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

}  // namespace shardprop
