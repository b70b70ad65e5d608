// memory_at_hand() returns how many bytes this process can still allocate, as
// far as the system reports. It considers free memory and swap, the limit of
// the control group, and the limit on addresses. check_fits() refuses work that
// needs more before it starts. A system that overcommits memory would otherwise
// kill the process.
//
//   SP_CHECK(check_fits(bytes, "the ranks' tensors"));
//   // error[SP0910]: the ranks' tensors take at least 40.0 GiB of memory,
//   // 21.5 GiB are to be had
#pragma once

#include <shardprop/base/result.h>

#include <cstdint>
#include <string>

namespace shardprop {

// Returns INT64_MAX if no limit is known.
std::int64_t memory_at_hand();

// Returns the bytes left in a control group (version 2) and in its parent
// groups, and INT64_MAX if none has a limit. `root` is the folder in which the
// groups are mounted, and `path` is the group, such as "/user.slice/job".
std::int64_t left_in_group(const std::string& root, std::string path);

// Error: kOutOfMemory. `what` is a plural noun.
Result<void> check_fits(std::int64_t bytes, const std::string& what);

}  // namespace shardprop
