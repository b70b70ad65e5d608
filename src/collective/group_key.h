// The key by which ranks name a group to each other.
#pragma once

#include <shardprop/collective/group.h>

#include <cstdint>

namespace shardprop::collective {

// A hash of all lists of the partition and of every rank in them, alike on all
// ranks however they hold the partition. Group::hash() looks at 1,024 ranks
// only, which is enough for tables that also compare the groups.
std::uint64_t wire_key(const Group& group);

}  // namespace shardprop::collective
