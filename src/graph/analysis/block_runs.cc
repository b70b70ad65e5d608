#include "graph/analysis/block_runs.h"

#include "graph/analysis/block_chains.h"
#include "graph/analysis/block_growth.h"
#include "graph/analysis/block_offsets.h"

#include <shardprop/base/hash.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

namespace shardprop {
namespace {

using Element = GraphStructure::Element;

// Labels of these radii suggest the distance between blocks. A small radius
// reaches close to the ends of a run; a large one tells parts of a block apart.
constexpr int kRadii[] = {8, 3, 1};
// The code of a block labels its elements with this radius.
constexpr int kCodeRadius = 2;
// Distances to try for each radius, and spans for each set of chains.
constexpr std::size_t kMostDistances = 6;
constexpr std::size_t kMostSpans = 3;
// Runs with so large a share of all nodes are not compared with others.
constexpr double kEnoughShare = 0.8;
// At least so large a share of the chains must be alike.
constexpr double kLeastShareAlike = 0.75;
// Rounds of search for further runs.
constexpr int kMostRounds = 8;

// RunCheck narrows chains to a span of blocks in which all counterparts agree.
class RunCheck {
 public:
  RunCheck(const GraphStructure& structure, const BlockChains& chains,
           const PlacedChains& placed)
      : structure_(structure),
        chains_(chains),
        placed_(placed),
        block_(structure.size(), kOutside) {}

  std::optional<RepeatedRun> run(BlockSpan span) {
    while (span.count() >= 2) {
      choose(span);
      drop_unlike(span);
      if (positions_.empty() || !has_parameter()) return std::nullopt;
      const BlockSpan agreed = longest_agreement(span);
      if (agreed == span) break;
      span = agreed;
    }
    if (span.count() < 2 || !leads_on() || has_hole(false) || has_hole(true)) {
      return std::nullopt;
    }
    return sorted();
  }

 private:
  static constexpr std::int32_t kOutside = -1;

  // Takes the elements of the span's blocks from the chains that have all of
  // them.
  void choose(const BlockSpan& span) {
    for (const auto& position : positions_) {
      for (const Element e : position) block_[e] = kOutside;
    }
    positions_.clear();
    for (std::size_t c = 0; c < placed_.chains.size(); ++c) {
      const auto& chain = chains_.chains[placed_.chains[c]];
      const std::int32_t skipped = span.first - placed_.offsets[c];
      if (skipped < 0 ||
          skipped + span.count() > static_cast<std::int32_t>(chain.size())) {
        continue;
      }
      positions_.emplace_back(chain.begin() + skipped,
                              chain.begin() + skipped + span.count());
      for (std::int32_t b = 0; b < span.count(); ++b) {
        block_[positions_.back()[static_cast<std::size_t>(b)]] = b;
      }
    }
  }

  bool has_parameter() const {
    return std::any_of(positions_.begin(), positions_.end(),
                       [&](const auto& position) {
                         return structure_.is_parameter(position.front());
                       });
  }

  // Returns whether the operands of a block's element and of its counterpart in
  // the next block agree. At the ends of a run, a neighbouring block may be
  // missing.
  bool agree(Element a, Element b, std::int32_t last) const {
    const auto of_a = structure_.operands(a);
    const auto of_b = structure_.operands(b);
    if (of_a.size() != of_b.size()) return false;
    for (std::size_t o = 0; o < of_a.size(); ++o) {
      const Element p = of_a[o].producer;
      const Element q = of_b[o].producer;
      if (of_a[o].output != of_b[o].output) return false;
      if (block_[p] == kOutside && block_[q] == kOutside) {
        if (p != q) return false;
      } else if (block_[p] == kOutside) {
        if (block_[a] != 0 || block_[q] != 0) return false;
      } else if (block_[q] == kOutside) {
        if (block_[b] != last || block_[p] != last) return false;
      } else if (chains_.chain_of[p] != chains_.chain_of[q] ||
                 block_[q] != block_[p] + 1) {
        return false;
      }
    }
    return true;
  }

  // Returns whether each block reads a forward result of the one before.
  bool leads_on() const {
    for (const auto& position : positions_) {
      const Element reader = position[1];
      if (structure_.is_backward(reader)) continue;
      for (const auto& operand : structure_.operands(reader)) {
        if (structure_.is_node(operand.producer) &&
            block_[operand.producer] == 0) {
          return true;
        }
      }
    }
    return false;
  }

