#include "nccl/fake_device.h"

#include "base/try.h"
#include "collective/memory_kernels.h"
#include "nccl/fake_memory.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <random>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace shardprop::testing {
namespace {

using namespace std::chrono_literals;
using State = FakeQueue::State;

class FakeDevice {
 public:
  FakeDevice() : thread_([this] { work(); }) {}
  ~FakeDevice() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  FakeDevice(const FakeDevice&) = delete;
  FakeDevice& operator=(const FakeDevice&) = delete;

  void add(const std::shared_ptr<State>& state) {
    const std::lock_guard lock(mutex_);
    queues_.push_back(state);
  }
  void remove(const std::shared_ptr<State>& state) {
    const std::lock_guard lock(mutex_);
    std::erase(queues_, state);
  }
  bool idle() {
    const std::lock_guard lock(mutex_);
    return std::all_of(queues_.begin(), queues_.end(), [](const auto& queue) {
      return queue->ran == queue->pushed;
    });
  }
  void wake() { changed_.notify_all(); }
  void pass() { const std::lock_guard lock(mutex_); }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (!stop_) {
      bool moved = false;
      for (const auto& queue : queues_) moved |= step(*queue);
      if (!moved) changed_.wait_for(lock, 100us);
    }
  }

  // One step of a queue: whether it is done.
  static bool step(State& queue) {
    FakeQueue::Queued* first = nullptr;
    {
      const std::lock_guard lock(queue.mutex);
      if (!queue.steps.empty()) first = &queue.steps.front();
    }
    if (first == nullptr) return false;
    if (std::chrono::steady_clock::now() < first->earliest) return false;
    if (!first->step()) return false;
    // Dropped before it counts as done, and without the lock.
    first->step = nullptr;
    const std::lock_guard lock(queue.mutex);
    queue.steps.pop_front();
    ++queue.ran;
    return true;
  }

  std::mutex mutex_;  // held while steps run
  std::condition_variable changed_;
  std::vector<std::shared_ptr<State>> queues_;
  bool stop_ = false;
  std::thread thread_;
};

FakeDevice& the_device() {
  static FakeDevice made;
  return made;
}

unsigned long number_from(const char* variable, unsigned long otherwise) {
  const char* const given = std::getenv(variable);
  return given == nullptr ? otherwise : std::strtoul(given, nullptr, 10);
}

// Every queue has random numbers of its own.
std::minstd_rand next_random() {
  static const unsigned long seed = number_from("SHARDPROP_FAKE_SEED", 1);
  static std::atomic<unsigned long> queues = 0;
  std::seed_seq mixed{seed, queues++};
  return std::minstd_rand(mixed);
}

// One step of eight starts late.
std::chrono::microseconds some_delay(std::minstd_rand& random) {
  static const unsigned long longest =
      number_from("SHARDPROP_FAKE_DELAY_US", 200);
  if (random() % 8 != 0) return 0us;
  return std::chrono::microseconds(
      std::uniform_int_distribution<unsigned long>(0, longest)(random));
}

void push_to(State& queue, FakeStep step) {
  {
    const std::lock_guard lock(queue.mutex);
    const auto now = std::chrono::steady_clock::now();
    queue.steps.push_back({std::move(step), now + some_delay(queue.random)});
    ++queue.pushed;
  }
  the_device().wake();
}

class FakeMark final : public collective::DeviceQueue::Mark {
 public:
  FakeMark(std::shared_ptr<State> state, long count)
      : state_(std::move(state)), count_(count) {}
  Result<bool> reached() override { return !state_->hangs && test()(); }
  FakeStep test() const {
    return [state = state_, count = count_] { return state->ran >= count; };
  }

 private:
  std::shared_ptr<State> state_;
  long count_;
};

// The tensor as the device works on it, without its owner.
LocalTensor plain(const LocalTensor& tensor) {
  return LocalTensor::wrap(on_device(tensor.data()), tensor.sizes(),
                           tensor.strides(), tensor.dtype());
}

thread_local int current_device = 0;
std::atomic<int> frees_that_stuck = 0;

void must(const Result<void>& done) {
  if (!done) throw std::logic_error(to_string(done.error()));
}

}  // namespace

FakeQueue::FakeQueue(Device of, std::size_t capacity)
    : device_(of), state_(std::make_shared<State>()) {
  state_->random = next_random();
  const auto idle = [state = state_] { return state->ran == state->pushed; };
  blocks_ =
      std::make_shared<collective::BlockCache>(collective::BlockCache::Source{
          .allocate = [state = state_,
                       capacity](std::size_t bytes) -> Result<void*> {
            void* block = nullptr;
            if (state->bytes + bytes <= capacity) block = device_block(bytes);
            if (block == nullptr) {
              return fail(ErrorCode::kOutOfMemory,
                          "the fake device has no memory left");
            }
            state->bytes += bytes;
            return block;
          },
          .free =
              [state = state_](void* block) {
                state->bytes -= device_block_bytes(block);
                free_as_cuda(block);
              },
          .idle = idle});
  the_device().add(state_);
}

