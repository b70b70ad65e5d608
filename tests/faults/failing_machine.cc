#include "faults/failing_machine.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <limits>
#include <new>

namespace shardprop::failing_machine {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

std::atomic<std::int64_t> allocations_made = 0;
std::atomic<std::int64_t> threads_made = 0;
std::atomic<std::int64_t> failing_allocation = kNever;
std::atomic<std::int64_t> most_bytes = kNever;
std::atomic<std::int64_t> most_threads = kNever;
std::atomic<Refused> refused_last = Refused::kNothing;

thread_local Stop* stop_here = nullptr;
thread_local std::int64_t allocations_until_stop = 0;

}  // namespace

void stop_this_thread(Stop* stop) {
  stop_here = stop;
  allocations_until_stop = stop == nullptr ? 0 : stop->at;
}

void note_allocation_of_this_thread() {
  if (stop_here == nullptr || allocations_until_stop-- > 0) return;
  Stop* stop = stop_here;
  stop_here = nullptr;
  stop->has_stopped = true;
  while (!stop->may_go_on) sched_yield();
}

std::int64_t allocations() { return allocations_made; }
std::int64_t threads() { return threads_made; }

void memory_after(std::int64_t allocations) {
  heal();
  failing_allocation = allocations;
}
void memory_above(std::int64_t bytes) {
  heal();
  most_bytes = bytes;
}
void threads_after(std::int64_t threads) {
  heal();
  most_threads = threads;
}
void heal() {
  failing_allocation = kNever;
  most_bytes = kNever;
  most_threads = kNever;
  allocations_made = 0;
  threads_made = 0;
  refused_last = Refused::kNothing;
}
Refused refused() { return refused_last; }

// Returns memory, or null if the machine refuses it. Called by operator new.
void* memory_for(std::size_t bytes, Refused how) {
  note_allocation_of_this_thread();
  if (allocations_made++ == failing_allocation ||
      static_cast<std::int64_t>(bytes) > most_bytes) {
    refused_last = how;
    return nullptr;
  }
  return std::malloc(bytes == 0 ? 1 : bytes);
}

}  // namespace shardprop::failing_machine

namespace machine = shardprop::failing_machine;

void* operator new(std::size_t bytes) {
  void* memory = machine::memory_for(bytes, machine::Refused::kNeeded);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return machine::memory_for(bytes, machine::Refused::kSpare);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* how,
                              void* (*run)(void*), void* argument) {
  using Create =
      int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto kReal =
      reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));  // NOLINT
  if (machine::threads_made++ >= machine::most_threads) return EAGAIN;
  return kReal(thread, how, run, argument);
}
