// `Problem` is the plan problem: a cost function network with memory
// constraints.
//
//   minimise   sum of the chosen unary costs
//            + sum over edges of table[choice of a][choice of b]
//   such that  at every time, the bytes in use sum to at most the limit.
//
// Each variable takes one of its choices. Each choice uses bytes (>= 0) over a
// list of half-open intervals. Parallel edges add up. An edge from a variable
// to itself counts the diagonal of its table. Equal edges share a table.
//
//   ProblemBuilder builder;
//   VariableId x = builder.add_variable(std::array<std::int64_t, 2>{5, 1});
//   VariableId y = builder.add_variable(std::array<std::int64_t, 2>{0, 2});
//   builder.add_usage(x, {0, 10}, std::array<std::int64_t, 2>{64, 128});
//   TableId t =
//       builder.add_table(2, 2, std::array<std::int64_t, 4>{0, 3, 4, 0});
//   builder.add_edge(x, y, t);
//   builder.set_limit(100);
//   Result<Problem> problem = std::move(builder).build();
//   // choice 1 of x needs 128 > 100 bytes: the optimum is x=0, y=0, cost 5
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/base/strong_id.h>
#include <shardprop/solver/cost.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace shardprop::solver {

using VariableId = StrongId<struct VariableTag>;
using TableId = StrongId<struct TableTag>;
using EdgeId = StrongId<struct EdgeTag>;

// `Interval` is the times lo, lo + 1, ..., hi - 1; it is empty if hi <= lo.
struct Interval {
  std::int64_t lo = 0;
  std::int64_t hi = 0;

  bool empty() const { return hi <= lo; }
  friend bool operator==(const Interval&, const Interval&) = default;
};

// `Usage` is the bytes over one interval, by choice of the variable.
struct Usage {
  Interval when;
  std::span<const std::int64_t> bytes;
};

// `Table` holds row-major costs: costs[row * columns + column].
struct Table {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::span<const std::int64_t> costs;
};

// `Edge` adds a cost for each pair of choices of two variables.
struct Edge {
  VariableId a;  // indexes the rows of the table
  VariableId b;  // indexes the columns
  TableId table;
};

// `Pin` requires that a variable takes a choice.
struct Pin {
  VariableId variable;
  std::uint32_t choice = 0;

  friend bool operator==(const Pin&, const Pin&) = default;
};

// `Problem` is immutable; ProblemBuilder makes it.
class Problem {
 public:
  std::size_t num_variables() const { return cost_begin_.size() - 1; }
  std::size_t num_edges() const { return edges_.size(); }
  std::size_t num_tables() const { return tables_.size(); }

  std::size_t num_choices(VariableId v) const {
    return cost_begin_[v.index() + 1] - cost_begin_[v.index()];
  }
  std::span<const std::int64_t> costs(VariableId v) const {
    return std::span(costs_).subspan(cost_begin_[v.index()], num_choices(v));
  }
  std::size_t num_usages(VariableId v) const {
    return usage_begin_[v.index() + 1] - usage_begin_[v.index()];
  }
  // Returns the i-th interval over which `v` uses bytes.
  Usage usage(VariableId v, std::size_t i) const;

  const Edge& edge(EdgeId e) const { return edges_[e.index()]; }
  std::span<const Edge> edges() const { return edges_; }
  Table table(TableId t) const;

  std::optional<std::int64_t> limit() const { return limit_; }
  std::span<const Pin> pins() const { return pins_; }

 private:
  friend class ProblemBuilder;

  struct TableShape {
    std::size_t offset = 0;
    std::size_t rows = 0;
    std::size_t columns = 0;
  };

  std::vector<std::size_t> cost_begin_{0};
  std::vector<std::int64_t> costs_;
  std::vector<std::size_t> usage_begin_{0};
  std::vector<Interval> usage_interval_;
  std::vector<std::size_t> usage_bytes_begin_;
  std::vector<std::int64_t> usage_bytes_;
  std::vector<TableShape> tables_;
  std::vector<std::int64_t> table_costs_;
  std::vector<Edge> edges_;
  std::vector<Pin> pins_;
  std::optional<std::int64_t> limit_;
};

// `ProblemBuilder` collects a problem; build() checks it. Equal tables are
// stored once.
class ProblemBuilder {
 public:
  VariableId add_variable(std::span<const std::int64_t> costs);
  // Adds the bytes that `v` uses over `when`; `bytes` has one entry per choice
  // of `v`.
  void add_usage(VariableId v, Interval when,
                 std::span<const std::int64_t> bytes);
  TableId add_table(std::size_t rows, std::size_t columns,
                    std::span<const std::int64_t> costs);
  void add_edge(VariableId a, VariableId b, TableId table);
  void set_limit(std::int64_t bytes) { limit_ = bytes; }
  void pin(VariableId v, std::uint32_t choice) { pins_.push_back({v, choice}); }

  // Errors: kProblemShape if sizes or ids do not fit together or a variable has
  // no choice, kProblemValue for negative bytes or a negative limit,
  // kProblemTooLarge if sums of costs or bytes exceed the solver's integers.
  Result<Problem> build() &&;

 private:
  struct PendingUsage {
    VariableId variable;
    Interval when;
    std::size_t offset = 0;
    std::size_t count = 0;
  };

  std::size_t choices(std::size_t v) const {
    return cost_begin_[v + 1] - cost_begin_[v];
  }
  Result<void> check_shapes() const;
  Result<std::vector<std::size_t>> count_usages() const;

  std::vector<std::size_t> cost_begin_{0};
  std::vector<std::int64_t> costs_;
  std::vector<PendingUsage> usages_;
  std::vector<std::int64_t> usage_bytes_;
  std::vector<Problem::TableShape> tables_;
  std::vector<std::size_t> table_sizes_;
  std::vector<std::int64_t> table_costs_;
  std::unordered_multimap<std::uint64_t, std::uint32_t> table_by_hash_;
  std::vector<Edge> edges_;
  std::vector<Pin> pins_;
  std::optional<std::int64_t> limit_;
};

}  // namespace shardprop::solver
