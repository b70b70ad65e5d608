#include <shardprop/collective/thread_world.h>

#include <shardprop/base/error.h>

#include "base/guard.h"
#include "base/memory_reserve.h"
#include "collective/thread_communicator.h"
#include "collective/thread_hub.h"

#include <exception>
#include <new>
#include <string>
#include <thread>
#include <utility>

namespace shardprop {
namespace {

Result<void> threw(std::size_t rank, const std::exception_ptr& thrown) {
  if (auto error = refusal(thrown)) {
    return fail((*std::move(error)).at("rank " + std::to_string(rank)));
  }
  std::string what = "rank " + std::to_string(rank) + " threw";
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& known) {
    what += std::string(": ") + known.what();
  } catch (...) {
    // The exception has no known type.
  }
  return fail(ErrorCode::kRankFailed, std::move(what));
}

// The text is short enough for the string's internal buffer, so it needs no
// memory.
Error last_words() { return {ErrorCode::kOutOfMemory, "no memory left"}; }

// Returns `work()`. If memory is exhausted, frees the reserve and tries again;
// if memory is exhausted again, returns `otherwise()`.
template <class Work, class Otherwise>
auto with_last_memory(MemoryReserve& reserve, const Work& work,
                      const Otherwise& otherwise) noexcept {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    reserve.release();
  }
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return otherwise();
  }
}

// Informs the other ranks, even with the last memory.
void abort(Communicator& rank, const Error& reason, MemoryReserve& reserve) {
  with_last_memory(
      reserve, [&] { rank.abort(reason); },
      [&] {
        try {
          rank.abort(last_words());
        } catch (const std::bad_alloc&) {
          // The waiting ranks then end by their timeout.
        }
      });
}

// Threads that are joined at the end of the scope, also after an exception.
struct JoinedThreads {
  std::vector<std::thread> threads;
  ~JoinedThreads() {
    for (std::thread& thread : threads) thread.join();
  }
};

// The error of the first rank without a thread is the error of all later ranks.
// There may be many of them, so each gets the code and a text that needs no
// memory.
void end_without_thread(std::size_t first, std::vector<Result<void>>& ends,
                        Communicator& rank, MemoryReserve& reserve) {
  const std::exception_ptr thrown = std::current_exception();
  Error error = with_last_memory(
      reserve,
      [&] {
        return refusal(thrown).value_or(Error{
            ErrorCode::kThreadStart, "the thread of a rank cannot be started"});
      },
      last_words);
  const ErrorCode code = error.code;
  abort(rank, error, reserve);
  ends[first] = fail(std::move(error));
  for (std::size_t r = first + 1; r < ends.size(); ++r) {
    ends[r] = fail(code, "not started");
  }
}

}  // namespace

ThreadWorld::ThreadWorld(std::int64_t size, const CommunicatorOptions& options)
    : hub_(std::make_shared<collective::ThreadHub>(size, options)) {}

std::int64_t ThreadWorld::size() const { return hub_->size(); }

std::unique_ptr<Communicator> ThreadWorld::communicator(std::int64_t rank) {
  return std::make_unique<collective::ThreadCommunicator>(rank, hub_);
}

std::vector<Result<void>> run_ranks(
    std::int64_t ranks, const CommunicatorOptions& options,
    const std::function<Result<void>(Communicator&)>& body) {
  ThreadWorld world(ranks, options);
  std::vector<std::unique_ptr<Communicator>> communicators;
  communicators.reserve(static_cast<std::size_t>(ranks));
  for (std::int64_t r = 0; r < ranks; ++r) {
    communicators.push_back(world.communicator(r));
  }
  return run_ranks(std::move(communicators), body);
}

std::vector<Result<void>> run_ranks(
    std::vector<std::unique_ptr<Communicator>> communicators,
    const std::function<Result<void>(Communicator&)>& body) {
  std::vector<Result<void>> ends(communicators.size());
  MemoryReserve reserve;
  const auto run_rank = [&](std::size_t r) noexcept {
    const std::unique_ptr<Communicator> mine = std::move(communicators[r]);
    try {
      ends[r] = body(*mine);
    } catch (...) {
      const std::exception_ptr thrown = std::current_exception();
      ends[r] = with_last_memory(
          reserve, [&] { return threw(r, thrown); },
          [] { return Result<void>(fail(last_words())); });
    }
    if (!ends[r]) abort(*mine, ends[r].error(), reserve);
  };
  {
    JoinedThreads started;
    started.threads.reserve(ends.size());
    try {
      for (std::size_t r = 0; r < ends.size(); ++r) {
        started.threads.emplace_back(run_rank, r);
      }
    } catch (const std::exception&) {
      // The ranks that run wait for the ranks that cannot start.
      reserve.release();
      const std::size_t first = started.threads.size();
      end_without_thread(first, ends, *communicators[first], reserve);
    }
  }
  return ends;
}

}  // namespace shardprop
