#include "plan/problem/overlap_windows.h"

#include <map>
#include <utility>

namespace shardprop {
namespace {

// Returns the place of each node in the order of blocks and phases.
std::vector<std::size_t> places_of(const Graph& graph, const Blocks& blocks) {
  const std::size_t last = 2 * blocks.blocks().size() - 1;
  std::vector<std::size_t> out;
  out.reserve(graph.nodes().size());
  for (const Node& node : graph.nodes()) {
    const std::size_t block = blocks.block_of(node.id);
    out.push_back(node.phase == Phase::kForward ? block : last - block);
  }
  return out;
}

// Returns the slot with the fewest nodes on the wrong side: nodes of `place` or a
// later one before the slot, and nodes of earlier places after it.
std::size_t begin_of(const std::vector<std::size_t>& places,
                     std::size_t place) {
  std::size_t best = 0;
  std::int64_t least = 0;
  std::int64_t wrong = 0;  // compared with slot 0
  for (std::size_t n = 0; n < places.size(); ++n) {
    wrong += places[n] >= place ? 1 : -1;
    if (wrong >= least) continue;
    least = wrong;
    best = n + 1;
  }
  return best;
}

// PlaceClass is equal for the places of equal blocks of runs.
using PlaceClass = std::pair<std::uint64_t, std::size_t>;

PlaceClass class_of_place(const Blocks& blocks, std::size_t place) {
  const std::size_t count = blocks.blocks().size();
  const bool is_forward = place < count;
  const Block& block =
      blocks.blocks()[is_forward ? place : 2 * count - 1 - place];
  if (!block.run) return {0, place};
  return {1 + (is_forward ? 0U : 1U), blocks.runs()[*block.run].code};
}

}  // namespace

Windows::Windows(const Graph& graph, const Blocks& blocks)
    : Windows(graph.nodes().size()) {
  const std::size_t nodes = graph.nodes().size();
  if (nodes == 0) return;
  begins_.clear();
  classes_.clear();
  const std::vector<std::size_t> places = places_of(graph, blocks);
  std::vector<PlaceClass> kinds;
  for (std::size_t place = 0; place < 2 * blocks.blocks().size(); ++place) {
    const std::size_t begin = begin_of(places, place);
    if (begin == nodes) break;
    // A window without a node is dropped.
    if (!begins_.empty() &&
        begins_.back() == static_cast<std::int64_t>(begin)) {
      begins_.pop_back();
      kinds.pop_back();
    }
    begins_.push_back(static_cast<std::int64_t>(begin));
    kinds.push_back(class_of_place(blocks, place));
  }
  std::map<PlaceClass, std::size_t> known;
  for (std::size_t w = 0; w < begins_.size(); ++w) {
    const auto end =
        w + 1 < begins_.size() ? index(begins_[w + 1]) : of_slot_.size();
    for (std::size_t slot = index(begins_[w]); slot < end; ++slot) {
      of_slot_[slot] = static_cast<std::uint32_t>(w);
    }
    classes_.push_back(known.try_emplace(kinds[w], known.size()).first->second);
  }
}

std::optional<std::size_t> Windows::of_gather(std::int64_t slot) const {
  const std::size_t window = at(slot);
  if (window == 0) return std::nullopt;
  return window - 1;
}

std::optional<std::size_t> Windows::of_reduction(std::int64_t slot) const {
  const std::size_t window = at(slot == 0 ? 0 : slot - 1) + 1;
  if (window == size()) return std::nullopt;
  return window;
}

}  // namespace shardprop
