#include "propagate/argument_uses.h"

#include <algorithm>
#include <utility>

namespace shardprop {

const ArgumentUse* ArgumentUses::find(const FunctionSchema* function,
                                      std::uint64_t generation) const {
  for (std::size_t i = 0; i < kProbes; ++i) {
    const ArgumentUse* use =
        slots_[(place(function) + i) % kSlots].load(std::memory_order_acquire);
    if (use == nullptr) return nullptr;
    if (use->function.get() != function) continue;
    return use->generation == generation ? use : nullptr;
  }
  return nullptr;
}

const ArgumentUse* ArgumentUses::learn(
    const std::shared_ptr<const FunctionSchema>& function,
    std::uint64_t generation, const std::vector<Look>& looks,
    bool shares_shapes) {
  for (std::size_t i = 0; i < kProbes; ++i) {
    auto& slot = slots_[(place(function.get()) + i) % kSlots];
    const ArgumentUse* known = slot.load(std::memory_order_relaxed);
    if (known != nullptr && known->function != function) continue;
    auto made = std::make_unique<ArgumentUse>(
        ArgumentUse{function, generation, 0, looks, shares_shapes});
    if (known != nullptr && known->generation == generation) {
      made->version = known->version;
      made->shares_shapes = shares_shapes || known->shares_shapes;
      for (std::size_t a = 0; a < looks.size(); ++a) {
        made->looks[a] = std::max(looks[a], known->looks[a]);
      }
      if (made->looks != known->looks) {
        ++made->version;
      } else if (made->shares_shapes == known->shares_shapes) {
        return known;
      }
    }
    if (kept_.size() >= kMostKept) return nullptr;
    const ArgumentUse* use = made.get();
    kept_.push_back(std::move(made));
    slot.store(use, std::memory_order_release);
    return use;
  }
  return nullptr;
}

}  // namespace shardprop