  // Leaves out positions whose elements agree in less than half of the blocks,
  // such as sums over all blocks. Their dependents are left out next.
  void drop_unlike(const BlockSpan& span) {
    const std::int32_t last = span.count() - 1;
    const std::size_t chosen = positions_.size();
    const auto is_unlike = [&](const std::vector<Element>& position) {
      std::int32_t agreeing = 0;
      for (std::size_t b = 0; b + 1 < position.size(); ++b) {
        agreeing += agree(position[b], position[b + 1], last) ? 1 : 0;
      }
      return 2 * agreeing < last;
    };
    for (bool drops = true; drops;) {
      const auto unlike =
          std::stable_partition(positions_.begin(), positions_.end(),
                                [&](const auto& p) { return !is_unlike(p); });
      drops = unlike != positions_.end();
      for (auto p = unlike; p != positions_.end(); ++p) {
        for (const Element e : *p) block_[e] = kOutside;
      }
      positions_.erase(unlike, positions_.end());
    }
    const double share = static_cast<double>(positions_.size()) /
                         static_cast<double>(std::max<std::size_t>(1, chosen));
    if (share < kLeastShareAlike) positions_.clear();
  }

  BlockSpan longest_agreement(const BlockSpan& span) const {
    const std::int32_t last = span.count() - 1;
    std::vector<bool> agrees(static_cast<std::size_t>(last), true);
    for (const auto& position : positions_) {
      for (std::size_t b = 0; b < agrees.size(); ++b) {
        if (agrees[b] && !agree(position[b], position[b + 1], last)) {
          agrees[b] = false;
        }
      }
    }
    BlockSpan best{0, 0};
    std::int32_t first = 0;
    for (std::int32_t b = 0; b < last; ++b) {
      if (!agrees[static_cast<std::size_t>(b)]) {
        first = b + 1;
      } else if (b + 1 - first > best.last - best.first) {
        best = {first, b + 1};
      }
    }
    return {span.first + best.first, span.first + best.last};
  }

  // Returns whether a node of the phase outside the run depends on the run and
  // the run depends on it.
  bool has_hole(bool backward) const {
    const auto is_in = [&](Element e) {
      return structure_.is_backward(e) == backward && block_[e] != kOutside;
    };
    std::vector<bool> after(structure_.size(), false);
    std::vector<bool> before(structure_.size(), false);
    const auto order = structure_.by_depth();
    for (const Element n : order) {
      if (structure_.is_backward(n) != backward) continue;
      for (const auto& operand : structure_.operands(n)) {
        if (is_in(operand.producer) || after[operand.producer]) {
          after[n] = true;
        }
      }
    }
    for (std::size_t i = order.size(); i-- > 0;) {
      const Element n = order[i];
      if (structure_.is_backward(n) != backward) continue;
      if (after[n] && before[n] && !is_in(n)) return true;
      if (!is_in(n) && !before[n]) continue;
      for (const auto& operand : structure_.operands(n)) {
        before[operand.producer] = true;
      }
    }
    return false;
  }

  RepeatedRun sorted() {
    RepeatedRun out;
    const std::vector<std::uint64_t> labels = labels_in_block();
    const std::size_t middle = positions_.front().size() / 2;
    std::vector<std::size_t> order(positions_.size());
    for (std::size_t p = 0; p < order.size(); ++p) order[p] = p;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) {
                       return rank(a, middle, labels) < rank(b, middle, labels);
                     });
    for (const std::size_t p : order) {
      out.code = hash_mix(out.code, labels[p]);
      out.positions.push_back(std::move(positions_[p]));
    }
    return out;
  }

  std::tuple<bool, std::int32_t, std::uint64_t> rank(
      std::size_t position, std::size_t block,
      const std::vector<std::uint64_t>& labels) const {
    const Element e = positions_[position][block];
    return {structure_.is_backward(e), structure_.depth(e), labels[position]};
  }

