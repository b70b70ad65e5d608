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

// `Begins` finds the slot at which each place begins. It has the fewest nodes on
// the wrong side: nodes of the place or a later one before the slot, and nodes of
// earlier places after it. A later place begins at the same slot or later, so
// the slot of the middle place divides those of the other places. A graph of n
// nodes and p places takes n log p steps.
class Begins {
 public:
  Begins(const std::vector<std::size_t>& places, std::size_t count)
      : places_(places), begins_(count, 0) {
    divide(0, count, 0, places.size());
  }

  std::vector<std::size_t> take() && { return std::move(begins_); }

 private:
  // Sets the begin of the places first..last-1, which is from..until.
  void divide(std::size_t first, std::size_t last, std::size_t from,
              std::size_t until) {
    if (first == last) return;
    const std::size_t middle = first + (last - first) / 2;
    const std::size_t best = begin_of(middle, from, until);
    begins_[middle] = best;
    divide(first, middle, from, best);
    divide(middle + 1, last, best, until);
  }

  std::size_t begin_of(std::size_t place, std::size_t from,
                       std::size_t until) const {
    std::size_t best = from;
    std::int64_t least = 0;
    std::int64_t wrong = 0;  // compared with slot `from`
    for (std::size_t n = from; n < until; ++n) {
      wrong += places_[n] >= place ? 1 : -1;
      if (wrong >= least) continue;
      least = wrong;
      best = n + 1;
    }
    return best;
  }

  const std::vector<std::size_t>& places_;
  std::vector<std::size_t> begins_;
};

// PlaceClass is equal for the places of equal blocks of runs.
using PlaceClass = std::pair<std::uint64_t, std::size_t>;

PlaceClass class_of_place(const Blocks& blocks, std::size_t place) {
  const std::size_t count = blocks.blocks().size();
  const bool is_forward = place < count;
  const Block& block =
      blocks.blocks()[is_forward ? place : 2 * count - 1 - place];
  if (!block.run) return {0, place};
  return {1 + (is_forward ? 0U : 1U), block.code};
}

}  // namespace

Windows::Windows(const Graph& graph, const Blocks& blocks)
    : Windows(graph.nodes().size()) {
  const std::size_t nodes = graph.nodes().size();
  if (nodes == 0) return;
  begins_.clear();
  classes_.clear();
  const std::vector<std::size_t> places = places_of(graph, blocks);
  const std::vector<std::size_t> begins =
      Begins(places, 2 * blocks.blocks().size()).take();
  std::vector<PlaceClass> kinds;
  for (std::size_t place = 0; place < begins.size(); ++place) {
    const std::size_t begin = begins[place];
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
