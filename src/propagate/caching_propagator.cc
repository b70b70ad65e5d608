#include <shardprop/propagate/caching_propagator.h>

#include "base/guard.h"
#include "base/try.h"
#include "propagate/argument_uses.h"
#include "propagate/entry_table.h"
#include "propagate/propagator_body.h"
#include "propagate/shared_shapes.h"

#include <array>
#include <atomic>
#include <future>
#include <mutex>
#include <new>
#include <optional>
#include <unordered_map>
#include <utility>

namespace shardprop {
namespace {

using Shared = std::shared_ptr<const OutputSharding>;

// Flight is a cache miss whose answer a thread is computing.
struct Flight {
  std::promise<Result<Shared>> promise;
  std::shared_future<Result<Shared>> result{promise.get_future()};
};

// Writes the first word of every key.
void write_version(KeyBuffer& key, std::uint64_t generation,
                   const ArgumentUse* use) {
  key.push(generation << 32 | (use == nullptr ? 0 : use->version + 1));
}

std::span<const Look> looks_of(const ArgumentUse* use) {
  if (use == nullptr) return {};
  return use->looks;
}

}  // namespace

struct CachingPropagator::Body {
  Body(ShardingPropagator the_propagator, const CacheOptions& the_options)
      : options(the_options),
        guard(the_propagator.options()),
        mesh(the_propagator.mesh()),
        table(the_options.most_entries, the_options.most_bytes),
        propagator(std::move(the_propagator)) {}

  // Answers a call that has no entry in the table.
  Result<Shared> miss(const OpSchema& op, std::span<const Layout> layouts,
                      ReaderSlot& slot);
  // Answers a call that has no key.
  Result<Shared> answer_uncached(const OpSchema& op,
                                 std::span<const Layout> layouts);
  Result<Shared> work_out(const ShardingPropagator& on, std::uint64_t in,
                          const OpSchema& op, std::span<const Layout> layouts);
  void keep(std::uint64_t in, const OpSchema& op,
            std::span<const Layout> layouts,
            const ShardingPropagator::Body::Answer& answer,
            const Shared& sharding);
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
  std::unordered_map<CallKey, std::shared_ptr<Flight>, CallKeyHash> flights;
  std::uint64_t misses = 0;
  std::uint64_t waits = 0;
};

struct CachingPropagator::ReaderBody {
  explicit ReaderBody(std::shared_ptr<Body> the_body)
      : body(std::move(the_body)), slot(&body->slots.take()) {}
  ~ReaderBody() { ReaderSlots::give_back(*slot); }
  ReaderBody(const ReaderBody&) = delete;
  ReaderBody& operator=(const ReaderBody&) = delete;

  // Returns null on a miss.
  const OutputSharding* find(const OpSchema& op, const LayoutsView& layouts);
  const OutputSharding* find_exact(const OpSchema& op,
                                   const LayoutsView& layouts,
                                   const ArgumentUse* use,
                                   std::uint64_t generation);
  enum class Sizes { kAny, kNew };  // kNew: sizes that no family served before
  const OutputSharding* find_family(const OpSchema& op,
                                    const LayoutsView& layouts,
                                    const ArgumentUse& use, Sizes asked);
  Result<const OutputSharding*> propagate(const OpSchema& op,
                                          std::span<const Layout> inputs);