FakeQueue::~FakeQueue() {
  blocks_->close();
  the_device().remove(state_);
}

collective::DeviceQueue::StreamOrder FakeQueue::stream_order() const {
  return [](void* waiting, void* awaited) -> Result<void> {
    if (waiting == nullptr || awaited == nullptr) return {};
    SP_ASSIGN(const auto mark, static_cast<FakeQueue*>(awaited)->mark());
    return static_cast<FakeQueue*>(waiting)->follow(*mark);
  };
}

Result<void> FakeQueue::on_device(const std::function<Result<void>()>& work) {
  const int before = std::exchange(current_device, device_.index);
  Result<void> done = work();
  current_device = before;
  return done;
}

void FakeQueue::push(FakeStep step) { push_to(*state_, std::move(step)); }

Result<LocalTensor> FakeQueue::allocate(const Dims& sizes, DType dtype) {
  if (fault_) SP_CHECK(fault_());
  if (device_.type == DeviceType::kHost) {
    SP_ASSIGN(const LocalTensor memory, LocalTensor::empty(sizes, dtype));
    // As on a device, memory is used again only behind the work on it.
    std::shared_ptr<void> owner(memory.data(),
                                [state = state_, kept = memory.owner()](void*) {
                                  push_to(*state, [kept] { return true; });
                                });
    return LocalTensor::wrap(memory.data(), sizes, dtype, std::move(owner));
  }
  const LocalTensor empty =
      LocalTensor::wrap(nullptr, sizes, dtype, nullptr, device_);
  if (empty.numel() == 0) return empty;
  SP_ASSIGN(std::shared_ptr<void> block,
            blocks_->take(static_cast<std::size_t>(empty.bytes())));
  void* const memory = block.get();
  return LocalTensor::wrap(memory, sizes, dtype, std::move(block), device_);
}

Result<void> FakeQueue::copy(const LocalTensor& from, const LocalTensor& to,
                             double scale) {
  SP_CHECK(collective::check_device(device_, from, to));
  push([from = plain(from), to = plain(to), scale] {
    must(host_memory_ops().copy(from, to, scale));
    return true;
  });
  return {};
}

Result<void> FakeQueue::reduce(ReduceOp op, std::span<const LocalTensor> terms,
                               const LocalTensor& out, double scale) {
  std::vector<LocalTensor> kept;
  for (const LocalTensor& term : terms) {
    SP_CHECK(collective::check_device(device_, term, out));
    kept.push_back(plain(term));
  }
  push([op, kept = std::move(kept), out = plain(out), scale] {
    must(host_memory_ops().reduce(op, kept, out, scale));
    return true;
  });
  return {};
}

Result<void> FakeQueue::fill(const LocalTensor& tensor, const void* value) {
  SP_CHECK(collective::check_device(device_, tensor, tensor));
  std::array<std::byte, 16> bits{};
  std::memcpy(bits.data(), value,
              static_cast<std::size_t>(item_size(tensor.dtype())));
  push([tensor = plain(tensor), bits] {
    must(host_memory_ops().fill(tensor, bits.data()));
    return true;
  });
  return {};
}

Result<void> FakeQueue::transfer(const LocalTensor& from,
                                 const LocalTensor& to) {
  push([from = plain(from), to = plain(to)] {
    must(host_memory_ops().transfer(from, to));
    return true;
  });
  return finish();
}

Result<void> FakeQueue::finish() {
  const long count = state_->pushed;
  while (state_->ran < count) std::this_thread::sleep_for(10us);
  return {};
}

Result<std::unique_ptr<collective::DeviceQueue::Mark>> FakeQueue::mark() {
  return std::make_unique<FakeMark>(state_, state_->pushed);
}

Result<void> FakeQueue::follow(const Mark& mark) {
  push(static_cast<const FakeMark&>(mark).test());
  return {};
}

void wait_for_fake_device() { the_device().pass(); }

int fake_current_device() { return current_device; }

void set_fake_current_device(int device) { current_device = device; }

void free_as_cuda(void* block) {
  const auto deadline = std::chrono::steady_clock::now() + 5s;
  while (!the_device().idle()) {
    if (std::chrono::steady_clock::now() > deadline) {
      ++frees_that_stuck;
      break;
    }
    std::this_thread::sleep_for(100us);
  }
  free_device_block(block);
}

int stuck_frees() { return frees_that_stuck; }

}  // namespace shardprop::testing
