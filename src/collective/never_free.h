// Leaks memory that an engine may still access after its last owner is gone.
#pragma once

#include <memory>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#define SHARDPROP_FINDS_LEAKS
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SHARDPROP_FINDS_LEAKS
#endif
#endif
#if defined(SHARDPROP_FINDS_LEAKS)
#include <sanitizer/lsan_interface.h>
#endif

namespace shardprop::collective {

// Leaks `kept` on purpose, because no event reports when the engine no longer
// uses it. The caller counts the leaked bytes.
// NOLINTBEGIN(bugprone-unused-return-value,clang-analyzer-*)
template <class T>
void never_free(std::unique_ptr<T> kept) {
#if defined(SHARDPROP_FINDS_LEAKS)
  __lsan_ignore_object(kept.get());
#endif
  static_cast<void>(kept.release());
}
// NOLINTEND(bugprone-unused-return-value,clang-analyzer-*)

}  // namespace shardprop::collective

#undef SHARDPROP_FINDS_LEAKS