  std::shared_ptr<Body> body;
  ReaderSlot* slot;
  Shared own;  // the last answer, if the table does not own it
  // The last answer, if it was resized from an answer of the same family.
  OutputSharding resized;
  std::shared_ptr<const SharedShapes> family;
  bool was_shared = false;  // the last answer
  // Calls that a family has served once; the second time, the call gets an
  // entry.
  std::array<std::uint64_t, 1024> served{};
  std::uint32_t served_count = 0;
};

const OutputSharding* CachingPropagator::ReaderBody::find(
    const OpSchema& op, const LayoutsView& layouts) {
  if (op.function == nullptr || op.inputs.size() != layouts.size()) {
    return nullptr;
  }
  const std::uint64_t generation =
      body->generation.load(std::memory_order_acquire);
  const ArgumentUse* use = body->uses.find(op.function.get(), generation);
  if (use == nullptr || !use->shares_shapes || !body->options.share_shapes) {
    return find_exact(op, layouts, use, generation);
  }
  // If new sizes follow each other, the table has no entry for them. Its memory
  // is then not in the CPU cache, but that of the family is.
  if (was_shared) {
    if (const auto* found = find_family(op, layouts, *use, Sizes::kNew)) {
      return found;
    }
  }
  if (const auto* found = find_exact(op, layouts, use, generation)) {
    return found;
  }
  return find_family(op, layouts, *use, Sizes::kAny);
}

const OutputSharding* CachingPropagator::ReaderBody::find_exact(
    const OpSchema& op, const LayoutsView& layouts, const ArgumentUse* use,
    std::uint64_t generation) {
  KeyBuffer key;
  write_version(key, generation, use);
  write_call(key, op, layouts, looks_of(use));
  const Entry* entry = body->table.find(key.hash(), key.words(), *slot);
  if (entry == nullptr) return nullptr;
  was_shared = false;
  ReaderSlot::count(slot->hits);
  return entry->sharding.get();
}

const OutputSharding* CachingPropagator::ReaderBody::find_family(
    const OpSchema& op, const LayoutsView& layouts, const ArgumentUse& use,
    Sizes asked) {
  was_shared = false;
  KeyBuffer key;
  SizeClasses sizes;
  write_version(key, use.generation, &use);
  if (!write_family(key, sizes, op, layouts, use.looks)) return nullptr;
  const std::uint64_t hash = key.hash();
  // The hash of family and sizes identifies the call.
  const std::uint64_t call = hash_words(sizes.words()) ^ hash;
  std::uint64_t& before = served[call % served.size()];
  if (asked == Sizes::kNew && before == call) return nullptr;
  const Entry* entry = body->table.find(hash, key.words(), *slot);
  if (entry == nullptr || !serves(*entry->shapes, sizes)) return nullptr;
  if (family != entry->shapes) {
    resized = *entry->sharding;
    family = entry->shapes;
  }
  if (!fill_in(*entry->shapes, sizes, op, resized)) return nullptr;
  ReaderSlot::count(slot->shared_hits);
  was_shared = true;
  // Two calls may compete for the same place, so one call in 1024 gets its
  // entry at once.
  if (before == call || ++served_count % served.size() == 0) {
    body->keep_as_its_own(op, layouts, use, resized);
  } else {
    before = call;
  }
  return &resized;
}

Result<const OutputSharding*> CachingPropagator::ReaderBody::propagate(
    const OpSchema& op, std::span<const Layout> inputs) {
  const OutputSharding* found = find(op, inputs);
  if (found == nullptr) {
    SP_ASSIGN(own, body->miss(op, inputs, *slot));
    found = own.get();
  }
  if (sees_moves(body->guard, *found)) {
    SP_CHECK(guard_moves(body->guard, op, inputs, *found));
  }
  return found;
}

Result<Shared> CachingPropagator::Body::miss(const OpSchema& op,
                                             std::span<const Layout> layouts,
                                             ReaderSlot& slot) {
  if (op.function == nullptr || op.inputs.size() != layouts.size()) {
    return answer_uncached(op, layouts);
  }
  std::shared_ptr<Flight> flight;
  std::shared_future<Result<Shared>> other;
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
      flight = std::make_shared<Flight>();
      flights.emplace(key, flight);
      on.emplace(propagator);
    }
  }
  if (flight == nullptr) return other.get();
  try {
    Result<Shared> result = work_out(*on, in, op, layouts);
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

Result<Shared> CachingPropagator::Body::answer_uncached(
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

Result<Shared> CachingPropagator::Body::work_out(
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
    const ShardingPropagator::Body::Answer& answer, const Shared& sharding) {
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
    if (!lock ||
        use.generation != generation.load(std::memory_order_relaxed)) {
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

Result<CachingPropagator> CachingPropagator::create(
    ShardingPropagator propagator, const CacheOptions& options) {
  return guarded([&]() -> Result<CachingPropagator> {
    return CachingPropagator(
        std::make_shared<Body>(std::move(propagator), options));
  });
}

CachingPropagator::CachingPropagator(std::shared_ptr<Body> body)
    : body_(std::move(body)) {}
CachingPropagator::~CachingPropagator() = default;
CachingPropagator::CachingPropagator(CachingPropagator&&) noexcept = default;
CachingPropagator& CachingPropagator::operator=(CachingPropagator&&) noexcept =
    default;

Result<CachingPropagator::Reader> CachingPropagator::reader() const {
  return guarded([&]() -> Result<Reader> {
    return Reader(std::make_unique<ReaderBody>(body_));
  });
}

Result<Shared> CachingPropagator::propagate(
    const OpSchema& op, std::span<const Layout> inputs) const {
  return guarded([&]() -> Result<Shared> {
    ReaderBody reader(body_);
    SP_ASSIGN(const OutputSharding* found, reader.propagate(op, inputs));
    if (found == reader.own.get()) return reader.own;
    if (found == &reader.resized) {
      return std::make_shared<const OutputSharding>(std::move(reader.resized));
    }
    // The slot still announces the entry, so the entry is not freed.
    return reader.slot->looks_at.load(std::memory_order_relaxed)->sharding;
  });
}

Result<Shared> CachingPropagator::propagate(
    const OpSchema& op, std::span<const TensorSpec> inputs) const {
  return guarded([&]() -> Result<Shared> {
    SP_ASSIGN(const std::vector<Layout> layouts,
              layouts_on(body_->mesh, op, inputs));
    return propagate(op, layouts);
  });
}

Result<void> CachingPropagator::set_library(
    std::shared_ptr<const OpLibrary> library) {
  if (library == nullptr) {
    return fail(ErrorCode::kInvalidArgument, "a propagator has no operators",
                "pass OpLibrary::standard()");
  }
  return guarded([&]() -> Result<void> {
    ShardingPropagator made = propagator().with_library(std::move(library));
    // `made` outlives the lock, so that the old library is destroyed without
    // the lock.
    const std::scoped_lock lock(body_->mutex);
    std::swap(body_->propagator, made);
    // No thread writes keys of the old generation from here on.
    body_->generation.fetch_add(1, std::memory_order_release);
    body_->table.clear(body_->slots);
    return {};
  });
}

void CachingPropagator::clear() {
  const std::scoped_lock lock(body_->mutex);
  body_->table.clear(body_->slots);
}

const DeviceMesh& CachingPropagator::mesh() const { return body_->mesh; }

ShardingPropagator CachingPropagator::propagator() const {
  const std::scoped_lock lock(body_->mutex);
  return body_->propagator;
}

CacheStatistics CachingPropagator::statistics() const {
  CacheStatistics out;
  body_->slots.each([&](const ReaderSlot& slot) {
    out.hits += slot.hits.load(std::memory_order_relaxed);
    out.shared_hits += slot.shared_hits.load(std::memory_order_relaxed);
  });
  const std::scoped_lock lock(body_->mutex);
  out.misses = body_->misses;
  out.waits = body_->waits;
  out.evictions = body_->table.evictions();
  out.entries = body_->table.entries();
  out.bytes = body_->table.bytes();
  out.generation = body_->generation.load(std::memory_order_relaxed);
  return out;
}

CachingPropagator::Reader::Reader(std::unique_ptr<ReaderBody> body)
    : body_(std::move(body)) {}
CachingPropagator::Reader::~Reader() = default;
CachingPropagator::Reader::Reader(Reader&&) noexcept = default;
CachingPropagator::Reader& CachingPropagator::Reader::operator=(
    Reader&&) noexcept = default;

Result<const OutputSharding*> CachingPropagator::Reader::propagate(
    const OpSchema& op, std::span<const Layout> inputs) {
  return guarded([&] { return body_->propagate(op, inputs); });
}

Result<const OutputSharding*> CachingPropagator::Reader::propagate(
    const OpSchema& op, std::span<const TensorSpec> inputs) {
  return guarded([&]() -> Result<const OutputSharding*> {
    const CachingPropagator::Body& body = *body_->body;
    bool fits = inputs.size() == op.inputs.size();
    for (std::size_t i = 0; i < inputs.size() && fits; ++i) {
      fits = inputs[i].mesh() == body.mesh && inputs[i].meta() == op.inputs[i];
    }
    if (fits && body.guard.moves == ImplicitMoves::kAllowed) {
      if (const OutputSharding* found = body_->find(op, inputs)) return found;
    }
    SP_ASSIGN(const std::vector<Layout> layouts,
              layouts_on(body.mesh, op, inputs));
    return body_->propagate(op, layouts);
  });
}

}  // namespace shardprop
