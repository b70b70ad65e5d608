// CachingPropagator::Body stores the answers that all readers of one cache
// share, and computes missing ones.
#pragma once

#include "propagate/argument_uses.h"
#include "propagate/entry_table.h"
#include "propagate/propagator_body.h"

#include <shardprop/propagate/caching_propagator.h>

#include <atomic>
#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <utility>

namespace shardprop {

using SharedAnswer = std::shared_ptr<const OutputSharding>;

// CacheFlight is a cache miss whose answer a thread is computing.
struct CacheFlight {
  std::promise<Result<SharedAnswer>> promise;
  std::shared_future<Result<SharedAnswer>> result{promise.get_future()};
};

// Writes the first word of every key.
inline void write_version(KeyBuffer& key, std::uint64_t generation,
                          const ArgumentUse* use) {
  key.push(generation << 32 | (use == nullptr ? 0 : use->version + 1));
}

inline std::span<const Look> looks_of(const ArgumentUse* use) {
  if (use == nullptr) return {};
  return use->looks;
}

struct CachingPropagator::Body {
  Body(ShardingPropagator the_propagator, const CacheOptions& the_options)
      : options(the_options),
        guard(the_propagator.options()),
        mesh(the_propagator.mesh()),
        table(the_options.most_entries, the_options.most_bytes),
        propagator(std::move(the_propagator)) {}

  // Answers a call that has no entry in the table.
  Result<SharedAnswer> miss(const OpSchema& op, std::span<const Layout> layouts,
                            ReaderSlot& slot);
  // Answers a call that has no key.
  Result<SharedAnswer> answer_uncached(const OpSchema& op,
                                       std::span<const Layout> layouts);
  Result<SharedAnswer> work_out(const ShardingPropagator& on, std::uint64_t in,
                                const OpSchema& op,
                                std::span<const Layout> layouts);
  void keep(std::uint64_t in, const OpSchema& op,
            std::span<const Layout> layouts,
            const ShardingPropagator::Body::Answer& answer,
            const SharedAnswer& sharding);
  // Stores an answer of a family as an entry for the sizes of this call. This
  // runs inside a hit. If another thread holds the lock, or memory is short,
  // nothing is stored.
  void keep_as_its_own(const OpSchema& op, const LayoutsView& layouts,
                       const ArgumentUse& use,
                       const OutputSharding& sharding) noexcept;

  const CacheOptions options;
  const PropagatorOptions guard;
  const DeviceMesh mesh;

  EntryTable table;
  ArgumentUses uses;
  mutable ReaderSlots slots;
  std::atomic<std::uint64_t> generation{0};

  mutable std::mutex mutex;  // for members below and writes to those above
  ShardingPropagator propagator;
  std::unordered_map<CallKey, std::shared_ptr<CacheFlight>, CallKeyHash>
      flights;
  std::uint64_t misses = 0;
  std::uint64_t waits = 0;
};

}  // namespace shardprop
