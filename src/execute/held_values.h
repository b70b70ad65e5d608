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
  // are added. Error: kProgramValue if it overwrites memory that an overlapped
  // step reads or writes.
  Result<void> hold(ProgramValueId id, LocalTensor tensor);
  // The outputs of an overlapped step, which are held, are in flight until
  // end(). `step` must outlive the object.
  void start(const ProgramStep& step);
  // Ends overlapped steps. Error: kProgramValue if a value is not in flight.
  Result<void> end(const ProgramWait& wait);
  // Returns a value that `reader` reads. Error: kProgramValue if the value is
  // not held, a later value was written into its memory, or it is in flight and
  // the reader is not overlapped.
  Result<LocalTensor> value(ProgramValueId id, const ProgramStep& reader) const;
  // Returns an output of the program. Errors as above.
  Result<LocalTensor> output(ProgramValueId id) const;
  // Error: kProgramValue if a value is not held, or an overlapped step reads
  // or writes it.
  Result<void> free(const ProgramFree& free);

  // Error: kProgramValue if a value is in flight.
  Result<void> check_complete() const;

  // Counts the values that plans count: the graph's inputs, results of nodes,
  // copies, and optimizer state. Temporaries of a node and random words are not
  // counted.
  std::int64_t peak_bytes() const { return peak_bytes_; }

 private:
  std::vector<bool> counted_values() const;
  std::int64_t bytes_of(ProgramValueId id) const;
  ProgramValueId storage_of(ProgramValueId id) const;
  Result<void> overwrite(ProgramValueId by);
  Result<LocalTensor> value(ProgramValueId id, bool may_be_in_flight) const;
  Result<void> check_idle(ProgramValueId id, const char* what) const;

  const SpmdProgram& program_;
  Coordinate at_;
  std::vector<std::optional<LocalTensor>> values_;
  std::vector<bool> overwritten_;      // by value
  std::vector<std::int32_t> viewers_;  // by storage: values that are held
  // By value in flight: the step that produces it; otherwise null.
  std::vector<const ProgramStep*> in_flight_;
  // By storage: number of values in flight that are in it or are produced from
  // it.
  std::vector<std::int32_t> users_in_flight_;
  std::vector<bool> counted_;  // by storage: whether plans count it
  std::int64_t live_bytes_ = 0;
  std::int64_t peak_bytes_ = 0;
};

}  // namespace shardprop::execute
