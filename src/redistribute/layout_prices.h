// LayoutPrices computes the prices of the moves between numbered layouts, for
// one tensor. It computes the size of a layout once, when it is first needed.
//
// Between even shards of a LayoutGraph, a price depends on the group, the size
// of the shard at the start, the form of the move (MoveForm), and the reduced
// partials. LayoutPrices caches these prices.
#pragma once

#include "redistribute/layout_graph.h"
#include "redistribute/move_price.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardprop::redistribute {

// Returns whether a move sends elements. Other moves are local and free.
constexpr bool sends(Move move) {
  return move == Move::kGather || move == Move::kReduceScatter ||
         move == Move::kReduce || move == Move::kExchange;
}

class LayoutPrices {
 public:
  // The arguments must outlive this object. `states` may grow.
  LayoutPrices(const GroupTimes& times, const ActiveDims& active,
               const Alphabet& alphabet, const TensorMeta& meta,
               const std::vector<State>& states)
      : times_(times),
        active_(active),
        alphabet_(alphabet),
        meta_(meta),
        states_(states),
        is_empty_(meta.numel() == 0),
        pricer_(times, active, alphabet, meta) {}
  // The layouts are those of `graph`.
  LayoutPrices(const GroupTimes& times, const ActiveDims& active,
               const LayoutGraph& graph, const TensorMeta& meta)
      : LayoutPrices(times, active, graph.alphabet(), meta, graph.states()) {
    graph_ = &graph;
  }
  LayoutPrices(const LayoutPrices&) = delete;
  LayoutPrices& operator=(const LayoutPrices&) = delete;

  // The functions below take layouts below `count` from now on.
  void resize(std::size_t count);
  std::size_t size() const { return layouts_.size(); }

  // Returns the bytes of the largest shard.
  std::int64_t bytes(std::uint32_t layout) {
    const std::int64_t known = layouts_[layout].bytes;
    return known >= 0 ? known : compute_bytes(layout);
  }
  // Returns a lower bound, in nanoseconds, on moves of this kind from `at`.
  std::int64_t least_nanoseconds(std::uint32_t at, Move move, Mask group) {
    if (is_empty_ || !sends(move)) return 0;
    return move == Move::kExchange ? least_exchange(at, group)
                                   : times_.least_nanoseconds(move, group);
  }
  MovePrice price(std::uint32_t at, Move move, Mask group, std::uint32_t to) {
    const std::uint32_t before = size_of(at);
    const std::uint32_t after = size_of(to);
    return pricer_.price(move, group, states_[at], sizes_[before], states_[to],
                         sizes_[after]);
  }

  // RunPrices computes the times of the moves of one run of a LayoutGraph.
  class RunPrices {
   public:
    RunPrices(LayoutPrices& prices, std::uint32_t at, const Exits::Run& run)
        : prices_(prices), at_(at), run_(run), is_even_(prices.is_even(at)) {
      by_form_.fill(kUnknown);
    }
    // `form` is the form of the move to `to` (Targets).
    std::int64_t nanoseconds(MoveForm form, std::uint32_t to) {
      if (!sends(run_.move)) return 0;
      if (!is_even_ || !prices_.is_even(to)) {
        return prices_.price(at_, run_.move, run_.group, to).nanoseconds;
      }
      const unsigned known = prices_.even_form(at_, run_, form, to);
      if (by_form_[known] == kUnknown) {
        by_form_[known] = prices_.even_nanoseconds(at_, run_, known, to);
      }
      return by_form_[known];
    }

   private:
    static constexpr std::int64_t kUnknown = -1;
    LayoutPrices& prices_;
    std::uint32_t at_;
    Exits::Run run_;
    bool is_even_;
    std::array<std::int64_t, kExchangeForms> by_form_;
  };

 private:
  static constexpr std::uint32_t kUnsized = 0xffffffffU;
  // These limits bound the caches. A graph has few sizes and groups.
  static constexpr std::size_t kMostEvenPrices = 256;
  static constexpr std::size_t kMostLeastExchanges = 128;
  enum class Shards : std::uint8_t { kUnknown, kEven, kUneven };
  // PricedLayout is what is known of a layout; it is computed when needed.
  struct PricedLayout {
    std::int64_t bytes = -1;
    std::uint32_t size = kUnsized;  // index in sizes_
    Shards shards = Shards::kUnknown;
  };
  struct EvenPrice {
    std::uint64_t key = 0;
    std::int64_t parts = 0;  // 0: free
    std::int64_t nanoseconds = 0;
  };
  struct LeastExchange {
    std::int64_t bytes = -1;
    std::uint32_t group = 0;
    std::int64_t nanoseconds = 0;
  };

  // Returns the index in sizes_.
  std::uint32_t size_of(std::uint32_t layout) {
    const std::uint32_t known = layouts_[layout].size;
    return known != kUnsized ? known : compute_size(layout);
  }
  std::uint32_t compute_size(std::uint32_t layout);
  std::int64_t compute_bytes(std::uint32_t layout);
  std::int64_t least_exchange(std::uint32_t at, Mask group);
  // Precondition of the functions below: the layouts are those of a graph.
  bool is_even(std::uint32_t layout) {
    const Shards shards = layouts_[layout].shards;
    return shards == Shards::kUnknown ? compute_even(layout)
                                      : shards == Shards::kEven;
  }
  bool compute_even(std::uint32_t layout);
  // Returns the part of the form that affects the price for this tensor.
  unsigned even_form(std::uint32_t at, const Exits::Run& run, MoveForm form,
                     std::uint32_t to) const;
  std::int64_t even_nanoseconds(std::uint32_t at, const Exits::Run& run,
                                unsigned form, std::uint32_t to);
  bool is_staged(MoveForm form, std::uint32_t unsharded) const;

  const GroupTimes& times_;
  const ActiveDims& active_;
  const Alphabet& alphabet_;
  const TensorMeta& meta_;
  const std::vector<State>& states_;
  const LayoutGraph* graph_ = nullptr;
  bool is_empty_;
  MovePricer pricer_;
  std::vector<PricedLayout> layouts_;
  std::vector<LocalSize> sizes_;
  // Caches, each of a power of 2 entries; empty without a graph.
  std::vector<EvenPrice> even_prices_;
  std::vector<LeastExchange> least_exchanges_;
};

}  // namespace shardprop::redistribute
