#include "execute/rank_clock.h"

#include "base/saturating.h"
#include "base/try.h"
#include "program/step_values.h"

#include <shardprop/collective/group.h>
#include <shardprop/collective/local_tensor.h>

#include <algorithm>
#include <span>
#include <utility>
#include <variant>

namespace shardprop::execute {
namespace {

// Returns the latest time of the ranks of the group.
Result<std::int64_t> latest(const DeviceMesh& mesh, const CollectiveStep& step,
                            std::int64_t time, Communicator& communicator) {
  SP_ASSIGN(const Group group,
            Group::mesh_dims(
                mesh, std::span(step.mesh_dims.data(), step.mesh_dims.size())));
  SP_ASSIGN(LocalTensor mine, LocalTensor::empty({1}, DType::kI64));
  SP_ASSIGN(LocalTensor all, LocalTensor::empty({1}, DType::kI64));
  *mine.data_as<std::int64_t>() = time;
  CollectiveCall call;
  call.kind = CollectiveKind::kAllReduce;
  call.op = ReduceOp::kMax;
  call.inputs = {std::move(mine)};
  call.outputs = {all};
  call.where = "virtual clock";
  SP_CHECK(communicator.run(group, std::move(call)));
  return *all.data_as<std::int64_t>();
}

}  // namespace

RankClock::RankClock(const SpmdProgram& program, const ProgramPrices& prices)
    : program_(program),
      prices_(prices),
      boundaries_(prices.copies),
      left_(prices.overlappable) {}

Result<void> RankClock::run(const ProgramStep& step,
                            Communicator& communicator) {
  compute_before(step);
  if (step.copy) cut(*step.copy);
  if (!step.is_overlapped) {
    bool is_early = false;
    for_each_taken(step, [&](ProgramValueId id) {
      is_early = is_early || complete_at(id) > now_;
    });
    if (is_early) {
      return fail(ErrorCode::kProgramValue,
                  "a transfer is read before the time at which it is complete");
    }
  }
  if (const auto* moved = std::get_if<ProgramCollective>(&step.action)) {
    SP_CHECK(transfer(step, *moved, communicator));
  } else if (const auto* wait = std::get_if<ProgramWait>(&step.action)) {
    for (const ProgramValueId id : wait->values) {
      now_ = std::max(now_, complete_at(id));
      std::erase_if(flights_,
                    [&](const Flight& flight) { return flight.value == id; });
    }
  }
  if (step.is_overlapped) {
    for_each_made(step, [&](ProgramValueId id) {
      flights_.push_back({id, std::max(now_, transferred_)});
    });
  }
  return {};
}

std::int64_t RankClock::end() {
  compute_until(program_.nodes.size());
  for (std::size_t c = 0; c < boundaries_.size(); ++c) cut(c);
  return now_;
}

Result<void> RankClock::transfer(const ProgramStep& step,
                                 const ProgramCollective& collective,
                                 Communicator& communicator) {
  const std::int64_t nanoseconds = collective.step.nanoseconds;
  std::int64_t overlapped = step.is_overlapped ? nanoseconds : 0;
  if (step.copy && *step.copy < left_.size()) {
    overlapped = std::min(overlapped, left_[*step.copy]);
    left_[*step.copy] -= overlapped;
  }
  // A slice has no group: every rank takes its own part.
  const bool has_group = collective.step.kind != CollectiveKind::kSlice;
  const auto agreed = [&](std::int64_t time) -> Result<std::int64_t> {
    if (!has_group) return time;
    return latest(program_.mesh, collective.step, time, communicator);
  };
  if (overlapped < nanoseconds || !step.is_overlapped) {
    SP_ASSIGN(now_, agreed(now_));
    stop(nanoseconds - overlapped);
  }
  if (overlapped > 0) {
    SP_ASSIGN(const std::int64_t start, agreed(std::max(now_, transferred_)));
    transferred_ = sat_add(start, overlapped);
  }
  return {};
}

// The compute stream runs something else than transfers in flight.
void RankClock::stop(std::int64_t nanoseconds) {
  for (Flight& flight : flights_) {
    if (flight.complete_at > now_) {
      flight.complete_at = sat_add(flight.complete_at, nanoseconds);
    }
  }
  if (transferred_ > now_) transferred_ = sat_add(transferred_, nanoseconds);
  now_ = sat_add(now_, nanoseconds);
}

void RankClock::cut(std::size_t copy) {
  if (copy >= boundaries_.size()) return;
  stop(std::exchange(boundaries_[copy], 0));
}

// A node computes at its first step other than a copy.
void RankClock::compute_before(const ProgramStep& step) {
  compute_until(step.node);
  const bool runs = std::holds_alternative<ProgramOp>(step.action) ||
                    std::holds_alternative<ProgramCollective>(step.action);
  if (runs && !step.copy) compute_until(step.node + 1);
}

void RankClock::compute_until(std::size_t node) {
  for (; next_node_ < node; ++next_node_) {
    now_ = sat_add(now_, prices_.nodes[next_node_]);
  }
}

std::int64_t RankClock::complete_at(ProgramValueId value) const {
  const auto found =
      std::find_if(flights_.begin(), flights_.end(),
                   [&](const Flight& flight) { return flight.value == value; });
  return found == flights_.end() ? 0 : found->complete_at;
}

}  // namespace shardprop::execute
