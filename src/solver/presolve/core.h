// Core is the reduced network in flat arrays, for the bound and the searches.
// Its variables are 0..n-1, and every table is stored in both orientations.
#pragma once

#include "base/index.h"
#include "solver/model/network.h"

#include <cstdint>
#include <span>
#include <vector>

namespace shardprop::solver {

struct CoreSegment {
  int lo = 0;
  int hi = 0;
  std::size_t bytes = 0;  // offset of the first choice in Core::bytes
};

// Arc is an edge as seen from one of its ends.
struct Arc {
  int other = 0;
  int edge = 0;
  const double* to_other = nullptr;    // row: my choice
  const double* from_other = nullptr;  // row: the other's choice
};

struct CoreEdge {
  int a = 0;
  int b = 0;
  const double* table = nullptr;       // rows: choices of a
  const double* transposed = nullptr;  // rows: choices of b
};

struct Core {
  // Costs above `ceiling`, including forbidden ones, become `ceiling`. If the
  // ceiling is above every cost of interest, the optimum stays the same and
  // bounds remain valid. No search then meets an infinity.
  Core(Network& network, double ceiling);

  int size() const { return static_cast<int>(network_variable.size()); }
  int choices(int v) const { return at[index(v) + 1] - at[index(v)]; }
  const double* cost(int v) const { return &unary[index(at[index(v)])]; }
  std::span<const Arc> arcs(int v) const {
    const auto i = index(v);
    return {arc_list.data() + arc_begin[i], arc_list.data() + arc_begin[i + 1]};
  }
  std::span<const CoreSegment> segments(int v) const {
    const auto i = index(v);
    return {segment_list.data() + segment_begin[i],
            segment_list.data() + segment_begin[i + 1]};
  }
  const std::int64_t* bytes_of(const CoreSegment& s) const {
    return bytes.data() + s.bytes;
  }
  int rows() const { return static_cast<int>(capacity.size()); }

  std::vector<int> network_variable;
  std::vector<int> at;  // first choice of each variable in flat arrays
  std::vector<double> unary;
  std::vector<CoreEdge> edges;
  std::vector<std::size_t> arc_begin;
  std::vector<Arc> arc_list;
  std::vector<std::size_t> segment_begin;
  std::vector<CoreSegment> segment_list;
  std::vector<std::int64_t> bytes;
  std::vector<std::int64_t> capacity;
  Int128 offset = 0;
  double ceiling = 0;

 private:
  std::vector<std::vector<double>> tables_;
};

}  // namespace shardprop::solver
