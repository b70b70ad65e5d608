#include "execute/held_values.h"

#include "base/try.h"

#include <shardprop/program/rank_program.h>

#include <algorithm>
#include <utility>

namespace shardprop::execute {

HeldValues::HeldValues(const SpmdProgram& program)
    : program_(program),
      values_(program.values.size()),
      overwritten_(program.values.size(), false),
      viewers_(program.values.size(), 0),
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

void HeldValues::hold(ProgramValueId id, LocalTensor tensor) {
  if (program_.value(id).overwrites.valid()) overwrite(id);
  const ProgramValueId buffer = storage_of(id);
  if (viewers_[buffer.index()]++ == 0) live_bytes_ += bytes_of(buffer);
  peak_bytes_ = std::max(peak_bytes_, live_bytes_);
  values_[id.index()] = std::move(tensor);
}

// Every value that is held in the memory is lost, views of it included.
void HeldValues::overwrite(ProgramValueId by) {
  const ProgramValueId buffer = storage_of(by);
  for (std::size_t v = 0; v < values_.size(); ++v) {
    if (values_[v] && storage_of(ProgramValueId(v)) == buffer) {
      overwritten_[v] = true;
    }
  }
}

Result<LocalTensor> HeldValues::value(ProgramValueId id) const {
  const std::optional<LocalTensor>& held = values_[id.index()];
  if (held && !overwritten_[id.index()]) return *held;
  if (held) {
    return fail(ErrorCode::kProgramValue,
                "`" + program_.value(id).name +
                    "` is read after its memory was overwritten");
  }
  return fail(ErrorCode::kProgramValue,
              "`" + program_.value(id).name +
                  "` is taken when it has been freed, or before it is made");
}

Result<void> HeldValues::free(const ProgramFree& free) {
  for (const ProgramValueId id : free.values) {
    if (!overwritten_[id.index()]) SP_CHECK(value(id));
    values_[id.index()].reset();
    const ProgramValueId buffer = storage_of(id);
    if (--viewers_[buffer.index()] == 0) live_bytes_ -= bytes_of(buffer);
  }
  return {};
}

}  // namespace shardprop::execute
