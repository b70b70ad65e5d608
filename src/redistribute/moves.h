// MoveTable lists every layout that one collective reaches.
//
// Each move names the set G of mesh dims over which it runs. If a smaller set
// reaches the same layout, only the move over the smaller set is listed,
// because its groups are smaller.
#pragma once

#include "redistribute/sharding_state.h"

#include <shardprop/placement/partials.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <type_traits>

namespace shardprop::redistribute {

enum class Move : std::uint8_t {
  kGather,
  kReduceScatter,
  kReduce,
  kExchange,  // shards to other shards: all_to_all or permute
  kSlice,     // replicated to shards
  kToPartial,
  kRescale,  // P(sum) <-> P(avg)
};

class MoveTable {
 public:
  MoveTable(const ActiveDims& active, const Alphabet& alphabet)
      : active_(active), alphabet_(alphabet) {}

  // Calls visit(Move, Mask, const State&) for every move from `at` and the
  // layout that it reaches. For each kind of move and group, admit(Move, Mask)
  // is called first; the moves are listed only if it returns true. The loop
  // ends when visit() returns false. If visit() returns void, all moves are
  // listed; with strided shards, one layout may have billions. `only` names the
  // one group of interest; 0 stands for all.
  template <class Admit, class Visit>
  void for_each(const State& at, Admit&& admit, Visit&& visit,
                Mask only = 0) const {
    const int count = std::min(active_.count, kMaxPlannedDims);
    bool on = true;
    const auto see = [&](Move move, Mask group, const State& to) {
      if constexpr (std::is_void_v<decltype(visit(move, group, to))>) {
        visit(move, group, to);
      } else {
        on = on && visit(move, group, to);
      }
      return on;
    };
    Mask replicated = 0;
    Mask sharded = 0;
    Mask partial = 0;
    std::array<Mask, kMaxPlannedDims> later{};  // later cuts of the same dim
    for (int i = 0; i < count; ++i) {
      const Alphabet::Symbol& symbol = alphabet_[at.symbol[i]];
      Mask& kind =
          symbol.shard() ? sharded : (symbol.partial ? partial : replicated);
      kind |= Mask{1} << i;
      if (!symbol.shard()) continue;
      for (int j = 0; j < count; ++j) {
        if (alphabet_[at.symbol[j]].dim == symbol.dim &&
            at.order[j] > at.order[i]) {
          later[i] |= Mask{1} << j;
        }
      }
    }
    const auto each_group = [&](Mask set, const auto& call) {
      if (only == 0) {
        each_subset(set, call);
      } else if ((only & ~set) == 0) {
        call(only);
      }
    };
    each_group(sharded, [&](Mask group) {
      if (!on) return;
      State whole = at;
      // A group has no mesh dim above `count`. With `count` as its bound, GCC 12
      // warns of writes behind the arrays.
      for (int i = 0; i < kMaxPlannedDims; ++i) {
        if ((group >> i & 1U) == 0) continue;
        if ((later[i] & ~group) != 0) return;
        whole.symbol[i] = 0;
        whole.order[i] = 0;
      }
      if (admit(Move::kGather, group)) see(Move::kGather, group, whole);
      if (!on || !admit(Move::kExchange, group)) return;
      append_shards(whole, group, [&](const State& other) {
        return shrinks(at, other, whole, group) ||
               see(Move::kExchange, group, other);
      });
    });
    each_group(partial, [&](Mask group) {
      if (!on) return;
      State whole = at;
      State rescaled = at;
      bool rescales = true;
      for (int i = 0; i < count; ++i) {
        if ((group >> i & 1U) == 0) continue;
        whole.symbol[i] = 0;
        const auto other = rescaled_symbol(at.symbol[i]);
        rescales = rescales && other.has_value();
        if (other) rescaled.symbol[i] = *other;
      }
      if (admit(Move::kReduce, group)) see(Move::kReduce, group, whole);
      if (rescales && admit(Move::kRescale, group)) {
        see(Move::kRescale, group, rescaled);
      }
      if (!on || !admit(Move::kReduceScatter, group)) return;
      append_shards(whole, group, [&](const State& other) {
        return see(Move::kReduceScatter, group, other);
      });
    });
    each_group(replicated, [&](Mask group) {
      if (!on) return;
      if (admit(Move::kSlice, group)) {
        append_shards(at, group, [&](const State& other) {
          return see(Move::kSlice, group, other);
        });
      }
      if (!on || !admit(Move::kToPartial, group)) return;
      State other = at;
      append_partials(other, group, 0, [&](const State& made) {
        see(Move::kToPartial, group, made);
      });
    });
  }

