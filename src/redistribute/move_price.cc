#include "redistribute/move_price.h"

#include "base/index.h"
#include "base/saturating.h"

#include <shardprop/base/hash.h>
#include <shardprop/placement/partials.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace shardprop::redistribute {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

// Returns the elements that the first of `parts` ranks holds of `size`
// elements, cut within each of `pieces` pieces.
std::int64_t first_part(std::int64_t size, std::int64_t pieces,
                        std::int64_t parts) {
  if (pieces == 1 || size == 0) return ceil_div(size, parts);
  const std::int64_t full = ceil_div(size, pieces);
  const std::int64_t whole = size / full;
  return whole * ceil_div(full, parts) + ceil_div(size - whole * full, parts);
}

}  // namespace

LocalSize MovePricer::local_size(const State& state) const {
  LocalSize size;
  size.shape = shape_;
  // In cut order, because a strided cut depends on the result of the cuts
  // before it.
  for (int place = 0; place < active_.count; ++place) {
    for (int i = 0; i < active_.count; ++i) {
      const Alphabet::Symbol& symbol = alphabet_[state.symbol[i]];
      if (!symbol.shard() || state.order[i] != place) continue;
      const std::int64_t parts = active_.sizes[index(i)];
      std::int64_t& left = size.shape[index(symbol.dim)];
      if (symbol.pieces > 1 || left % parts != 0) size.even = false;
      left = first_part(left, symbol.pieces, parts);
    }
  }
  for (const std::int64_t dim : size.shape) size.elements *= dim;
  size.memory_pass = times_.memory_pass(bytes(size));
  return size;
}

std::int64_t MovePricer::timed(CollectiveKind kind, Mask group,
                               std::int64_t bytes) {
  const std::uint32_t what = static_cast<std::uint32_t>(kind) << 16 |
                             static_cast<std::uint32_t>(group);
  const std::uint64_t slot = hash_mix(what, static_cast<std::uint64_t>(bytes));
  Remembered& entry = remembered_[slot % remembered_.size()];
  if (entry.bytes != bytes || entry.what != what) {
    entry = {bytes, what, times_.nanoseconds(kind, group, bytes)};
  }
  return entry.nanoseconds;
}

bool MovePricer::contiguous(Mask group, const State& sharded,
                            const LocalSize& shards,
                            const LocalSize& whole) const {
  if (!shards.even) return false;
  int dim = -1;
  for (int i = 0; i < active_.count; ++i) {
    if ((group >> i & 1U) == 0) continue;
    const int cut = alphabet_[sharded.symbol[i]].dim;
    if (dim >= 0 && cut != dim) return false;
    dim = cut;
  }
  for (int d = 0; d < dim; ++d) {
    if (whole.shape[index(d)] > 1) return false;
  }
  return true;
}

MovePrice MovePricer::gather(Mask group, const State& from,
                             const LocalSize& from_size,
                             const LocalSize& to_size) {
  const std::int64_t ranks = times_.ranks(group);
  const std::int64_t in = bytes(from_size);
  const std::int64_t out = bytes(to_size);
  MovePrice price;
  price.kind = CollectiveKind::kAllGather;
  price.dtype = dtype_;
  price.message_bytes = ranks * in;
  price.bytes_per_rank = (ranks - 1) * in;
  price.nanoseconds = timed(price.kind, group, price.message_bytes);
  price.held_bytes = in + out;
  if (!contiguous(group, from, from_size, to_size)) {
    price.staged = true;
    price.nanoseconds += to_size.memory_pass;
    price.held_bytes += in + price.message_bytes;
  }
  return price;
}

