// The walks of DimRoles that pair matmuls, and the walk from results back to
// gradients.
#include "graph/analysis/dim_roles.h"

#include "base/index.h"
#include "base/union_find.h"
#include "graph/analysis/pass_through.h"

#include <algorithm>
#include <utility>

namespace shardprop {
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
               is_integral(graph_.value(node.inputs[i]).meta.dtype())) {
      by_stream = true;
    }
  }
  return by_stream ? table : std::nullopt;
}

std::int64_t DimRoles::pieces_of(ValueId value, const DimTrace& at) const {
  std::int64_t pieces = 1;
  for (const Use& use : graph_.value(value).consumers) {
    const Node& node = graph_.node(use.node);
    const IndexSpace* space = spaces_[node.id.index()];
    if (space == nullptr || use.operand >= space->inputs.size()) continue;
    const Operand& operand = space->inputs[use.operand];
    const auto factor = factor_at(*space, operand, at);
    if (!factor) continue;
    const FactorKind kind = space->factor(factor->factor).kind;
    // A slice that is none of several equal pieces.
    if (space->is_free && kind == FactorKind::kWindowed) return 1;
    std::int64_t found = 1;
    if (kind == FactorKind::kSegmented) {
      const DimFactors& dim = operand.dims[index(at.dim)];
      const bool fits = factor->is_outermost() && dim.size() == 2 &&
                        dim[0] == factor->factor &&
                        space->factor(dim[1]).shardable();
      if (!fits) return 1;
      found = space->factor(dim[0]).size;
    } else if (space->is_free && node.outputs.size() == 1) {
      const auto out = dim_at(*space, space->outputs[0], *factor);
      if (out) found = pieces_of(node.outputs[0], *out);
    }
    if (found == 1) continue;
    if (pieces > 1 && pieces != found) return 1;
    pieces = found;
  }
  return pieces;
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
      if (const auto at = dim_at(*space, space->outputs[0], *trace)) {
        trace->outer = pieces_of(node.outputs[0], *at);
      }
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
