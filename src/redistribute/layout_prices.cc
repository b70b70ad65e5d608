#include "redistribute/layout_prices.h"

#include <shardprop/base/hash.h>

#include <algorithm>
#include <bit>

namespace shardprop::redistribute {

void LayoutPrices::resize(std::size_t count) {
  layouts_.resize(count);
  sizes_.reserve(std::min<std::size_t>(count, 16));
  if (graph_ == nullptr) return;
  const std::size_t entries = std::bit_ceil(4 * count);
  even_prices_.resize(std::min(entries, kMostEvenPrices));
  least_exchanges_.resize(std::min(entries, kMostLeastExchanges));
}

std::uint32_t LayoutPrices::compute_size(std::uint32_t layout) {
  const auto size = static_cast<std::uint32_t>(sizes_.size());
  sizes_.push_back(pricer_.local_size(states_[layout]));
  layouts_[layout].size = size;
  return size;
}

std::int64_t LayoutPrices::compute_bytes(std::uint32_t layout) {
  const std::int64_t computed = graph_ != nullptr && is_even(layout)
                                    ? meta_.bytes() / graph_->all_parts(layout)
                                    : pricer_.bytes(sizes_[size_of(layout)]);
  layouts_[layout].bytes = computed;
  return computed;
}

std::int64_t LayoutPrices::least_exchange(std::uint32_t at, Mask group) {
  const std::int64_t moved = bytes(at);
  if (graph_ == nullptr) return pricer_.least_exchange(group, moved);
  const std::uint64_t hash = hash_mix(group, static_cast<std::uint64_t>(moved));
  LeastExchange& entry = least_exchanges_[hash & (least_exchanges_.size() - 1)];
  if (entry.bytes != moved || entry.group != group) {
    entry = {moved, group, pricer_.least_exchange(group, moved)};
  }
  return entry.nanoseconds;
}

bool LayoutPrices::compute_even(std::uint32_t layout) {
  const auto parts = graph_->parts(layout);
  bool even = true;
  for (std::size_t d = 0; d < parts.size() && even; ++d) {
    even = parts[d] == 1 || meta_.size(static_cast<int>(d)) % parts[d] == 0;
  }
  layouts_[layout].shards = even ? Shards::kEven : Shards::kUneven;
  return even;
}

unsigned LayoutPrices::even_form(std::uint32_t at, const Exits::Run& run,
                                 MoveForm form, std::uint32_t to) const {
  switch (run.move) {
    case Move::kExchange:
      return form;
    // A gather leaves the full dim at the target; a reduce-scatter starts with
    // it at the source.
    case Move::kGather:
      return is_staged(form, to) ? 1 : 0;
    case Move::kReduceScatter:
      return is_staged(form, at) ? 1 : 0;
    default:
      return 0;
  }
}

std::int64_t LayoutPrices::even_nanoseconds(std::uint32_t at,
                                            const Exits::Run& run,
                                            unsigned form, std::uint32_t to) {
  const auto computed = [&] {
    return price(at, run.move, run.group, to).nanoseconds;
  };
  std::uint64_t key = static_cast<std::uint64_t>(run.move) << 11 |
                      static_cast<std::uint64_t>(run.group) << 3 | form;
  const State& from = states_[at];
  for (int i = 0; i < active_.count; ++i) {
    if ((run.group >> i & 1U) == 0) continue;
    const int term = from.symbol[i] - alphabet_.first_partial();
    if (term >= 16) return computed();
    if (term >= 0) key |= std::uint64_t{1} << (16 + term);
  }
  const std::int64_t parts = graph_->all_parts(at);
  const std::uint64_t hash = hash_mix(key, static_cast<std::uint64_t>(parts));
  EvenPrice& entry = even_prices_[hash & (even_prices_.size() - 1)];
  if (entry.key != key || entry.parts != parts) {
    entry = {key, parts, computed()};
  }
  return entry.nanoseconds;
}

// Returns whether the shards of the cut dim are not consecutive in the memory
// of the layout in which the group does not shard it.
bool LayoutPrices::is_staged(MoveForm form, std::uint32_t unsharded) const {
  if (form == 0) return false;
  if (form == kManyDims) return true;
  const auto parts = graph_->parts(unsharded);
  for (std::size_t d = 0; d < form; ++d) {
    if (meta_.size(static_cast<int>(d)) > parts[d]) return true;
  }
  return false;
}

}  // namespace shardprop::redistribute