MovePrice MovePricer::reduce_scatter(Mask group, const State& from,
                                     const LocalSize& from_size,
                                     const State& to,
                                     const LocalSize& to_size) {
  const std::int64_t ranks = times_.ranks(group);
  const Placement partial = reduced_placement(group, from);
  const DType dtype = partial.reduce_dtype().value_or(dtype_);
  const std::int64_t item = item_size(dtype);
  const std::int64_t out = to_size.elements * item;
  const std::int64_t sent = ranks * out;
  const bool casts = dtype != dtype_;
  MovePrice price;
  price.kind = CollectiveKind::kReduceScatter;
  price.reduce_op = partial.reduce_op();
  price.dtype = dtype;
  price.message_bytes = sent;
  price.bytes_per_rank = (ranks - 1) * out;
  price.staged = casts || !contiguous(group, to, to_size, from_size);
  price.held_bytes = bytes(from_size) + bytes(to_size);
  if (casts) price.held_bytes += from_size.elements * item;
  if (reduces_natively(times_.engine(), partial.reduce_op(), dtype)) {
    price.nanoseconds = timed(price.kind, group, sent);
    if (!price.staged) return price;
    price.nanoseconds += from_size.memory_pass;
    price.held_bytes += sent + out;
    return price;
  }
  price.nanoseconds = timed(CollectiveKind::kAllToAll, group, sent) +
                      2 * times_.memory_pass(sent);
  price.held_bytes += 2 * sent;
  return price;
}

MovePrice MovePricer::reduce(Mask group, const State& from,
                             const LocalSize& size) {
  const std::int64_t ranks = times_.ranks(group);
  const Placement partial = reduced_placement(group, from);
  const DType dtype = partial.reduce_dtype().value_or(dtype_);
  const std::int64_t item = item_size(dtype);
  const std::int64_t share = ceil_div(size.elements, ranks) * item;
  const std::int64_t whole = ranks * share;
  MovePrice price;
  price.kind = CollectiveKind::kAllReduce;
  price.reduce_op = partial.reduce_op();
  price.dtype = dtype;
  price.message_bytes = whole;
  price.bytes_per_rank = 2 * (ranks - 1) * share;
  price.staged = dtype != dtype_;
  price.held_bytes = 2 * bytes(size);
  if (price.staged) price.held_bytes += size.elements * item;
  if (reduces_natively(times_.engine(), partial.reduce_op(), dtype)) {
    price.nanoseconds = timed(price.kind, group, whole);
    return price;
  }
  price.nanoseconds = timed(CollectiveKind::kAllToAll, group, whole) +
                      times_.memory_pass(whole) +
                      timed(CollectiveKind::kAllGather, group, whole);
  price.held_bytes += whole + share;
  return price;
}

Placement MovePricer::reduced_placement(Mask group, const State& from) const {
  std::optional<Placement> partial;
  for (int i = 0; i < active_.count; ++i) {
    if ((group >> i & 1U) == 0) continue;
    const Placement placement = alphabet_[from.symbol[i]].placement;
    partial = partial ? combined_partial(*partial, placement) : placement;
  }
  return *partial;
}

bool MovePricer::strided(const State& state) const {
  if (!alphabet_.has_strided()) return false;
  for (int i = 0; i < active_.count; ++i) {
    if (alphabet_[state.symbol[i]].pieces > 1) return true;
  }
  return false;
}

MovePricer::GroupCuts MovePricer::cuts_of(Mask group,
                                          const State& state) const {
  GroupCuts cuts;
  for (Mask left = group; left != 0; left &= left - 1) {
    const Alphabet::Symbol& symbol =
        alphabet_[state.symbol[std::countr_zero(left)]];
    cuts.dims |= std::uint64_t{1} << symbol.dim;
    cuts.strided = cuts.strided || symbol.pieces > 1;
  }
  return cuts;
}

// Returns whether each dim is cut at the same points before and after.
// Precondition: both ends cut the same tensor dims, without strided cuts. The
// points are equal if the number of parts is, because the cuts outside the
// group do not change.
bool MovePricer::permutes(Mask group, const State& from, const State& to,
                          bool even) const {
  for (int i = 0; i < active_.count; ++i) {
    if ((group >> i & 1U) == 0) continue;
    const std::int16_t dim = alphabet_[from.symbol[i]].dim;
    std::int64_t before = 1;
    std::int64_t after = 1;
    for (int j = 0; j < active_.count; ++j) {
      if ((group >> j & 1U) == 0) continue;
      const std::int64_t parts = active_.sizes[index(j)];
      if (alphabet_[from.symbol[j]].dim == dim) before *= parts;
      if (alphabet_[to.symbol[j]].dim == dim) after *= parts;
    }
    if (before != after) return false;
    if (!even && sizes_of_cuts(from, dim) != sizes_of_cuts(to, dim)) {
      return false;
    }
  }
  return true;
}

