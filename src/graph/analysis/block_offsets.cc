#include "graph/analysis/block_offsets.h"

#include "base/union_find.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

namespace shardprop {
namespace {

using Element = GraphStructure::Element;

// A set of numbers that are known up to a common constant.
class DifferenceSets {
 public:
  explicit DifferenceSets(std::size_t size)
      : parents_(size), differences_(size, 0) {
    for (std::size_t i = 0; i < size; ++i) parents_[i] = i;
  }

  std::size_t root(std::size_t i) {
    if (parents_[i] == i) return i;
    const std::size_t top = root(parents_[i]);
    differences_[i] += differences_[parents_[i]];
    parents_[i] = top;
    return top;
  }
  // Returns the number of `i` less that of its root.
  std::int32_t number(std::size_t i) {
    root(i);
    return differences_[i];
  }
  // Demands that the number of `b` is that of `a` plus `difference`. Returns
  // false, and changes nothing, if that contradicts an earlier demand.
  bool join(std::size_t a, std::size_t b, std::int32_t difference) {
    const std::size_t ra = root(a);
    const std::size_t rb = root(b);
    if (ra == rb) return differences_[b] - differences_[a] == difference;
    differences_[rb] = differences_[a] + difference - differences_[b];
    parents_[rb] = ra;
    return true;
  }

 private:
  std::vector<std::size_t> parents_;
  std::vector<std::int32_t> differences_;
};

// An edge between chains: the reader comes `shift` places after the producer,
// `count` times.
struct ChainEdge {
  std::uint32_t from = 0;  // index into the component
  std::uint32_t to = 0;
  std::int32_t shift = 0;
  std::size_t count = 1;
  std::tuple<std::uint32_t, std::uint32_t, std::int32_t> key() const {
    return {from, to, shift};
  }
};

// Placing joins chains by their edges, the most frequent edge first. An edge
// that contradicts earlier ones is a conflict. It is found at the ends of a run,
// where elements before the first block are in a chain by chance, and where
// values lead from block to block.
class Placing {
 public:
  Placing(const GraphStructure& structure, const BlockChains& chains,
          std::vector<std::uint32_t> component)
      : structure_(structure), chains_(chains) {
    out_.chains = std::move(component);
    for (const std::uint32_t chain : out_.chains) {
      backward_.push_back(
          structure_.is_backward(chains_.chains[chain].front()));
    }
    leads_.assign(out_.chains.size(), false);
  }

  void add(const ChainEdge& edge) { edges_.push_back(edge); }

  std::optional<PlacedChains> place() {
    count_edges();
    // A run is a chain: each block uses results of the one before it.
    if (joined(false).conflicts.empty()) return std::nullopt;
    choose_leading(false);
    choose_leading(true);
    return placed(joined(true));
  }

 private:
  struct Joined {
    DifferenceSets sets;
    std::vector<ChainEdge> conflicts;
    std::size_t weight() const {
      std::size_t sum = 0;
      for (const ChainEdge& edge : conflicts) sum += edge.count;
      return sum;
    }
  };

  // Makes one edge of equal ones. Chains in their order have equal results in
  // any order of the nodes, except for chains that are alike.
  void count_edges() {
    std::sort(edges_.begin(), edges_.end(),
              [](const ChainEdge& a, const ChainEdge& b) {
                return a.key() < b.key();
              });
    std::vector<ChainEdge> counted;
    for (const ChainEdge& edge : edges_) {
      if (!counted.empty() && counted.back().key() == edge.key()) {
        ++counted.back().count;
      } else {
        counted.push_back(edge);
      }
    }
    std::stable_sort(counted.begin(), counted.end(),
                     [](const ChainEdge& a, const ChainEdge& b) {
                       return a.count > b.count;
                     });
    edges_ = std::move(counted);
  }

  // Returns how many blocks after the producer's the reader is; empty if any
  // number is possible.
  std::optional<std::int32_t> blocks_on(const ChainEdge& edge) const {
    if (edge.from == edge.to) return std::nullopt;  // a sum over blocks
    if (!leads_[edge.from]) return 0;
    if (backward_[edge.from]) return -1;
    if (backward_[edge.to]) return std::nullopt;
    return 1;
  }

  // Joins the chains of the forward phase, or of both phases.
  Joined joined(bool with_backward) const {
    Joined out{DifferenceSets(out_.chains.size()), {}};
    for (const ChainEdge& edge : edges_) {
      if (!with_backward && backward_[edge.to]) continue;
      const auto on = blocks_on(edge);
      if (on && !out.sets.join(edge.from, edge.to, *on - edge.shift)) {
        out.conflicts.push_back(edge);
      }
    }
    return out;
  }

  PlacedChains placed(Joined joined) const {
    // A backward node may read nothing but the value that leads on.
    for (const ChainEdge& edge : edges_) {
      if (edge.from != edge.to && leads_[edge.from]) {
        joined.sets.join(edge.from, edge.to,
                         (backward_[edge.from] ? -1 : 1) - edge.shift);
      }
    }
    PlacedChains out = out_;
    for (std::size_t c = 0; c < out_.chains.size(); ++c) {
      out.offsets.push_back(joined.sets.number(c));
    }
    return out;
  }

