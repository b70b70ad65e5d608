#include "execute/held_values.h"

#include "base/try.h"
#include "program/step_values.h"

#include <shardprop/program/rank_program.h>

#include <algorithm>
#include <utility>

namespace shardprop::execute {

HeldValues::HeldValues(const SpmdProgram& program)
    : program_(program),
      values_(program.values.size()),
      overwritten_(program.values.size(), false),
      viewers_(program.values.size(), 0),
      in_flight_(program.values.size(), nullptr),
      users_in_flight_(program.values.size(), 0),
      counted_(counted_values()) {}

std::vector<bool> HeldValues::counted_values() const {
  std::vector<bool> counted(program_.values.size(), false);
  const auto add = [&](ProgramValueId id) {
    if (id.valid()) counted[storage_of(id).index()] = true;
  };
  for (const ProgramInput& input : program_.inputs) {
    if (input.kind != InputKind::kSeed &&
        input.kind != InputKind::kOptimizerStep &&
        input.kind != InputKind::kLearningRate) {
      add(input.value);
    }
  }
  for (const ProgramNode& node : program_.nodes) {
    if (node.op.starts_with("optimizer.")) continue;
    for (const ProgramValueId id : node.outputs) add(id);
  }
  for (const ProgramCopy& copy : program_.copies) add(copy.value);
  return counted;
}

std::int64_t HeldValues::bytes_of(ProgramValueId id) const {
  const ProgramValue& value = program_.value(id);
  if (value.is_local() || !counted_[id.index()]) return 0;
  std::int64_t bytes = item_size(value.meta.dtype());
  for (const std::int64_t size : local_shape(program_, id, at_)) bytes *= size;
  return bytes;
}

ProgramValueId HeldValues::storage_of(ProgramValueId id) const {
  const ProgramValueId buffer = program_.value(id).buffer;
  return buffer.valid() ? buffer : id;
}

Result<void> HeldValues::hold(ProgramValueId id, LocalTensor tensor) {
  if (program_.value(id).overwrites.valid()) SP_CHECK(overwrite(id));
  const ProgramValueId buffer = storage_of(id);
  if (viewers_[buffer.index()]++ == 0) live_bytes_ += bytes_of(buffer);
  peak_bytes_ = std::max(peak_bytes_, live_bytes_);
  values_[id.index()] = std::move(tensor);
  return {};
}

void HeldValues::start(const ProgramStep& step) {
  for_each_made(step, [&](ProgramValueId id) {
    in_flight_[id.index()] = &step;
    ++users_in_flight_[storage_of(id).index()];
    for_each_taken(step, [&](ProgramValueId read) {
      ++users_in_flight_[storage_of(read).index()];
    });
  });
}

Result<void> HeldValues::end(const ProgramWait& wait) {
  for (const ProgramValueId id : wait.values) {
    const ProgramStep* step = std::exchange(in_flight_[id.index()], nullptr);
    if (step == nullptr) {
      return fail(ErrorCode::kProgramValue, "the program waits for `" +
                                                program_.value(id).name +
                                                "`, which is not in flight");
    }
    --users_in_flight_[storage_of(id).index()];
    for_each_taken(*step, [&](ProgramValueId read) {
      --users_in_flight_[storage_of(read).index()];
    });
  }
  return {};
}

Result<void> HeldValues::check_idle(ProgramValueId id, const char* what) const {
  if (users_in_flight_[storage_of(id).index()] == 0) return {};
  return fail(ErrorCode::kProgramValue,
              "`" + program_.value(id).name + "` is " + what +
                  " before the program waits for a transfer to or from it");
}

Result<void> HeldValues::check_complete() const {
  for (std::size_t v = 0; v < in_flight_.size(); ++v) {
    if (in_flight_[v] == nullptr) continue;
    return fail(ErrorCode::kProgramValue,
                "the program ends before it waits for the transfer to `" +
                    program_.values[v].name + "`");
  }
  return {};
}

// Every value that is held in the memory is lost, views of it included.
Result<void> HeldValues::overwrite(ProgramValueId by) {
  SP_CHECK(check_idle(by, "written"));
  const ProgramValueId buffer = storage_of(by);
  for (std::size_t v = 0; v < values_.size(); ++v) {
    if (values_[v] && storage_of(ProgramValueId(v)) == buffer) {
      overwritten_[v] = true;
    }
  }
  return {};
}

Result<LocalTensor> HeldValues::value(ProgramValueId id,
                                      const ProgramStep& reader) const {
  return value(id, reader.is_overlapped);
}

Result<LocalTensor> HeldValues::output(ProgramValueId id) const {
  return value(id, false);
}

Result<LocalTensor> HeldValues::value(ProgramValueId id,
                                      bool may_be_in_flight) const {
  if (in_flight_[id.index()] != nullptr && !may_be_in_flight) {
    return fail(ErrorCode::kProgramValue,
                "`" + program_.value(id).name +
                    "` is read before the program waits for its transfer");
  }
  const std::optional<LocalTensor>& held = values_[id.index()];
  if (held && !overwritten_[id.index()]) return *held;
  if (held) {
    return fail(ErrorCode::kProgramValue,
                "`" + program_.value(id).name +
                    "` is read after its memory was overwritten");
  }
  return fail(ErrorCode::kProgramValue,
              "`" + program_.value(id).name +
                  "` is read before it is produced, or after it is freed");
}

Result<void> HeldValues::free(const ProgramFree& free) {
  for (const ProgramValueId id : free.values) {
    if (!overwritten_[id.index()]) SP_CHECK(value(id, true));
    const ProgramValueId buffer = storage_of(id);
    if (viewers_[buffer.index()] == 1) SP_CHECK(check_idle(id, "freed"));
    values_[id.index()].reset();
    if (--viewers_[buffer.index()] == 0) live_bytes_ -= bytes_of(buffer);
  }
  return {};
}

}  // namespace shardprop::execute
