// A test case that crashes where no memory can be allocated any more, as inside
// of malloc. check_crash.cmake runs it.
#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <thread>

namespace {

std::atomic<bool> memory_is_locked = false;

}  // namespace

void* operator new(std::size_t bytes) {
  while (memory_is_locked) std::this_thread::yield();
  void* const memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

TEST_CASE("a crash inside of malloc") {
  std::thread([] {
    memory_is_locked = true;
    std::abort();
  }).join();
}
