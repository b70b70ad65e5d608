// `HeldValues` is the set of values that a rank holds while it runs a program.
// It counts the peak bytes.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/collective/local_tensor.h>
#include <shardprop/program/spmd_program.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace shardprop::execute {

class HeldValues {
 public:
  // Must outlive it.
  explicit HeldValues(const SpmdProgram& program);
  // Must be called first.
  void stand_at(Coordinate at) { at_ = std::move(at); }

  // Adds a value. The operands of an operator are still held when its results
  // are added.
  void hold(ProgramValueId id, LocalTensor tensor);
  // Error: kProgramValue if the value is not held, or a later value was written
  // into its memory.
  Result<LocalTensor> value(ProgramValueId id) const;
  Result<void> free(const ProgramFree& free);

  // Counts the values that plans count: the graph's inputs, results of nodes,
  // copies, and optimizer state. Temporaries of a node and random words are not
  // counted.
  std::int64_t peak_bytes() const { return peak_bytes_; }

 private:
  std::vector<bool> counted_values() const;
  std::int64_t bytes_of(ProgramValueId id) const;
  ProgramValueId storage_of(ProgramValueId id) const;
  void overwrite(ProgramValueId by);

  const SpmdProgram& program_;
  Coordinate at_;
  std::vector<std::optional<LocalTensor>> values_;
  std::vector<bool> overwritten_;      // by value
  std::vector<std::int32_t> viewers_;  // by storage: values that are held
  std::vector<bool> counted_;          // by storage: whether plans count it
  std::int64_t live_bytes_ = 0;
  std::int64_t peak_bytes_ = 0;
};

}  // namespace shardprop::execute
