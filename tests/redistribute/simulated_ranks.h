// Simulated ranks: a tensor of integers on every rank of a mesh. The
// collectives of a plan run on them group by group, as redistribute_plan.h
// specifies. A rank sees only the data of the ranks of its group.
#pragma once

#include <shardprop/placement/local_region.h>
#include <shardprop/redistribute/redistribute_plan.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace shardprop::testing {

class SimulatedRanks {
 public:
  using Value = std::int64_t;
  // Elements that a rank holds, by their place in the whole tensor.
  class Local {
   public:
    explicit Local(std::int64_t numel)
        : values_(static_cast<std::size_t>(numel)), held_(values_.size()) {}

    // Holds the element from now on.
    Value& operator[](std::int64_t element) {
      const auto at = static_cast<std::size_t>(element);
      count_ += held_[at] ? 0U : 1U;
      held_[at] = true;
      return values_[at];
    }
    bool contains(std::int64_t element) const {
      return held_[static_cast<std::size_t>(element)];
    }
    Value at(std::int64_t element) const {
      if (!contains(element)) throw std::runtime_error("an element is missing");
      return values_[static_cast<std::size_t>(element)];
    }
    std::size_t size() const { return count_; }

   private:
    std::vector<Value> values_;
    std::vector<bool> held_;
    std::size_t count_ = 0;
  };

  // Values such that averages over any mesh dims stay whole.
  static constexpr Value kUnit = 4 * 4 * 4 * 3 * 3 * 3;

  // Every rank holds its shard of `layout`; partials are split into terms.
  SimulatedRanks(const DeviceMesh& mesh, const TensorMeta& meta,
                 const Layout& layout, std::mt19937& random)
      : mesh_(mesh),
        meta_(meta),
        locals_(ranks(), Local(meta.numel())),
        received_(ranks()) {
    whole_.resize(static_cast<std::size_t>(meta.numel()));
    const bool product = op_of(layout) == ReduceOp::kProduct;
    for (Value& value : whole_) {
      value = static_cast<Value>(random() % 7) - 3;
      if (product) value = Value{1} << (random() % 6);
      if (!product) value *= kUnit;
    }
    const std::uint32_t partial = partial_dims(layout);
    for (std::size_t rank = 0; rank < ranks(); ++rank) {
      for (const std::int64_t element : elements(layout, rank)) {
        locals_[rank][element] = 0;
      }
    }
    for (std::size_t rank = 0; rank < ranks(); ++rank) {
      if (!is_first(rank, partial)) continue;
      const std::vector<std::size_t>& group = group_of(rank, partial);
      for (const std::int64_t element : elements(layout, rank)) {
        split(layout, partial, whole(element), group, element, random);
      }
    }
  }

  // Throws std::runtime_error when a rank needs what its group does not hold.
  void run(const RedistributeStep& step) {
    std::uint32_t dims = 0;
    for (const std::int32_t dim : step.mesh_dims) dims |= 1U << dim;
    std::vector<Local> next(ranks(), Local(meta_.numel()));
    std::vector<std::int64_t> sent(ranks());
    for (std::size_t rank = 0; rank < ranks(); ++rank) {
      const std::vector<std::size_t>& group = group_of(rank, dims);
      for (const std::int64_t element : elements(step.dst, rank)) {
        next[rank][element] = made(step, dims, rank, group, element, sent);
      }
    }
    locals_ = std::move(next);
    last_sent_ = *std::max_element(sent.begin(), sent.end());
  }

  // Whether every rank holds exactly its shard, and terms of partials combine
  // to the whole tensor's values.
  bool holds(const Layout& layout) const {
    const std::uint32_t partial = partial_dims(layout);
    for (std::size_t rank = 0; rank < ranks(); ++rank) {
      const std::vector<std::int64_t> wanted = elements(layout, rank);
      if (wanted.size() != locals_[rank].size()) return false;
      const std::vector<std::size_t>& group = group_of(rank, partial);
      for (const std::int64_t element : wanted) {
        if (!locals_[rank].contains(element)) return false;
        const Value value = partial == 0
                                ? locals_[rank].at(element)
                                : combined(layout, partial, group, element);
        if (value != whole(element)) return false;
      }
    }
    return true;
  }

