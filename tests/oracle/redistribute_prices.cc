// Prices other planners' paths by shardprop's model, one line each:
//
//   in    mesh TAB tensor TAB layout TAB layout ...   (the path, ends included)
//   out   nanoseconds of shardprop's plan between the ends, of the path, and
//         of the planning itself; -1 for a path with a move that no single
//         collective is
#include "redistribute/reference_search.h"

#include <shardprop/redistribute/planner.h>

#include <chrono>
#include <iostream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>

namespace shardprop {
namespace {

template <class T>
T value_of(Result<T> result) {
  if (!result) throw std::runtime_error(to_string(result.error()));
  return *std::move(result);
}

void answer(const std::string& line,
            std::map<std::string, RedistributePlanner>& planners) {
  std::vector<std::string> fields;
  std::istringstream in(line);
  for (std::string field; std::getline(in, field, '\t');) {
    fields.push_back(field);
  }
  if (fields.size() < 4) throw std::runtime_error("too few fields: " + line);
  const auto mesh = value_of(DeviceMesh::parse(fields[0]));
  const auto meta = value_of(TensorMeta::parse(fields[1]));
  const Topology& topology = default_topology();
  auto planner = planners.find(fields[0]);
  if (planner == planners.end()) {
    planner =
        planners
            .emplace(fields[0],
                     value_of(RedistributePlanner::create(mesh, topology)))
            .first;
  }
  std::vector<Layout> path;
  for (std::size_t i = 2; i < fields.size(); ++i) {
    path.push_back(
        canonical(value_of(Layout::parse(fields[i])), mesh, meta.shape()));
  }
  const auto start = std::chrono::steady_clock::now();
  const auto plan =
      value_of(planner->second.plan(path.front(), path.back(), meta));
  const auto took = std::chrono::steady_clock::now() - start;
  const testing::ReferenceSearch prices(mesh, topology, meta, {});
  std::int64_t total = 0;
  for (std::size_t i = 1; i < path.size(); ++i) {
    if (path[i] == path[i - 1]) continue;
    const std::int64_t move = prices.one_move(path[i - 1], path[i]);
    if (move == testing::kNoPath) {
      total = -1;
      break;
    }
    total += move;
  }
  std::cout << plan.nanoseconds << ' ' << total << ' '
            << std::chrono::nanoseconds(took).count() << std::endl;
}

}  // namespace
}  // namespace shardprop

int main() {
  std::map<std::string, shardprop::RedistributePlanner> planners;
  try {
    for (std::string line; std::getline(std::cin, line);) {
      shardprop::answer(line, planners);
    }
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