  // Returns the elements in the blocks that most chains have.
  std::int64_t elements_in_blocks(Joined joined) const {
    const PlacedChains now = placed(std::move(joined));
    const auto spans = frequent_spans(chains_, now, 1);
    std::int64_t out = 0;
    for (std::size_t c = 0; c < now.chains.size(); ++c) {
      const auto size =
          static_cast<std::int32_t>(chains_.chains[now.chains[c]].size());
      if (now.offsets[c] <= spans[0].first &&
          now.offsets[c] + size > spans[0].last) {
        out += spans[0].count();
      }
    }
    return out;
  }

  // More elements in blocks are better, then fewer conflicts, then fewer bytes
  // that lead on, then a later place.
  using Rank =
      std::tuple<std::int64_t, std::size_t, std::int64_t, std::int32_t>;
  Rank rank(bool with_backward, std::size_t lead) const {
    Joined now = joined(with_backward);
    const std::size_t weight = now.weight();
    const Element first = chains_.chains[out_.chains[lead]].front();
    return {-elements_in_blocks(std::move(now)), weight,
            structure_.bytes(first), -structure_.depth(first)};
  }

  // Chooses the values that lead on in one phase, as long as one more leaves
  // fewer conflicts. Candidates are the producers of edges in conflict.
  void choose_leading(bool backward) {
    for (std::size_t chosen = 0; chosen < kMostLeading; ++chosen) {
      const Joined now = joined(backward);
      std::set<std::uint32_t> candidates;
      for (const ChainEdge& edge : now.conflicts) {
        if (backward_[edge.from] == backward && !leads_[edge.from]) {
          candidates.insert(edge.from);
        }
      }
      std::optional<std::pair<Rank, std::uint32_t>> best;
      for (const std::uint32_t c : candidates) {
        leads_[c] = true;
        const Rank of_c = rank(backward, c);
        leads_[c] = false;
        if (!best || of_c < best->first) best = {of_c, c};
      }
      if (!best || std::get<1>(best->first) >= now.weight()) return;
      if (std::get<0>(best->first) > -elements_in_blocks(now)) return;
      leads_[best->second] = true;
    }
  }

  const GraphStructure& structure_;
  const BlockChains& chains_;
  PlacedChains out_;
  std::vector<bool> backward_;  // by chain of the component
  std::vector<bool> leads_;
  std::vector<ChainEdge> edges_;
};

}  // namespace

std::vector<PlacedChains> placed_chains(const GraphStructure& structure,
                                        const BlockChains& chains) {
  UnionFind connected(chains.chains.size());
  const auto for_each_edge = [&](const auto& add) {
    for (Element n = 0; n < structure.num_nodes(); ++n) {
      const std::uint32_t to = chains.chain_of[n];
      if (to == BlockChains::kNoChain) continue;
      for (const auto& operand : structure.operands(n)) {
        const std::uint32_t from = chains.chain_of[operand.producer];
        if (from == BlockChains::kNoChain) continue;
        add(ChainEdge{from, to,
                      chains.place[n] - chains.place[operand.producer], 1});
      }
    }
  };
  for_each_edge(
      [&](const ChainEdge& edge) { connected.join(edge.from, edge.to); });
  std::map<std::size_t, std::vector<std::uint32_t>> components;
  std::vector<std::uint32_t> within(chains.chains.size());
  for (std::uint32_t c = 0; c < chains.chains.size(); ++c) {
    auto& component = components[connected.root(c)];
    within[c] = static_cast<std::uint32_t>(component.size());
    component.push_back(c);
  }
  std::map<std::size_t, Placing> placings;
  for (auto& [root, component] : components) {
    placings.try_emplace(root, structure, chains, std::move(component));
  }
  for_each_edge([&](const ChainEdge& edge) {
    placings.at(connected.root(edge.from))
        .add({within[edge.from], within[edge.to], edge.shift, 1});
  });
  std::vector<PlacedChains> out;
  for (auto& [root, placing] : placings) {
    if (auto placed = placing.place()) out.push_back(*std::move(placed));
  }
  return out;
}

std::vector<BlockSpan> frequent_spans(const BlockChains& chains,
                                      const PlacedChains& placed,
                                      std::size_t most) {
  std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> elements;
  for (std::size_t c = 0; c < placed.chains.size(); ++c) {
    const auto size =
        static_cast<std::int32_t>(chains.chains[placed.chains[c]].size());
    elements[{placed.offsets[c], placed.offsets[c] + size - 1}] += size;
  }
  std::vector<std::pair<std::int64_t, BlockSpan>> ranked;
  for (const auto& [span, count] : elements) {
    ranked.push_back({-count, {span.first, span.second}});
  }
  std::stable_sort(
      ranked.begin(), ranked.end(),
      [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<BlockSpan> out;
  for (std::size_t i = 0; i < ranked.size() && i < most; ++i) {
    out.push_back(ranked[i].second);
  }
  return out;
}

}  // namespace shardprop
