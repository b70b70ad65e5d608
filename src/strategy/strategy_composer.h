// StrategyComposer composes the strategies of one call: which factor or
// linearity each mesh dim may have, and the layouts that follow.
#pragma once

#include "base/index.h"
#include "placement/split_factor.h"
#include "strategy/carried_factors.h"
#include "strategy/factor_shards.h"
#include "strategy/joined_factors.h"
#include "strategy/sharding_choices.h"

#include <shardprop/placement/partials.h>
#include <shardprop/strategy/op_strategy.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace shardprop {

// Keeps references to its arguments, which must outlive it.
class StrategyComposer {
 public:
  StrategyComposer(const OpSchema& op, const IndexSpace& space,
                   const DeviceMesh& mesh, const StrategyOptions& options)
      : op_(op), space_(space), mesh_(mesh), options_(options) {
    slots_.resize(kinds());
    for (std::size_t f = 0; f < space.factors.size(); ++f) {
      if (can_shard(static_cast<int>(f))) {
        add_choice(static_cast<std::int16_t>(f));
      }
    }
    for (std::size_t c = 0; c < space.linearities.size(); ++c) {
      add_choice(static_cast<std::int16_t>(space.factors.size() + c));
    }
    find_mixes();
    carried_ = carried_factors(space_);
    for (const auto* operands : {&space.inputs, &space.outputs}) {
      for (const Operand& operand : *operands) {
        for (const DimFactors& factors : operand.dims) {
          for (std::size_t k = 0; k + 1 < factors.size(); ++k) {
            majors_.push_back({factors[k], run_behind(factors, k)});
          }
        }
      }
    }
  }

  const std::vector<std::int16_t>& choices() const { return choices_; }

  // Returns false if no assignment with this prefix is valid. The choices of
  // later mesh dims do not matter. Precondition: it is true for the prefix
  // without its last mesh dim. `in_mesh_order` asks about strategies with all
  // factors in mesh order only.
  bool may_begin(const Assignment& prefix, bool in_mesh_order) const {
    const std::int16_t last = prefix[prefix.size() - 1];
    if (last == kUnassigned) return true;
    if (!is_linearity(last) && !may_be_cut(prefix, last, in_mesh_order)) {
      return false;
    }
    for (const std::int16_t other : prefix) {
      if (other != kUnassigned && !mixes(last, other)) return false;
    }
    return true;
  }

  // Returns the `shardings` that layouts() accepts besides mesh order, from
  // the offered ones.
  std::vector<Layout> sharding_choices(
      const Assignment& assignment,
      std::span<const OfferedSharding> offered) const {
    return shardprop::sharding_choices(space_, mesh_, carried_, assignment,
                                       offered);
  }

  // Returns whether every factor accepts its sharding.
  bool accepts(const FactorShardings& shardings) const {
    return shardings.is_mesh_order() ||
           accept(space_, mesh_, carried_, shardings);
  }

  // Returns the layouts of all operands, inputs first; nullopt if the
  // assignment is not valid. `shardings` is as in factor_shards().
  std::optional<std::vector<Layout>> layouts(
      const Assignment& assignment, const Layout* shardings = nullptr) const {
    std::vector<FactorShards> shards(space_.factors.size());
    for (std::size_t f = 0; f < shards.size(); ++f) {
      shards[f] = factor_shards(space_, mesh_, assignment, shardings,
                                static_cast<int>(f));
      if (!allowed(space_.factors[f], shards[f])) return std::nullopt;
      if (!joins_for_need(space_, mesh_, shards, f)) return std::nullopt;
    }
    const bool sums_for_averages = averages_as_sums(space_, shards);
    const auto lacking = [&](Without without) -> std::optional<Placement> {
      if (without.is_forbidden()) return std::nullopt;
      if (!without.is_partial()) return Placement::replicate();
      const bool sum =
          sums_for_averages && without.reduce_op() == ReduceOp::kAvg;
      return Placement::partial(sum ? ReduceOp::kSum : without.reduce_op());
    };

    std::vector<Layout> all;
    all.reserve(space_.inputs.size() + space_.outputs.size());
    for (std::size_t i = 0; i < space_.inputs.size(); ++i) {
      auto layout = operand_layout(
          space_.inputs[i], op_.inputs[i], shards, assignment,
          [&](std::int16_t choice) -> std::optional<Placement> {
            if (is_linearity(choice)) {
              return passing(linearity(choice).inputs[i]);
            }
            return lacking(space_.inputs_without[i][index(choice)]);
          });
      if (!layout) return std::nullopt;
      all.push_back(*std::move(layout));
    }
    for (std::size_t o = 0; o < space_.outputs.size(); ++o) {
      auto layout = operand_layout(
          space_.outputs[o], op_.outputs[o], shards, assignment,
          [&](std::int16_t choice) -> std::optional<Placement> {
            if (is_linearity(choice)) {
              return passing(linearity(choice).outputs[o]);
            }
            return lacking(space_.outputs_without[o][index(choice)]);
          });
      if (!layout) return std::nullopt;
      all.push_back(*std::move(layout));
    }
    return all;
  }

