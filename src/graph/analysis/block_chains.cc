#include "graph/analysis/block_chains.h"

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace shardprop {
namespace {

using Element = GraphStructure::Element;

// A super-block repeats after at most so many nodes of one label.
constexpr std::size_t kMostPerRepetition = 8;

// The forward nodes of one label, by depth. Nodes of one label and one depth
// cannot be told apart and are left out.
using LabelClass = std::vector<Element>;

std::vector<LabelClass> label_classes(const GraphStructure& structure,
                                      const std::vector<std::uint64_t>& labels,
                                      const std::vector<bool>& taken) {
  std::map<std::uint64_t, LabelClass> by_label;
  for (const Element n : structure.by_depth()) {
    if (!taken[n] && !structure.is_backward(n)) {
      by_label[labels[n]].push_back(n);
    }
  }
  std::vector<LabelClass> out;
  for (auto& [label, members] : by_label) {
    LabelClass single;
    for (std::size_t i = 0; i < members.size(); ++i) {
      const auto same_depth = [&](std::size_t j) {
        return structure.depth(members[i]) == structure.depth(members[j]);
      };
      if (i > 0 && same_depth(i - 1)) continue;
      if (i + 1 < members.size() && same_depth(i + 1)) continue;
      single.push_back(members[i]);
    }
    if (single.size() >= 2) out.push_back(std::move(single));
  }
  return out;
}

class ChainBuilder {
 public:
  ChainBuilder(const GraphStructure& structure, const std::vector<bool>& taken)
      : structure_(structure),
        taken_(taken),
        next_(structure.size(), GraphStructure::kNoElement),
        previous_(structure.size(), GraphStructure::kNoElement) {}

  void pair(Element from, Element to) {
    if (from == to || taken_[from] || taken_[to]) return;
    if (next_[from] != GraphStructure::kNoElement ||
        previous_[to] != GraphStructure::kNoElement ||
        structure_.signature(from) != structure_.signature(to)) {
      return;
    }
    next_[from] = to;
    previous_[to] = from;
    open_.emplace_back(from, to);
  }

  void extend() {
    while (!open_.empty()) {
      const auto [from, to] = open_.front();
      open_.pop_front();
      pair_operands(from, to);
      pair_readers(from, to);
    }
  }

  BlockChains chains() const {
    BlockChains out;
    out.chain_of.assign(structure_.size(), BlockChains::kNoChain);
    out.place.assign(structure_.size(), 0);
    for (Element e = 0; e < structure_.size(); ++e) {
      if (previous_[e] != GraphStructure::kNoElement ||
          next_[e] == GraphStructure::kNoElement) {
        continue;
      }
      std::vector<Element>& chain = out.chains.emplace_back();
      for (Element at = e; at != GraphStructure::kNoElement; at = next_[at]) {
        out.chain_of[at] = static_cast<std::uint32_t>(out.chains.size() - 1);
        out.place[at] = static_cast<std::int32_t>(chain.size());
        chain.push_back(at);
      }
    }
    return out;
  }

 private:
  void pair_operands(Element from, Element to) {
    const auto a = structure_.operands(from);
    const auto b = structure_.operands(to);
    for (std::size_t o = 0; o < a.size() && o < b.size(); ++o) {
      if (a[o].output == b[o].output) pair(a[o].producer, b[o].producer);
    }
  }

  // A reader has a counterpart if it alone has its signature and reads the
  // element so.
  using ReaderKey = std::tuple<std::uint64_t, std::uint32_t, std::uint32_t>;
  std::vector<std::pair<ReaderKey, Element>> single_readers(Element element) {
    std::vector<std::pair<ReaderKey, Element>> all;
    for (const auto& reader : structure_.readers(element)) {
      all.emplace_back(ReaderKey{structure_.signature(reader.reader),
                                 reader.operand, reader.output},
                       reader.reader);
    }
    std::sort(all.begin(), all.end());
    std::vector<std::pair<ReaderKey, Element>> out;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i > 0 && all[i - 1].first == all[i].first) continue;
      if (i + 1 < all.size() && all[i + 1].first == all[i].first) continue;
      out.push_back(all[i]);
    }
    return out;
  }

  void pair_readers(Element from, Element to) {
    const auto a = single_readers(from);
    const auto b = single_readers(to);
    for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
      if (a[i].first < b[j].first) {
        ++i;
      } else if (b[j].first < a[i].first) {
        ++j;
      } else {
        pair(a[i++].second, b[j++].second);
      }
    }
  }

  const GraphStructure& structure_;
  const std::vector<bool>& taken_;
  std::vector<Element> next_;
  std::vector<Element> previous_;
  std::deque<std::pair<Element, Element>> open_;
};

}  // namespace

std::vector<std::int32_t> likely_distances(
    const GraphStructure& structure, const std::vector<std::uint64_t>& labels,
    const std::vector<bool>& taken, std::size_t most) {
  std::map<std::int32_t, std::int64_t> votes;
  for (const LabelClass& members : label_classes(structure, labels, taken)) {
    for (std::size_t step = 1; step <= kMostPerRepetition; ++step) {
      for (std::size_t i = 0; i + step < members.size(); ++i) {
        ++votes[structure.depth(members[i + step]) -
                structure.depth(members[i])];
      }
    }
  }
  std::vector<std::pair<std::int64_t, std::int32_t>> ranked;
  for (const auto& [distance, count] : votes) {
    ranked.emplace_back(-count, distance);
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<std::int32_t> out;
  for (std::size_t i = 0; i < ranked.size() && i < most; ++i) {
    out.push_back(ranked[i].second);
  }
  return out;
}

BlockChains block_chains(const GraphStructure& structure,
                         const std::vector<std::uint64_t>& labels,
                         const std::vector<bool>& taken,
                         std::int32_t distance) {
  std::vector<std::vector<std::pair<Element, Element>>> seeds;  // by class
  for (const LabelClass& members : label_classes(structure, labels, taken)) {
    std::unordered_map<std::int32_t, Element> at;
    for (const Element n : members) at.emplace(structure.depth(n), n);
    std::vector<std::pair<Element, Element>> pairs;
    for (const Element n : members) {
      const auto other = at.find(structure.depth(n) + distance);
      if (other != at.end()) pairs.emplace_back(n, other->second);
    }
    if (!pairs.empty()) seeds.push_back(std::move(pairs));
  }
  // The most frequent label comes first; its pairs are the surest. All pairs of
  // labels come before the pairs that follow from them, because a pair near a known
  // one is surer than a pair far away.
  std::stable_sort(
      seeds.begin(), seeds.end(),
      [](const auto& a, const auto& b) { return a.size() > b.size(); });
  ChainBuilder builder(structure, taken);
  for (const auto& pairs : seeds) {
    for (const auto& [from, to] : pairs) builder.pair(from, to);
  }
  builder.extend();
  return builder.chains();
}

}  // namespace shardprop
