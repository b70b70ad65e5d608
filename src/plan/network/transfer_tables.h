// TransferTables computes the tables of a network without prices: the time of
// the transfers between a producer, the cached layouts of a buffer and its
// readers.
//
// Buffers of one class share their tables, so each table is computed once.
#pragma once

#include "plan/evaluate/plan_assignment.h"
#include "plan/problem/build/cached_layouts.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

namespace shardprop {

// NetworkTable is a table of a network before it is priced.
struct NetworkTable {
  std::size_t rows = 0;
  std::size_t columns = 0;
  // The times are row-major and leave the overlappable part out. An impossible
  // entry is solver::kForbidden.
  std::vector<std::int64_t> nanoseconds;
  // The overlappable time of each entry in each micro-batch, and the share of a
  // micro-batch in that of a gradient that is reduced once a step. Both are
  // empty if no entry has any.
  std::vector<std::int64_t> overlappable;
  std::vector<std::int64_t> overlappable_once;

  bool has_price() const { return !overlappable.empty(); }
};

class TransferTables {
 public:
  using LayoutSets = std::shared_ptr<const std::vector<CachedLayouts>>;

  // Forbids entries whose transfers take more than `most_uncounted` bytes that
  // the network does not count. If it is empty, no entry is forbidden.
  TransferTables(const PlanProblem& problem,
                 std::optional<std::int64_t> most_uncounted)
      : problem_(problem), most_uncounted_(most_uncounted) {}

  // Returns the sets of cached layouts of the buffer's class.
  const LayoutSets& sets_of(const PlanBuffer& buffer);

  // The next functions return the index of a table in the list of all tables.

  // Rows are choices of the producer, columns are sets of cached layouts.
  std::size_t from_producer(const PlanBuffer& buffer);
  // Rows and columns are sets of cached layouts.
  std::size_t to_next_interval(const PlanBuffer& buffer);
  // Rows are sets of cached layouts, columns are choices of the reader.
  std::size_t to_reader(const PlanBuffer& buffer, std::size_t use);
  // Rows are choices of the producer, columns are choices of the reader.
  std::size_t from_producer_to_reader(const PlanBuffer& buffer,
                                      std::size_t use);
  // Returns the table with cost 0 at the pairs that `allows(row, column)`
  // names. The other pairs are forbidden.
  template <class Allows>
  std::size_t allowed(std::size_t rows, std::size_t columns,
                      const Allows& allows) {
    std::vector<bool> pairs;
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t c = 0; c < columns; ++c) pairs.push_back(allows(r, c));
    }
    return allowed(rows, columns, std::move(pairs));
  }

  std::vector<NetworkTable> take() && { return std::move(tables_); }

 private:
  enum class Kind : std::uint8_t { kProducer, kNext, kReader, kDirect };

  template <class Cost, class Uncounted>
  std::size_t table(const PlanBuffer& buffer, Kind kind, std::size_t use,
                    std::size_t rows, std::size_t columns, const Cost& cost,
                    const Uncounted& uncounted);
  std::size_t allowed(std::size_t rows, std::size_t columns,
                      std::vector<bool> pairs);

  std::size_t choices(PlanVariableId id) const {
    return problem_.variable(id).choices->size();
  }
  CachedLayouts produced(const PlanBuffer& buffer, std::size_t choice) const;
  BufferLayout required(const PlanBuffer& buffer, std::size_t use,
                        std::size_t choice) const;
  Fetch read_by(const PlanBuffer& buffer, CachedLayouts cached, std::size_t use,
                std::size_t choice) const;
  std::int64_t scratch(const PlanBuffer& buffer, BufferLayout from,
                       BufferLayout to) const;
  std::int64_t uncounted(const PlanBuffer& buffer, CachedLayouts from,
                         CachedLayouts to) const;

  const PlanProblem& problem_;
  std::optional<std::int64_t> most_uncounted_;
  std::vector<NetworkTable> tables_;
  std::map<const BufferClass*, LayoutSets> sets_;
  std::map<std::tuple<const BufferClass*, Kind, std::size_t>, std::size_t>
      known_;
  // Known tables of 0 and kForbidden, by rows, columns and entries.
  std::map<std::tuple<std::size_t, std::size_t, std::vector<bool>>, std::size_t>
      allowed_;
};

}  // namespace shardprop
