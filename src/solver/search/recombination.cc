#include "solver/search/recombination.h"

#include "solver/model/row_load.h"
#include "solver/tuning.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <utility>

namespace shardprop::solver {
namespace {

// Group is a set of variables and the effect of swapping it from a to b.
struct Group {
  struct Bytes {
    int lo = 0;
    int hi = 0;
    std::int64_t more = 0;
  };
  std::vector<int> variables;
  std::vector<Bytes> bytes;
  double cost = 0;

  std::int64_t more_in(int row) const {
    std::int64_t more = 0;
    for (const Bytes& piece : bytes) {
      if (piece.lo <= row && row < piece.hi) more += piece.more;
    }
    return more;
  }
};

double cost_of_swap(const Core& core, const std::vector<int>& group,
                    const std::vector<int>& a, const std::vector<int>& b) {
  double cost = 0;
  for (const int v : group) {
    const int old_choice = a[index(v)];
    const int new_choice = b[index(v)];
    cost += core.cost(v)[new_choice] - core.cost(v)[old_choice];
    for (const Arc& arc : core.arcs(v)) {
      const int old_other = a[index(arc.other)];
      const int new_other = b[index(arc.other)];
      // Both ends see an edge inside the group; it counts once.
      if (old_other != new_other && arc.other < v) continue;
      const std::ptrdiff_t width = core.choices(arc.other);
      cost += arc.to_other[new_choice * width + new_other] -
              arc.to_other[old_choice * width + old_other];
    }
  }
  return cost;
}

std::vector<Group> groups_of(const Core& core, const std::vector<int>& a,
                             const std::vector<int>& b) {
  std::vector<Group> out;
  std::vector<char> seen(a.size(), 0);
  for (int root = 0; root < core.size(); ++root) {
    if (seen[index(root)] != 0 || a[index(root)] == b[index(root)]) continue;
    Group group;
    group.variables.push_back(root);
    seen[index(root)] = 1;
    for (std::size_t i = 0; i < group.variables.size(); ++i) {
      const int v = group.variables[i];
      for (const Arc& arc : core.arcs(v)) {
        const std::size_t u = index(arc.other);
        if (seen[u] != 0 || a[u] == b[u]) continue;
        seen[u] = 1;
        group.variables.push_back(arc.other);
      }
      for (const CoreSegment& s : core.segments(v)) {
        const std::int64_t* bytes = core.bytes_of(s);
        const std::int64_t more = bytes[b[index(v)]] - bytes[a[index(v)]];
        if (more != 0) group.bytes.push_back({s.lo, s.hi, more});
      }
    }
    group.cost = cost_of_swap(core, group.variables, a, b);
    out.push_back(std::move(group));
  }
  return out;
}

// Swaps is a selection of swapped groups and the resulting loads.
class Swaps {
 public:
  Swaps(const Core& core, const std::vector<Group>& groups,
        const std::vector<int>& a)
      : groups_(groups), load_(core.capacity), swapped_(groups.size(), 0) {
    for (int v = 0; v < core.size(); ++v) {
      for (const CoreSegment& s : core.segments(v)) {
        load_.add(s.lo, s.hi, core.bytes_of(s)[a[index(v)]]);
      }
    }
    for (const Group& g : groups) pieces_ += g.bytes.size() + 1;
    by_gain_.resize(groups.size());
    std::iota(by_gain_.begin(), by_gain_.end(), std::size_t{0});
  }

  void swap_all() {
    for (std::size_t g = 0; g < groups_.size(); ++g) swap(g);
  }
  // Swaps groups until no swap reduces the cost.
  void improve() {
    for (int pass = 0; pass < tuning::kMostSwapRounds; ++pass) {
      std::stable_sort(
          by_gain_.begin(), by_gain_.end(),
          [&](std::size_t x, std::size_t y) { return change(x) < change(y); });
      bool changed = false;
      for (const std::size_t g : by_gain_) {
        if (change(g) < 0 && swap_with_others(g)) changed = true;
      }
      if (!changed) break;
    }
  }

  double cost() const { return cost_; }
  bool swapped(std::size_t g) const { return swapped_[g] != 0; }
  std::uint64_t work() const { return lookups_; }

 private:
  double sign(std::size_t g) const { return swapped_[g] != 0 ? -1.0 : 1.0; }
  double change(std::size_t g) const { return sign(g) * groups_[g].cost; }
  void swap(std::size_t g) {
    const std::int64_t way = swapped_[g] != 0 ? -1 : 1;
    for (const Group::Bytes& piece : groups_[g].bytes) {
      load_.add(piece.lo, piece.hi, way * piece.more);
    }
    lookups_ += groups_[g].bytes.size() + 1;
    cost_ += change(g);
    swapped_[g] ^= 1;
  }
  // Returns the group that frees bytes in the row at the least cost per byte,
  // below `room`.
  std::optional<std::size_t> cheapest_relief(
      int row, double room, const std::vector<std::size_t>& chain) {
    std::optional<std::size_t> best;
    double least = kInfinity;
    lookups_ += pieces_;
    for (std::size_t h = 0; h < groups_.size(); ++h) {
      if (change(h) >= room) continue;
      const double freed =
          -sign(h) * static_cast<double>(groups_[h].more_in(row));
      if (freed <= 0 || change(h) / freed >= least) continue;
      if (std::find(chain.begin(), chain.end(), h) != chain.end()) continue;
      least = change(h) / freed;
      best = h;
    }
    return best;
  }
  bool swap_with_others(std::size_t g) {
    const double before = cost_;
    std::vector<std::size_t> chain{g};
    swap(g);
    while (load_.max() > 0 && chain.size() < tuning::kLongestChain &&
           lookups_ < tuning::kMostSwapLookups) {
      const auto relief =
          cheapest_relief(load_.row_of_max(), before - cost_, chain);
      if (!relief) break;
      chain.push_back(*relief);
      swap(*relief);
    }
    if (load_.max() <= 0 && cost_ < before) return true;
    for (const std::size_t h : chain) swap(h);
    cost_ = before;
    return false;
  }

  const std::vector<Group>& groups_;
  RowLoad load_;
  std::vector<char> swapped_;
  std::vector<std::size_t> by_gain_;
  std::size_t pieces_ = 0;
  std::uint64_t lookups_ = 0;
  double cost_ = 0;  // beyond the cost of a
};

}  // namespace

Recombined recombine(const Core& core, const std::vector<int>& a,
                     const std::vector<int>& b) {
  const std::vector<Group> groups = groups_of(core, a, b);
  if (groups.empty()) return {a, 0, a.size()};
  Swaps from_a(core, groups, a);
  Swaps from_b = from_a;
  from_b.swap_all();
  from_a.improve();
  from_b.improve();
  const Swaps& best = from_b.cost() < from_a.cost() ? from_b : from_a;
  Recombined out{a, best.cost(), a.size() + from_a.work() + from_b.work()};
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (!best.swapped(g)) continue;
    for (const int v : groups[g].variables) {
      out.choices[index(v)] = b[index(v)];
    }
  }
  return out;
}

}  // namespace shardprop::solver
