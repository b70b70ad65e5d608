// NCCL as a table of functions over host memory; its streams are FakeQueues.
// Ranks are threads.
#pragma once

#include "nccl/nccl_api.h"

namespace shardprop::testing {

// Messages outside of a group are refused: uneven exchanges must be grouped.
nccl::NcclApi fake_nccl();

// Every communicator reports this from now on, when it is asked or, at once, from
// the collectives themselves; 0: none.
void break_fake_nccl(int code, bool at_once = false);

// Since the beginning of the process.
struct FakeCounts {
  int made = 0;
  int aborted = 0;
  int destroyed = 0;
  int stuck = 0;  // aborts that waited in vain for kernels of others
};
FakeCounts fake_counts();

}  // namespace shardprop::testing