  // Elements that the busiest rank sent to others in the last step, each once
  // for every rank it went to.
  std::int64_t last_sent() const { return last_sent_; }
  // Elements each rank got from others, in all steps together.
  const std::vector<std::int64_t>& received() const { return received_; }

 private:
  std::size_t ranks() const { return static_cast<std::size_t>(mesh_.size()); }
  Value whole(std::int64_t element) const {
    return whole_[static_cast<std::size_t>(element)];
  }
  Coordinate at(std::size_t rank) const {
    return mesh_.coordinate_at_index(static_cast<std::int64_t>(rank));
  }

  std::vector<std::int64_t> elements(const Layout& layout,
                                     std::size_t rank) const {
    const LocalRegion region =
        local_region(layout, mesh_, meta_.shape(), at(rank));
    std::vector<std::int64_t> out{0};
    for (std::size_t d = 0; d < region.dims().size(); ++d) {
      std::vector<std::int64_t> longer;
      for (const std::int64_t start : out) {
        for (const Interval& run : region.dims()[d]) {
          for (std::int64_t i = run.begin; i < run.end; ++i) {
            longer.push_back(start * meta_.shape()[d] + i);
          }
        }
      }
      out = std::move(longer);
    }
    return out;
  }

  // The ranks that differ from this one along `dims` only.
  const std::vector<std::size_t>& group_of(std::size_t rank,
                                           std::uint32_t dims) const {
    std::vector<std::vector<std::size_t>>& groups = groups_[dims];
    if (groups.empty()) {
      std::map<Coordinate, std::vector<std::size_t>> by_rest;
      std::vector<Coordinate> rests;
      for (std::size_t other = 0; other < ranks(); ++other) {
        Coordinate rest = at(other);
        for (int i = 0; i < mesh_.ndim(); ++i) {
          if ((dims >> i & 1U) != 0) rest[static_cast<std::size_t>(i)] = 0;
        }
        by_rest[rest].push_back(other);
        rests.push_back(rest);
      }
      for (const Coordinate& rest : rests) groups.push_back(by_rest[rest]);
    }
    return groups[rank];
  }

  bool is_first(std::size_t rank, std::uint32_t dims) const {
    return group_of(rank, dims).front() == rank;
  }

  static std::uint32_t partial_dims(const Layout& layout) {
    std::uint32_t dims = 0;
    for (int i = 0; i < layout.mesh_ndim(); ++i) {
      if (layout[i].is_partial()) dims |= 1U << i;
    }
    return dims;
  }

  static ReduceOp op_of(const Layout& layout) {
    for (int i = 0; i < layout.mesh_ndim(); ++i) {
      if (layout[i].is_partial()) return layout[i].reduce_op();
    }
    return ReduceOp::kSum;
  }

  // Returns the divisor of terms over `dims`: the product of the sizes of
  // averaged mesh dims.
  Value divisor(const Layout& layout, std::uint32_t dims) const {
    Value by = 1;
    for (int i = 0; i < mesh_.ndim(); ++i) {
      if ((dims >> i & 1U) != 0 && layout[i].is_partial() &&
          layout[i].reduce_op() == ReduceOp::kAvg) {
        by *= mesh_.size(i);
      }
    }
    return by;
  }

  static Value fold(ReduceOp op, Value a, Value b) {
    switch (op) {
      case ReduceOp::kSum:
      case ReduceOp::kAvg:
        return a + b;
      case ReduceOp::kProduct:
        return a * b;
      case ReduceOp::kMin:
        return std::min(a, b);
      case ReduceOp::kMax:
        return std::max(a, b);
      case ReduceOp::kBand:
        return a & b;
      case ReduceOp::kBor:
        return a | b;
      case ReduceOp::kBxor:
        return a ^ b;
    }
    return 0;
  }

