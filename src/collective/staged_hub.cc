#include "collective/staged_hub.h"

#include <algorithm>
#include <string>
#include <utility>

namespace shardprop::collective {

void StagedHub::advance_pending() {
  // Loops by index: stages never add operations, but a failure ends all of
  // them.
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    const std::shared_ptr<StagedOp> op = pending_[i];
    op->advance();
    if (op->over() && op->error()) fail(*op->error(), true);
  }
  std::erase_if(pending_, [](const auto& op) { return op->over(); });
}

void StagedHub::fail(Error failure, bool tell) {
  if (failure_) return;
  failure_ = std::move(failure);
  stop(tell);
  for (const std::shared_ptr<StagedOp>& op : pending_) {
    if (op->over() && !op->error()) continue;
    const std::int64_t bytes = op->abandon(*failure_);
    if (bytes == 0) continue;
    ++abandoned_;
    abandoned_bytes_ += bytes;
  }
}

Result<void> StagedHub::ending(const StagedOp& op, std::int64_t rank) {
  if (!op.error()) return {};
  return shardprop::fail(Error(*op.error())
                             .with_note("rank " + std::to_string(rank) +
                                        " waited in call " +
                                        std::to_string(op.number()) +
                                        " of group " + to_string(op.ranks())));
}

void StagedHub::add_stats(CommunicatorStats& stats) const {
  stats.parked +=
      std::count_if(pending_.begin(), pending_.end(),
                    [](const auto& op) { return op->dropped && !op->over(); });
  stats.abandoned += abandoned_;
  stats.abandoned_bytes += abandoned_bytes_;
}

}  // namespace shardprop::collective
