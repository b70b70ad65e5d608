// Answers questions about meshes and local regions, one JSON object a line, so
// that tests in Python can compare the library with PyTorch.
//
//   {"mesh": [["dp", 2], ["tp", 3]], "ranks": [...], "rank": 4, ...}
//
// `ranks` (row-major) may be left out: 0, 1, 2, ... Then, besides `coordinate`
// (null where the rank is not in the mesh), the answer holds for
//
//   "shape": [7, 5], "layout": ["S(0)", "S(0)"]   `runs`: per tensor dim the
//                                                 [begin, end) the rank holds
//   "slice": ["tp"]     `sizes` and `ranks` of the sub-mesh through the rank
//   "flatten": true     flattens that sub-mesh first

#include <shardprop/mesh/device_mesh.h>
#include <shardprop/placement/local_region.h>

#include <cstdint>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

using Json = nlohmann::json;

template <class T>
T value_of(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return *std::move(result);
}

DeviceMesh read_mesh(const Json& question) {
  std::vector<MeshDim> dims;
  for (const Json& dim : question.at("mesh")) {
    dims.push_back({dim.at(0), dim.at(1)});
  }
  if (!question.contains("ranks")) return value_of(DeviceMesh::create(dims));
  const std::vector<std::int64_t> ranks = question.at("ranks");
  return value_of(DeviceMesh::from_ranks(dims, ranks));
}

Json runs_of(const Json& question, const DeviceMesh& mesh,
             const Coordinate& at) {
  const std::vector<std::string> entries = question.at("layout");
  const std::vector<std::int64_t> shape = question.at("shape");
  const Layout layout = value_of(parse_layout(entries));
  const LocalRegion region = local_region(layout, mesh, shape, at);
  Json runs = Json::array();
  for (const Intervals& dim : region.dims()) {
    Json of_dim = Json::array();
    for (const Interval& run : dim) of_dim.push_back({run.begin, run.end});
    runs.push_back(std::move(of_dim));
  }
  return runs;
}

DeviceMesh sliced(const Json& question, const DeviceMesh& mesh,
                  const Coordinate& at) {
  const std::vector<std::string> names = question.at("slice");
  const std::vector<std::string_view> views(names.begin(), names.end());
  DeviceMesh sub = value_of(mesh.slice(views, at));
  if (!question.value("flatten", false)) return sub;
  std::vector<std::int32_t> dims(static_cast<std::size_t>(sub.ndim()));
  std::iota(dims.begin(), dims.end(), 0);
  return value_of(sub.flatten(dims, "flat"));
}

Json answer(const Json& question) {
  const DeviceMesh mesh = read_mesh(question);
  const auto at = mesh.coordinate_of(question.at("rank"));
  Json result;
  result["coordinate"] = nullptr;
  if (!at) return result;
  result["coordinate"] = std::vector<std::int64_t>(at->begin(), at->end());
  if (question.contains("layout")) {
    result["runs"] = runs_of(question, mesh, *at);
  }
  if (question.contains("slice")) {
    const DeviceMesh sub = sliced(question, mesh, *at);
    result["sizes"] = Json::array();
    for (const MeshDim& dim : sub.dims()) result["sizes"].push_back(dim.size);
    result["ranks"] = Json::array();
    for (std::int64_t i = 0; i < sub.size(); ++i) {
      result["ranks"].push_back(sub.rank_at_index(i));
    }
  }
  return result;
}

}  // namespace
}  // namespace shardprop

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    try {
      const auto question = nlohmann::json::parse(line);
      std::cout << shardprop::answer(question).dump() << '\n';
    } catch (const std::exception& error) {
      std::cerr << line << ": " << error.what() << '\n';
      return 1;
    }
  }
  return 0;
}
