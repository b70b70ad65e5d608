#include "nccl/fake_nccl.h"

#include <shardprop/collective/memory_ops.h>

#include "nccl/fake_device.h"
#include "nccl/fake_memory.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace shardprop::testing {
namespace {

constexpr int kInvalidUsage = 5;

using Bytes = std::vector<char>;

// Shared by the members of one communicator.
struct FakeWorld {
  std::mutex mutex;
  long id = 0;
  int size = 0;
  int joined = 0;
  std::map<std::pair<int, int>, std::deque<Bytes>> mail;    // by source, target
  std::map<long, std::vector<std::optional<Bytes>>> given;  // by call
};

struct FakeComm {
  std::shared_ptr<FakeWorld> world;
  int rank = 0;
  long calls = 0;
  FakeQueue* queue = nullptr;  // once it has been used
  // Its steps are done without doing anything.
  std::shared_ptr<std::atomic<bool>> aborted =
      std::make_shared<std::atomic<bool>>(false);
};

struct Registry {
  std::mutex mutex;
  long ids = 0;
  std::map<std::string, std::shared_ptr<FakeWorld>> worlds;
  std::vector<int> devices;  // current when a communicator was made
  // `destroyed_by` has the numbers of communicators, by the thread that
  // destroyed them.
  std::map<std::thread::id, std::vector<std::int64_t>> destroyed_by;
};

Registry& registry() {
  static Registry all;
  return all;
}

std::atomic<int> broken = 0;
std::atomic<int> refused = 0;
std::atomic<int> made = 0;
std::atomic<int> aborted = 0;
std::atomic<int> destroyed = 0;
std::atomic<int> stuck = 0;

// The depth and the calls of this thread's open group.
thread_local int depth = 0;
thread_local std::vector<std::pair<FakeQueue*, FakeStep>> grouped;

int enqueue(FakeComm& comm, nccl::Stream stream, FakeStep step) {
  comm.queue = static_cast<FakeQueue*>(stream);
  grouped.emplace_back(
      comm.queue, [aborted = comm.aborted, step = std::move(step)]() mutable {
        return *aborted || step();
      });
  if (depth > 0) return nccl::kSuccess;
  for (auto& [queue, alone] : grouped) queue->push(std::move(alone));
  grouped.clear();
  return nccl::kSuccess;
}

std::int64_t size_of(int type) {
  constexpr std::int64_t kSizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return kSizes[type];
}

DType dtype_of(int type) {
  constexpr DType kTypes[] = {
      DType::kI8,  DType::kU8,  DType::kI32, DType::kU32, DType::kI64,
      DType::kU64, DType::kF16, DType::kF32, DType::kF64, DType::kBF16};
  return kTypes[type];
}

ReduceOp op_of(int op) {
  constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kProduct,
                               ReduceOp::kMax, ReduceOp::kMin, ReduceOp::kAvg};
  return kOps[op];
}

// Gives everyone `count` bytes of mine; `use` gets everyone's when all are
// there.
int share(nccl::Comm handle, nccl::Stream stream, const void* from,
          std::size_t count,
          std::function<void(const std::vector<std::optional<Bytes>>&)> use) {
  if (refused != nccl::kSuccess) return refused;
  auto* comm = static_cast<FakeComm*>(handle);
  const long call = comm->calls++;
  const auto world = comm->world;
  const int rank = comm->rank;
  return enqueue(*comm, stream, [=, given = false]() mutable {
    const std::lock_guard lock(world->mutex);
    auto& all = world->given[call];
    all.resize(static_cast<std::size_t>(world->size));
    if (!given) {
      const auto* at = static_cast<const char*>(on_device(from));
      all[static_cast<std::size_t>(rank)].emplace(at, at + count);
      given = true;
    }
    for (const auto& one : all) {
      if (!one) return false;
    }
    use(all);
    return true;
  });
}

