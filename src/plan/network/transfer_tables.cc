#include "plan/network/transfer_tables.h"

#include "base/saturating.h"

#include <shardprop/solver/cost.h>

#include <algorithm>
#include <utility>

namespace shardprop {
namespace {

// A view owns no bytes as it is produced: the buffer that it aliases is
// counted.
std::int64_t source_bytes(const PlanBuffer& buffer, BufferLayout layout) {
  return buffer.view_of_use ? 0 : buffer.kind->bytes[layout];
}

bool is_once_a_step(const Fetch& way) { return way.is_once_a_step; }
bool is_once_a_step(const Transition& /*way*/) { return false; }

}  // namespace

const TransferTables::LayoutSets& TransferTables::sets_of(
    const PlanBuffer& buffer) {
  LayoutSets& sets = sets_[buffer.kind.get()];
  if (!sets) {
    sets = std::make_shared<const std::vector<CachedLayouts>>(
        cached_layouts(problem_, buffer));
  }
  return sets;
}

// `uncounted(r, c)` returns the bytes of a pair that the network does not
// count.
template <class Cost, class Uncounted>
std::size_t TransferTables::table(const PlanBuffer& buffer, Kind kind,
                                  std::size_t use, std::size_t rows,
                                  std::size_t columns, const Cost& cost,
                                  const Uncounted& uncounted) {
  const auto [known, is_new] = known_.try_emplace(
      std::tuple{buffer.kind.get(), kind, use}, tables_.size());
  if (!is_new) return known->second;
  NetworkTable table{rows, columns, {}, {}, {}};
  table.nanoseconds.reserve(rows * columns);
  bool has_price = false;
  std::vector<std::int64_t> overlappable;
  std::vector<std::int64_t> overlappable_once;
  overlappable.reserve(rows * columns);
  overlappable_once.reserve(rows * columns);
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c) {
      const auto way = cost(r, c);
      const bool is_forbidden =
          !way.is_possible ||
          (most_uncounted_ && uncounted(r, c) > *most_uncounted_);
      table.nanoseconds.push_back(is_forbidden ? solver::kForbidden
                                               : way.nanoseconds);
      const std::int64_t overlapped = is_forbidden ? 0 : way.overlapped;
      const bool is_once = is_once_a_step(way);
      overlappable.push_back(is_once ? 0 : overlapped);
      overlappable_once.push_back(is_once ? overlapped : 0);
      has_price = has_price || overlapped != 0;
    }
  }
  if (has_price) {
    table.overlappable = std::move(overlappable);
    table.overlappable_once = std::move(overlappable_once);
  }
  tables_.push_back(std::move(table));
  return known->second;
}

std::size_t TransferTables::allowed(std::size_t rows, std::size_t columns,
                                    std::vector<bool> pairs) {
  const auto [known, is_new] = allowed_.try_emplace(
      std::tuple{rows, columns, std::move(pairs)}, tables_.size());
  if (is_new) {
    NetworkTable table{rows, columns, {}, {}, {}};
    for (const bool is_allowed : std::get<2>(known->first)) {
      table.nanoseconds.push_back(is_allowed ? 0 : solver::kForbidden);
    }
    tables_.push_back(std::move(table));
  }
  return known->second;
}

CachedLayouts TransferTables::produced(const PlanBuffer& buffer,
                                       std::size_t choice) const {
  const BufferLayout layout = problem_.layout_produced(buffer, choice);
  return {layout, layout};
}

BufferLayout TransferTables::required(const PlanBuffer& buffer, std::size_t use,
                                      std::size_t choice) const {
  return problem_.layout_required(buffer, use, choice);
}

// Returns how the user's choice reads the buffer. A gradient that is
// accumulated first is reduced once a step.
Fetch TransferTables::read_by(const PlanBuffer& buffer, CachedLayouts cached,
                              std::size_t use, std::size_t choice) const {
  const Fetch way = fetch(buffer, cached, required(buffer, use, choice));
  const PlanVariable& user = problem_.variable(buffer.uses[use].variable);
  if (way.is_possible && problem_.is_reduced_late(user, choice)) {
    return once_a_step(problem_, buffer, way.from,
                       required(buffer, use, choice));
  }
  return way;
}

