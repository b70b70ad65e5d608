// ThreadWorld: ranks that are threads of one process.
//
// The embedded default: any number of ranks, nothing to install. Data moves by
// direct reads: a rank publishes where its tensors are, and whoever waits first
// copies straight from there to where they belong, also on behalf of ranks that
// are busy elsewhere. Reductions combine in rank order. A wait spins shortly
// where every rank can have a core, and sleeps else.
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

  // The end of one rank, to be used on that rank's thread and destroyed when
  // the rank is done: a rank that leaves while others still expect it fails
  // them. May outlive the ThreadWorld. Precondition: 0 <= rank < size, asked
  // for once.
  std::unique_ptr<Communicator> communicator(std::int64_t rank);

 private:
  std::shared_ptr<collective::ThreadHub> hub_;
};

// Runs `body` on `ranks` threads, one a rank, and returns how each ended, by
// rank. A body that throws or returns an error fails its rank for the others;
// an exception comes back as kRankFailed with what it said, of memory that ran
// out as kOutOfMemory. A rank whose thread cannot be started ends with
// kThreadStart, and fails the others.
std::vector<Result<void>> run_ranks(
    std::int64_t ranks, const CommunicatorOptions& options,
    const std::function<Result<void>(Communicator&)>& body);
// The same with the ends of a world that has been made, by rank; each is
// destroyed on its thread.
std::vector<Result<void>> run_ranks(
    std::vector<std::unique_ptr<Communicator>> ends,
    const std::function<Result<void>(Communicator&)>& body);

}  // namespace shardprop
