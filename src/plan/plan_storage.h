// PlanStorage: one allocation of the program, with every use that is made of
// it, through whatever views.
//
// A view that keeps every element (permute, view, alias, ...) holds no choice
// of its own: what its users want is pulled back to the storage. A state is one
// way for the storage to lie on the mesh; each value of the storage sees it as
// one of its layouts, or cannot be had from it by viewing alone.
//
//   w: f32[8,4] -> permute -> wt: f32[4,8]            on [2]
//     states 0, 1, 2:  w  R S(0) S(1)    wt  R S(1) S(0)
//
// Views that pick or repeat elements (slice, expand) are storages of their own,
// with states of their own. As they are made they have no memory, but that of
// the storage that they show, which is held as long as they are.
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
using PlanStorageId = StrongId<struct PlanStorageTag>;
// Index of a state among those of its storage.
using StorageState = std::uint16_t;

// More than any plan costs: a layout cannot be reached from another.
inline constexpr std::int64_t kUnreachable = std::int64_t{1} << 50;

// What storages with the same values, maker and users have in common: repeated
// layers are worked out once.
struct StorageClass {
  // The way of least transfer from one state to another is one redistribution
  // of one of the values, or two, with state `via` between.
  struct Move {
    std::int64_t transfer() const { return nanoseconds + hidden; }
    bool is_reachable() const { return nanoseconds < kUnreachable; }
    static constexpr std::int32_t kDirect = -1;
    std::int64_t nanoseconds = 0;  // kUnreachable where there is no way
    // The part of the transfer that compute may hide, if there is enough of it
    // in the window; not in `nanoseconds`.
    std::int64_t hidden = 0;
    std::int32_t via = kDirect;
    std::uint32_t value = 0;  // which value is redistributed, if direct
  };

  // [value][state]; invalid where the value cannot be had so.
  std::vector<std::vector<LayoutId>> layouts;
  std::vector<Move> moves;          // [from * num_states() + to]
  std::vector<std::int64_t> bytes;  // by state, of a rank
  // The state that each layout of the maker's operand stands for.
  std::vector<StorageState> made;
  // [use][layout]: the same for the users' operands.
  std::vector<std::vector<StorageState>> wanted;

  std::size_t num_states() const { return bytes.size(); }
  const Move& move(StorageState from, StorageState to) const {
    return moves[from * num_states() + to];
  }
};

// An operand that takes a value of the storage. Slots count the nodes of the
// schedule; the number of nodes stands for the end of the program.
struct StorageUse {
  PlanVariableId variable;
  std::uint32_t operand = 0;  // among the uses of the variable
  std::uint32_t value = 0;    // index into PlanStorage::values
  std::int64_t slot = 0;      // when it is taken
  std::int64_t until = 0;     // last slot in which it must be there: `slot` for
                              // operators, the end for what is handed back
};

// Uses that follow each other without a long pause: [first, first + count).
struct UseSegment {
  std::size_t first = 0;
  std::size_t count = 0;
};

struct PlanStorage {
  PlanVariableId maker;
  std::uint32_t operand = 0;  // among the operands of its maker's choices
  std::int64_t made_at = 0;   // slot of its maker; 0 for inputs
  bool persistent = false;    // an input: lives throughout as it was given
  // Made and taken inside one kernel: to be redistributed, it has to be written
  // first, and another kernel has to read it.
  bool inside_kernel = false;
  // A view that picks or repeats elements: which of its maker's uses it shows,
  // with whose memory it is there. Empty: it has memory of its own.
  std::optional<std::uint32_t> shows;
  std::vector<ValueId> values;   // the one that was made, then its views
  std::vector<StorageUse> uses;  // by slot
  std::vector<UseSegment> segments;
  std::shared_ptr<const StorageClass> kind;
};

}  // namespace shardprop
