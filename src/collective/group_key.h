// The key by which ranks identify a group to each other.
#pragma once

#include <shardprop/collective/group.h>

#include <cstdint>

namespace shardprop::collective {

// Returns a hash of all lists of the partition and of every rank in them. It is
// equal on all ranks, for any representation of the partition. Group::hash()
// reads at most 1,024 ranks, which suffices for tables that also compare the
// groups.
std::uint64_t wire_key(const Group& group);

}  // namespace shardprop::collective
