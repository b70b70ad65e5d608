#include "report/dear_moves.h"

#include "base/name_folding.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

namespace shardprop {
namespace {

struct Group {
  ExpensiveMove move;
  std::vector<std::set<std::int64_t>> places;  // numbers, by place
};

}  // namespace

std::vector<ExpensiveMove> expensive_moves(const Plan& plan) {
  using Steps =
      std::vector<std::tuple<CollectiveKind, std::string, std::int64_t>>;
  std::map<std::tuple<std::string, bool, bool, std::string, Steps>, Group>
      groups;
  for (const ModuleMove& move : all_moves(plan)) {
    const PlannedNode& node = plan.nodes[move.node];
    const NumberedName at = numbered_name(move.home);
    Steps steps;
    std::int64_t nanoseconds = 0;
    std::string layouts;
    const auto add = [&](const CollectiveStep& step) {
      std::string dims;
      for (const std::int32_t dim : step.mesh_dims) {
        dims += plan.mesh.name(dim) + ",";
      }
      steps.emplace_back(step.kind, dims, step.nanoseconds);
      nanoseconds += step.nanoseconds;
    };
    if (move.inside) {
      for (const CollectiveStep& step : node.inside) add(step);
    } else {
      const PlannedCopy& copy = plan.copies[move.copy];
      for (const CollectiveStep& step : copy.steps) add(step);
      layouts = to_string(copy.src) + to_string(copy.dst);
    }
    if (nanoseconds == 0) continue;
    Group& group = groups[{at.pattern, node.phase == Phase::kForward,
                           move.inside, layouts, std::move(steps)}];
    if (group.move.count++ == 0) {
      group.move.first = move;
      group.places.resize(at.numbers.size());
    }
    group.move.nanoseconds += nanoseconds;
    for (std::size_t i = 0; i < at.numbers.size(); ++i) {
      group.places[i].insert(at.numbers[i]);
    }
  }
  std::vector<ExpensiveMove> out;
  for (auto& [key, group] : groups) {
    group.move.module = with_numbers(std::get<0>(key), group.places);
    out.push_back(std::move(group.move));
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const ExpensiveMove& a, const ExpensiveMove& b) {
                     return a.nanoseconds > b.nanoseconds;
                   });
  return out;
}

}  // namespace shardprop
