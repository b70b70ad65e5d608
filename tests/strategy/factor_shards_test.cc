// FactorShards against the shard of every rank.
#include "strategy/factor_shards.h"

#include "support/result_checks.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;

// Cuts [0, size) over all mesh dims of the factor, first cut first. Returns the
// elements of each rank.
std::vector<Interval> shards_of(std::int64_t size, const DeviceMesh& mesh,
                                const Assignment& assignment) {
  std::vector<Interval> out = {{0, size}};
  for (std::size_t m = 0; m < assignment.size(); ++m) {
    if (assignment[m] != 0) continue;
    const std::int64_t parts = mesh.size(static_cast<int>(m));
    std::vector<Interval> smaller;
    for (const Interval& whole : out) {
      for (std::int64_t i = 0; i < parts; ++i) {
        const Interval part = chunk(whole.size(), parts, i);
        smaller.push_back({whole.begin + part.begin, whole.begin + part.end});
      }
    }
    out = smaller;
  }
  return out;
}

// Returns whether a dim of `run` elements per element of the factor is cut at
// the same places as the factor.
bool cuts_alike(std::int64_t size, std::int64_t run, const DeviceMesh& mesh,
                const Assignment& assignment) {
  const auto alone = shards_of(size, mesh, assignment);
  const auto dim = shards_of(size * run, mesh, assignment);
  for (std::size_t i = 0; i < alone.size(); ++i) {
    const Interval want = {alone[i].begin * run, alone[i].end * run};
    if (want.size() != dim[i].size()) return false;
    if (want.size() > 0 && want.begin != dim[i].begin) return false;
  }
  return true;
}

IndexSpace one_factor(std::int64_t size) {
  IndexSpace space;
  space.add_factor(size, 'a');
  return space;
}

TEST_CASE("FactorShards has the sizes of the shards of all ranks") {
  for (const std::string_view text : {"2", "4", "3,2", "2,1,3", "2,2,2"}) {
    const DeviceMesh mesh = value_of(DeviceMesh::parse(text));
    for (std::uint32_t given = 0; given < 1U << mesh.ndim(); ++given) {
      Assignment assignment;
      for (int m = 0; m < mesh.ndim(); ++m) {
        assignment.push_back((given >> m & 1U) != 0 ? 0 : kUnassigned);
      }
      for (std::int64_t size = 1; size <= 26; ++size) {
        CAPTURE(text);
        CAPTURE(given);
        CAPTURE(size);
        const FactorShards found =
            factor_shards(one_factor(size), mesh, assignment, nullptr, 0);
        std::set<std::int64_t> sizes;
        for (const Interval& shard : shards_of(size, mesh, assignment)) {
          sizes.insert(shard.size());
        }
        CHECK(found.largest == *sizes.rbegin());
        CHECK(found.smallest == *sizes.begin());
        CHECK(found.even == (sizes.size() == 1));
        sizes.erase(0);
        CHECK(found.alike == (sizes.size() <= 1));
        std::vector<std::int32_t> dims;
        for (int m = 0; m < mesh.ndim(); ++m) {
          if (assignment[static_cast<std::size_t>(m)] == 0) dims.push_back(m);
        }
        CHECK(std::ranges::equal(found.mesh_dims, dims));
      }
    }
  }
}

TEST_CASE("a dim of runs up to longest_run is cut where its factor is") {
  int limited = 0;
  for (const std::string_view text : {"2", "3", "4", "5", "3,2", "2,3"}) {
    const DeviceMesh mesh = value_of(DeviceMesh::parse(text));
    const Assignment all(static_cast<std::size_t>(mesh.ndim()), 0);
    for (std::int64_t size = 1; size <= 17; ++size) {
      const FactorShards found =
          factor_shards(one_factor(size), mesh, all, nullptr, 0);
      for (std::int64_t run = 1; run <= 12; ++run) {
        CAPTURE(text);
        CAPTURE(size);
        CAPTURE(run);
        const bool alike = cuts_alike(size, run, mesh, all);
        if (run <= found.longest_run) {
          CHECK(alike);
          continue;
        }
        ++limited;
        // With one cut, no longer run has the same cuts.
        if (mesh.ndim() == 1 && run == found.longest_run + 1) CHECK(!alike);
      }
    }
  }
  CHECK(limited > 50);
  // The worked example of the header: 3 rows over 4 ranks.
  const FactorShards rows =
      factor_shards(one_factor(3), value_of(DeviceMesh::parse("4")),
                    Assignment{0}, nullptr, 0);
  CHECK(rows.longest_run == 3);
}

TEST_CASE("mesh dims of other factors do not cut a factor") {
  IndexSpace space = one_factor(12);
  space.add_factor(7, 'b');
  const DeviceMesh mesh = value_of(DeviceMesh::parse("2,4"));
  const FactorShards a =
      factor_shards(space, mesh, Assignment{0, 1}, nullptr, 0);
  const FactorShards b =
      factor_shards(space, mesh, Assignment{0, 1}, nullptr, 1);
  CHECK(a.largest == 6);
  CHECK(a.even);
  CHECK(b.largest == 2);
  CHECK(b.smallest == 1);
  CHECK(!b.even);
}

TEST_CASE("averages are sums if an uneven factor has a program for that") {
  IndexSpace space = one_factor(7);
  const DeviceMesh mesh = value_of(DeviceMesh::parse("2"));
  const auto written_as_sums = [&](const Assignment& assignment) {
    return averages_as_sums(
        space, {factor_shards(space, mesh, assignment, nullptr, 0)});
  };
  CHECK(!written_as_sums({0}));
  space.factors[0].program = ProgramUse::kWhenUneven;
  CHECK(written_as_sums({0}));
  CHECK(!written_as_sums({kUnassigned}));
  space.factors[0].size = 8;
  CHECK(!written_as_sums({0}));
  space.factors[0].size = 7;
  space.factors[0].program = ProgramUse::kWhenSharded;
  CHECK(!written_as_sums({0}));
}

}  // namespace
}  // namespace shardprop
