#include "collective/device_queue.h"

#include <thread>

namespace shardprop::collective {
namespace {

constexpr std::chrono::microseconds kDrainNap{20};

}  // namespace

bool drains(MemoryOps& memory, std::chrono::milliseconds patience) {
  auto* const queue = dynamic_cast<DeviceQueue*>(&memory);
  if (queue == nullptr) return memory.finish().has_value();
  const auto deadline = std::chrono::steady_clock::now() + patience;
  const auto mark = queue->mark();
  if (!mark) return false;
  for (;;) {
    const Result<bool> reached = (*mark)->reached();
    if (!reached) return false;
    if (*reached) return true;
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(kDrainNap);
  }
}

}  // namespace shardprop::collective
