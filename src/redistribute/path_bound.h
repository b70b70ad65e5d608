// PathBound computes a lower bound on the rest of a path, which guides the
// search.
#pragma once

#include "redistribute/path.h"
#include "redistribute/search.h"

#include <shardprop/placement/local_region.h>

#include <array>
#include <cstdint>

namespace shardprop::redistribute {

// PathBound is a lower bound on the cost from a layout to the target: latencies
// plus bytes.
//
// If a shard or partial differs from the target, it must take part in some
// collective. A cut after a cut that must change must do so too. The least
// latency of collectives over a set of mesh dims is the cheapest cover of the
// set by groups.
//
// Bytes that a cell of ranks needs and that none of its ranks holds must be
// received. The fastest collective into a cell bounds the rate. The cells are
// single ranks, and the sets of ranks that slow mesh dims separate.
//
// The bound never exceeds the cost of a path, so the search with it (A*) is
// exact.
class PathBound {
 public:
  // The bound is 0 with strided shards, because a collective may change the
  // canonical form of others. It is 0 for tensors without elements too, because
  // moving them is free.
  PathBound(const SearchProblem& problem, const State& target);

  // Returns the latency part of the bound.
  Label latencies(const State& state) const;
  // Returns the mesh dims that take part in some collective on the way from a
  // layout.
  Mask unsettled(const State& state) const;
  // Returns the least latencies of collectives over a set of mesh dims.
  Label covering(Mask set) const { return bounded_ ? cover_[set] : 0; }
  // Returns the sum of both parts.
  Label operator()(const State& state) const;

 private:
  // Probe is one cell, given by its coordinates on the mesh dims `outer`. A
  // coordinate is the last one if `last` has its bit, otherwise the first. Two
  // opposite cells are used, because a single cell may keep its elements by
  // chance.
  struct Probe {
    Mask outer = 0;
    Mask last = 0;
    double per_element = 0;
    InlineVector<Interval, 6> wanted;
    double needed = 1;  // elements wanted
  };

  // CutList lists the mesh dims that shard, first cuts first.
  struct CutList {
    std::array<std::int8_t, kMaxPlannedDims> mesh_dim{};
    std::array<std::int16_t, kMaxPlannedDims> dim{};
    int count = 0;
  };

  CutList cuts_of(const State& state) const;
  Interval part_of(Interval whole, int mesh_dim, const Probe& probe) const;
  // Computes a box of elements that the ranks of the cell want together; the
  // box is never too large.
  void wanted_by(const CutList& cuts, Probe& probe) const;
  // Returns how many wanted elements the ranks of the cell hold together; the
  // number is never too small.
  double kept_by(const CutList& cuts, const Probe& probe) const;

  const SearchProblem& problem_;
  State target_;
  bool bounded_;
  std::array<Probe, 4> probes_;
  std::size_t probe_count_ = 0;
  std::array<Label, std::size_t{1} << kMaxPlannedDims> cover_{};
};

}  // namespace shardprop::redistribute
