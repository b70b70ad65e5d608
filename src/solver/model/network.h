// Network is the problem while it is reduced. Variables lose choices, merge and
// disappear, and edges move. A trail records how to extend an assignment of the
// rest to a full assignment.
//
// Costs are doubles that hold integers (exact below 2^53); a forbidden cost is
// +inf. Memory is in rows: maximal live sets, numbered in time order. The bytes
// that every choice of a variable uses are subtracted from the rows'
// capacities. `bytes` is therefore the use of a choice beyond its variable's
// least.
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

// TablePool stores tables by content. Equal tables have equal ids, so a
// property found once (separable, functional) holds for every edge that shares
// the table.
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

  // Returns the same costs with rows and columns exchanged.
  int transposed(int id);
  int sum(int a, int b);
  // Row r of the result is row rows[r] of `id`.
  int gather_rows(int id, const std::vector<int>& rows);
  // least() is the least entry; lowered() is the table minus that.
  double least(int id) const;
  int lowered(int id);
  bool is_separable(int id);
  // Returns whether every row has exactly one entry that is not forbidden.
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

// Segment stores the bytes over rows [lo, hi), by choice.
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
  std::vector<int> edges;  // may contain dead edges; see Network::live_edges

  int num_choices() const { return static_cast<int>(costs.size()); }
};

// TrailStep records how an eliminated variable gets its choice.
struct TrailStep {
  int variable = -1;
  // If `on` is empty, the choice is choice[choice of the variable itself], or
  // choice[0] if there is only one. Otherwise `choice` is a row-major table
  // over the choices of the variables in `on`.
  std::vector<int> on;
  std::vector<int> sizes;
  std::vector<int> choice;
  bool renames = false;
};

class Network {
 public:
  // With `sums_fit`, no assignment costs more units than a double holds
  // exactly. Otherwise this holds only for single costs, so small costs keep
  // more digits.
  explicit Network(const Problem& problem, bool sums_fit = false);

  // Copies share the pool; all of them belong to one thread.
  TablePool& tables() { return *pool_; }
  const TablePool& tables() const { return *pool_; }

  std::vector<NetVariable> variables;
  std::vector<NetEdge> edges;
  std::vector<std::int64_t> capacity;  // bytes left per row; empty: no limit
  Int128 offset = 0;                   // cost of the decisions so far
  // Costs are counted in multiples of this many units of the problem, rounded
  // down. It is 1 unless some cost is too large for an exact double.
  std::int64_t unit = 1;
  std::vector<TrailStep> trail;
  // Set once no assignment can exist. `short_row` is the row that overflows
  // even at the least usage, or -1.
  bool infeasible = false;
  int short_row = -1;
  std::vector<std::int64_t> row_time;  // a time of the problem in each row

  const std::vector<int>& live_edges(int v);
  // Returns the table of `e` with the choices of `v` as rows.
  int table_from(const NetEdge& e, int v) {
    return e.a == v ? e.table : tables().transposed(e.table);
  }
  void add_edge(int a, int b, int table);
  void remove_edge(int e) { edges[index(e)].alive = false; }

  // Keeps the choices listed in `kept`; if none is left, the network is
  // infeasible.
  void keep_choices(int v, const std::vector<int>& kept);
  // Removes `v`. Precondition: all of its edges are removed.
  void forget(int v, TrailStep step);
  // Moves the bytes that all choices use into the capacities (when tidy_rows
  // runs next). Splits segments at each other's ends so that they are disjoint,
  // and joins equal neighbours.
  void tidy_segments(int v);
  // Drops rows that cannot overflow or that a neighbour implies.
  void tidy_rows();
  // Moves the least finite cost of `v` into the offset.
  void normalise(int v);

  // Moves the least cost of every edge into the offset.
  void normalise_edges();

  std::size_t num_alive() const;
  // Returns the remaining choices of each remaining variable, in the original
  // numbering.
  std::vector<std::vector<int>> choices_left() const;
  // Returns the rest as a separate network with its own tables and an empty
  // trail. `variable` maps its variables to those of this network.
  Network extract(std::vector<int>& variable) const;
  // Extends choices of the remaining variables to the full problem.
  Assignment expand(std::vector<int> choices) const;

 private:
  Network() : pool_(std::make_shared<TablePool>()) {}
  void build_memory(const Problem& problem);
  void reserve_bytes(int lo, int hi, std::int64_t bytes);
  std::vector<char> tight_rows();
  std::vector<char> telling_rows() const;
  void keep_rows(const std::vector<char>& kept);

  std::shared_ptr<TablePool> pool_;
  std::vector<std::int64_t> reserved_;  // differences; tidy_rows applies them
};

}  // namespace shardprop::solver