// Computes the reduction of the bytes of all ranks from `begin` on.
void reduce_bytes(const std::vector<std::optional<Bytes>>& all,
                  std::size_t begin, std::size_t count, int type, int op,
                  void* into) {
  std::vector<LocalTensor> terms;
  const Dims sizes{static_cast<std::int64_t>(count)};
  for (const auto& one : all) {
    terms.push_back(LocalTensor::wrap(const_cast<char*>(one->data()) + begin,
                                      sizes, dtype_of(type)));
  }
  // The least and the largest float are NCCL's fminf and fmaxf, which drop NaN.
  if (dtype_of(type) == DType::kF32 && op >= 2 && op <= 3) {
    auto* out = static_cast<float*>(on_device(into));
    for (std::size_t i = 0; i < count; ++i) {
      out[i] = terms[0].data_as<const float>()[i];
      for (const LocalTensor& term : terms) {
        const float other = term.data_as<const float>()[i];
        out[i] = op == 2 ? std::fmax(out[i], other) : std::fmin(out[i], other);
      }
    }
    return;
  }
  if (!host_memory_ops().reduce(
          op_of(op), terms,
          LocalTensor::wrap(on_device(into), sizes, dtype_of(type)))) {
    broken = kInvalidUsage;
  }
}

}  // namespace

void break_fake_nccl(int code, bool at_once) {
  (at_once ? refused : broken) = code;
}

FakeCounts fake_counts() { return {made, aborted, destroyed, stuck}; }

int fake_group_depth() { return depth; }

std::vector<int> take_fake_devices() {
  const std::lock_guard lock(registry().mutex);
  return std::exchange(registry().devices, {});
}

std::vector<std::vector<std::int64_t>> take_destroyed() {
  const std::lock_guard lock(registry().mutex);
  std::vector<std::vector<std::int64_t>> out;
  for (auto& [rank, order] : registry().destroyed_by) {
    out.push_back(std::move(order));
  }
  registry().destroyed_by.clear();
  return out;
}

