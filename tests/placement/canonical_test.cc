// canonical(): one ownership, one encoding.
#include <shardprop/placement/local_region.h>
#include <shardprop/placement/tensor_spec.h>

#include "support/placement_gen.h"
#include "support/property.h"
#include "support/result_checks.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

using testing::Indices;
using testing::naive_held;
using testing::property;
using testing::some_layout;
using testing::some_mesh;
using testing::some_shape;
using testing::value_of;

std::string canonical_text(std::string_view mesh, std::string_view layout,
                           Dims shape) {
  return to_string(canonical(value_of(Layout::parse(layout)),
                             value_of(DeviceMesh::parse(mesh)), shape));
}

// `Ownership` lists the indices of every dim that each rank holds, in local
// order.
using Ownership = std::vector<Indices>;
Ownership ownership(const Layout& layout, const DeviceMesh& mesh,
                    const Dims& shape) {
  Ownership out;
  for (std::int64_t i = 0; i < mesh.size(); ++i) {
    for (std::size_t d = 0; d < shape.size(); ++d) {
      out.push_back(naive_held(layout, mesh, static_cast<int>(d), shape[d],
                               mesh.coordinate_at_index(i)));
    }
  }
  return out;
}

TEST_CASE("strided shards become shard order where that says the same") {
  CHECK(canonical_text("2,4", "SS(0,4),S(0)", {16, 8}) == "S(0)@1,S(0)@0");
  CHECK(canonical_text("2,2", "SS(0,4),S(0)", {16}) == "SS(0,2)@1,S(0)@0");
  CHECK(canonical_text("2,2,2", "SS(0,4),S(0),S(0)", {16}) ==
        "S(0)@2,S(0)@0,S(0)@1");
  CHECK(canonical_text("2,2", "SS(0,2)@1,S(0)@0", {16}) == "SS(0,2)@1,S(0)@0");
}

TEST_CASE("a strided shard stays where nothing else says the same") {
  CHECK(canonical_text("2", "SS(0,2)", {8}) == "SS(0,2)");
  // Uneven: 7 rows in four pieces are 2,2,2,1.
  CHECK(canonical_text("2,4", "SS(0,4),S(0)", {7}) == "SS(0,4),S(0)");
  CHECK(canonical_text("2,3", "SS(0,4),S(0)", {24}) == "SS(0,4),S(0)");
}

TEST_CASE("mesh dims of one rank change nothing") {
  CHECK(canonical_text("1", "SS(0,4)", {7}) == "S(0)");
  CHECK(canonical_text("1,2", "S(0)@1,S(0)@0", {8}) == "S(0),S(0)");
  CHECK(canonical_text("2,1,2", "S(0)@1,S(0)@2,S(0)@0", {8}) ==
        canonical_text("2,1,2", "S(0)@2,S(0)@0,S(0)@1", {8}));
}

TEST_CASE("two strided shards are put in order, outermost digit first") {
  CHECK(canonical_text("2,2", "SS(0,4),SS(0,2)", {16}) ==
        "SS(0,2)@1,SS(0,2)@0");
}

TEST_CASE("the canonical layout gives every rank the same elements") {
  property(40000, [] {
    const DeviceMesh mesh = some_mesh(4, 4);
    const int rank = *rc::gen::inRange(0, 3);
    const Layout layout = some_layout(mesh.ndim(), rank);
    const Dims shape = some_shape(rank, 40);
    const Layout form = canonical(layout, mesh, shape);
    RC_ASSERT(ownership(form, mesh, shape) == ownership(layout, mesh, shape));
    RC_ASSERT(canonical(form, mesh, shape) == form);
    for (int i = 0; i < mesh.ndim(); ++i) {
      RC_ASSERT(form[i].is_shard() == layout[i].is_shard());
      if (layout[i].is_shard()) RC_ASSERT(form[i].dim() == layout[i].dim());
      if (!layout[i].is_shard()) RC_ASSERT(form[i] == layout[i]);
    }
  });
}

// Every way to cut one dim over the dims of `mesh`, each of them used: every
// order, split factors up to `most_factor`.
std::vector<Layout> all_cuts(const DeviceMesh& mesh, int most_factor) {
  std::vector<Layout> out;
  const auto ndim = static_cast<std::size_t>(mesh.ndim());
  ShardOrder order(ndim);
  for (std::size_t i = 0; i < ndim; ++i) {
    order[i] = static_cast<std::int8_t>(i);
  }
  do {
    std::vector<int> factors(ndim, 1);
    for (bool more = true; more;) {
      Placements placements;
      for (const int factor : factors) {
        placements.push_back(Placement::strided_shard(0, factor));
      }
      out.push_back(value_of(Layout::create(placements, order)));
      more = false;
      for (int& factor : factors) {
        if (++factor <= most_factor) {
          more = true;
          break;
        }
        factor = 1;
      }
    }
  } while (std::next_permutation(order.begin(), order.end()));
  return out;
}

TEST_CASE("equal ownership has one encoding, exhaustively") {
  // Every encoding with even shards, grouped by the elements of the ranks, has
  // one canonical layout per group.
  struct Case {
    const char* mesh;
    std::int64_t size;
    int most_factor;
  };
  std::size_t grouped = 0;
  for (const Case& c :
       {Case{"2,2", 16, 8}, Case{"2,3", 36, 6}, Case{"3,2", 72, 12},
        Case{"4,2", 64, 16}, Case{"2,2,2", 32, 8}, Case{"1,2", 8, 4},
        Case{"2,1,2", 16, 4}, Case{"2,2,3", 24, 6}}) {
    CAPTURE(c.mesh);
    const DeviceMesh mesh = value_of(DeviceMesh::parse(c.mesh));
    const Dims shape{c.size};
    std::map<Ownership, Layout> forms;
    for (const Layout& layout : all_cuts(mesh, c.most_factor)) {
      if (!is_even(layout, mesh, shape)) continue;
      bool all_pieces_even = true;
      std::int64_t left = c.size;
      for (const std::int32_t dim : layout.cuts(0)) {
        const std::int64_t pieces =
            mesh.size(dim) == 1 ? 1 : layout[dim].split_factor();
        all_pieces_even =
            all_pieces_even && left % (pieces * mesh.size(dim)) == 0;
        left /= mesh.size(dim);
      }
      if (!all_pieces_even) continue;
      const Layout form = canonical(layout, mesh, shape);
      const auto [seen, fresh] =
          forms.emplace(ownership(layout, mesh, shape), form);
      CAPTURE(to_string(layout));
      CHECK(to_string(seen->second) == to_string(form));
      // Shard order alone wherever that can say it.
      if (!layout.has_strided()) CHECK_FALSE(form.has_strided());
      if (!fresh) ++grouped;
    }
  }
  CHECK(grouped > 300);
}

}  // namespace
}  // namespace shardprop
