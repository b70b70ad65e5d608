#include "plan/problem/overlap_windows.h"

#include "plan/tuning.h"

#include <algorithm>
#include <map>

namespace shardprop {

Windows::Windows(const Graph& graph) {
  const std::size_t nodes = graph.nodes().size();
  of_slot_.assign(nodes + 1, 0);
  std::uint32_t window = 0;
  for (std::size_t n = 1; n < nodes; ++n) {
    if (graph.nodes()[n].phase != graph.nodes()[n - 1].phase) ++window;
    of_slot_[n] = window;
  }
  if (window >= tuning::kMostOverlapWindows) {
    std::map<Phase, std::uint32_t> of_phase;
    for (std::size_t n = 0; n < nodes; ++n) {
      const auto next = static_cast<std::uint32_t>(of_phase.size());
      of_slot_[n] =
          of_phase.try_emplace(graph.nodes()[n].phase, next).first->second;
    }
    window = static_cast<std::uint32_t>(of_phase.size()) - 1;
  }
  if (nodes > 0) of_slot_[nodes] = of_slot_[nodes - 1];
  size_ = window + 1;
}

}  // namespace shardprop
