// NCCL as a table of functions over the memory of a fake device; its streams
// are FakeQueues. Ranks are threads.
#pragma once

#include "nccl/nccl_api.h"

#include <cstdint>
#include <vector>

namespace shardprop::testing {

// Messages outside of a group are refused: uneven exchanges must be grouped.
nccl::NcclApi fake_nccl();

// Every communicator reports this from now on, when it is asked or, at once,
// from the collectives themselves; 0: none.
void break_fake_nccl(int code, bool at_once = false);

// Counts the events since the start of the process.
struct FakeCounts {
  int made = 0;
  int aborted = 0;
  int destroyed = 0;
  int stuck = 0;  // aborts that waited in vain for kernels of others
};
FakeCounts fake_counts();

// Groups of this thread that are open.
int fake_group_depth();
// The threads' current devices when communicators were made, since the last
// call.
std::vector<int> take_fake_devices();
// The ids of communicators in the order in which each thread destroyed them,
// since the last call.
std::vector<std::vector<std::int64_t>> take_destroyed();

}  // namespace shardprop::testing
