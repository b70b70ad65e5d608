#include "solver/bound/shifted_costs.h"

#include <algorithm>

namespace shardprop::solver {
namespace {

constexpr std::uint64_t kPasses = 5;  // passes over each entry

}  // namespace

ShiftedCosts::ShiftedCosts(const Core& core, const DualBound& dual,
                           const std::vector<int>& met)
    : core_(core),
      most_moved_(static_cast<std::int64_t>(dual.limit() / dual.quantum())) {
  take_messages(dual);
  std::vector<int> place(met.size(), 0);
  for (std::size_t i = 0; i < met.size(); ++i) {
    place[index(met[i])] = static_cast<int>(i);
  }
  for (std::size_t i = met.size(); i-- > 0;) drain(met[i], place);
}

void ShiftedCosts::take_messages(const DualBound& dual) {
  const double scale = 1 / dual.quantum();
  const auto quanta = [&](double cost) {
    return static_cast<std::int64_t>(cost * scale);
  };
  for (const CoreEdge& edge : core_.edges) {
    const std::size_t entries =
        index(core_.choices(edge.a)) * index(core_.choices(edge.b));
    std::vector<std::int64_t>& costs = edges_.emplace_back();
    costs.reserve(entries);
    work_ += kPasses * entries;
    for (std::size_t i = 0; i < entries; ++i) {
      costs.push_back(quanta(edge.table[i]));
    }
  }
  for (int v = 0; v < core_.size(); ++v) {
    const std::size_t k = index(core_.choices(v));
    std::vector<std::int64_t>& mine = variables_.emplace_back();
    for (std::size_t c = 0; c < k; ++c)
      mine.push_back(quanta(core_.cost(v)[c]));
    const auto arcs = core_.arcs(v);
    for (std::size_t i = 0; i < arcs.size(); ++i) {
      const auto told = dual.best_message(core_.arc_begin[index(v)] + i, v);
      const CoreEdge& edge = core_.edges[index(arcs[i].edge)];
      std::vector<std::int64_t>& costs = edges_[index(arcs[i].edge)];
      const std::size_t columns = index(core_.choices(edge.b));
      for (std::size_t c = 0; c < k; ++c) {
        const std::int64_t message = quanta(told[c]);
        mine[c] += message;
        if (edge.a == v) {
          for (std::size_t d = 0; d < columns; ++d) {
            costs[c * columns + d] -= message;
          }
        } else {
          for (std::size_t r = c; r < costs.size(); r += columns) {
            costs[r] -= message;
          }
        }
      }
    }
  }
}

// Moves the remaining cost of `v` in equal shares to its edges to earlier
// variables. The least costs of these edges then move to the earlier variables.
void ShiftedCosts::drain(int v, const std::vector<int>& place) {
  std::vector<std::int64_t>& mine = variables_[index(v)];
  std::int64_t earlier = 0;
  for (const Arc& arc : core_.arcs(v)) {
    earlier += place[index(arc.other)] < place[index(v)] ? 1 : 0;
  }
  if (earlier == 0) {
    const std::int64_t least = *std::min_element(mine.begin(), mine.end());
    for (std::int64_t& cost : mine) cost -= least;
    least_ += least;
  }
  for (const Arc& arc : core_.arcs(v)) {
    if (place[index(arc.other)] > place[index(v)]) continue;
    const CoreEdge& edge = core_.edges[index(arc.edge)];
    std::vector<std::int64_t>& costs = edges_[index(arc.edge)];
    std::vector<std::int64_t>& theirs = variables_[index(arc.other)];
    const std::size_t columns = index(core_.choices(edge.b));
    const bool is_a = edge.a == v;
    std::vector<std::int64_t> share;
    share.reserve(mine.size());
    for (std::int64_t& cost : mine) {
      // The edges that follow share the rest.
      share.push_back(cost / earlier);
      cost -= share.back();
    }
    --earlier;
    std::vector<std::int64_t> least(theirs.size(), most_moved_);
    for (std::size_t i = 0; i < costs.size(); ++i) {
      const std::size_t row = i / columns;
      const std::size_t column = i % columns;
      costs[i] += share[is_a ? row : column];
      std::int64_t& there = least[is_a ? column : row];
      there = std::min(there, costs[i]);
    }
    for (std::size_t i = 0; i < costs.size(); ++i) {
      costs[i] -= least[is_a ? i % columns : i / columns];
    }
    for (std::size_t d = 0; d < theirs.size(); ++d) theirs[d] += least[d];
  }
}

}  // namespace shardprop::solver