 private:
  template <class Call>
  static void each_subset(Mask set, Call&& call) {
    for (Mask subset = set; subset != 0; subset = (subset - 1) & set) {
      call(subset);
    }
  }

  // Returns whether the first cut that leaves a tensor dim returns to the same
  // place.
  bool shrinks(const State& from, const State& to, const State& gathered,
               Mask group) const {
    for (int i = 0; i < active_.count; ++i) {
      if ((group >> i & 1U) == 0 || from.symbol[i] != to.symbol[i] ||
          from.order[i] != to.order[i]) {
        continue;
      }
      int stayed = 0;
      for (int j = 0; j < active_.count; ++j) {
        if (alphabet_[gathered.symbol[j]].dim ==
            alphabet_[from.symbol[i]].dim) {
          ++stayed;
        }
      }
      if (from.order[i] == stayed) return true;
    }
    return false;
  }

  // Calls `call` for every way in which the mesh dims of `group`, replicated in
  // `base`, can cut last. Stops if a call returns false.
  template <class Call>
  void append_shards(const State& base, Mask group, Call&& call) const {
    std::array<int, kMaxPlannedDims> dims{};
    int count = 0;
    for (int i = 0; i < active_.count; ++i) {
      if ((group >> i & 1U) != 0) dims[count++] = i;
    }
    State state = base;
    place_next(base, state, dims, count, 0, call);
  }

  template <class Call>
  bool place_next(const State& base, State& state,
                  const std::array<int, kMaxPlannedDims>& dims, int count,
                  int next, Call&& call) const {
    // The second bound only tells the compiler the range of the first one.
    if (next == count || next == kMaxPlannedDims) return call(state);
    const int i = dims[next];
    for (std::uint8_t s = alphabet_.first_shard();
         s < alphabet_.first_partial(); ++s) {
      const std::int16_t dim = alphabet_[s].dim;
      std::uint8_t stayed = 0;
      for (int j = 0; j < active_.count; ++j) {
        if (alphabet_[base.symbol[j]].dim == dim) ++stayed;
      }
      std::uint8_t placed = stayed;
      for (int k = 0; k < next; ++k) {
        if (alphabet_[state.symbol[dims[k]]].dim == dim) ++placed;
      }
      const State before = state;
      for (std::uint8_t at = stayed; at <= placed; ++at) {
        for (int k = 0; k < next; ++k) {
          if (alphabet_[state.symbol[dims[k]]].dim == dim &&
              state.order[dims[k]] >= at) {
            ++state.order[dims[k]];
          }
        }
        state.symbol[i] = s;
        state.order[i] = at;
        if (!place_next(base, state, dims, count, next + 1, call)) return false;
        state = before;
      }
    }
    return true;
  }

  // Calls `call` for every way to make the mesh dims of `group` partial without
  // mixing reductions.
  template <class Call>
  void append_partials(State& state, Mask group, int next, Call&& call) const {
    if (next == active_.count || next == kMaxPlannedDims) {
      call(state);
      return;
    }
    if ((group >> next & 1U) == 0) {
      append_partials(state, group, next + 1, call);
      return;
    }
    for (std::uint8_t s = alphabet_.first_partial(); s < alphabet_.size();
         ++s) {
      bool mixes = true;
      for (int j = 0; j < active_.count; ++j) {
        const Alphabet::Symbol& other = alphabet_[state.symbol[j]];
        mixes =
            mixes && (!other.partial ||
                      partials_mix(other.placement, alphabet_[s].placement));
      }
      if (!mixes) continue;
      state.symbol[next] = s;
      append_partials(state, group, next + 1, call);
      state.symbol[next] = 0;
    }
  }

  // Returns P(avg) for P(sum) and P(sum) for P(avg), if the alphabet contains
  // it.
  std::optional<std::uint8_t> rescaled_symbol(std::uint8_t symbol) const {
    const Placement from = alphabet_[symbol].placement;
    for (std::uint8_t s = alphabet_.first_partial(); s < alphabet_.size();
         ++s) {
      const Placement to = alphabet_[s].placement;
      if (to != from && partials_mix(from, to)) return s;
    }
    return std::nullopt;
  }

  const ActiveDims& active_;
  const Alphabet& alphabet_;
};

}  // namespace shardprop::redistribute
