// ShortestPaths finds paths of least cost from one layout, the nearest layouts
// first. It is Dijkstra's algorithm, and A* if a lower bound on the rest of a
// path guides it. Four searches derive from it:
//
//   search.cc             from one layout to one other; guided, stops there
//   reach.h               from one layout to all; continued limit by limit
//   redistribute_rows.cc  from one layout to all; prices from a table
//   strided_costs.cc      from one layout to all; continued target by target
//
// They stay apart in three points, which their callers rely on:
//
//   * Ties. The first of equal paths that a guided search meets depends on its
//     target. Paths of a continued search must not depend on its limits, so it
//     compares equal paths. The costs of a row have no path.
//   * Prices. A search from one layout prices a move at most a few times, and
//     skips most moves. The rows of a tensor read each price once per source, so
//     each move is priced once (priced_moves.h).
//   * Moves. A search with strided shards visits moves that no graph lists
//     (growing_layout_graph.h). The searches of strided_costs.cc share them.
#pragma once

#include "redistribute/layout_graph.h"
#include "redistribute/layout_prices.h"
#include "redistribute/path.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace shardprop::redistribute {

// WaitingLayout is a layout in the queue of a search.
struct WaitingLayout {
  Label priority;
  std::uint32_t layout;
  friend bool operator>(const WaitingLayout& a, const WaitingLayout& b) {
    return a.priority != b.priority ? a.priority > b.priority
                                    : a.layout > b.layout;
  }
};

// `Search` derives from ShortestPaths<Search, Waiting>. It defines expand(at),
// which passes the moves from `at` to relax() or follow(). It redefines the
// functions under "Rules" that differ for it. `Waiting` has the members
// `priority` and `layout` and an order.
template <class Search, class Waiting = WaitingLayout>
class ShortestPaths {
 protected:
  static constexpr std::uint32_t kNone = 0xffffffffU;
  // Arrival is the last move of the best known path to a layout.
  struct Arrival {
    std::uint32_t before = kNone;
    std::uint16_t run = 0;  // run of `before` that the move belongs to
    Move move = Move::kReduce;
    std::uint8_t group = 0;
  };
  struct Step {
    Move move;
    Mask group;
    std::uint32_t run;
  };

  // Rules.

  // A path is of use if its label plus ahead() is at most this.
  static constexpr Label limit() { return kUnreached - 1; }
  // Returns a lower bound on the label from a layout to the end of the path. A
  // guided search compares it with the limit before the move is priced, too.
  static constexpr bool kIsGuided = false;
  static constexpr Label ahead(std::uint32_t) { return 0; }
  // Returns the same for any layout out of mesh order.
  static constexpr Label ahead_out_of_order() { return 0; }
  // Returns the entry of the queue for a layout that was just reached.
  Waiting waiting(std::uint32_t layout) const {
    return {labels_[layout], layout};
  }
  // Returns the priority of the newest entry.
  Label priority(std::uint32_t layout) const { return labels_[layout]; }
  // Returns whether the search ends before this layout is expanded.
  static constexpr bool is_finished(const Waiting&) { return false; }
  // Returns whether a path of equal label replaces the known one. It is called
  // only if kComparesTies is set.
  static constexpr bool kComparesTies = false;
  static constexpr bool is_preferred(std::uint32_t, const Step&,
                                     const Arrival&) {
    return false;
  }
  // Notes that some moves of a run are beyond the limit; the least label plus
  // ahead() of them is at least `least`.
  static constexpr void postpone(Label, std::uint32_t, std::uint32_t) {}
  // Returns the label of one move of a run, kUnreached if it is forbidden.
  static Label move_label(LayoutPrices::RunPrices& prices, std::uint32_t,
                          const Step&, MoveForm form, std::uint32_t to) {
    return label_of(prices.nanoseconds(form, to), 1);
  }

  // The search.

