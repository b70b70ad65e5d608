// Checks a CollectiveCall against the contract in its header, on one rank and
// against the calls of the other members.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/collective/collective_call.h>
#include <shardprop/collective/group.h>

#include <span>

namespace shardprop::collective {

// Checks the call of one rank and sorts its messages by peer. Errors:
// kCollectiveCall, kReduction, kCollectiveOverlap.
Result<void> check_call(CollectiveCall& call, std::int64_t ranks,
                        std::int64_t index);

// True if all tensors of the call that have elements are on the device.
bool all_on(const CollectiveCall& call, Device device);

// Checks the calls of all members, by index. Precondition: each call has passed
// check_call(). Error: kCollectiveMismatch, which names two ranks that differ.
Result<void> check_match(const Group::Ranks& ranks,
                         std::span<const CollectiveCall> calls);

// Returns the message to or from `peer`, or null. Precondition: the messages
// are sorted.
const Message* find_message(std::span<const Message> messages,
                            std::int64_t peer);

}  // namespace shardprop::collective
