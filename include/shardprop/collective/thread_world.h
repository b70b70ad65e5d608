// `ThreadWorld` is a world of ranks that are threads of one process.
//
// It is the built-in default: it supports any number of ranks and needs no
// installation. A rank publishes the addresses of its tensors. The first rank
// that waits copies directly from them to the outputs, also for ranks that are
// busy. Reductions combine in rank order. Waits spin for 30 us if there is a
// core for each rank, then sleep.
//
//   auto ends = run_ranks(4, {}, [](Communicator& communicator) {
//     return train(communicator);       // Result<void>
//   });                                 // ends[r]: how rank r ended
#pragma once

#include <shardprop/collective/communicator.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace shardprop {

namespace collective {
class ThreadHub;
}

class ThreadWorld {
 public:
  // Precondition: size >= 1.
  explicit ThreadWorld(std::int64_t size,
                       const CommunicatorOptions& options = {});

  std::int64_t size() const;

  // Returns the endpoint of one rank. Use it on that rank's thread, and destroy
  // it when the rank is done: other ranks fail if they still expect a rank that
  // left. It may outlive the ThreadWorld. Precondition: 0 <= rank < size, and
  // one call per rank.
  std::unique_ptr<Communicator> communicator(std::int64_t rank);

 private:
  std::shared_ptr<collective::ThreadHub> hub_;
};

// Runs `body` on `ranks` threads, one per rank, and returns the result of each,
// by rank. A body that throws or returns an error fails its rank for the
// others. An exception becomes kRankFailed with its message, or kOutOfMemory if
// memory ran out. A rank whose thread cannot be started ends with kThreadStart
// and fails the others.
std::vector<Result<void>> run_ranks(
    std::int64_t ranks, const CommunicatorOptions& options,
    const std::function<Result<void>(Communicator&)>& body);
// Runs `body` on the endpoints of a given world, by rank; each is destroyed on
// its thread.
std::vector<Result<void>> run_ranks(
    std::vector<std::unique_ptr<Communicator>> ends,
    const std::function<Result<void>(Communicator&)>& body);

}  // namespace shardprop
