// ArgumentUses: for each operator met, which of its arguments its row looks at.
// Found without a lock; written under the caller's.
//
// What a row looks at may differ from call to call, and what is known of an
// operator grows. Every growth is a new version, which is part of every key:
// answers kept under an older version were right for what they looked at, and
// are found no more.
#pragma once

#include "ops/argument_reads.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace shardprop {

struct ArgumentUse {
  std::shared_ptr<const FunctionSchema> function;
  std::uint64_t generation = 0;
  std::uint64_t version = 0;
  std::vector<Look> looks;
  bool shares_shapes = false;  // some answer serves other sizes
};

class ArgumentUses {
 public:
  ArgumentUses() : slots_(kSlots) {}

  // Null when the operator is not known in this generation. Valid as long as
  // this object.
  const ArgumentUse* find(const FunctionSchema* function,
                          std::uint64_t generation) const;

  // --- under the caller's lock ---

  // What is known from now on; null when too many operators are known, or when
  // there is no room near the place of this one.
  const ArgumentUse* learn(
      const std::shared_ptr<const FunctionSchema>& function,
      std::uint64_t generation, const std::vector<Look>& looks,
      bool shares_shapes);

 private:
  static constexpr std::size_t kSlots = 1 << 13;
  static constexpr std::size_t kProbes = 16;
  static constexpr std::size_t kMostKept = 1 << 16;

  static std::size_t place(const FunctionSchema* function) {
    const auto address = reinterpret_cast<std::uintptr_t>(function);
    return static_cast<std::size_t>(
        (static_cast<std::uint64_t>(address) * 0x9e3779b97f4a7c15ULL) >> 51);
  }

  std::vector<std::atomic<const ArgumentUse*>> slots_;
  // Readers may still hold an older version.
  std::vector<std::unique_ptr<const ArgumentUse>> kept_;
};

}  // namespace shardprop
