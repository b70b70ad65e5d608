#include "execute/region_copy.h"

#include "support/placement_gen.h"
#include "support/property.h"

#include <map>
#include <vector>

namespace shardprop::execute {
namespace {

using testing::property;

LocalRegion some_region(const Dims& shape) {
  const DeviceMesh mesh = testing::some_mesh();
  const Layout layout = testing::some_layout(
      mesh.ndim(), static_cast<int>(shape.size()), {.partial = false});
  return local_region(layout, mesh, shape, testing::some_place(mesh));
}

// Whole-tensor places, by local index in row-major order.
std::vector<std::int64_t> places(const LocalRegion& region, const Dims& shape) {
  std::vector<std::int64_t> out{0};
  for (std::size_t d = 0; d < shape.size(); ++d) {
    std::vector<std::int64_t> longer;
    for (const std::int64_t start : out) {
      for (const Interval& run : region.dims()[d]) {
        for (std::int64_t i = run.begin; i < run.end; ++i) {
          longer.push_back(start * shape[d] + i);
        }
      }
    }
    out = std::move(longer);
  }
  return out;
}

// Every pair of flat places that copies between two buffers say.
std::vector<std::pair<std::int64_t, std::int64_t>> pairs_of(
    const RegionCopies& copies) {
  std::vector<std::pair<std::int64_t, std::int64_t>> out;
  for (const RegionCopy& copy : copies) {
    for (std::int64_t i = 0; i < copy.numel(); ++i) {
      std::int64_t from = copy.from[0];
      std::int64_t to = copy.to[0];
      std::int64_t left = i;
      for (std::size_t a = copy.axes.size(); a-- > 0;) {
        const CopyAxis& axis = copy.axes[a];
        from += left % axis.size * axis.from[0];
        to += left % axis.size * axis.to[0];
        left /= axis.size;
      }
      out.emplace_back(from, to);
    }
  }
  return out;
}

TEST_CASE("copies pair the elements that two regions share") {
  property(2000, [] {
    const Dims shape = testing::some_shape(*rc::gen::inRange(0, 4), 9);
    const LocalRegion from = some_region(shape);
    const LocalRegion to = some_region(shape);
    std::map<std::int64_t, std::int64_t> at;  // of a place, in `from`
    std::int64_t index = 0;
    for (const std::int64_t place : places(from, shape)) at[place] = index++;
    std::map<std::int64_t, std::int64_t> wanted;  // local to -> local from
    index = 0;
    for (const std::int64_t place : places(to, shape)) {
      if (at.contains(place)) wanted[index] = at[place];
      ++index;
    }

    const RegionCopies copies = common_copies(from, to);
    const RegionCopies flat =
        from_buffer(to_buffer(copies, to.shape(), 5), from.shape(), 7);
    RC_ASSERT(numel(flat) == static_cast<std::int64_t>(wanted.size()));
    for (const RegionCopies& same : {flat, merged(flat)}) {
      std::map<std::int64_t, std::int64_t> got;
      for (const auto& [a, b] : pairs_of(same)) {
        RC_ASSERT(got.emplace(b - 5, a - 7).second);
      }
      RC_ASSERT(got == wanted);
    }
    RC_ASSERT(merged(flat).size() <= copies.size());
  });
}

TEST_CASE("equal shards of one dim become one copy") {
  // The test packs the shards of S(1) of [6,8] over 4 ranks one after another.
  const auto mesh = DeviceMesh::parse("4").value();
  const auto layout = Layout::parse("S(1)").value();
  const Dims shape{6, 8};
  const LocalRegion whole =
      local_region(Layout::replicated(1), mesh, shape, {0});
  RegionCopies all;
  for (std::int64_t r = 0; r < 4; ++r) {
    const LocalRegion shard = local_region(layout, mesh, shape, {r});
    for (const RegionCopy& copy : to_buffer(
             from_buffer(common_copies(shard, whole), shard.shape(), 12 * r),
             shape, 0)) {
      all.push_back(copy);
    }
  }
  const RegionCopies one = merged(all);
  REQUIRE(one.size() == 1);
  CHECK(one[0].axes ==
        std::vector<CopyAxis>{{4, {12}, {2}}, {6, {2}, {8}}, {2, {1}, {1}}});
}

TEST_CASE("the runs of a strided shard are one copy with an axis more") {
  // The header's example.
  const LocalRegion from({Intervals{{0, 8}}});
  const LocalRegion to({Intervals{{2, 4}, {6, 8}}});
  const RegionCopies copies = common_copies(from, to);
  REQUIRE(copies.size() == 1);
  CHECK(copies[0].from == Dims{2});
  CHECK(copies[0].to == Dims{0});
  CHECK(copies[0].axes == std::vector<CopyAxis>{{2, {4}, {2}}, {2, {1}, {1}}});
}

}  // namespace
}  // namespace shardprop::execute
