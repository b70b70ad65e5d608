// Under the thread sanitizer a planner runs some hundred times slower than
// alone: tests of many plans or worlds take a few of them there, which shows
// what there is to see of threads.
#pragma once

namespace shardprop::testing {

#ifdef __SANITIZE_THREAD__
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif

}  // namespace shardprop::testing
