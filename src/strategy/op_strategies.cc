// Composition over the mesh: assignments of mesh dims to factors and carries,
// and the layouts that follow.

#include <shardprop/strategy/op_strategy.h>

#include "placement/split_factor.h"
#include "strategy/factor_shards.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <unordered_set>
#include <utility>

namespace shardprop {
namespace {

class Composer {
 public:
  Composer(const OpSchema& op, const FactorMap& map, const DeviceMesh& mesh,
           const StrategyOptions& options)
      : op_(op), map_(map), mesh_(mesh), options_(options) {
    for (std::size_t f = 0; f < map.factors.size(); ++f) {
      if (can_shard(static_cast<int>(f))) {
        choices_.push_back(static_cast<std::int16_t>(f));
      }
    }
    for (std::size_t c = 0; c < map.carries.size(); ++c) {
      choices_.push_back(static_cast<std::int16_t>(map.factors.size() + c));
    }
  }

  const std::vector<std::int16_t>& choices() const { return choices_; }

  // The layouts of all operands, inputs first; nullopt when the assignment is
  // not valid.
  std::optional<std::vector<Layout>> layouts(
      const Assignment& assignment) const {
    std::vector<FactorShards> shards(map_.factors.size());
    for (std::size_t f = 0; f < shards.size(); ++f) {
      shards[f] = factor_shards(map_, mesh_, assignment, static_cast<int>(f));
      if (!allowed(map_.factors[f], shards[f])) return std::nullopt;
    }
    const bool sums_for_averages = averages_as_sums(map_, shards);

    std::vector<Layout> all;
    for (std::size_t i = 0; i < map_.inputs.size(); ++i) {
      auto layout =
          operand_layout(map_.inputs[i], op_.inputs[i], shards, assignment,
                         [&](std::int16_t choice) -> std::optional<Placement> {
                           if (is_carry(choice)) return carry(choice).inputs[i];
                           return map_.inputs_without[i][index(choice)];
                         });
      if (!layout) return std::nullopt;
      all.push_back(*std::move(layout));
    }
    for (std::size_t o = 0; o < map_.outputs.size(); ++o) {
      auto layout = operand_layout(
          map_.outputs[o], op_.outputs[o], shards, assignment,
          [&](std::int16_t choice) -> std::optional<Placement> {
            if (is_carry(choice)) return carry(choice).outputs[o];
            auto placement = map_.outputs_without[o][index(choice)];
            if (sums_for_averages && placement && placement->is_partial() &&
                placement->reduce_op() == ReduceOp::kAvg) {
              placement = Placement::partial(ReduceOp::kSum);
            }
            return placement;
          });
      if (!layout) return std::nullopt;
      all.push_back(*std::move(layout));
    }
    return all;
  }

 private:
  static std::size_t index(std::int16_t choice) {
    return static_cast<std::size_t>(choice);
  }
  bool is_carry(std::int16_t choice) const {
    return index(choice) >= map_.factors.size();
  }
  const Carry& carry(std::int16_t choice) const {
    return map_.carries[index(choice) - map_.factors.size()];
  }

  // A factor that some output lacks without a word on what becomes of it
  // cannot be sharded.
  bool can_shard(int factor) const {
    const auto f = static_cast<std::size_t>(factor);
    if (!map_.factors[f].blocked.empty() || map_.factors[f].size <= 1) {
      return false;
    }
    for (std::size_t o = 0; o < map_.outputs.size(); ++o) {
      if (!map_.outputs[o].holds(factor) && !map_.outputs_without[o][f]) {
        return false;
      }
    }
    return true;
  }

  bool allowed(const Factor& factor, const FactorShards& shards) const {
    if (shards.mesh_dims.empty()) return true;
    if (!shards.even && (factor.even || !options_.allow_uneven)) return false;
    return !shards.empty || (options_.allow_empty_shards && !factor.nonempty);
  }

  template <class Missing>
  std::optional<Layout> operand_layout(const Operand& operand,
                                       const TensorMeta& meta,
                                       const std::vector<FactorShards>& shards,
                                       const Assignment& assignment,
                                       const Missing& missing) const {
    Placements placements(assignment.size());
    ShardOrder order(assignment.size());
    for (std::size_t m = 0; m < assignment.size(); ++m) {
      const std::int16_t choice = assignment[m];
      if (choice == kUnassigned) continue;
      if (!is_carry(choice) && operand.holds(choice)) continue;
      const auto placement = missing(choice);
      if (!placement) return std::nullopt;
      placements[m] = *placement;
    }
    for (std::size_t dim = 0; dim < operand.dims.size(); ++dim) {
      if (!cut_dim(operand.dims[dim], static_cast<int>(dim), shards, placements,
                   order)) {
        return std::nullopt;
      }
    }
    auto layout = Layout::create(std::move(placements), std::move(order));
    if (!layout || !check_layout(*layout, mesh_, meta)) return std::nullopt;
    Layout form = canonical(*layout, mesh_, meta.shape());
    if (!options_.allow_strided && form.has_strided()) return std::nullopt;
    if (!options_.allow_shard_orders && !form.has_default_order()) {
      return std::nullopt;
    }
    return form;
  }