namespace {

// As CUDA does before it frees memory: kernels of other communicators run until
// those are aborted. Where that takes too long they are counted as stuck.
void wait_until_idle(const FakeComm& comm) {
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (comm.queue != nullptr && !comm.queue->idle()) {
    if (std::chrono::steady_clock::now() > deadline) {
      ++stuck;
      return;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

void add_communicators(nccl::NcclApi& api) {
  using nccl::Comm;
  using nccl::kSuccess;
  api.get_version = [](int* version) {
    *version = 22809;
    return int{kSuccess};
  };
  api.get_unique_id = [](nccl::UniqueId* id) {
    const std::lock_guard lock(registry().mutex);
    const std::string name = "fake " + std::to_string(registry().ids++);
    std::memset(id, 0, sizeof(*id));
    std::memcpy(id->internal, name.data(), name.size());
    return int{kSuccess};
  };
  api.comm_init_rank_config = [](Comm* comm, int ranks, nccl::UniqueId id,
                                 int rank, nccl::Config* config) {
    if (config->blocking != 0) return kInvalidUsage;
    const std::lock_guard lock(registry().mutex);
    auto& world = registry().worlds[id.internal];
    if (world == nullptr) world = std::make_shared<FakeWorld>();
    world->id = std::strtol(id.internal + std::strlen("fake "), nullptr, 10);
    registry().devices.push_back(fake_current_device());
    const std::lock_guard inside(world->mutex);
    world->size = ranks;
    ++world->joined;
    *comm = new FakeComm{world, rank};
    ++made;
    return int{nccl::kInProgress};
  };
  api.comm_get_async_error = [](Comm comm, int* state) {
    const auto& world = static_cast<FakeComm*>(comm)->world;
    const std::lock_guard lock(world->mutex);
    *state =
        world->joined < world->size ? int{nccl::kInProgress} : broken.load();
    return int{kSuccess};
  };
  api.comm_abort = [](Comm comm) {
    *static_cast<FakeComm*>(comm)->aborted = true;
    wait_for_fake_device();
    wait_until_idle(*static_cast<FakeComm*>(comm));
    delete static_cast<FakeComm*>(comm);
    ++aborted;
    return int{kSuccess};
  };
  api.comm_destroy = [](Comm comm) {
    {
      const std::lock_guard lock(registry().mutex);
      registry().destroyed_by[std::this_thread::get_id()].push_back(
          static_cast<FakeComm*>(comm)->world->id);
    }
    delete static_cast<FakeComm*>(comm);
    ++destroyed;
    return int{kSuccess};
  };
}

void add_messages(nccl::NcclApi& api) {
  using nccl::Comm;
  using nccl::kSuccess;
  using nccl::Stream;
  api.group_start = [] {
    ++depth;
    return int{kSuccess};
  };
  api.group_end = [] {
    if (--depth > 0 || grouped.empty()) return int{kSuccess};
    // One entry of the stream, in which all make headway together.
    FakeQueue* const queue = grouped[0].first;
    auto steps = std::make_shared<std::vector<FakeStep>>();
    for (auto& [of, step] : grouped) steps->push_back(std::move(step));
    grouped.clear();
    queue->push([steps] {
      std::erase_if(*steps, [](FakeStep& step) { return step(); });
      return steps->empty();
    });
    return int{nccl::kInProgress};
  };
  api.send = [](const void* from, std::size_t count, int type, int peer,
                Comm comm, Stream stream) {
    if (depth == 0) return kInvalidUsage;
    if (refused != nccl::kSuccess) return refused.load();
    auto* mine = static_cast<FakeComm*>(comm);
    return enqueue(*mine, stream,
                   [world = mine->world, rank = mine->rank, from, peer,
                    bytes = count * static_cast<std::size_t>(size_of(type))] {
                     const std::lock_guard lock(world->mutex);
                     const auto* at = static_cast<const char*>(on_device(from));
                     world->mail[{rank, peer}].emplace_back(at, at + bytes);
                     return true;
                   });
  };
  api.recv = [](void* into, std::size_t count, int type, int peer, Comm comm,
                Stream stream) {
    if (depth == 0) return kInvalidUsage;
    if (refused != nccl::kSuccess) return refused.load();
    auto* mine = static_cast<FakeComm*>(comm);
    return enqueue(*mine, stream,
                   [world = mine->world, rank = mine->rank, into, peer,
                    bytes = count * static_cast<std::size_t>(size_of(type))] {
                     const std::lock_guard lock(world->mutex);
                     auto& box = world->mail[{peer, rank}];
                     if (box.empty()) return false;
                     if (box.front().size() != bytes) broken = kInvalidUsage;
                     std::memcpy(on_device(into), box.front().data(),
                                 std::min(bytes, box.front().size()));
                     box.pop_front();
                     return true;
                   });
  };
}

void add_collectives(nccl::NcclApi& api) {
  using nccl::Comm;
  using nccl::Stream;
  api.all_reduce = [](const void* from, void* into, std::size_t count, int type,
                      int op, Comm comm, Stream stream) {
    const std::size_t bytes = count * static_cast<std::size_t>(size_of(type));
    return share(comm, stream, from, bytes, [=](const auto& all) {
      reduce_bytes(all, 0, count, type, op, into);
    });
  };
  api.reduce_scatter = [](const void* from, void* into, std::size_t count,
                          int type, int op, Comm comm, Stream stream) {
    const auto* mine = static_cast<FakeComm*>(comm);
    const auto n = static_cast<std::size_t>(mine->world->size);
    const std::size_t share_bytes =
        count * static_cast<std::size_t>(size_of(type));
    const std::size_t begin =
        share_bytes * static_cast<std::size_t>(mine->rank);
    return share(comm, stream, from, n * share_bytes, [=](const auto& all) {
      reduce_bytes(all, begin, count, type, op, into);
    });
  };
  api.all_gather = [](const void* from, void* into, std::size_t count, int type,
                      Comm comm, Stream stream) {
    const std::size_t bytes = count * static_cast<std::size_t>(size_of(type));
    return share(comm, stream, from, bytes, [=](const auto& all) {
      for (std::size_t r = 0; r < all.size(); ++r) {
        std::memcpy(static_cast<char*>(on_device(into)) + r * bytes,
                    all[r]->data(), bytes);
      }
    });
  };
  api.broadcast = [](const void* from, void* into, std::size_t count, int type,
                     int root, Comm comm, Stream stream) {
    const std::size_t bytes = count * static_cast<std::size_t>(size_of(type));
    return share(comm, stream, from, bytes, [=](const auto& all) {
      std::memcpy(on_device(into), all[static_cast<std::size_t>(root)]->data(),
                  bytes);
    });
  };
}

}  // namespace

nccl::NcclApi fake_nccl() {
  nccl::NcclApi api;
  add_communicators(api);
  add_messages(api);
  add_collectives(api);
  api.get_error_string = [](int code) {
    return code == nccl::kRemoteError ? "remote process exited"
                                      : "another error";
  };
  return api;
}

}  // namespace shardprop::testing
