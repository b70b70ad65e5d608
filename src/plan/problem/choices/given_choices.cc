#include "plan/problem/choices/given_choices.h"

#include "plan/problem/choices/choice_subsets.h"

#include <algorithm>

namespace shardprop {

std::vector<LayoutId> interned(LayoutTable& table,
                               const std::vector<Layout>& layouts) {
  std::vector<LayoutId> ids;
  for (const Layout& layout : layouts) {
    const LayoutId id = table.intern(layout);
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
  }
  return ids;
}

Result<std::shared_ptr<const ChoiceSet>> GivenStrategies::of(
    const Node& node, const ChoiceSet& set, const std::string& place) {
  std::vector<std::uint64_t> key{
      reinterpret_cast<std::uintptr_t>(&set)};  // NOLINT: an identity
  std::vector<LayoutId> ids;
  for (const Layout& layout : given_.nodes[node.id.index()]) {
    ids.push_back(layouts_.intern(layout));
    key.push_back(ids.back().index());
  }
  auto& kept = kept_[key];
  if (!kept) {
    std::vector<std::uint32_t> fitting;
    for (std::uint32_t c = 0; c < set.size() && fitting.empty(); ++c) {
      bool fits = true;
      for (std::size_t o = 0; o < ids.size() && fits; ++o) {
        fits = set.layout(c, o) == ids[o];
      }
      if (fits) fitting.push_back(c);
    }
    kept = without_spare_layouts(with_choices(set, fitting));
  }
  if (kept->size() == 0) {
    return fail(Error{ErrorCode::kPlanFile,
                      "no strategy of `" + node.op_name() +
                          "` takes and makes what the plan says of `" +
                          node.name + "`",
                      place,
                      {},
                      "plan anew without --plan"});
  }
  return std::shared_ptr<const ChoiceSet>(kept);
}

}  // namespace shardprop
