// Under the thread sanitizer a planner runs about a hundred times slower than
// without. Tests of many plans or worlds then take a few of them, which
// suffices to find races.
#pragma once

namespace shardprop::testing {

#ifdef __SANITIZE_THREAD__
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif

}  // namespace shardprop::testing
