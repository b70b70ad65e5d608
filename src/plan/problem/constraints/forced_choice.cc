#include "plan/problem/constraints/forced_choice.h"

#include "plan/problem/choices/choice_subsets.h"

#include <cstdint>
#include <vector>

namespace shardprop {

Result<std::shared_ptr<const ChoiceSet>> forced_choice(
    const ProblemData& data, const Node& node, const ChoiceSet& set,
    const std::string& place) {
  const ForcedStrategy& forced = *data.options.forced;
  std::vector<Layout> layouts = forced.takes;
  layouts.insert(layouts.end(), forced.makes.begin(), forced.makes.end());
  std::vector<std::uint32_t> kept;
  for (std::uint32_t c = 0; c < set.size(); ++c) {
    bool same = layouts.size() == set.layouts.size();
    for (std::size_t o = 0; same && o < layouts.size(); ++o) {
      same = data.layouts[set.layout(c, o)] == layouts[o];
    }
    if (same) kept.push_back(c);
  }
  if (kept.empty()) {
    return fail(Error{
        ErrorCode::kPinNoStrategy,
        "no strategy of `" + node.name + "` takes and makes these layouts",
        place,
        {},
        "`shardprop why` lists those that it has"});
  }
  return without_spare_layouts(with_choices(set, kept));
}

}  // namespace shardprop
