#include "graph/analysis/block_growth.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

namespace shardprop {
namespace {

using Element = GraphStructure::Element;
using Row = std::vector<Element>;  // by block

class BlockGrowth {
 public:
  BlockGrowth(const GraphStructure& structure, std::vector<bool>& taken,
              RepeatedRun& run)
      : structure_(structure),
        taken_(taken),
        run_(run),
        place_(structure.size()) {
    for (std::size_t p = 0; p < run.positions.size(); ++p) note(p);
  }

  void grow() {
    // An element may miss until another one is added, so that passes follow each
    // other until one adds nothing.
    for (bool adds = true; adds;) {
      adds = false;
      for (std::size_t p = 0; p < run_.positions.size(); ++p) {
        for (const Row& row : beside(run_.positions[p])) {
          if (!is_alike(row)) continue;
          run_.positions.push_back(row);
          note(run_.positions.size() - 1);
          for (const Element e : row) taken_[e] = true;
          adds = true;
        }
      }
    }
    sort();
  }

 private:
  struct Place {
    std::size_t position = 0;
    std::size_t block = 0;
  };

  void note(std::size_t position) {
    for (std::size_t b = 0; b < run_.num_blocks(); ++b) {
      place_[run_.positions[position][b]] = Place{position, b};
    }
  }

  // Returns rows of elements outside that read the elements of a row, or that these
  // read.
  std::vector<Row> beside(const Row& of) const {
    std::vector<Row> out;
    for (const auto& reader : structure_.readers(of.front())) {
      if (taken_[reader.reader]) continue;
      Row row;
      for (const Element e : of) {
        if (const auto same = only_reader_like(reader, e)) row.push_back(*same);
      }
      if (row.size() == of.size()) out.push_back(std::move(row));
    }
    for (std::size_t o = 0; o < structure_.operands(of.front()).size(); ++o) {
      Row row;
      for (const Element e : of) {
        row.push_back(structure_.operands(e)[o].producer);
      }
      out.push_back(std::move(row));
    }
    return out;
  }

  std::optional<Element> only_reader_like(const GraphStructure::Reader& like,
                                          Element of) const {
    std::optional<Element> found;
    for (const auto& reader : structure_.readers(of)) {
      if (taken_[reader.reader] || reader.operand != like.operand ||
          reader.output != like.output ||
          structure_.signature(reader.reader) !=
              structure_.signature(like.reader)) {
        continue;
      }
      if (found) return std::nullopt;
      found = reader.reader;
    }
    return found;
  }

  // Returns whether the elements are free, distinct and of one kind, and their operands
  // agree from block to block.
  bool is_alike(const Row& row) const {
    const Element first = row.front();
    const std::set<Element> distinct(row.begin(), row.end());
    if (distinct.size() < row.size()) return false;
    for (const Element e : row) {
      if (taken_[e] || structure_.signature(e) != structure_.signature(first) ||
          structure_.is_backward(e) != structure_.is_backward(first)) {
        return false;
      }
    }
    for (std::size_t b = 0; b + 1 < row.size(); ++b) {
      if (!agree(row, b)) return false;
    }
    return true;
  }

  // At the ends of a run, a neighbouring block may be missing.
  bool agree(const Row& row, std::size_t block) const {
    const auto here = structure_.operands(row[block]);
    const auto next = structure_.operands(row[block + 1]);
    if (here.size() != next.size()) return false;
    for (std::size_t o = 0; o < here.size(); ++o) {
      if (here[o].output != next[o].output) return false;
      const auto& p = place_[here[o].producer];
      const auto& q = place_[next[o].producer];
      if (p && q) {
        if (p->position != q->position || q->block != p->block + 1)
          return false;
      } else if (q) {
        if (block != 0 || q->block != 0) return false;
      } else if (p) {
        const std::size_t last = row.size() - 1;
        if (block + 1 != last || p->block != last) return false;
      } else if (here[o].producer != next[o].producer) {
        return false;
      }
    }
    return true;
  }

  // Forward elements come first, and operands before their readers.
  void sort() {
    const std::size_t middle = run_.num_blocks() / 2;
    const auto rank = [&](const Row& row) {
      return std::tuple(structure_.is_backward(row[middle]),
                        structure_.depth(row[middle]));
    };
    std::stable_sort(
        run_.positions.begin(), run_.positions.end(),
        [&](const Row& a, const Row& b) { return rank(a) < rank(b); });
  }

  const GraphStructure& structure_;
  std::vector<bool>& taken_;
  RepeatedRun& run_;
  std::vector<std::optional<Place>> place_;  // by element
};

}  // namespace

void grow(const GraphStructure& structure, std::vector<bool>& taken,
          RepeatedRun& run) {
  BlockGrowth(structure, taken, run).grow();
}

}  // namespace shardprop