  // Adds layouts without a path, up to `count`.
  void resize(std::size_t count) {
    unreached_ += count - labels_.size();
    labels_.resize(count, kUnreached);
    arrivals_.resize(count);
  }
  void start(std::uint32_t source) {
    labels_[source] = 0;
    --unreached_;
    queue_.reserve(32);
    queue_.push_back(self().waiting(source));
  }
  // Expands the waiting layouts in the order of the queue.
  void settle() {
    while (!queue_.empty()) {
      std::pop_heap(queue_.begin(), queue_.end(), std::greater<>());
      const Waiting next = queue_.back();
      queue_.pop_back();
      // An entry is outdated if a better path was found since. A layout with a
      // better path after its expansion is expanded again, so rounded bounds do
      // no harm.
      if (next.priority > self().priority(next.layout)) continue;
      if (self().is_finished(next)) return;
      self().expand(next.layout);
    }
  }
  // Follows the moves of run `number` of `at`.
  void follow(const LayoutGraph& graph, LayoutPrices& prices, std::uint32_t at,
              const Exits& exits, std::uint32_t number) {
    const Exits::Run& run = exits.runs[number];
    const Label least = least_after(prices, at, run.move, run.group);
    if (least > self().limit()) {
      self().postpone(least, at, number);
      return;
    }
    const Targets& targets = graph.targets(at, exits, number, scratch_);
    std::size_t count = targets.states.size();
    Label later = kUnreached;
    if (const Label outside = least + self().ahead_out_of_order();
        outside > self().limit() && targets.in_order != count) {
      later = outside;
      count = targets.in_order;
    }
    const Step step{run.move, run.group, number};
    LayoutPrices::RunPrices run_prices(prices, at, run);
    for (std::size_t k = 0; k < count; ++k) {
      const std::uint32_t to = targets.states[k];
      const auto cost = [&] {
        return self().move_label(run_prices, at, step, targets.forms[k], to);
      };
      later = std::min(later, relax(at, step, to, least, cost));
    }
    if (later != kUnreached) self().postpone(later, at, number);
  }
  // Returns a lower bound on the labels that such moves from `at` reach.
  Label least_after(LayoutPrices& prices, std::uint32_t at, Move move,
                    Mask group) const {
    return labels_[at] + label_of(prices.least_nanoseconds(at, move, group), 1);
  }
  // Compares the known path to `to` with the one over a move from `at`. `least`
  // is a lower bound on its label; cost() returns the label of the move. If the
  // path is beyond the limit, relax() returns its label plus ahead(), otherwise
  // kUnreached.
  template <class Cost>
  Label relax(std::uint32_t at, const Step& step, std::uint32_t to, Label least,
              const Cost& cost) {
    constexpr Label kTie = Search::kComparesTies ? 1 : 0;
    if (least >= labels_[to] + kTie) return kUnreached;
    if constexpr (Search::kIsGuided) {
      const Label rest = self().ahead(to);
      if (least + rest > self().limit()) return least + rest;
    }
    const Label label = labels_[at] + cost();
    if (label >= labels_[to] + kTie) return kUnreached;
    const bool is_less = label < labels_[to];
    Arrival& arrival = arrivals_[to];
    if (!is_less && !self().is_preferred(at, step, arrival)) return kUnreached;
    const Label whole = label + self().ahead(to);
    if (whole > self().limit()) return whole;
    if (labels_[to] == kUnreached) --unreached_;
    labels_[to] = label;
    arrival.before = at;
    arrival.run = static_cast<std::uint16_t>(step.run);
    arrival.move = step.move;
    arrival.group = static_cast<std::uint8_t>(step.group);
    if (is_less) {
      queue_.push_back(self().waiting(to));
      std::push_heap(queue_.begin(), queue_.end(), std::greater<>());
    }
    return kUnreached;
  }
  // Returns the best known path to `target`. Precondition: there is one.
  Path path_to(std::uint32_t target, const std::vector<State>& states) const {
    Path path;
    path.nanoseconds = nanoseconds_of(labels_[target]);
    for (std::uint32_t at = target; arrivals_[at].before != kNone;
         at = arrivals_[at].before) {
      path.steps.push_back({arrivals_[at].move, arrivals_[at].group,
                            states[arrivals_[at].before], states[at]});
    }
    std::reverse(path.steps.begin(), path.steps.end());
    return path;
  }

  // The label of the best known path to each layout; kUnreached without one.
  std::vector<Label> labels_;
  std::vector<Arrival> arrivals_;
  std::vector<Waiting> queue_;  // a heap
  std::size_t unreached_ = 0;   // layouts without a path
  LayoutGraph::Scratch scratch_;

 private:
  Search& self() { return static_cast<Search&>(*this); }
  const Search& self() const { return static_cast<const Search&>(*this); }
};

}  // namespace shardprop::redistribute
