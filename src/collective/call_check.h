// Whether a CollectiveCall is what its header says, on one rank and side by
// side with those of the other members.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/collective/collective_call.h>
#include <shardprop/collective/group.h>

#include <span>

namespace shardprop::collective {

// Of one rank. Sorts messages by peer. Errors: kCollectiveCall, kReduction,
// kCollectiveOverlap.
Result<void> check_call(CollectiveCall& call, std::int64_t ranks,
                        std::int64_t index);

// Whether all its tensors that have elements are there.
bool all_on(const CollectiveCall& call, Device device);

// Of all members, by index; each has passed check_call(). Error:
// kCollectiveMismatch, naming two ranks that differ.
Result<void> check_match(const Group::Ranks& ranks,
                         std::span<const CollectiveCall> calls);

// The message to or from `peer`, or null. Precondition: sorted.
const Message* find_message(std::span<const Message> messages,
                            std::int64_t peer);

}  // namespace shardprop::collective
