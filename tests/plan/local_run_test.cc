#include <shardprop/plan/local_run.h>

#include "support/result_checks.h"

#include <random>

namespace shardprop {
namespace {

using testing::value_of;
using Rows = std::vector<std::vector<std::int64_t>>;

TEST_CASE("values by rank depend on no more mesh dims than they must") {
  const DeviceMesh mesh = value_of(DeviceMesh::parse("a=2,b=3"));
  // The rows are the values of a=0 and of a=1, for each b.
  const Rows rows = {{8}, {8}, {8}, {5}, {5}, {5}};
  const RankValues values(mesh, {0, 1}, false, rows);
  CHECK(values.mesh_dims() == DimIndices{0});
  for (std::int64_t i = 0; i < mesh.size(); ++i) {
    CHECK(values.at(mesh.coordinate_at_index(i)) ==
          rows[static_cast<std::size_t>(i)]);
  }
  CHECK(values == RankValues(mesh, {0}, false, {{8}, {5}}));
  CHECK(RankValues(mesh, {0, 1}, false, Rows(6, {4})).mesh_dims().empty());
}

TEST_CASE("every rank finds its own values again") {
  std::mt19937 draw(5);
  const DeviceMesh mesh = value_of(DeviceMesh::parse("a=2,b=1,c=3,d=2"));
  for (int round = 0; round < 200; ++round) {
    // A sum of terms of some of the mesh dims.
    const unsigned mask = draw() % 16;
    Rows rows;
    for (std::int64_t i = 0; i < mesh.size(); ++i) {
      const Coordinate at = mesh.coordinate_at_index(i);
      std::int64_t sum = 0;
      for (std::size_t d = 0; d < 4; ++d) {
        sum = sum * 4 + ((mask >> d & 1U) != 0 ? at[d] : 0);
      }
      rows.push_back({sum, -sum});
    }
    const RankValues values(mesh, {0, 1, 2, 3}, true, rows);
    for (std::int64_t i = 0; i < mesh.size(); ++i) {
      CHECK(values.at(mesh.coordinate_at_index(i)) ==
            rows[static_cast<std::size_t>(i)]);
    }
    for (const std::int32_t dim : values.mesh_dims()) {
      CHECK((mask >> dim & 1U) != 0);
      CHECK(mesh.size(dim) > 1);
    }
  }
}

}  // namespace
}  // namespace shardprop
