#include <shardprop/solver/problem.h>

#include "base/try.h"

#include <shardprop/base/hash.h>

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace shardprop::solver {
namespace {

// The searches sum bytes in 64 bits, so a larger problem is refused.
constexpr Int128 kMaxTotal = Int128{1} << 62;

std::uint64_t hash_table(std::size_t rows, std::size_t columns,
                         std::span<const std::int64_t> costs) {
  std::uint64_t h = hash_mix(rows, columns);
  for (const std::int64_t cost : costs) {
    h = (h ^ static_cast<std::uint64_t>(cost)) * 0x9fb21c651e98df25ULL;
    h ^= h >> 32;
  }
  return h;
}

}  // namespace

std::string to_string(Int128 value) {
  if (value == 0) return "0";
  const bool negative = value < 0;
  std::string digits;
  while (value != 0) {
    const int digit = static_cast<int>(value % 10);
    digits.push_back(static_cast<char>('0' + (digit < 0 ? -digit : digit)));
    value /= 10;
  }
  if (negative) digits.push_back('-');
  std::reverse(digits.begin(), digits.end());
  return digits;
}

Usage Problem::usage(VariableId v, std::size_t i) const {
  const std::size_t at = usage_begin_[v.index()] + i;
  return {
      usage_interval_[at],
      std::span(usage_bytes_).subspan(usage_bytes_begin_[at], num_choices(v))};
}

Table Problem::table(TableId t) const {
  const TableShape& shape = tables_[t.index()];
  return {shape.rows, shape.columns,
          std::span(table_costs_)
              .subspan(shape.offset, shape.rows * shape.columns)};
}

VariableId ProblemBuilder::add_variable(std::span<const std::int64_t> costs) {
  costs_.insert(costs_.end(), costs.begin(), costs.end());
  cost_begin_.push_back(costs_.size());
  return VariableId(cost_begin_.size() - 2);
}

void ProblemBuilder::add_usage(VariableId v, Interval when,
                               std::span<const std::int64_t> bytes) {
  usages_.push_back({v, when, usage_bytes_.size(), bytes.size()});
  usage_bytes_.insert(usage_bytes_.end(), bytes.begin(), bytes.end());
}

TableId ProblemBuilder::add_table(std::size_t rows, std::size_t columns,
                                  std::span<const std::int64_t> costs) {
  const std::uint64_t hash = hash_table(rows, columns, costs);
  const auto [first, last] = table_by_hash_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    const Problem::TableShape& known = tables_[it->second];
    if (known.rows == rows && known.columns == columns &&
        table_sizes_[it->second] == costs.size() &&
        std::equal(
            costs.begin(), costs.end(),
            table_costs_.begin() + static_cast<std::ptrdiff_t>(known.offset))) {
      return TableId(it->second);
    }
  }
  const TableId id(tables_.size());
  table_by_hash_.emplace(hash, static_cast<std::uint32_t>(id.index()));
  tables_.push_back({table_costs_.size(), rows, columns});
  table_sizes_.push_back(costs.size());
  table_costs_.insert(table_costs_.end(), costs.begin(), costs.end());
  return id;
}

void ProblemBuilder::add_edge(VariableId a, VariableId b, TableId table) {
  edges_.push_back({a, b, table});
}

// Checks that tables, edges and pins fit the variables.
Result<void> ProblemBuilder::check_shapes() const {
  const std::size_t n = cost_begin_.size() - 1;
  for (std::size_t v = 0; v < n; ++v) {
    if (choices(v) == 0) {
      return fail(ErrorCode::kProblemShape,
                  fmt::format("variable {} has no choice", v));
    }
  }
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    if (table_sizes_[t] != tables_[t].rows * tables_[t].columns) {
      return fail(
          ErrorCode::kProblemShape,
          fmt::format("a table of {} entries is not {} by {}", table_sizes_[t],
                      tables_[t].rows, tables_[t].columns));
    }
  }
  for (std::size_t e = 0; e < edges_.size(); ++e) {
    const Edge& edge = edges_[e];
    if (edge.a.index() >= n || edge.b.index() >= n ||
        edge.table.index() >= tables_.size()) {
      return fail(ErrorCode::kProblemShape,
                  fmt::format("edge {} names a variable or table that does "
                              "not exist",
                              e));
    }
    const Problem::TableShape& shape = tables_[edge.table.index()];
    if (shape.rows != choices(edge.a.index()) ||
        shape.columns != choices(edge.b.index())) {
      return fail(
          ErrorCode::kProblemShape,
          fmt::format(
              "edge {} joins {} and {} choices with a table of {} by {}", e,
              choices(edge.a.index()), choices(edge.b.index()), shape.rows,
              shape.columns));
    }
  }
  for (const Pin& pin : pins_) {
    if (pin.variable.index() >= n ||
        pin.choice >= choices(pin.variable.index())) {
      return fail(ErrorCode::kProblemShape,
                  "a pin names a variable or choice that does not exist");
    }
  }
  if (limit_.has_value() && *limit_ < 0) {
    return fail(ErrorCode::kProblemValue, "the memory limit is negative");
  }
  return {};
}

// Checks that usages fit the variables, and counts them. Entry v + 1 is the
// count of variable v.
Result<std::vector<std::size_t>> ProblemBuilder::count_usages() const {
  const std::size_t n = cost_begin_.size() - 1;
  Int128 total_bytes = 0;
  std::vector<std::size_t> count(n + 1, 0);
  for (const PendingUsage& usage : usages_) {
    const std::size_t v = usage.variable.index();
    if (v >= n || usage.count != choices(v)) {
      return fail(ErrorCode::kProblemShape,
                  "a usage has not one entry per choice of its variable");
    }
    std::int64_t largest = 0;
    for (std::size_t i = 0; i < usage.count; ++i) {
      const std::int64_t bytes = usage_bytes_[usage.offset + i];
      if (bytes < 0) {
        return fail(
            ErrorCode::kProblemValue,
            fmt::format("variable {} uses a negative number of bytes", v));
      }
      largest = std::max(largest, bytes);
    }
    total_bytes += largest;
    ++count[v + 1];
  }
  if (total_bytes >= kMaxTotal) {
    return fail(ErrorCode::kProblemTooLarge, "the bytes sum to 2^62 or more");
  }
  return count;
}

Result<Problem> ProblemBuilder::build() && {
  SP_CHECK(check_shapes());
  SP_ASSIGN(std::vector<std::size_t> count, count_usages());
  const std::size_t n = cost_begin_.size() - 1;
  Problem problem;
  for (std::size_t v = 0; v < n; ++v) count[v + 1] += count[v];
  problem.usage_begin_ = count;
  problem.usage_interval_.resize(usages_.size());
  problem.usage_bytes_begin_.resize(usages_.size());
  for (const PendingUsage& usage : usages_) {
    const std::size_t at = count[usage.variable.index()]++;
    problem.usage_interval_[at] = usage.when;
    problem.usage_bytes_begin_[at] = usage.offset;
  }
  problem.cost_begin_ = std::move(cost_begin_);
  problem.costs_ = std::move(costs_);
  problem.usage_bytes_ = std::move(usage_bytes_);
  problem.tables_ = std::move(tables_);
  problem.table_costs_ = std::move(table_costs_);
  problem.edges_ = std::move(edges_);
  problem.pins_ = std::move(pins_);
  problem.limit_ = limit_;
  return problem;
}

}  // namespace shardprop::solver
