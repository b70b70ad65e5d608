// memory_at_hand(): how many bytes this process can still get, as far as the
// system says: free memory and swap, the limit of its control group, its limit
// on addresses. What is sure to need more is refused before it is begun; a
// system that promises more than it has would end the process in its middle.
//
//   SP_CHECK(check_fits(bytes, "the ranks' tensors"));
//   // error[SP0910]: the ranks' tensors take at least 40.0 GiB of memory,
//   // 21.5 GiB are to be had
#pragma once

#include <shardprop/base/result.h>

#include <cstdint>
#include <string>

namespace shardprop {

// INT64_MAX where nothing is known.
std::int64_t memory_at_hand();

// Error: kOutOfMemory. `what` is in the plural.
Result<void> check_fits(std::int64_t bytes, const std::string& what);

}  // namespace shardprop