  // Returns a label for each position that depends on the elements of one block
  // alone.
  std::vector<std::uint64_t> labels_in_block() const {
    std::vector<std::size_t> position_of(chains_.chains.size(), 0);
    for (std::size_t p = 0; p < positions_.size(); ++p) {
      position_of[chains_.chain_of[positions_[p].front()]] = p;
    }
    std::vector<std::uint64_t> now;
    for (const auto& position : positions_) {
      now.push_back(structure_.signature(position.front()));
    }
    for (int round = 0; round < kCodeRadius; ++round) {
      std::vector<std::uint64_t> next = now;
      for (std::size_t p = 0; p < positions_.size(); ++p) {
        for (const auto& operand : structure_.operands(positions_[p].back())) {
          const Element from = operand.producer;
          std::uint64_t label = 0;
          if (block_[from] != kOutside) {
            label =
                hash_mix(now[position_of[chains_.chain_of[from]]],
                         block_[from] == block_[positions_[p].back()] ? 1 : 0);
          }
          next[p] = hash_mix(next[p], label);
        }
      }
      now = std::move(next);
    }
    return now;
  }

  const GraphStructure& structure_;
  const BlockChains& chains_;
  const PlacedChains& placed_;
  std::vector<std::int32_t> block_;  // by element
  std::vector<std::vector<Element>> positions_;
};

std::size_t num_elements(const std::vector<RepeatedRun>& runs) {
  std::size_t out = 0;
  for (const RepeatedRun& run : runs) {
    out += run.positions.size() * run.num_blocks();
  }
  return out;
}

std::vector<RepeatedRun> runs_at(const GraphStructure& structure,
                                 const BlockChains& chains) {
  std::vector<RepeatedRun> out;
  for (const PlacedChains& placed : placed_chains(structure, chains)) {
    RunCheck check(structure, chains, placed);
    std::optional<RepeatedRun> best;
    for (const BlockSpan& span : frequent_spans(chains, placed, kMostSpans)) {
      auto run = check.run(span);
      if (run && (!best || run->positions.size() * run->num_blocks() >
                               best->positions.size() * best->num_blocks())) {
        best = std::move(run);
      }
    }
    if (best) out.push_back(*std::move(best));
  }
  return out;
}

}  // namespace

std::vector<RepeatedRun> repeated_runs(const GraphStructure& structure) {
  std::vector<RepeatedRun> out;
  std::vector<bool> taken(structure.size(), false);
  std::size_t free = 0;
  for (Element e = 0; e < structure.size(); ++e) {
    taken[e] = structure.is_second_run(e);
    free += taken[e] ? 0 : 1;
  }
  std::vector<std::vector<std::uint64_t>> labels;
  for (const int radius : kRadii) labels.push_back(structure.labels(radius));
  const auto enough =
      static_cast<std::size_t>(kEnoughShare * static_cast<double>(free));
  for (int round = 0; round < kMostRounds; ++round) {
    std::vector<RepeatedRun> best;
    for (const auto& of_radius : labels) {
      for (const std::int32_t distance :
           likely_distances(structure, of_radius, taken, kMostDistances)) {
        std::vector<RepeatedRun> runs = runs_at(
            structure, block_chains(structure, of_radius, taken, distance));
        // Smaller blocks of equal coverage are better: they repeat more often.
        const std::size_t covered = num_elements(runs);
        if (covered > num_elements(best) ||
            (covered > 0 && covered == num_elements(best) &&
             runs.front().num_blocks() > best.front().num_blocks())) {
          best = std::move(runs);
        }
        if (num_elements(best) >= enough) break;
      }
      if (num_elements(best) >= enough) break;
    }
    if (best.empty()) break;
    for (RepeatedRun& run : best) {
      for (const auto& position : run.positions) {
        for (const Element e : position) taken[e] = true;
      }
      out.push_back(std::move(run));
    }
  }
  for (RepeatedRun& run : out) grow(structure, taken, run);
  const auto depth_of = [&](const RepeatedRun& run) {
    std::int32_t most = 0;
    for (const auto& position : run.positions) {
      if (structure.is_backward(position.front())) continue;
      most = std::max(most, structure.depth(position.front()));
    }
    return most;
  };
  std::stable_sort(out.begin(), out.end(), [&](const auto& a, const auto& b) {
    return depth_of(a) < depth_of(b);
  });
  return out;
}

}  // namespace shardprop
