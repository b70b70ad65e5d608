// CachingPropagator is a ShardingPropagator that remembers its answers, for
// frameworks that ask at every operator of every step.
//
// The cache is bounded by entries and by bytes. Entries that were not used
// lately are evicted first, so that a stream of calls seen once does not evict
// the working set. One answer per reader outlives its eviction.
//
// A key is the operator, the metas and layouts of its operands, and its other
// arguments as closely as the operator's definition looks at them. Calls of
// add.Tensor that differ in alpha share an answer unless its sign differs. An
// answer that moves nothing and follows from which sizes are equal (matmuls,
// pointwise operators, reductions) serves every evenly sharded size, such as a
// new batch.
//
// It is safe to use from any number of threads. A hit waits for no other
// thread. If several threads miss the same call, one works and the others wait
// for it. A call that begins after set_library() has returned is answered by
// the new library, never by an older one. Errors are not remembered.
//
//   auto cache = CachingPropagator::create(propagator).value();
//   auto reader = cache.reader().value();           // one per thread
//   auto sharding = reader.propagate(op, layouts);  // a miss, then hits
//   (*sharding)->outputs[0];                        // until the next call
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/propagate/sharding_propagator.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace shardprop {

// `CacheOptions` are the limits of a cache.
struct CacheOptions {
  std::size_t most_entries = std::size_t{1} << 16;
  std::size_t most_bytes = std::size_t{256} << 20;
  // If true, an answer also serves other sizes.
  bool share_shapes = true;
};

// `CacheStatistics` counts the calls of a cache and its current size.
struct CacheStatistics {
  std::uint64_t hits = 0;         // for the same call
  std::uint64_t shared_hits = 0;  // for a call with other sizes
  std::uint64_t misses = 0;       // computed anew, errors included
  std::uint64_t waits = 0;        // for a miss of another thread
  std::uint64_t evictions = 0;
  std::size_t entries = 0;
  std::size_t bytes = 0;
  std::uint64_t generation = 0;  // number of calls of set_library()
};

class CachingPropagator {
 public:
  class Reader;

  // Creates a cache. An entry of more than most_bytes is not stored; with
  // most_entries of 0 no entry is. At most 4 million entries are stored. Error:
  // kOutOfMemory.
  static Result<CachingPropagator> create(ShardingPropagator propagator,
                                          const CacheOptions& options = {});
  ~CachingPropagator();
  CachingPropagator(CachingPropagator&&) noexcept;
  CachingPropagator& operator=(CachingPropagator&&) noexcept;

  // Returns a reader for one thread. Error: kOutOfMemory.
  Result<Reader> reader() const;

  // Answers for a thread without a reader. Errors: as
  // ShardingPropagator::propagate().
  Result<std::shared_ptr<const OutputSharding>> propagate(
      const OpSchema& op, std::span<const Layout> inputs) const;
  Result<std::shared_ptr<const OutputSharding>> propagate(
      const OpSchema& op, std::span<const TensorSpec> inputs) const;

  // Replaces the operators and starts an empty generation of the cache. Calls
  // that run meanwhile may still be answered by the old library. Errors:
  // kInvalidArgument (null), kOutOfMemory.
  Result<void> set_library(std::shared_ptr<const OpLibrary> library);
  // Empties the cache.
  void clear();

  const DeviceMesh& mesh() const;
  ShardingPropagator propagator() const;
  CacheStatistics statistics() const;

 private:
  struct Body;
  struct ReaderBody;
  explicit CachingPropagator(std::shared_ptr<Body> body);
  std::shared_ptr<Body> body_;
};

// `Reader` is for one thread at a time. It may outlive its cache.
class CachingPropagator::Reader {
 public:
  ~Reader();
  Reader(Reader&&) noexcept;
  Reader& operator=(Reader&&) noexcept;

  // Returns an answer that is valid until this reader's next call. Errors: as
  // ShardingPropagator::propagate().
  Result<const OutputSharding*> propagate(const OpSchema& op,
                                          std::span<const Layout> inputs);
  Result<const OutputSharding*> propagate(const OpSchema& op,
                                          std::span<const TensorSpec> inputs);

 private:
  friend class CachingPropagator;
  explicit Reader(std::unique_ptr<ReaderBody> body);
  std::unique_ptr<ReaderBody> body_;
};

}  // namespace shardprop