MovePricer::Cuts MovePricer::sizes_of_cuts(const State& state,
                                           std::int16_t dim) const {
  Cuts cuts{};
  for (int i = 0; i < active_.count; ++i) {
    if (alphabet_[state.symbol[i]].dim == dim) {
      cuts[state.order[i]] = active_.sizes[index(i)];
    }
  }
  return cuts;
}

MovePrice MovePricer::exchange(Mask group, const State& from,
                               const LocalSize& from_size, const State& to,
                               const LocalSize& to_size) {
  const std::int64_t ranks = times_.ranks(group);
  const std::int64_t in = bytes(from_size);
  const std::int64_t out = bytes(to_size);
  const bool even = from_size.even && to_size.even;
  MovePrice price;
  price.dtype = dtype_;
  price.held_bytes = 2 * (in + out);
  price.exact = even;
  const GroupCuts left = cuts_of(group, from);
  const GroupCuts cut = cuts_of(group, to);
  if (left.dims == cut.dims && !left.strided && !cut.strided &&
      permutes(group, from, to, even)) {
    price.kind = CollectiveKind::kPermute;
    price.message_bytes = price.bytes_per_rank = in;
    price.nanoseconds = timed(price.kind, group, in);
    return price;
  }
  price.kind = CollectiveKind::kAllToAll;
  price.staged = true;
  if ((left.dims & cut.dims) == 0) {
    // Every rank sends an equal piece to every other rank. A strided shard that
    // is the largest in one dim may not be the largest in another.
    price.padded = !(strided(from) || strided(to));
    price.exact = even || price.padded;
    std::int64_t piece = item_;
    for (std::size_t d = 0; d < shape_.size(); ++d) {
      piece *= std::min(from_size.shape[d], to_size.shape[d]);
    }
    price.message_bytes = ranks * piece;
    price.bytes_per_rank = (ranks - 1) * piece;
  } else {
    // Some rank keeps almost no element.
    price.bytes_per_rank = std::max(in, out);
    price.message_bytes = ceil_div(price.bytes_per_rank * ranks, ranks - 1);
  }
  // The pieces for other ranks are packed one after another, and received
  // pieces are unpacked. Each needs one memory pass. A cut of the outermost dim
  // needs no packing, and a gather of it needs no unpacking. A staged exchange
  // pays at least one of the two.
  price.nanoseconds =
      timed(price.kind, group, price.message_bytes) + from_size.memory_pass;
  if (!left.is_outermost() && !cut.is_outermost()) {
    price.nanoseconds += to_size.memory_pass;
  }
  return price;
}

std::int64_t MovePricer::least(Move move, Mask group,
                               const LocalSize& from_size) {
  if (move != Move::kExchange) return times_.least_nanoseconds(move, group);
  return least_exchange(group, bytes(from_size));
}

// Equal pieces for all ranks have at least the bytes of the shard. The same
// holds for any other exchange.
std::int64_t MovePricer::least_exchange(Mask group, std::int64_t bytes) {
  return std::min(timed(CollectiveKind::kPermute, group, bytes),
                  timed(CollectiveKind::kAllToAll, group, bytes) +
                      times_.memory_pass(bytes));
}

MovePrice MovePricer::price(Move move, Mask group, const State& from,
                            const LocalSize& from_size, const State& to,
                            const LocalSize& to_size) {
  switch (move) {
    case Move::kGather:
      return gather(group, from, from_size, to_size);
    case Move::kReduceScatter:
      return reduce_scatter(group, from, from_size, to, to_size);
    case Move::kReduce:
      return reduce(group, from, from_size);
    case Move::kExchange:
      return exchange(group, from, from_size, to, to_size);
    case Move::kSlice:
    case Move::kToPartial:
    case Move::kRescale:
      break;
  }
  MovePrice local;
  local.dtype = dtype_;
  local.held_bytes = bytes(from_size) + bytes(to_size);
  return local;
}

}  // namespace shardprop::redistribute