  // The cuts of one tensor dim: those of its major factor first. A minor
  // factor is cut within each of the pieces that the major ones leave.
  bool cut_dim(const DimFactors& factors, int dim,
               const std::vector<FactorShards>& shards, Placements& placements,
               ShardOrder& order) const {
    std::int64_t pieces = 1;
    std::int8_t place = 0;
    for (std::size_t k = 0; k < factors.size(); ++k) {
      const std::int8_t factor = factors[k];
      const auto f = static_cast<std::size_t>(factor);
      const FactorShards& cut = shards[f];
      const bool minor_most = k + 1 == factors.size();
      if (!cut.even && !minor_most) return false;
      for (const std::int32_t mesh_dim : cut.mesh_dims) {
        const auto m = static_cast<std::size_t>(mesh_dim);
        if (pieces > kMostPieces) return false;
        placements[m] = Placement::strided_shard(dim, static_cast<int>(pieces));
        order[m] = place++;
      }
      pieces *= cut.largest;
    }
    return true;
  }

  const OpSchema& op_;
  const FactorMap& map_;
  const DeviceMesh& mesh_;
  const StrategyOptions& options_;
  std::vector<std::int16_t> choices_;
};

struct StrategyHash {
  std::size_t operator()(const PlacementStrategy* s) const {
    return hash_range(hash_range(0, s->inputs), s->outputs);
  }
};
struct StrategyEqual {
  bool operator()(const PlacementStrategy* a,
                  const PlacementStrategy* b) const {
    return a->inputs == b->inputs && a->outputs == b->outputs;
  }
};

}  // namespace

FactorShards factor_shards(const FactorMap& map, const DeviceMesh& mesh,
                           const Assignment& assignment, int factor) {
  FactorShards out;
  out.largest = map.factors[static_cast<std::size_t>(factor)].size;
  std::int64_t least = out.largest;
  for (std::size_t m = 0; m < assignment.size(); ++m) {
    if (assignment[m] != factor) continue;
    const std::int64_t parts = mesh.size(static_cast<int>(m));
    out.mesh_dims.push_back(static_cast<std::int32_t>(m));
    out.even = out.even && out.largest % parts == 0;
    // The last chunk is the smallest; of a smaller whole it is no larger.
    least = chunk(least, parts, parts - 1).size();
    out.largest = chunk(out.largest, parts, 0).size();
  }
  out.empty = least == 0;
  return out;
}

bool averages_as_sums(const FactorMap& map,
                      const std::vector<FactorShards>& shards) {
  for (std::size_t f = 0; f < shards.size(); ++f) {
    if (map.factors[f].by_program_when_uneven && !shards[f].even) return true;
  }
  return false;
}

OpStrategy op_strategies(std::shared_ptr<const OpSchema> op,
                         std::shared_ptr<const FactorMap> map,
                         const DeviceMesh& mesh, LayoutTable& layouts,
                         const StrategyOptions& options) {
  OpStrategy out;
  const Composer composer(*op, *map, mesh, options);
  const auto ndim = static_cast<std::size_t>(mesh.ndim());

  // Counts through the assignments; mesh dims of one rank are given to
  // nothing, which says the same.
  std::vector<std::size_t> digits(ndim, 0);
  std::vector<std::size_t> base(ndim, composer.choices().size() + 1);
  for (std::size_t m = 0; m < ndim; ++m) {
    if (mesh.size(static_cast<int>(m)) == 1) base[m] = 1;
  }
  std::unordered_set<const PlacementStrategy*, StrategyHash, StrategyEqual>
      seen;
  std::deque<PlacementStrategy> kept;
  for (bool more = true; more;) {
    PlacementStrategy strategy;
    for (std::size_t m = 0; m < ndim; ++m) {
      strategy.assignment.push_back(
          digits[m] == 0 ? kUnassigned : composer.choices()[digits[m] - 1]);
    }
    if (auto operands = composer.layouts(strategy.assignment)) {
      for (std::size_t i = 0; i < operands->size(); ++i) {
        const LayoutId id = layouts.intern((*operands)[i]);
        if (i < map->inputs.size()) {
          strategy.inputs.push_back(id);
        } else {
          strategy.outputs.push_back(id);
        }
      }
      kept.push_back(std::move(strategy));
      if (!seen.insert(&kept.back()).second) {
        kept.pop_back();
      } else if (kept.size() == options.limit) {
        out.truncated = true;
        break;
      }
    }
    std::size_t m = ndim;
    while (m > 0 && ++digits[m - 1] == base[m - 1]) digits[--m] = 0;
    more = m > 0;
  }
  out.strategies.assign(std::make_move_iterator(kept.begin()),
                        std::make_move_iterator(kept.end()));
  out.op = std::move(op);
  out.map = std::move(map);
  return out;
}

std::string to_string(const PlacementStrategy& strategy,
                      const LayoutTable& layouts) {
  const auto list = [&](const InlineVector<LayoutId, 4>& ids) {
    std::string text;
    for (const LayoutId id : ids) {
      const Layout& layout = layouts[id];
      if (!text.empty()) text += ',';
      text += layout.mesh_ndim() == 1 ? to_string(layout)
                                      : "[" + to_string(layout) + "]";
    }
    return text;
  };
  return list(strategy.inputs) + "->" + list(strategy.outputs);
}

}  // namespace shardprop
