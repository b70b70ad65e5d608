// ArgumentUses records, for each operator seen, which of its arguments its
// operator definition reads. find() takes no lock; learn() runs under the
// caller's lock.
//
// A definition may read other arguments in another call, so the record of an
// operator grows. If the looks grow, the record gets a new version, which is
// part of every key. An answer stored under an older version was right for the
// arguments that it read, but find() no longer reaches it.
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
  bool shares_shapes = false;  // some answer holds for other sizes
};

class ArgumentUses {
 public:
  ArgumentUses() : slots_(kSlots) {}

  // Returns null if the operator is not known in this generation. The result is
  // valid as long as this object.
  const ArgumentUse* find(const FunctionSchema* function,
                          std::uint64_t generation) const;

  // --- These functions need the caller's lock. ---

  // Adds to the record and returns the new one. Returns null if too many
  // operators are known, or if no slot near the operator's place is free.
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
  // All records stay allocated, because readers may still use an older version.
  std::vector<std::unique_ptr<const ArgumentUse>> kept_;
};

}  // namespace shardprop
