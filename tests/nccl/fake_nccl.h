// NCCL as a table of functions over host memory, and a stream that runs on
// whoever asks whether it is done. Ranks are threads.
#pragma once

#include "nccl/device_queue.h"
#include "nccl/nccl_api.h"

#include <memory>

namespace shardprop::testing {

// Messages outside of a group are refused: uneven exchanges must be grouped.
nccl::NcclApi fake_nccl();

// Every communicator reports this from now on; 0: none.
void break_fake_nccl(int code);

// Since the beginning of the process.
struct FakeCounts {
  int made = 0;
  int aborted = 0;
  int destroyed = 0;
};
FakeCounts fake_counts();

std::unique_ptr<nccl::DeviceQueue> fake_queue();

}  // namespace shardprop::testing
