#include <shardprop/redistribute/coalesce.h>

#include <shardprop/redistribute/collective_cost.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace shardprop {
namespace {

// What two steps must share to be one launch.
struct Key {
  CollectiveKind collective;
  std::vector<std::int32_t> mesh_dims;
  // Of reductions: what is reduced, and in which dtype.
  std::vector<ReduceOp> ops;
  std::optional<DType> dtype;
  friend auto operator<=>(const Key&, const Key&) = default;
};

Key key_of(const RedistributeStep& step, DType dtype) {
  Key key{
      step.collective, {step.mesh_dims.begin(), step.mesh_dims.end()}, {}, {}};
  if (step.collective != CollectiveKind::kAllReduce &&
      step.collective != CollectiveKind::kReduceScatter) {
    return key;
  }
  for (const std::int32_t dim : step.mesh_dims) {
    // Mesh dims of size 1 may change beside the group's own.
    if (!step.src[dim].is_partial()) continue;
    key.ops.push_back(step.src[dim].reduce_op());
    key.dtype = step.src[dim].reduce_dtype().value_or(dtype);
  }
  return key;
}

// The message, as collective_cost.h counts it, of a payload.
std::int64_t message_bytes(const RedistributeStep& step, std::int64_t ranks) {
  const std::int64_t sent = step.bytes_per_rank;
  switch (step.collective) {
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllToAll:
      return sent * ranks / (ranks - 1);
    case CollectiveKind::kAllReduce:
      return sent * ranks / (2 * (ranks - 1));
    default:
      return sent;
  }
}

class Coalescer {
 public:
  Coalescer(std::span<const CoalesceInput> inputs, const DeviceMesh& mesh,
            const Topology& topology)
      : inputs_(inputs),
        topology_(topology),
        places_(topology, mesh),
        next_(inputs.size()) {}

  CoalescedPlan run() {
    CoalescedPlan out;
    for (const CoalesceInput& input : inputs_) {
      out.separate_nanoseconds += input.plan->nanoseconds;
    }
    while (true) {
      const auto key = choose();
      if (!key) break;
      out.launches.push_back(launch(*key));
      out.nanoseconds += out.launches.back().nanoseconds;
    }
    return out;
  }

 private:
  const std::vector<RedistributeStep>& steps(std::size_t tensor) const {
    return inputs_[tensor].plan->steps;
  }
  Key key(std::size_t tensor, std::size_t step) const {
    return key_of(steps(tensor)[step], inputs_[tensor].dtype);
  }

  // Launching now what others reach later would cost them a launch of their
  // own: the key that fewest still have ahead goes first, then the one that
  // most are at.
  std::optional<Key> choose() const {
    std::map<Key, std::pair<int, int>> waiting;  // ahead, -(at it)
    for (std::size_t t = 0; t < inputs_.size(); ++t) {
      if (next_[t] < steps(t).size()) --waiting[key(t, next_[t])].second;
    }
    for (std::size_t t = 0; t < inputs_.size(); ++t) {
      for (std::size_t s = next_[t] + 1; s < steps(t).size(); ++s) {
        const auto found = waiting.find(key(t, s));
        if (found != waiting.end() && !(key(t, next_[t]) == found->first)) {
          ++found->second.first;
        }
      }
    }
    const auto best = std::min_element(
        waiting.begin(), waiting.end(),
        [](const auto& a, const auto& b) { return a.second < b.second; });
    if (best == waiting.end()) return std::nullopt;
    return best->first;
  }

  CoalescedLaunch launch(const Key& wanted) {
    CoalescedLaunch made;
    made.collective = wanted.collective;
    made.mesh_dims =
        DimIndices(wanted.mesh_dims.begin(), wanted.mesh_dims.end());
    std::uint32_t mask = 0;
    for (const std::int32_t dim : wanted.mesh_dims) mask |= 1U << dim;
    const GroupPlace place = places_.of_mask(mask);
    const auto timed = [&](std::int64_t bytes) {
      return bytes == 0 ? std::int64_t{0}
                        : collective_nanoseconds(topology_, wanted.collective,
                                                 place, bytes);
    };
    std::int64_t message = 0;
    std::int64_t beside = 0;  // passes over memory: every tensor its own
    std::int64_t separate = 0;
    for (std::size_t t = 0; t < inputs_.size(); ++t) {
      if (next_[t] >= steps(t).size() || !(key(t, next_[t]) == wanted)) {
        continue;
      }
      const RedistributeStep& step = steps(t)[next_[t]];
      const std::int64_t bytes = message_bytes(step, place.ranks);
      message += bytes;
      beside += std::max(std::int64_t{0}, step.nanoseconds - timed(bytes));
      separate += step.nanoseconds;
      made.bytes_per_rank += step.bytes_per_rank;
      made.members.push_back({t, next_[t]});
      ++next_[t];
    }
    made.nanoseconds = std::min(separate, timed(message) + beside);
    return made;
  }

  std::span<const CoalesceInput> inputs_;
  const Topology& topology_;
  MeshPlaces places_;
  std::vector<std::size_t> next_;
};

}  // namespace

CoalescedPlan coalesce(std::span<const CoalesceInput> inputs,
                       const DeviceMesh& mesh, const Topology& topology) {
  return Coalescer(inputs, mesh, topology).run();
}

}  // namespace shardprop
