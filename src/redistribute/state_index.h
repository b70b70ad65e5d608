// StateIndex numbers layout states in the order in which they were found.
#pragma once

#include "redistribute/sharding_state.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace shardprop::redistribute {

class StateIndex {
 public:
  StateIndex() : slots_(kFirstSlots, kEmpty) {}

  // Returns the number of `state` and whether it is new.
  std::pair<std::uint32_t, bool> insert(const State& state);
  std::optional<std::uint32_t> find(const State& state) const {
    return find(state.code());
  }
  std::optional<std::uint32_t> find(std::uint64_t code) const;
  const std::vector<State>& states() const { return states_; }

 private:
  static constexpr std::size_t kFirstSlots = 256;
  static constexpr std::uint32_t kEmpty = 0xffffffffU;
  void grow();
  std::vector<State> states_;
  std::vector<std::uint64_t> codes_;
  std::vector<std::uint32_t> slots_;
};

}  // namespace shardprop::redistribute