 private:
  bool is_linearity(std::int16_t choice) const {
    return index(choice) >= space_.factors.size();
  }
  const Linearity& linearity(std::int16_t choice) const {
    return space_.linearities[index(choice) - space_.factors.size()];
  }

  static Placement passing(std::optional<ReduceOp> op) {
    return op ? Placement::partial(*op) : Placement::replicate();
  }
  // Precondition: `without` is not forbidden.
  static Placement lacking(Without without) {
    return without.is_partial() ? Placement::partial(without.reduce_op())
                                : Placement::replicate();
  }

  // Returns the placement of an operand on a mesh dim that is given to `choice`
  // but does not shard the operand.
  Placement placement_of(std::int16_t choice, std::size_t operand) const {
    const std::size_t inputs = space_.inputs.size();
    const bool is_input = operand < inputs;
    const std::size_t at = is_input ? operand : operand - inputs;
    if (is_linearity(choice)) {
      const Linearity& given = linearity(choice);
      return passing(is_input ? given.inputs[at] : given.outputs[at]);
    }
    const Operand& dims = is_input ? space_.inputs[at] : space_.outputs[at];
    if (dims.holds(choice)) return Placement::replicate();
    return lacking(is_input ? space_.inputs_without[at][index(choice)]
                            : space_.outputs_without[at][index(choice)]);
  }

  // Adds the choice unless it needs a reduction that is not defined on the
  // dtype of an operand.
  void add_choice(std::int16_t choice) {
    std::vector<Placement> placements;
    placements.reserve(operands());
    for (std::size_t o = 0; o < operands(); ++o) {
      const TensorMeta& meta = o < op_.inputs.size()
                                   ? op_.inputs[o]
                                   : op_.outputs[o - op_.inputs.size()];
      const Placement placement = placement_of(choice, o);
      if (placement.is_partial() &&
          !is_defined(placement.reduce_op(), meta.dtype())) {
        return;
      }
      placements.push_back(placement);
    }
    slots_[index(choice)] = choices_.size();
    choices_.push_back(choice);
    placements_.push_back(std::move(placements));
  }

  std::size_t operands() const {
    return space_.inputs.size() + space_.outputs.size();
  }
  std::size_t kinds() const {
    return space_.factors.size() + space_.linearities.size();
  }

  // Finds the pairs of choices that two mesh dims of one strategy may have. The
  // partials of such a pair may occur in one layout.
  void find_mixes() {
    const std::size_t count = choices_.size();
    mixes_.assign(count * count, true);
    for (std::size_t a = 0; a < count; ++a) {
      for (std::size_t b = 0; b < count; ++b) {
        if (a == b) continue;
        if (exclude_each_other(space_, choices_[a], choices_[b])) {
          mixes_[a * count + b] = false;
        }
        for (std::size_t o = 0; o < operands(); ++o) {
          const Placement one = placements_[a][o];
          const Placement other = placements_[b][o];
          if (one.is_partial() && other.is_partial() &&
              !partials_mix(one, other)) {
            mixes_[a * count + b] = false;
          }
        }
      }
    }
  }
  // Precondition: both are in choices_.
  bool mixes(std::int16_t a, std::int16_t b) const {
    return mixes_[slots_[index(a)] * choices_.size() + slots_[index(b)]];
  }

