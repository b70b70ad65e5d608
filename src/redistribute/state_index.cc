#include "redistribute/state_index.h"

#include <shardprop/base/hash.h>

namespace shardprop::redistribute {

std::pair<std::uint32_t, bool> StateIndex::insert(const State& state) {
  if (2 * states_.size() >= slots_.size()) grow();
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = hash_mix(0, state.code()) & mask;;
       at = (at + 1) & mask) {
    if (slots_[at] == kEmpty) {
      slots_[at] = static_cast<std::uint32_t>(states_.size());
      states_.push_back(state);
      codes_.push_back(state.code());
      return {slots_[at], true};
    }
    if (states_[slots_[at]] == state) return {slots_[at], false};
  }
}

std::optional<std::uint32_t> StateIndex::find(std::uint64_t code) const {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = hash_mix(0, code) & mask;; at = (at + 1) & mask) {
    if (slots_[at] == kEmpty) return std::nullopt;
    if (codes_[slots_[at]] == code) return slots_[at];
  }
}

void StateIndex::grow() {
  slots_.assign(slots_.size() * 4, kEmpty);
  const std::size_t mask = slots_.size() - 1;
  for (std::uint32_t i = 0; i < states_.size(); ++i) {
    std::size_t at = hash_mix(0, states_[i].code()) & mask;
    while (slots_[at] != kEmpty) at = (at + 1) & mask;
    slots_[at] = i;
  }
}

}  // namespace shardprop::redistribute
