#include "report/dear_moves.h"

#include "base/name_folding.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

namespace shardprop {
namespace {

struct Numbers {
  std::string pattern;  // numbers replaced by a mark
  std::vector<std::int64_t> numbers;
};

constexpr char kMark = '\x01';

Numbers numbers_of(std::string_view module) {
  Numbers out;
  while (!module.empty()) {
    const std::size_t end = std::min(module.find('.'), module.size());
    const std::string_view part = module.substr(0, end);
    if (!out.pattern.empty()) out.pattern += '.';
    if (is_number(part)) {
      out.pattern += kMark;
      out.numbers.push_back(std::stoll(std::string(part)));
    } else {
      out.pattern += part;
    }
    module.remove_prefix(std::min(end + 1, module.size()));
  }
  return out;
}

struct Group {
  DearMove move;
  std::vector<std::set<std::int64_t>> places;  // numbers, by place
};

std::string filled(const std::string& pattern, const Group& group) {
  std::string text;
  std::size_t place = 0;
  for (const char c : pattern) {
    if (c != kMark) {
      text += c;
      continue;
    }
    const auto& numbers = group.places[place++];
    text += runs_text({numbers.begin(), numbers.end()});
  }
  return text;
}

}  // namespace

std::vector<DearMove> dear_moves(const Plan& plan) {
  using Steps =
      std::vector<std::tuple<CollectiveKind, std::string, std::int64_t>>;
  std::map<std::tuple<std::string, bool, bool, std::string, Steps>, Group>
      groups;
  for (const ModuleMove& move : all_moves(plan)) {
    const PlannedNode& node = plan.nodes[move.node];
    const Numbers at = numbers_of(move.home);
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
  std::vector<DearMove> out;
  for (auto& [key, group] : groups) {
    group.move.module = filled(std::get<0>(key), group);
    out.push_back(std::move(group.move));
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const DearMove& a, const DearMove& b) {
                     return a.nanoseconds > b.nanoseconds;
                   });
  return out;
}

}  // namespace shardprop
