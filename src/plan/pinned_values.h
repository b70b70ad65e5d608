// What the pins ask of a graph: which values to lay out how, and which uses of
// its inputs.
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
  std::size_t pin = 0;  // the one that asks for it
};

class PinnedValues {
 public:
  // `graph` and `pins` must outlive the object.
  // Errors: kPinMatchesNothing, kPinConflict; kPinDoesNotFit for a pin that
  // fits none of what it matches.
  static Result<PinnedValues> create(const Graph& graph, const DeviceMesh& mesh,
                                     std::span<const Pin> pins);

  // How a value is made, or an input given; null if it is not pinned.
  const PinnedLayout* made(ValueId value) const;
  // How the users of an input take it, whoever they are.
  const std::vector<PinnedLayout>& used(ValueId input) const;
  // Whether such a pin of `input` is for its use by `node`.
  bool is_for(const PinnedLayout& pinned, ValueId input,
              const Node& node) const;

  // No strategy makes it so: it is passed over.
  void pass_over(ValueId value, Error why);
  // The pin of a use has been honoured.
  void note_used(ValueId input, const PinnedLayout& pinned);

  struct Count {
    std::int64_t matched = 0;  // values
    std::int64_t pinned = 0;
  };
  // By pin. Error: that of the first value that a pin was passed over for,
  // where it pins none.
  Result<std::vector<Count>> counts() const;

 private:
  PinnedValues(const Graph& graph, std::span<const Pin> pins)
      : graph_(graph), pins_(pins), tallies_(pins.size()) {}
  Result<void> add(std::size_t pin, const DeviceMesh& mesh, ValueId value);
  bool takes_any(std::size_t pin, ValueId input) const;

  struct Tally {
    std::set<ValueId> matched;
    std::set<ValueId> pinned;
    std::optional<Error> first_misfit;
  };

  const Graph& graph_;
  std::span<const Pin> pins_;
  std::vector<Tally> tallies_;
  std::map<ValueId, PinnedLayout> made_;
  std::map<ValueId, std::vector<PinnedLayout>> used_;
};

}  // namespace shardprop
