// PinnedValues applies pins to a graph: it lists the values that have a pinned
// layout and the pinned uses of inputs.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/graph/graph.h>
#include <shardprop/mesh/device_mesh.h>
#include <shardprop/plan/pin.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

namespace shardprop {

struct PinnedLayout {
  Layout layout;        // canonical
  std::size_t pin = 0;  // that asks for the layout
};

class PinnedValues {
 public:
  // `graph` and `pins` must outlive the object. Errors: kPinMatchesNothing,
  // kPinConflict.
  static Result<PinnedValues> create(const Graph& graph, const DeviceMesh& mesh,
                                     std::span<const Pin> pins);

  // Returns the pinned layout of a produced value or a stored input; null if it
  // has none.
  const PinnedLayout* produced(ValueId value) const;
  // Returns the pinned layouts in which users read the input, for all users.
  const std::vector<PinnedLayout>& used(ValueId input) const;
  // Returns the pinned layout of the state of a parameter that has a gradient; null
  // if it has none.
  const PinnedLayout* state(ValueId parameter) const;
  // Returns whether such a pin of `input` applies to its use by `node`.
  bool is_for(const PinnedLayout& pinned, ValueId input,
              const Node& node) const;

  // Removes the pin of a value that no strategy can produce in that layout.
  void pass_over(ValueId value, Error why);
  // Removes the pin of a state that the parameter cannot have.
  void pass_over_state(ValueId parameter, Error why);
  // Notes that the pin of a use is satisfied.
  void note_used(ValueId input, const PinnedLayout& pinned);

  struct Count {
    std::int64_t matched = 0;  // values
    std::int64_t pinned = 0;
  };
  // Returns the counts of each pin. If a pin applies to no value, the error is
  // that of its first value that does not fit or has no strategy.
  Result<std::vector<Count>> counts() const;

 private:
  PinnedValues(const Graph& graph, std::span<const Pin> pins)
      : graph_(graph), pins_(pins), tallies_(pins.size()) {}
  Result<void> add(std::size_t pin, const DeviceMesh& mesh, ValueId value);
  bool takes_any(std::size_t pin, ValueId input) const;
  bool matches(std::size_t pin, const Value& value) const;
  void forget(ValueId value, bool of_states, const Error& why);

  struct Tally {
    std::set<ValueId> matched;
    std::set<ValueId> pinned;
    std::optional<Error> first_misfit;
  };

  const Graph& graph_;
  std::span<const Pin> pins_;
  std::vector<Tally> tallies_;
  std::map<ValueId, PinnedLayout> produced_;
  std::map<ValueId, std::vector<PinnedLayout>> used_;
  std::map<ValueId, PinnedLayout> states_;
};

}  // namespace shardprop
