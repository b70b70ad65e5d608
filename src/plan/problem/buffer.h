// PlanBuffer describes a buffer: one allocation of the program, with all uses
// of it, including those through views.
//
// A view that keeps every element (permute, view, alias, ...) has no choice of
// its own. The layouts that its users read are mapped back to the buffer. A
// `BufferLayout` is one layout of the buffer. Each value of the buffer has one
// of its own layouts in it, or has no layout that views alone can produce.
//
//   w: f32[8,4] -> permute -> wt: f32[4,8]            on [2]
//     states 0, 1, 2:  w  R S(0) S(1)    wt  R S(1) S(0)
//
// Views that pick or repeat elements (slice, expand) are buffers of their own,
// with layouts of their own. As they are produced, they have no memory except
// that of the buffer that they alias. It is kept as long as they are.
#pragma once

#include <shardprop/base/strong_id.h>
#include <shardprop/graph/value.h>
#include <shardprop/strategy/layout_table.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace shardprop {

using PlanVariableId = StrongId<struct PlanVariableTag>;
using PlanBufferId = StrongId<struct PlanBufferTag>;
// BufferLayout is the index of a layout among the layouts of its buffer.
using BufferLayout = std::uint16_t;

// Marks a layout that cannot be reached from another one. The value is more
// than any plan costs.
inline constexpr std::int64_t kUnreachable = std::int64_t{1} << 50;

// BufferClass holds the data that buffers with the same values, producer and
// users share. Repeated layers are computed once.
struct BufferClass {
  // Move is the transfer of least time from one layout to another. It is one
  // redistribution of one of the values, or two, with layout `via` between
  // them.
  struct Move {
    std::int64_t transfer() const { return nanoseconds + overlapped; }
    bool is_reachable() const { return nanoseconds < kUnreachable; }
    static constexpr std::int32_t kDirect = -1;
    std::int64_t nanoseconds = 0;  // kUnreachable if no transfer exists
    // The part of the transfer that may overlap compute, if the window has
    // enough compute. `nanoseconds` excludes it.
    std::int64_t overlapped = 0;
    std::int32_t via = kDirect;
    std::uint32_t value = 0;  // index of the value that is moved, if direct
  };

  // [value][state]; invalid if views cannot produce the value in that layout.
  std::vector<std::vector<LayoutId>> layouts;
  std::vector<Move> moves;          // [from * num_states() + to]
  std::vector<std::int64_t> bytes;  // by state, of one rank
  // By layout of the producer's operand: the state that it is.
  std::vector<BufferLayout> produced;
  // [use][layout]: the same for the users' operands.
  std::vector<std::vector<BufferLayout>> required;

  std::size_t num_states() const { return bytes.size(); }
  const Move& move(BufferLayout from, BufferLayout to) const {
    return moves[from * num_states() + to];
  }
};

// BufferUse is an operand that reads a value of the buffer. Slots are indices
// of nodes in the schedule. The number of nodes is the slot of the end of the
// program.
struct BufferUse {
  PlanVariableId variable;
  std::uint32_t operand = 0;  // among the uses of the variable
  std::uint32_t value = 0;    // index into PlanBuffer::values
  std::int64_t slot = 0;      // when it is read
  // Last slot in which it must exist: its own for operators, the end for
  // outputs.
  std::int64_t until = 0;
};

// `InFlight` is the time at which moves of a buffer overlap with compute.
enum class InFlight : std::uint8_t {
  kNever,
  kAhead,  // of a parameter: in the window before its result is read
  kLater,  // of a gradient for an output: in the window after its producer
};

// Uses that follow each other without a long pause: [first, first + count).
struct UseSegment {
  std::size_t first = 0;
  std::size_t count = 0;
};

struct PlanBuffer {
  PlanVariableId producer;
  std::uint32_t operand = 0;     // among the operands of its producer
  std::int64_t produced_at = 0;  // slot of its producer; 0 for inputs
  bool persistent = false;       // an input: kept as it was given throughout
  // Produced and read inside one kernel. To be redistributed, it must be
  // written to memory first, and another kernel must read it.
  bool inside_kernel = false;
  InFlight in_flight = InFlight::kNever;
  // For a view that picks or repeats elements, and for a result that is written
  // in place: the index of the producer's use whose memory it aliases. Empty if
  // the buffer has memory of its own.
  std::optional<std::uint32_t> view_of_use;
  std::vector<ValueId> values;  // the produced one, then its views
  std::vector<BufferUse> uses;  // by slot
  std::vector<UseSegment> segments;
  std::shared_ptr<const BufferClass> kind;
};

}  // namespace shardprop
