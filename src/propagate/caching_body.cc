#include "propagate/caching_body.h"

#include "base/try.h"
#include "propagate/shared_shapes.h"

#include <exception>
#include <new>
#include <optional>

namespace shardprop {

Result<SharedAnswer> CachingPropagator::Body::miss(
    const OpSchema& op, std::span<const Layout> layouts, ReaderSlot& slot) {
  if (op.function == nullptr || op.inputs.size() != layouts.size()) {
    return answer_uncached(op, layouts);
  }
  std::shared_ptr<CacheFlight> flight;
  std::shared_future<Result<SharedAnswer>> other;
  std::optional<ShardingPropagator> on;
  std::uint64_t in = 0;
  CallKey key;
  {
    const std::scoped_lock lock(mutex);
    in = generation.load(std::memory_order_relaxed);
    // Another thread may have stored the answer since.
    const ArgumentUse* use = uses.find(op.function.get(), in);
    KeyBuffer now;
    write_version(now, in, use);
    write_call(now, op, layouts, looks_of(use));
    if (const Entry* entry = table.find(now.hash(), now.words(), slot)) {
      ++waits;
      return entry->sharding;
    }
    // The key contains all arguments, because it is not known yet which of them
    // matter. It also contains the generation, because a flight of an older
    // generation has the answer of another library.
    KeyBuffer all;
    write_version(all, in, nullptr);
    write_call(all, op, layouts, {});
    key = kept(all, op.function);
    const auto found = flights.find(key);
    if (found != flights.end()) {
      ++waits;
      other = found->second->result;
    } else {
      flight = std::make_shared<CacheFlight>();
      flights.emplace(key, flight);
      on.emplace(propagator);
    }
  }
  if (flight == nullptr) return other.get();
  try {
    Result<SharedAnswer> result = work_out(*on, in, op, layouts);
    {
      const std::scoped_lock lock(mutex);
      ++misses;
      flights.erase(key);
    }
    flight->promise.set_value(result);
    return result;
  } catch (...) {
    {
      const std::scoped_lock lock(mutex);
      flights.erase(key);
    }
    flight->promise.set_exception(std::current_exception());
    throw;
  }
}

Result<SharedAnswer> CachingPropagator::Body::answer_uncached(
    const OpSchema& op, std::span<const Layout> layouts) {
  std::optional<ShardingPropagator> on;
  {
    const std::scoped_lock lock(mutex);
    on.emplace(propagator);
  }
  SP_ASSIGN(ShardingPropagator::Body::Answer answer,
            on->body_->answer(op, layouts));
  return std::make_shared<const OutputSharding>(std::move(answer.sharding));
}

Result<SharedAnswer> CachingPropagator::Body::work_out(
    const ShardingPropagator& on, std::uint64_t in, const OpSchema& op,
    std::span<const Layout> layouts) {
  SP_ASSIGN(ShardingPropagator::Body::Answer answer,
            on.body_->answer(op, layouts));
  auto sharding =
      std::make_shared<const OutputSharding>(std::move(answer.sharding));
  const std::scoped_lock lock(mutex);
  if (in == generation.load(std::memory_order_relaxed)) {
    keep(in, op, layouts, answer, sharding);
  }
  return sharding;
}

void CachingPropagator::Body::keep(
    std::uint64_t in, const OpSchema& op, std::span<const Layout> layouts,
    const ShardingPropagator::Body::Answer& answer,
    const SharedAnswer& sharding) {
  std::shared_ptr<const SharedShapes> shapes;
  if (options.share_shapes && answer.is_only_fit) {
    KeyBuffer family;
    SizeClasses sizes;
    if (write_family(family, sizes, op, layouts, answer.call->looks)) {
      shapes = shared_shapes(*answer.call, *sharding, mesh, sizes);
    }
  }
  const ArgumentUse* use =
      uses.learn(op.function, in, answer.call->looks, shapes != nullptr);
  const auto put = [&](const KeyBuffer& key,
                       std::shared_ptr<const SharedShapes> of) {
    table.insert(std::make_unique<const Entry>(kept(key, op.function), sharding,
                                               std::move(of)),
                 slots);
  };
  KeyBuffer key;
  write_version(key, in, use);
  write_call(key, op, layouts, looks_of(use));
  put(key, nullptr);
  if (shapes == nullptr || use == nullptr) return;
  KeyBuffer family;
  SizeClasses sizes;
  write_version(family, in, use);
  if (write_family(family, sizes, op, layouts, use->looks)) put(family, shapes);
}

void CachingPropagator::Body::keep_as_its_own(
    const OpSchema& op, const LayoutsView& layouts, const ArgumentUse& use,
    const OutputSharding& sharding) noexcept {
  try {
    const std::unique_lock lock(mutex, std::try_to_lock);
    if (!lock || use.generation != generation.load(std::memory_order_relaxed)) {
      return;
    }
    KeyBuffer key;
    write_version(key, use.generation, &use);
    write_call(key, op, layouts, use.looks);
    table.insert(std::make_unique<const Entry>(
                     kept(key, op.function),
                     std::make_shared<const OutputSharding>(sharding), nullptr),
                 slots);
  } catch (const std::bad_alloc&) {
    // The caller already has its answer, so a failure to store it is ignored.
  }
}

}  // namespace shardprop
