#include <shardprop/propagate/caching_propagator.h>

#include "base/guard.h"
#include "base/try.h"
#include "propagate/caching_body.h"
#include "propagate/shared_shapes.h"

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

namespace shardprop {

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
  SharedAnswer own;  // the last answer, if the table does not own it
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

Result<SharedAnswer> CachingPropagator::propagate(
    const OpSchema& op, std::span<const Layout> inputs) const {
  return guarded([&]() -> Result<SharedAnswer> {
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

Result<SharedAnswer> CachingPropagator::propagate(
    const OpSchema& op, std::span<const TensorSpec> inputs) const {
  return guarded([&]() -> Result<SharedAnswer> {
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
