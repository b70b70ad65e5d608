#include "graph/analysis/dim_roles.h"

#include "base/index.h"
#include "base/union_find.h"
#include "graph/analysis/pass_through.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace shardprop {
namespace {

bool is_integer(const Value& value) {
  return !is_floating(value.meta.dtype()) && value.meta.dtype() != DType::kBool;
}

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

}  // namespace

double flops_of(const IndexSpace& space) {
  double flops = space.flops_per_point;
  for (const Factor& factor : space.factors) {
    flops *= static_cast<double>(factor.size);
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
    if (carries_elements(graph_, node, spaces_[node.id.index()])) {
      parameter_[node.outputs[0].index()] = parameter_[node.inputs[0].index()];
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

// Marks the matmul whose result, through views and casts, is the gradient.
void DimRoles::find_gradients() {
  makes_gradient_.resize(graph_.nodes().size());
  for (const GraphOutput& output : graph_.outputs()) {
    if (output.kind != OutputKind::kGradient) continue;
    const Value* value = &graph_.value(output.value);
    while (!value->is_input()) {
      const Node& producer = graph_.node(value->producer);
      const IndexSpace* space = spaces_[producer.id.index()];
      if (!carries_elements(graph_, producer, space)) {
        makes_gradient_[producer.id.index()] =
            space != nullptr && space->flops_per_point > 0 &&
            parameter_[output.target.index()].valid();
        break;
      }
      value = &graph_.value(producer.inputs[0]);
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
    const bool ids = is_integer(value) && value.meta.rank() == 2;
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

namespace {

// Beginnings holds the matmuls that begin a pair, in groups that end together.
class Beginnings {
 public:
  explicit Beginnings(const Graph& graph) : of_value_(graph.values().size()) {}

  std::size_t begin(NodeId node) {
    nodes_.push_back(node);
    paired_.push_back(false);
    normed_.push_back(false);
    return groups_.add();
  }
  void set(ValueId value, std::optional<std::size_t> group) {
    of_value_[value.index()] = group;
  }
  const std::optional<std::size_t>& of(ValueId value) const {
    return of_value_[value.index()];
  }
  std::size_t joined(std::size_t a, std::size_t b) {
    a = groups_.root(a);
    b = groups_.root(b);
    groups_.join(b, a);
    if (paired_[b]) paired_[a] = true;
    if (normed_[b]) normed_[a] = true;
    return a;
  }
  void pair(std::size_t group) { paired_[groups_.root(group)] = true; }
  // Notes that a norm or a softmax on the way needs unsharded columns: these
  // belong to the stream between pairs, or to the last result.
  void norm(std::size_t group) { normed_[groups_.root(group)] = true; }
  bool is_normed(std::size_t group) { return normed_[groups_.root(group)]; }

  std::vector<NodeId> unpaired() {
    std::vector<NodeId> out;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (!paired_[groups_.root(i)]) out.push_back(nodes_[i]);
    }
    return out;
  }

 private:
  std::vector<std::optional<std::size_t>> of_value_;
  UnionFind groups_;
  std::vector<NodeId> nodes_;
  std::vector<bool> paired_;
  std::vector<bool> normed_;
};

// Returns the columns of a matmul: the largest factor that the parameter and
// the result have and the other operands lack.
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
      // A bias has the columns, too, and is skipped.
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

// Returns whether every output has the factor or is reduced over it.
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

// Returns whether the operator reads all of the factor, so that sharding it
// needs an exchange by the operator's program.
bool needs_whole(const IndexSpace& space, FactorId factor) {
  return space.program != nullptr &&
         space.factor(factor).program == ProgramUse::kWhenSharded &&
         any_output_holds(space, factor);
}

}  // namespace

// The gradient of a table that is looked up by ids is computed from zeros and
// from values without the table's rows. Its inputs do not have the role, so the
// role is followed back from the gradient.
void DimRoles::follow_gradients() {
  for (const GraphOutput& output : graph_.outputs()) {
    if (output.kind != OutputKind::kGradient || !output.target.valid())
      continue;
    if (const auto& at = dim(output.target, DimRole::kTensor)) {
      follow_back(output.value, *at);
    }
  }
}

void DimRoles::follow_back(ValueId value, const DimTrace& at) {
  Traced& traced = of(DimRole::kTensor);
  std::vector<std::pair<ValueId, DimTrace>> open{{value, at}};
  while (!open.empty()) {
    const auto [next, trace] = open.back();
    open.pop_back();
    const Value& made = graph_.value(next);
    if (traced.values[next.index()] || made.is_input()) continue;
    const Node& maker = graph_.node(made.producer);
    const IndexSpace* space = spaces_[maker.id.index()];
    if (space == nullptr || traced.nodes[maker.id.index()]) continue;
    const auto output = static_cast<std::size_t>(
        std::find(maker.outputs.begin(), maker.outputs.end(), next) -
        maker.outputs.begin());
    const auto factor = factor_at(*space, space->outputs[output], trace);
    if (!factor || !may_cut(*space, factor->factor)) continue;
    traced.values[next.index()] = trace;
    traced.nodes[maker.id.index()] = factor;
    for (std::size_t i = 0; i < maker.inputs.size() && i < space->inputs.size();
         ++i) {
      const auto of_input = dim_at(*space, space->inputs[i], *factor);
      if (of_input && !is_stream(maker.inputs[i])) {
        open.emplace_back(maker.inputs[i], *of_input);
      }
    }
  }
}

// Returns the parameter whose rows the residual stream looks up: an embedding
// table.
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
    // A matmul whose other operand is not sharded begins a pair, unless another
    // matmul with the same parameter began one.
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
    // The second matmul of a pair follows the first with no norm between them.
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
