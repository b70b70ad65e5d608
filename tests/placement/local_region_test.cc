#include <shardprop/placement/local_region.h>

#include "support/placement_gen.h"
#include "support/property.h"
#include "support/result_checks.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string_view>
#include <vector>

namespace shardprop {
namespace {

using testing::Indices;
using testing::naive_held;
using testing::property;
using testing::some_layout;
using testing::some_mesh;
using testing::some_place;
using testing::some_shape;
using testing::value_of;

LocalRegion region_of(std::string_view mesh, std::string_view spec,
                      const Coordinate& at) {
  return local_region(
      value_of(TensorSpec::parse(spec, value_of(DeviceMesh::parse(mesh)))), at);
}

Indices expanded(const Intervals& intervals) {
  Indices out;
  for (const Interval& run : intervals) {
    for (std::int64_t i = run.begin; i < run.end; ++i) out.push_back(i);
  }
  return out;
}

TEST_CASE("chunks are torch.chunk's") {
  const auto sizes = [](std::int64_t size, std::int64_t parts) {
    std::vector<std::int64_t> out;
    for (std::int64_t i = 0; i < parts; ++i) {
      out.push_back(chunk(size, parts, i).size());
    }
    return out;
  };
  using V = std::vector<std::int64_t>;
  CHECK(sizes(8, 4) == V{2, 2, 2, 2});
  CHECK(sizes(5, 4) == V{2, 2, 1, 0});
  CHECK(sizes(6, 4) == V{2, 2, 2, 0});
  CHECK(sizes(2, 4) == V{1, 1, 0, 0});
  CHECK(sizes(0, 2) == V{0, 0});
  CHECK(chunk(5, 4, 2) == Interval{4, 5});
  CHECK(chunk(5, 4, 3) == Interval{5, 5});
}

TEST_CASE("regions of one rank") {
  const LocalRegion nested = region_of("2,2", "f32[5,3] S(0),S(0)", {0, 1});
  CHECK(nested.dims() == std::vector<Intervals>{{{2, 3}}, {{0, 3}}});
  CHECK(nested.shape() == Dims{1, 3});
  CHECK(nested.offset() == Dims{2, 0});

  const LocalRegion strided = region_of("2", "f32[8] SS(0,2)", {1});
  CHECK(strided.dims() == std::vector<Intervals>{{{2, 4}, {6, 8}}});
  CHECK(strided.shape() == Dims{4});
  CHECK_FALSE(strided.offset().has_value());

  const LocalRegion inner_first =
      region_of("2,4", "f32[16] S(0)@1,S(0)@0", {1, 2});
  CHECK(inner_first.offset() == Dims{10});

  const LocalRegion none = region_of("4", "f32[2,3] S(0)", {3});
  CHECK(none.empty());
  CHECK(none.shape() == Dims{0, 3});
  CHECK(none.offset() == Dims{0, 0});

  const LocalRegion scalar = region_of("4", "f32[] R", {3});
  CHECK(scalar.numel() == 1);
  CHECK(scalar.offset() == Dims{});
}

TEST_CASE("a rank holds what the definition says, and its shape agrees") {
  property(60000, [] {
    const DeviceMesh mesh = some_mesh();
    const int rank = *rc::gen::inRange(0, 4);
    const Layout layout = some_layout(mesh.ndim(), rank);
    const Dims shape = some_shape(rank);
    const Coordinate at = some_place(mesh);
    const LocalRegion region = local_region(layout, mesh, shape, at);
    const Dims local = local_shape(layout, mesh, shape, at);
    RC_ASSERT(region.dims().size() == shape.size());
    RC_ASSERT(region.shape() == local);
    bool one_block = true;
    Dims begin;
    std::int64_t count = 1;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const Indices held =
          naive_held(layout, mesh, static_cast<int>(d), shape[d], at);
      RC_ASSERT(expanded(region.dims()[d]) == held);
      RC_ASSERT(local[d] == static_cast<std::int64_t>(held.size()));
      begin.push_back(held.empty() ? 0 : held.front());
      count *= local[d];
      for (std::size_t i = 1; i < held.size(); ++i) {
        one_block = one_block && held[i] == held[i - 1] + 1;
      }
    }
    RC_ASSERT(region.numel() == count);
    RC_ASSERT(region.empty() == (count == 0));
    RC_ASSERT(region.offset().has_value() == one_block);
    if (one_block) RC_ASSERT(*region.offset() == begin);
  });
}

TEST_CASE("intervals are apart, in order of the local tensor, never empty") {
  property(30000, [] {
    const DeviceMesh mesh = some_mesh();
    const Layout layout = some_layout(mesh.ndim(), 1);
    const auto size = *rc::gen::inRange<std::int64_t>(0, 60);
    const Intervals held =
        local_intervals(layout, mesh, 0, size, some_place(mesh));
    for (std::size_t i = 0; i < held.size(); ++i) {
      RC_ASSERT(held[i].size() > 0);
      RC_ASSERT(held[i].begin >= 0);
      RC_ASSERT(held[i].end <= size);
      if (i > 0) RC_ASSERT(held[i - 1].end != held[i].begin);
    }
  });
}

TEST_CASE("the regions of all ranks tile the tensor") {
  property(10000, [] {
    const DeviceMesh mesh = some_mesh(4, 3);
    const int rank = *rc::gen::inRange(1, 4);
    const Layout layout = some_layout(mesh.ndim(), rank);
    const Dims shape = some_shape(rank, 9);
    std::int64_t copies = 1;
    for (int i = 0; i < mesh.ndim(); ++i) {
      if (!layout[i].is_shard()) copies *= mesh.size(i);
    }
    std::int64_t total = 1;
    for (const std::int64_t size : shape) total *= size;
    std::vector<std::int64_t> held(static_cast<std::size_t>(total), 0);
    for (std::int64_t i = 0; i < mesh.size(); ++i) {
      const LocalRegion region =
          local_region(layout, mesh, shape, mesh.coordinate_at_index(i));
      if (region.empty()) continue;
      std::vector<Indices> dims;
      for (const Intervals& dim : region.dims()) dims.push_back(expanded(dim));
      for (std::int64_t n = 0; n < region.numel(); ++n) {
        std::int64_t rest = n;
        std::int64_t flat = 0;
        std::int64_t step = 1;
        for (std::size_t d = dims.size(); d-- > 0;) {
          const auto extent = static_cast<std::int64_t>(dims[d].size());
          flat += dims[d][static_cast<std::size_t>(rest % extent)] * step;
          rest /= extent;
          step *= shape[d];
        }
        ++held[static_cast<std::size_t>(flat)];
      }
    }
    for (const std::int64_t times : held) RC_ASSERT(times == copies);
  });
}

TEST_CASE("the largest local shape, and whether all are equal") {
  property(40000, [] {
    const DeviceMesh mesh = some_mesh();
    const int rank = *rc::gen::inRange(0, 3);
    const Layout layout = some_layout(mesh.ndim(), rank);
    const Dims shape = some_shape(rank, 30);
    Dims largest(shape.size());
    std::set<Dims> shapes;
    for (std::int64_t i = 0; i < mesh.size(); ++i) {
      const Dims local =
          local_shape(layout, mesh, shape, mesh.coordinate_at_index(i));
      shapes.insert(local);
      for (std::size_t d = 0; d < shape.size(); ++d) {
        largest[d] = std::max(largest[d], local[d]);
      }
    }
    RC_ASSERT(max_local_shape(layout, mesh, shape) == largest);
    RC_ASSERT(is_even(layout, mesh, shape) == (shapes.size() == 1));
  });
}

TEST_CASE("a smaller part can hold more of its pieces") {
  // 9 is cut into 5 and 4; four pieces of 5 are 2,2,1,0 and leave the first
  // rank 1+1+1, four pieces of 4 are 1,1,1,1 and leave it all four.
  const DeviceMesh mesh = value_of(DeviceMesh::parse("2,2"));
  const Layout layout = value_of(Layout::parse("S(0),SS(0,4)"));
  const Dims shape{9};
  CHECK(local_shape(layout, mesh, shape, {0, 0}) == Dims{3});
  CHECK(local_shape(layout, mesh, shape, {1, 0}) == Dims{4});
  CHECK(max_local_shape(layout, mesh, shape) == Dims{4});
}

// Reported against PyTorch's DTensor (by number), and right here.
TEST_CASE("local tensors that were reported as wrong elsewhere") {
  // 103306: three ranks hold 2, 2 and 1 of five rows, not 5 / 3 each; of four
  // rows the last rank holds none.
  const DeviceMesh three = value_of(DeviceMesh::parse("3"));
  const Layout rows = value_of(Layout::parse("S(0)"));
  CHECK(local_shape(rows, three, Dims{5, 4}, {0}) == Dims{2, 4});
  CHECK(local_shape(rows, three, Dims{5, 4}, {2}) == Dims{1, 4});
  CHECK(local_shape(rows, three, Dims{4, 4}, {2}) == Dims{0, 4});
}

TEST_CASE("bytes of the largest shard") {
  const DeviceMesh mesh = value_of(DeviceMesh::parse("dp=4,tp=2"));
  const auto bytes = [&](std::string_view text) {
    return max_local_bytes(value_of(TensorSpec::parse(text, mesh)));
  };
  CHECK(bytes("bf16[10,8] S(0),S(1)") == 3 * 4 * 2);
  CHECK(bytes("f64[10,8] R,P(sum)") == 10 * 8 * 8);
  CHECK(bytes("f32[0,8] S(0),R") == 0);
  CHECK(max_local_shape(
            value_of(TensorSpec::parse("f32[10] S(0),S(0)", mesh))) == Dims{2});
}

TEST_CASE("a mesh of 100,000 ranks and a vast tensor cost no more") {
  const DeviceMesh mesh = value_of(DeviceMesh::parse("100,1000"));
  const TensorSpec spec =
      value_of(TensorSpec::parse("bf16[1000000,1000000] S(0)@1,S(0)@0", mesh));
  CHECK(max_local_shape(spec) == Dims{10, 1'000'000});
  CHECK(local_region(spec, {99, 999}).offset() == Dims{999'990, 0});
  CHECK(is_even(spec.layout(), mesh, spec.meta().shape()));
}

}  // namespace
}  // namespace shardprop
