#include <shardprop/redistribute/coalesce.h>

#include <shardprop/redistribute/collective_cost.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace shardprop {
namespace {

// LaunchKey holds the properties that two steps of one launch share.
struct LaunchKey {
  CollectiveKind kind;
  std::vector<std::int32_t> mesh_dims;
  // The op and dtype of a reduction; empty for other collectives.
  std::optional<ReduceOp> reduce_op;
  std::optional<DType> dtype;
  friend auto operator<=>(const LaunchKey&, const LaunchKey&) = default;
};

LaunchKey key_of(const CollectiveStep& step) {
  LaunchKey key{step.kind,
                {step.mesh_dims.begin(), step.mesh_dims.end()},
                step.reduce_op,
                {}};
  if (step.reduce_op) key.dtype = step.dtype;
  return key;
}

class Coalescer {
 public:
  Coalescer(std::span<const RedistributePlan* const> plans,
            const DeviceMesh& mesh, const Topology& topology)
      : plans_(plans),
        topology_(topology),
        places_(topology, mesh),
        next_(plans.size()) {}

  CoalescedPlan run() {
    CoalescedPlan out;
    for (const RedistributePlan* plan : plans_) {
      out.separate_nanoseconds += plan->nanoseconds;
    }
    while (true) {
      const auto key = choose();
      if (!key) break;
      out.launches.push_back(launch(*key));
      out.nanoseconds += out.launches.back().step.nanoseconds;
    }
    return out;
  }

 private:
  const std::vector<RedistributeStep>& steps(std::size_t tensor) const {
    return plans_[tensor]->steps;
  }
  LaunchKey key(std::size_t tensor, std::size_t step) const {
    return key_of(steps(tensor)[step]);
  }

  // Chooses the next launch. A tensor that reaches the chosen key later needs a
  // launch of its own. The key that the fewest tensors still have ahead goes
  // first; on a tie, the key that most tensors are at.
  std::optional<LaunchKey> choose() const {
    std::map<LaunchKey, std::pair<int, int>> waiting;  // ahead, -(at it)
    for (std::size_t t = 0; t < plans_.size(); ++t) {
      if (next_[t] < steps(t).size()) --waiting[key(t, next_[t])].second;
    }
    for (std::size_t t = 0; t < plans_.size(); ++t) {
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

  CoalescedLaunch launch(const LaunchKey& wanted) {
    CoalescedLaunch made;
    std::uint32_t mask = 0;
    for (const std::int32_t dim : wanted.mesh_dims) mask |= 1U << dim;
    const GroupPlace place = places_.of_mask(mask);
    const auto timed = [&](std::int64_t bytes) {
      return bytes == 0
                 ? std::int64_t{0}
                 : collective_nanoseconds(topology_, wanted.kind, place, bytes);
    };
    std::int64_t beside = 0;  // memory passes, one per tensor
    std::int64_t separate = 0;
    for (std::size_t t = 0; t < plans_.size(); ++t) {
      if (next_[t] >= steps(t).size() || !(key(t, next_[t]) == wanted)) {
        continue;
      }
      const RedistributeStep& step = steps(t)[next_[t]];
      if (made.members.empty()) {
        made.step = step;
        made.step.message_bytes = made.step.bytes_per_rank = 0;
      }
      made.step.message_bytes += step.message_bytes;
      made.step.bytes_per_rank += step.bytes_per_rank;
      made.step.padded = made.step.padded && step.padded;
      made.step.staged = made.step.staged || step.staged;
      beside += std::max(std::int64_t{0},
                         step.nanoseconds - timed(step.message_bytes));
      separate += step.nanoseconds;
      made.members.push_back({t, next_[t]});
      ++next_[t];
    }
    made.step.nanoseconds =
        std::min(separate, timed(made.step.message_bytes) + beside);
    return made;
  }

  std::span<const RedistributePlan* const> plans_;
  const Topology& topology_;
  MeshPlaces places_;
  std::vector<std::size_t> next_;
};

}  // namespace

CoalescedPlan coalesce(std::span<const RedistributePlan* const> plans,
                       const DeviceMesh& mesh, const Topology& topology) {
  return Coalescer(plans, mesh, topology).run();
}

}  // namespace shardprop