  // Terms that combine to `value`, different on every rank where op allows.
  void split(const Layout& layout, std::uint32_t partial, Value value,
             const std::vector<std::size_t>& group, std::int64_t element,
             std::mt19937& random) {
    if (partial == 0) {
      locals_[group.front()][element] = value;
      return;
    }
    const ReduceOp op = op_of(layout);
    const Value target = value * divisor(layout, partial);
    Value left = target;
    for (std::size_t k = group.size(); k-- > 1;) {
      const Value noise = (static_cast<Value>(random() % 5) - 2) * kUnit;
      Value& term = locals_[group[k]][element];
      switch (op) {
        case ReduceOp::kSum:
        case ReduceOp::kAvg:
          term = noise;
          left -= noise;
          break;
        case ReduceOp::kProduct:
          term = left % 2 == 0 ? 2 : 1;
          left /= term;
          break;
        case ReduceOp::kMin:
          term = target + std::abs(noise);
          break;
        case ReduceOp::kMax:
          term = target - std::abs(noise);
          break;
        case ReduceOp::kBand:
          term = target | noise;
          break;
        case ReduceOp::kBor:
          term = target & noise;
          break;
        case ReduceOp::kBxor:
          term = noise;
          left ^= noise;
          break;
      }
    }
    locals_[group.front()][element] = left;
  }

  Value combined(const Layout& layout, std::uint32_t dims,
                 const std::vector<std::size_t>& group,
                 std::int64_t element) const {
    const ReduceOp op = op_of(layout);
    Value value = locals_[group.front()].at(element);
    for (std::size_t k = 1; k < group.size(); ++k) {
      value = fold(op, value, locals_[group[k]].at(element));
    }
    const Value by = divisor(layout, dims);
    if (value % by != 0) throw std::runtime_error("an average is no integer");
    return value / by;
  }

  Value made(const RedistributeStep& step, std::uint32_t dims, std::size_t rank,
             const std::vector<std::size_t>& group, std::int64_t element,
             std::vector<std::int64_t>& sent) {
    if (step.kind == CollectiveKind::kSlice) {
      return made_locally(step, dims, rank, element);
    }
    if (step.kind == CollectiveKind::kAllReduce ||
        step.kind == CollectiveKind::kReduceScatter) {
      for (const std::size_t other : group) {
        if (!locals_[other].contains(element)) {
          throw std::runtime_error("a term is missing in its group");
        }
      }
      return combined(step.src, dims, group, element);
    }
    if (locals_[rank].contains(element)) return locals_[rank].at(element);
    for (const std::size_t other : group) {
      if (!locals_[other].contains(element)) continue;
      ++sent[other];
      ++received_[rank];
      return locals_[other].at(element);
    }
    throw std::runtime_error("no rank of the group holds an element");
  }

  Value made_locally(const RedistributeStep& step, std::uint32_t dims,
                     std::size_t rank, std::int64_t element) const {
    if (!locals_[rank].contains(element)) {
      throw std::runtime_error("a local step needs what its rank lacks");
    }
    const Value value = locals_[rank].at(element);
    const std::uint32_t terms = partial_dims(step.dst) & dims;
    const bool from_whole = (partial_dims(step.src) & dims) == 0;
    if (terms != 0 && from_whole) {
      const ReduceOp op = op_of(step.dst);
      // Idempotent ops and averages keep the values on every rank.
      std::uint32_t emptied = 0;
      for (int i = 0; i < mesh_.ndim(); ++i) {
        if ((terms >> i & 1U) == 0) continue;
        const ReduceOp own_op = step.dst[i].reduce_op();
        if (own_op == ReduceOp::kSum || own_op == ReduceOp::kProduct ||
            own_op == ReduceOp::kBxor) {
          emptied |= 1U << i;
        }
      }
      if (!is_first(rank, emptied)) {
        return op == ReduceOp::kProduct ? 1 : 0;
      }
      return value;
    }
    // P(sum) <-> P(avg): terms are scaled by the sizes of averaged mesh dims.
    return value / divisor(step.src, dims) * divisor(step.dst, dims);
  }

  DeviceMesh mesh_;
  TensorMeta meta_;
  std::vector<Value> whole_;
  std::vector<Local> locals_;
  std::vector<std::int64_t> received_;
  std::int64_t last_sent_ = 0;
  // By set of mesh dims, then by rank.
  mutable std::map<std::uint32_t, std::vector<std::vector<std::size_t>>>
      groups_;
};

}  // namespace shardprop::testing
