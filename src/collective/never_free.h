// Memory that an engine may touch after nobody knows of it any more.
#pragma once

#include <memory>
#include <utility>

namespace shardprop::collective {

// Keeps it until the process ends, on purpose: nothing tells when the engine is
// done with it. What is given up so is counted by the caller.
// NOLINTBEGIN(bugprone-unused-return-value,clang-analyzer-*)
template <class T>
void never_free(std::unique_ptr<T> kept) {
  static_cast<void>(kept.release());
}
// NOLINTEND(bugprone-unused-return-value,clang-analyzer-*)

}  // namespace shardprop::collective