// Returns the scratch bytes of moving a buffer between two layouts, without its
// source and result.
std::int64_t TransferTables::scratch(const PlanBuffer& buffer,
                                     BufferLayout from, BufferLayout to) const {
  const BufferClass& kind = *buffer.kind;
  const BufferClass::Move& move = kind.move(from, to);
  if (!move.is_reachable()) return 0;
  if (move.via != BufferClass::Move::kDirect) {
    const auto via = static_cast<BufferLayout>(move.via);
    return sat_add(kind.bytes[via], std::max(scratch(buffer, from, via),
                                             scratch(buffer, via, to)));
  }
  const ValueId value = buffer.values[move.value];
  const LayoutId src = kind.layouts[move.value][from];
  const LayoutId dst = kind.layouts[move.value][to];
  return problem_.redistribution_peak(value, src, dst) -
         problem_.local_bytes(value, src) - problem_.local_bytes(value, dst);
}

// Returns the bytes of a transition that the network does not count: its
// scratch, and the sources that it drops, which exist while it runs.
std::int64_t TransferTables::uncounted(const PlanBuffer& buffer,
                                       CachedLayouts from,
                                       CachedLayouts to) const {
  std::int64_t sources = 0;
  std::int64_t room = 0;
  for (const Transfer& transfer : transition(buffer, from, to).transfers) {
    if (!to.has(transfer.from) && !buffer.persistent) {
      sources = sat_add(sources, source_bytes(buffer, transfer.from));
    }
    room = std::max(room, scratch(buffer, transfer.from, transfer.to));
  }
  return sat_add(sources, room);
}

std::size_t TransferTables::from_producer(const PlanBuffer& buffer) {
  const std::vector<CachedLayouts>& sets = *sets_of(buffer);
  return table(
      buffer, Kind::kProducer, 0, choices(buffer.producer), sets.size(),
      [&](std::size_t r, std::size_t c) {
        return transition(buffer, produced(buffer, r), sets[c]);
      },
      [&](std::size_t r, std::size_t c) {
        return uncounted(buffer, produced(buffer, r), sets[c]);
      });
}

std::size_t TransferTables::to_next_interval(const PlanBuffer& buffer) {
  const std::vector<CachedLayouts>& sets = *sets_of(buffer);
  return table(
      buffer, Kind::kNext, 0, sets.size(), sets.size(),
      [&](std::size_t r, std::size_t c) {
        return transition(buffer, sets[r], sets[c]);
      },
      [&](std::size_t r, std::size_t c) {
        return uncounted(buffer, sets[r], sets[c]);
      });
}

std::size_t TransferTables::to_reader(const PlanBuffer& buffer,
                                      std::size_t use) {
  const std::vector<CachedLayouts>& sets = *sets_of(buffer);
  return table(
      buffer, Kind::kReader, use, sets.size(),
      choices(buffer.uses[use].variable),
      [&](std::size_t r, std::size_t c) {
        return read_by(buffer, sets[r], use, c);
      },
      [&](std::size_t r, std::size_t c) {
        const BufferLayout to = required(buffer, use, c);
        if (sets[r].has(to)) return std::int64_t{0};
        const BufferLayout from = fetch(buffer, sets[r], to).from;
        return sat_add(buffer.kind->bytes[to], scratch(buffer, from, to));
      });
}

std::size_t TransferTables::from_producer_to_reader(const PlanBuffer& buffer,
                                                    std::size_t use) {
  return table(
      buffer, Kind::kDirect, use, choices(buffer.producer),
      choices(buffer.uses[use].variable),
      [&](std::size_t r, std::size_t c) {
        return read_by(buffer, produced(buffer, r), use, c);
      },
      [&](std::size_t r, std::size_t c) {
        const BufferLayout from = produced(buffer, r).first;
        const BufferLayout to = required(buffer, use, c);
        return from == to ? 0
                          : sat_add(source_bytes(buffer, from),
                                    scratch(buffer, from, to));
      });
}

}  // namespace shardprop
