#include "support/result_checks.h"

#include <shardprop/placement/local_region.h>
#include <shardprop/program/rank_int.h>

#include <cstdint>
#include <random>

namespace shardprop {
namespace {

using testing::value_of;
using Kind = RankInt::Kind;

TEST_CASE("numbers that are the same on all ranks are constants") {
  const Layout rows = value_of(Layout::parse("S(0),R"));
  CHECK(RankInt(7).is_constant());
  CHECK(RankInt::of(Kind::kLocalSize, 8, rows, 1, {3, 1}) == RankInt(25));
  CHECK(RankInt::of(Kind::kOffset, 8, rows, 1, {3, 1}) == RankInt(1));
  CHECK(RankInt::of(Kind::kConstant, 8, rows, 0, {3, 1}) == RankInt(1));
  CHECK(!RankInt::of(Kind::kLocalSize, 8, rows, 0).is_constant());
}

TEST_CASE("formulas print as they are read") {
  const Layout rows = value_of(Layout::parse("S(2),R"));
  CHECK(to_string(RankInt(12)) == "12");
  CHECK(to_string(RankInt::of(Kind::kLocalSize, 24, rows, 2)) ==
        "local(24, S(0),R)");
  CHECK(to_string(RankInt::of(Kind::kOffset, 30, rows, 2, {-2, -1})) ==
        "-2*offset(30, S(0),R) - 1");
  CHECK(to_string(RankInt::of(Kind::kOffset, 32, rows, 2, {.divisor = 16})) ==
        "offset(32, S(0),R)/16");
  CHECK(to_string(RankInt::of(Kind::kLocalSize, 32, rows, 2,
                              {.divisor = 16, .rounds_up = true})) ==
        "local(32, S(0),R)/^16");
}

TEST_CASE("a size or an offset is divided, rounded down or up") {
  // Rank 1 of 2 has elements 3 to 5 of 6.
  const DeviceMesh mesh = value_of(DeviceMesh::parse("2"));
  const Layout heads = value_of(Layout::parse("S(0)"));
  const Coordinate at = mesh.coordinate_at_index(1);
  CHECK(RankInt::of(Kind::kOffset, 6, heads, 0, {.divisor = 2}).at(mesh, at) ==
        1);
  const RankInt::Formula up = {.divisor = 2, .rounds_up = true};
  CHECK(RankInt::of(Kind::kLocalSize, 6, heads, 0, up).at(mesh, at) == 2);
  CHECK(RankInt::of(Kind::kLocalSize, 7, heads, 1, up) == RankInt(4));
  const RankInt::Formula back = {.scale = -2, .constant = 5, .divisor = 2};
  CHECK(RankInt::of(Kind::kOffset, 6, heads, 0, back).at(mesh, at) == 3);
  const RankInt::Formula huge = {.divisor = INT64_MAX, .rounds_up = true};
  CHECK(RankInt::of(Kind::kOffset, 6, heads, 0, huge).at(mesh, at) == 1);
}

TEST_CASE("every rank's value is that of the region it holds") {
  std::mt19937 draw(3);
  for (int round = 0; round < 300; ++round) {
    const DeviceMesh mesh = value_of(DeviceMesh::parse("a=2,b=3,c=2"));
    const char* layouts[] = {"S(0),S(1),R",     "S(1),S(0),S(0)",
                             "S(0)@1,S(0)@0,R", "SS(0,2),R,S(1)",
                             "R,R,S(0)",        "P(sum),S(0),S(0)"};
    const Layout layout = value_of(Layout::parse(layouts[draw() % 6]));
    const Dims shape = {static_cast<std::int64_t>(draw() % 14),
                        static_cast<std::int64_t>(draw() % 9)};
    const int dim = static_cast<int>(draw() % 2);
    const auto scale = static_cast<std::int64_t>(draw() % 5) - 2;
    const auto constant = static_cast<std::int64_t>(draw() % 5) - 2;
    const auto size = shape[static_cast<std::size_t>(dim)];
    CAPTURE(to_string(layout));
    for (std::int64_t r = 0; r < mesh.size(); ++r) {
      const Coordinate at = mesh.coordinate_at_index(r);
      const LocalRegion region = local_region(layout, mesh, shape, at);
      const auto& held = region.dims()[static_cast<std::size_t>(dim)];
      CHECK(RankInt::of(Kind::kLocalSize, size, layout, dim, {scale, constant})
                .at(mesh, at) ==
            constant + scale * region.shape()[static_cast<std::size_t>(dim)]);
      if (held.size() > 1) continue;
      const std::int64_t begin = held.empty() ? size : held[0].begin;
      const RankInt offset =
          RankInt::of(Kind::kOffset, size, layout, dim, {scale, constant});
      if (!layout.has_strided() && !offset.is_constant()) {
        CHECK(offset.at(mesh, at) == constant + scale * begin);
      }
    }
  }
}

}  // namespace
}  // namespace shardprop
