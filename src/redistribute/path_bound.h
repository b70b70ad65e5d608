// What a path still has ahead of it, at least: the bound the search goes by.
#pragma once

#include "redistribute/search.h"

#include <shardprop/placement/local_region.h>

#include <array>
#include <cstdint>
#include <limits>

namespace shardprop::redistribute {

// Nanoseconds above steps in one number, so that one comparison says which of
// two paths is better. 64 steps are more than any path of distinct layouts
// that wins can have; times stay below 2^55 ns, a year.
using Label = std::int64_t;
inline constexpr Label kUnreached = std::numeric_limits<Label>::max() / 4;
constexpr Label label_of(std::int64_t nanoseconds, std::int64_t steps) {
  return nanoseconds * 64 + steps;
}
constexpr std::int64_t nanoseconds_of(Label label) { return label / 64; }

// What a layout at least has ahead of it: latencies plus bytes.
//
// A shard or partial that is not as the target wants it must take part in some
// collective, and so must one behind a cut that has to change. The least that
// collectives over a set of mesh dims can take is the cheapest way to cover
// the set by groups, by their latencies alone. And what a cell of ranks needs
// and none of them holds must come in, at no more than the best rate at which
// any collective feeds a cell; cells are single ranks, and the ranks that slow
// mesh dims set apart.
//
// No path costs less, so the search by it (A*) is exact.
class PathBound {
 public:
  // With strided shards a collective may change how others are written, and
  // tensors without elements travel for nothing: then there is no bound.
  PathBound(const SearchProblem& problem, const State& target);

  // The part that latencies have.
  Label latencies(const State& state) const;
  // Mesh dims that take part in some collective on the way from a layout.
  Mask unsettled(const State& state) const;
  // The least latencies of collectives over a set of mesh dims.
  Label covering(Mask set) const { return bounded_ ? cover_[set] : 0; }
  // Both parts.
  Label operator()(const State& state) const;

 private:
  // One cell, by its coordinates on the mesh dims `outer`: the first or, where
  // `last` has a bit, the last. Two opposite ones, since shards move in or out
  // of any one cell by chance.
  struct Probe {
    Mask outer = 0;
    Mask last = 0;
    double per_element = 0;
    InlineVector<Interval, 6> wanted;
    double needed = 1;  // elements wanted
  };

  // Mesh dims that shard, first cuts first.
  struct CutList {
    std::array<std::int8_t, kMaxPlannedDims> mesh_dim{};
    std::array<std::int16_t, kMaxPlannedDims> dim{};
    int count = 0;
  };

  CutList cuts_of(const State& state) const;
  Interval part_of(Interval whole, int mesh_dim, const Probe& probe) const;
  // A box that the cell's ranks want among them: no more than they do want.
  void wanted_by(const CutList& cuts, Probe& probe) const;
  // How much of what the cell wants its ranks hold among them: no less.
  double kept_by(const CutList& cuts, const Probe& probe) const;

  const SearchProblem& problem_;
  State target_;
  bool bounded_;
  std::array<Probe, 4> probes_;
  std::size_t probe_count_ = 0;
  std::array<Label, std::size_t{1} << kMaxPlannedDims> cover_{};
};

}  // namespace shardprop::redistribute
