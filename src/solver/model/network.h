// The problem while it is being reduced: variables lose choices, merge and
// disappear, edges move, and a trail remembers how to get a full assignment
// back from one of what is left.
//
// Costs are doubles that hold integers (exact below 2^53), forbidden is +inf.
// Memory is in rows: maximal live sets, numbered in time order. What every
// choice of a variable uses anyway is subtracted from the rows' capacities, so
// `bytes` are what a choice uses beyond its variable's least.
#pragma once

#include <shardprop/solver/checker.h>
#include <shardprop/solver/cost.h>
#include <shardprop/solver/problem.h>

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/index.h"

namespace shardprop::solver {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Tables by content: equal ones have equal ids, so that a property found once
// (separable, functional) holds for every edge that shares the table.
class TablePool {
 public:
  struct Shape {
    int rows = 0;
    int columns = 0;
  };

  int intern(int rows, int columns, std::vector<double> costs);
  Shape shape(int id) const { return tables_[index(id)].shape; }
  const std::vector<double>& costs(int id) const {
    return tables_[index(id)].costs;
  }
  double at(int id, int row, int column) const {
    const Entry& t = tables_[index(id)];
    return t.costs[index(row) * index(t.shape.columns) + index(column)];
  }

  // The same costs, seen from the other side.
  int transposed(int id);
  int sum(int a, int b);
  // Row r of the result is row rows[r] of `id`.
  int gather_rows(int id, const std::vector<int>& rows);
  // Least entry, and the table less that.
  double least(int id) const;
  int lowered(int id);
  bool is_separable(int id);
  // Every row has exactly one entry that is not forbidden.
  bool is_functional(int id);

 private:
  struct Entry {
    Shape shape;
    std::vector<double> costs;
    int transposed = -1;
    int lowered = -1;
    signed char separable = -1;
    signed char functional = -1;
  };
  int intern_map(const std::vector<int>& map);

  std::vector<Entry> tables_;
  std::unordered_multimap<std::uint64_t, int> by_hash_;
  std::map<std::pair<int, int>, int> sums_;
  std::map<std::vector<int>, int> maps_;
  std::map<std::pair<int, int>, int> gathered_;
};

// Bytes over rows [lo, hi), by choice.
struct Segment {
  int lo = 0;
  int hi = 0;
  std::vector<std::int64_t> bytes;
};

struct NetEdge {
  int a = -1;
  int b = -1;
  int table = -1;  // rows: choices of a
  bool alive = true;

  int other(int v) const { return v == a ? b : a; }
};

struct NetVariable {
  bool alive = true;
  std::vector<double> costs;
  std::vector<Segment> segments;
  std::vector<int> edges;  // may hold dead ones; see Network::live_edges

  int num_choices() const { return static_cast<int>(costs.size()); }
};

// How a variable that is gone gets its choice back.
struct TrailStep {
  int variable = -1;
  // Empty `on`: the choice becomes choice[choice of the variable itself], or
  // choice[0] when there is just one. Otherwise a row-major table over the
  // choices of the variables in `on`.
  std::vector<int> on;
  std::vector<int> sizes;
  std::vector<int> choice;
  bool renames = false;
};

class Network {
 public:
  // With `sums_fit`, no assignment costs more units than a double holds
  // exactly; else no single cost does, which leaves small ones their digits.
  explicit Network(const Problem& problem, bool sums_fit = false);

  // Shared by copies, which belong to one thread.
  TablePool& tables() { return *pool_; }
  const TablePool& tables() const { return *pool_; }

  std::vector<NetVariable> variables;
  std::vector<NetEdge> edges;
  std::vector<std::int64_t> capacity;  // bytes left per row; empty: no limit
  Int128 offset = 0;                   // cost of what has been decided
  // Costs are counted in this many of the problem's, rounded down: 1 unless
  // some cost is too large to be a double exactly.
  std::int64_t unit = 1;
  std::vector<TrailStep> trail;
  // Set once no assignment can exist. `short_row`: the row that overflows even
  // at least usage, or -1.
  bool infeasible = false;
  int short_row = -1;
  std::vector<std::int64_t> row_time;  // a time of the problem in each row

  const std::vector<int>& live_edges(int v);
  // The table of `e` with the choices of `v` as rows.
  int table_from(const NetEdge& e, int v) {
    return e.a == v ? e.table : tables().transposed(e.table);
  }
  void add_edge(int a, int b, int table);
  void remove_edge(int e) { edges[index(e)].alive = false; }

  // Keeps the choices listed in `kept`; no choice left means infeasible.
  void keep_choices(int v, const std::vector<int>& kept);
  // Takes `v` out; every edge of it must have been dealt with.
  void forget(int v, TrailStep step);
  // Moves what all choices use into the capacities (when tidy_rows runs next),
  // cuts segments at each other's ends so that they are disjoint, and joins
  // equal neighbours.
  void tidy_segments(int v);
  // Drops rows that cannot overflow or that a neighbour implies.
  void tidy_rows();
  // Moves the least finite cost of `v` into the offset.
  void normalise(int v);

  // Moves the least cost of every edge into the offset.
  void normalise_edges();

  std::size_t num_alive() const;
  // By variable that is left: which of its choices are, as they were given.
  std::vector<std::vector<int>> choices_left() const;
  // What is left, as a network of its own with its own tables and an empty
  // trail; `variable` maps its variables to those here.
  Network extract(std::vector<int>& variable) const;
  // From choices of the variables that are left to the whole problem's.
  Assignment expand(std::vector<int> choices) const;

 private:
  Network() : pool_(std::make_shared<TablePool>()) {}
  void build_memory(const Problem& problem);
  void reserve_bytes(int lo, int hi, std::int64_t bytes);
  std::vector<char> tight_rows();
  std::vector<char> telling_rows() const;
  void keep_rows(const std::vector<char>& kept);

  std::shared_ptr<TablePool> pool_;
  std::vector<std::int64_t> reserved_;  // differences; taken by tidy_rows
};

}  // namespace shardprop::solver