  // Returns whether the mesh dims of `prefix` may cut the factor.
  bool may_be_cut(const Assignment& prefix, std::int16_t factor,
                  bool in_mesh_order) const {
    std::int64_t parts = 1;
    for (std::size_t m = 0; m < prefix.size(); ++m) {
      if (prefix[m] == factor) parts *= mesh_.size(static_cast<int>(m));
    }
    const Factor& cut = space_.factors[index(factor)];
    if (cut.size % parts == 0) return cut.size / parts >= cut.least;
    // The sizes of uneven shards depend on the order of the cuts.
    if (!in_mesh_order) return true;
    const FactorShards shards =
        factor_shards(space_, mesh_, prefix, nullptr, factor);
    // Further cuts cannot make uneven shards even.
    return allowed(cut, shards) &&
           std::all_of(majors_.begin(), majors_.end(), [&](const Major& major) {
             return major.factor != factor || major.run <= shards.longest_run;
           });
  }

  // Returns whether the factor can be sharded. It cannot if an output lacks it
  // and has no rule for this case.
  bool can_shard(int factor) const {
    const auto f = index(factor);
    if (!space_.factors[f].shardable()) return false;
    for (std::size_t o = 0; o < space_.outputs.size(); ++o) {
      if (!space_.outputs[o].holds(factor) &&
          space_.outputs_without[o][f].is_forbidden()) {
        return false;
      }
    }
    return true;
  }

  bool allowed(const Factor& factor, const FactorShards& shards) const {
    if (shards.mesh_dims.empty()) return true;
    if (!shards.even && (factor.even || !options_.allow_uneven)) return false;
    return shards.smallest >= factor.least &&
           (shards.smallest > 0 || options_.allow_empty_shards);
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
      if (!is_linearity(choice) && operand.holds(choice)) continue;
      const auto placement = missing(choice);
      if (!placement) return std::nullopt;
      placements[m] = *placement;
    }
    for (std::size_t d = 0; d < operand.dims.size(); ++d) {
      const auto dim = static_cast<int>(d);
      const auto joined = operand.joined_factor(dim);
      const bool as_one = joined && !shards[index(*joined)].mesh_dims.empty();
      if (as_one ? !cut_as_one(space_, shards, *joined, dim, placements, order)
                 : !cut_dim(operand.dims[d], dim, shards, placements, order)) {
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

  // Returns the number of elements of a dim in one element of its k-th factor.
  std::int64_t run_behind(const DimFactors& factors, std::size_t k) const {
    std::int64_t run = 1;
    while (++k < factors.size()) run *= space_.factor(factors[k]).size;
    return run;
  }

  // Adds the cuts of one tensor dim, those of its major factor first. A minor
  // factor is cut within each piece that the major factors leave. An uneven cut
  // of a factor is valid if its shards end at the same places as chunks of the
  // dim. A strided cut needs pieces of equal size, unless the factor is the
  // dim. If shards have two different nonzero sizes, the dim is not cut again.
  bool cut_dim(const DimFactors& factors, int dim,
               const std::vector<FactorShards>& shards, Placements& placements,
               ShardOrder& order) const {
    std::int64_t pieces = 1;
    bool alike = true;
    std::int8_t place = 0;
    for (std::size_t k = 0; k < factors.size(); ++k) {
      const FactorShards& cut = shards[index(factors[k])];
      if (!cut.even && run_behind(factors, k) > cut.longest_run) return false;
      if (!cut.equal_pieces && (pieces > 1 || run_behind(factors, k) > 1)) {
        return false;
      }
      if (!alike && !cut.mesh_dims.empty()) return false;
      alike = alike && cut.alike;
      for (std::size_t i = 0; i < cut.mesh_dims.size(); ++i) {
        const auto m = index(cut.mesh_dims[i]);
        const std::int64_t split =
            cut.split_factors.empty() ? pieces : pieces * cut.split_factors[i];
        if (split > kMostPieces) return false;
        placements[m] = Placement::strided_shard(dim, static_cast<int>(split));
        order[m] = place++;
      }
      pieces *= cut.largest;
    }
    return true;
  }

  const OpSchema& op_;
  const IndexSpace& space_;
  const DeviceMesh& mesh_;
  const StrategyOptions& options_;
  std::vector<std::int16_t> choices_;
  // The index in choices_ of each factor and linearity. If there are many
  // factors, most of them are segments, which never get a mesh dim.
  std::vector<std::size_t> slots_;
  std::vector<std::vector<Placement>> placements_;  // [slot][operand]
  std::vector<bool> mixes_;                         // [slot][slot]
  // Major is a factor with minor factors in some dim; each of its elements is a
  // run of `run` elements there.
  struct Major {
    FactorId factor;
    std::int64_t run;
  };
  std::vector<Major> majors_;
  std::vector<Carried> carried_;  // by factor
};

}  // namespace shardprop
