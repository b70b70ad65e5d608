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

// Returns the elements of f[shape] on a rank. The elements are numbered in
// order.
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

// Returns every layout of plain shards and replicas. A dim of one element is
// not sharded.
std::vector<std::string> plain_layouts(const Ints& shape, int mesh_dims) {
  std::vector<std::string> layouts = {""};
  for (int m = 0; m < mesh_dims; ++m) {
    std::vector<std::string> longer;
    for (const std::string& layout : layouts) {
      const std::string before = layout.empty() ? "" : layout + ',';
      longer.push_back(before + 'R');
      for (std::size_t d = 0; d < shape.size(); ++d) {
        if (shape[d] == 1) continue;
        longer.push_back(before + "S(" + std::to_string(d) + ')');
      }
    }
    layouts = std::move(longer);
  }
  return layouts;
}

// A view under plain layouts: those with the same elements on every rank are
// strategies, and no others.
void check_view(const OpSchema& op, const std::string& sizes) {
  const auto shape_of = [](const TensorMeta& meta) {
    return Ints(meta.shape().begin(), meta.shape().end());
  };
  const Ints from = shape_of(op.inputs[0]);
  const Ints to = shape_of(op.outputs[0]);
  CAPTURE(op.name());
  CAPTURE(dims_text(from));
  CAPTURE(dims_text(to));
  CAPTURE(sizes);
  const DeviceMesh mesh = testing::value_of(DeviceMesh::parse(sizes));
  const Strategies strategies(op, sizes);
  const auto held = [&](const std::string& text, const Ints& shape) {
    const Layout layout = testing::value_of(Layout::parse(text));
    std::vector<std::vector<std::int64_t>> all;
    for (std::int64_t rank = 0; rank < mesh.size(); ++rank) {
      all.push_back(
          held_of(layout, mesh, shape, mesh.coordinate_at_index(rank)));
    }
    return all;
  };
  std::map<std::vector<std::vector<std::int64_t>>, std::vector<std::string>>
      results;
  for (const std::string& out : plain_layouts(to, mesh.ndim())) {
    results[held(out, to)].push_back(out);
  }
  std::set<std::string> found;
  for (const std::string& text : strategies.texts()) found.insert(text);
  const auto word = [&](const std::string& layout) {
    return mesh.ndim() == 1 ? layout : '[' + layout + ']';
  };
  for (const std::string& in : plain_layouts(from, mesh.ndim())) {
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
  const auto viewed = [](const Ints& from, const Ints& to) {
    return applied("aten.view.default", {dims_text(from)}, {{"size", to}});
  };
  for (const auto& [a, b] : views) {
    for (const char* mesh : {"2", "3", "4", "7", "2,2", "2,3", "3,2", "4,2"}) {
      check_view(viewed(a, b), mesh);
      check_view(viewed(b, a), mesh);
    }
  }
}

TEST_CASE("flattened, split and squeezed dims of uneven shards are exact") {
  const auto of = [](const char* name, const Ints& from,
                     std::vector<GivenArgument> settings) {
    return applied(name, {dims_text(from)}, std::move(settings));
  };
  std::vector<OpSchema> views = {
      of("aten.squeeze.default", {3, 1, 2}, {}),
      of("aten.squeeze.dim", {1, 5}, {{"dim", std::int64_t{0}}}),
      of("aten.squeeze.dims", {5, 1, 3}, {{"dim", Ints{1}}}),
      of("aten.unsqueeze.default", {5, 3}, {{"dim", std::int64_t{1}}})};
  for (const Ints& parts : {Ints{3, 2}, Ints{2, 3}, Ints{5, 2}, Ints{3, 5}}) {
    views.push_back(
        of("aten.flatten.using_ints", {parts[0], parts[1], 3},
           {{"start_dim", std::int64_t{0}}, {"end_dim", std::int64_t{1}}}));
    views.push_back(of("aten.unflatten.int", {3, parts[0] * parts[1]},
                       {{"dim", std::int64_t{1}}, {"sizes", parts}}));
  }
  for (const OpSchema& op : views) {
    for (const char* mesh : {"2", "3", "4", "2,2", "2,3"}) check_view(op, mesh);
  }
}

}  // namespace
}  // namespace shardprop
