// Views of uneven shards, against the elements that each rank holds.
#include "strategy/applied.h"

#include <shardprop/placement/local_region.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

using testing::applied;
using testing::Strategies;

using Ints = std::vector<std::int64_t>;

// What a rank holds of f[shape], whose elements are numbered in order.
std::vector<std::int64_t> held_of(const Layout& layout, const DeviceMesh& mesh,
                                  const Ints& shape, const Coordinate& at) {
  std::vector<std::int64_t> held = {0};
  const LocalRegion region = local_region(layout, mesh, shape, at);
  for (std::size_t dim = 0; dim < shape.size(); ++dim) {
    std::vector<std::int64_t> next;
    for (const std::int64_t number : held) {
      for (const Interval& run : region.dims()[dim]) {
        for (std::int64_t i = run.begin; i < run.end; ++i) {
          next.push_back(number * shape[dim] + i);
        }
      }
    }
    held = std::move(next);
  }
  return held;
}

std::string dims_text(const Ints& shape) {
  std::string text = "f32[";
  for (const std::int64_t size : shape) {
    text += (text.back() == '[' ? "" : ",") + std::to_string(size);
  }
  return text + ']';
}

// Every layout of plain shards and replicas.
std::vector<std::string> plain_layouts(std::size_t rank, int mesh_dims) {
  std::vector<std::string> layouts = {""};
  for (int m = 0; m < mesh_dims; ++m) {
    std::vector<std::string> longer;
    for (const std::string& layout : layouts) {
      const std::string before = layout.empty() ? "" : layout + ',';
      longer.push_back(before + 'R');
      for (std::size_t d = 0; d < rank; ++d) {
        longer.push_back(before + "S(" + std::to_string(d) + ')');
      }
    }
    layouts = std::move(longer);
  }
  return layouts;
}

// Views from shape to shape under plain layouts: those with the same elements on
// every rank are strategies, and no others.
void check_views(const Ints& from, const Ints& to, const std::string& sizes) {
  CAPTURE(dims_text(from));
  CAPTURE(dims_text(to));
  CAPTURE(sizes);
  const DeviceMesh mesh = testing::value_of(DeviceMesh::parse(sizes));
  const Strategies strategies(
      applied("aten.view.default", {dims_text(from)}, {{"size", to}}), sizes);
  const auto held = [&](const std::string& text, const Ints& shape) {
    const Layout layout = testing::value_of(Layout::parse(text));
    std::vector<std::vector<std::int64_t>> all;
    for (std::int64_t rank = 0; rank < mesh.size(); ++rank) {
      all.push_back(held_of(layout, mesh, shape, mesh.coordinate_at_index(rank)));
    }
    return all;
  };
  std::map<std::vector<std::vector<std::int64_t>>, std::vector<std::string>>
      results;
  for (const std::string& out : plain_layouts(to.size(), mesh.ndim())) {
    results[held(out, to)].push_back(out);
  }
  std::set<std::string> found;
  for (const std::string& text : strategies.texts()) found.insert(text);
  const auto word = [&](const std::string& layout) {
    return mesh.ndim() == 1 ? layout : '[' + layout + ']';
  };
  for (const std::string& in : plain_layouts(from.size(), mesh.ndim())) {
    const auto same = results.find(held(in, from));
    bool has = false;
    for (const auto& [elements, outs] : results) {
      const bool exact = same != results.end() && elements == same->first;
      for (const std::string& out : outs) {
        const bool offered = found.contains(word(in) + "->" + word(out));
        if (offered) CHECK_MESSAGE(exact, in, "->", out);
        has = has || offered;
      }
    }
    CHECK_MESSAGE(has == (same != results.end()), in);
  }
}

TEST_CASE(
    "a view of uneven shards is a strategy where it is exact, only there") {
  const std::vector<std::pair<Ints, Ints>> views = {
      {{3, 2}, {6}},    {{3, 5}, {15}},      {{5, 4}, {20}},
      {{7, 2}, {14}},   {{9, 2}, {6, 3}},    {{2, 2, 2}, {4, 2}},
      {{4, 3}, {2, 6}}, {{3, 2, 2}, {3, 4}}, {{2, 3, 2}, {12}},
      {{5, 3}, {3, 5}}, {{2, 9}, {3, 6}}};
  for (const auto& [a, b] : views) {
    for (const char* mesh : {"2", "3", "4", "7", "2,2", "2,3", "3,2", "4,2"}) {
      check_views(a, b, mesh);
      check_views(b, a, mesh);
    }
  }
}

}  // namespace
}  // namespace shardprop
