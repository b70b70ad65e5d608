// `TellingSlots` finds the slots whose memory says enough about all slots, if
// equal layers choose alike.
//
// In a run of layers, the bytes of counterpart slots change evenly from layer
// to layer: each layer adds the same saved activations, or frees as many as it
// adds gradients. If they fit in the second and in the last layer but one, they
// fit in the layers between.
//
//   saved activations of 32 layers, at the first matmul of layer k: k + 1 times
//   the bytes of one variable; telling slots are those of layers 0, 1, 30, 31
#pragma once

#include "plan/network/network_memory.h"
#include "plan/problem/plan_problem.h"

#include <cstdint>
#include <span>
#include <vector>

namespace shardprop {

class TellingSlots {
 public:
  // A slot is telling unless the bytes of two others, whatever the choices,
  // have a mean of at least its bytes. All slots tell if layers are free.
  TellingSlots(const PlanProblem& problem, std::span<const MemoryUsage> usages);

  // Returns the usages with other bytes in slots that are not telling: those of
  // the telling slot before. So the memory changes in telling slots only.
  std::vector<MemoryUsage> only(std::vector<MemoryUsage> usages) const;
  // Returns the bytes that are reserved, by slot, with those of other slots in
  // the telling slots that stand for them.
  std::vector<std::int64_t> reserved(std::vector<std::int64_t> bytes) const;

 private:
  // Ends are two telling slots that stand for a slot between them.
  struct Ends {
    std::int64_t slot = 0;
    std::int64_t first = 0;
    std::int64_t last = 0;
  };

  std::vector<Ends> others_;         // the slots that are not telling
  std::vector<std::int64_t> moved_;  // by slot: the next telling one
};

}  // namespace shardprop
