#include <shardprop/redistribute/cross_mesh.h>

#include "redistribute/shards.h"
#include "support/property.h"
#include "support/result_checks.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>

namespace shardprop {
namespace {

using testing::value_of;

using Elements = std::set<std::int64_t>;

Elements elements(const std::vector<Intervals>& dims, const Dims& shape) {
  Elements out{0};
  for (std::size_t d = 0; d < dims.size(); ++d) {
    Elements longer;
    for (const std::int64_t start : out) {
      for (const Interval& run : dims[d]) {
        for (std::int64_t i = run.begin; i < run.end; ++i) {
          longer.insert(start * shape[d] + i);
        }
      }
    }
    out = std::move(longer);
  }
  return out;
}

std::map<std::int64_t, Elements> holdings(const DeviceMesh& mesh,
                                          const Layout& layout,
                                          const TensorMeta& meta) {
  std::map<std::int64_t, Elements> out;
  for (std::int64_t i = 0; i < mesh.size(); ++i) {
    const Coordinate at = mesh.coordinate_at_index(i);
    out[mesh.rank_at(at)] = elements(
        local_region(layout, mesh, meta.shape(), at).dims(), meta.shape());
  }
  return out;
}

// Delivers the messages and checks that every rank receives each lacking
// element once, from a rank that has it.
void deliver(const CrossMeshPlan& plan, const TensorSpec& src,
             const TensorSpec& dst) {
  const TensorMeta& meta = src.meta();
  const auto held = holdings(src.mesh(), plan.sent_layout, meta);
  const auto wanted = holdings(dst.mesh(), dst.layout(), meta);
  std::map<std::int64_t, Elements> got;
  std::map<std::int64_t, std::int64_t> sent;
  std::int64_t bound = 0;
  for (const auto& [rank, elements_wanted] : wanted) {
    const auto own = held.find(rank);
    std::int64_t lacked = 0;
    for (const std::int64_t element : elements_wanted) {
      if (own != held.end() && own->second.contains(element)) {
        got[rank].insert(element);
      } else {
        ++lacked;
      }
    }
    bound = std::max(bound, lacked);
  }
  std::set<std::pair<std::int64_t, std::int64_t>> pairs;
  for (const MeshTransfer& transfer : plan.transfers) {
    CHECK(transfer.src_rank != transfer.dst_rank);
    CHECK(pairs.emplace(transfer.src_rank, transfer.dst_rank).second);
    std::int64_t count = 0;
    for (const auto& piece : transfer.pieces) {
      std::vector<Intervals> dims;
      for (const Interval& run : piece) dims.push_back(Intervals{run});
      for (const std::int64_t element : elements(dims, meta.shape())) {
        ++count;
        CHECK(held.at(transfer.src_rank).contains(element));
        CHECK(got[transfer.dst_rank].insert(element).second);
      }
    }
    CHECK(count * item_size(meta.dtype()) == transfer.bytes);
    sent[transfer.src_rank] += transfer.bytes;
  }
  for (const auto& [rank, elements_wanted] : wanted) {
    CHECK(got[rank] == elements_wanted);
  }
  std::int64_t busiest = 0;
  for (const auto& [rank, bytes] : sent) busiest = std::max(busiest, bytes);
  CHECK(plan.sent_bytes == busiest);
  // The plan meets the bound: no rank receives an element that it has, or one
  // twice.
  CHECK(plan.received_bytes == bound * item_size(meta.dtype()));
}

DeviceMesh mesh_at(const char* text, std::int64_t first) {
  return value_of(
      DeviceMesh::create(value_of(DeviceMesh::parse(text)).dims(), first));
}

CrossMeshPlan planned(const TensorSpec& src, const TensorSpec& dst) {
  return value_of(plan_between_meshes(src, dst, default_topology()));
}

TEST_CASE("the worked example: two ranks to three, one of them shared") {
  const auto src = value_of(TensorSpec::parse("f32[8] S(0)", mesh_at("2", 0)));
  const auto dst = value_of(TensorSpec::parse("f32[8] S(0)", mesh_at("3", 1)));
  const CrossMeshPlan plan = planned(src, dst);
  REQUIRE(plan.transfers.size() == 4);
  const auto is = [&](std::size_t i, std::int64_t from, std::int64_t to,
                      Interval run) {
    CHECK(plan.transfers[i].src_rank == from);
    CHECK(plan.transfers[i].dst_rank == to);
    REQUIRE(plan.transfers[i].pieces.size() == 1);
    CHECK(plan.transfers[i].pieces[0][0] == run);
  };
  is(0, 0, 1, {0, 3});
  is(1, 0, 2, {3, 4});
  is(2, 1, 2, {4, 6});
  is(3, 1, 3, {6, 8});
  deliver(plan, src, dst);
}

TEST_CASE("senders are balanced over replicas") {
  // Four replicas feed four other ranks: one message each.
  const auto src = value_of(TensorSpec::parse("f32[64] R", mesh_at("4", 0)));
  const auto dst = value_of(TensorSpec::parse("f32[64] S(0)", mesh_at("4", 4)));
  const CrossMeshPlan plan = planned(src, dst);
  CHECK(plan.transfers.size() == 4);
  CHECK(plan.sent_bytes == 64 * 4 / 4);
  deliver(plan, src, dst);
}

TEST_CASE("replicas of the receiver's own node send first") {
  // dp=2 over two nodes of eight, each with a whole replica set.
  const auto src =
      value_of(TensorSpec::parse("f32[64,64] R,S(0)", mesh_at("dp=2,tp=8", 0)));
  const auto dst =
      value_of(TensorSpec::parse("f32[64,64] R,S(1)", mesh_at("dp=2,tp=8", 0)));
  for (const MeshTransfer& transfer : planned(src, dst).transfers) {
    CHECK(transfer.src_rank / 8 == transfer.dst_rank / 8);
  }
}

TEST_CASE("a receiver gets each missing element once, from balanced senders") {
  std::mt19937 random(21);
  const char* meshes[] = {"1",   "2",   "3",     "4",    "2,2",
                          "2,3", "3,2", "2,2,2", "4,1,2"};
  const int cases = testing::scaled(400);
  for (int k = 0; k < cases; ++k) {
    const auto rank = 1 + static_cast<int>(random() % 3);
    Dims shape;
    for (int d = 0; d < rank; ++d) {
      shape.push_back(static_cast<std::int64_t>(random() % 8));
    }
    const auto meta = value_of(TensorMeta::contiguous(shape, DType::kBF16));
    const auto draw = [&] {
      const DeviceMesh mesh = mesh_at(meshes[random() % std::size(meshes)],
                                      static_cast<std::int64_t>(random() % 6));
      Placements placements;
      for (int i = 0; i < mesh.ndim(); ++i) {
        const auto pick = static_cast<int>(random() % (rank + 2U));
        placements.push_back(pick < rank ? Placement::shard(pick)
                             : pick == rank
                                 ? Placement::replicate()
                                 : Placement::strided_shard(
                                       static_cast<int>(random() % rank), 2));
      }
      return value_of(
          TensorSpec::create(mesh, value_of(Layout::create(placements)), meta));
    };
    const TensorSpec src = draw();
    const TensorSpec dst = draw();
    INFO(to_string(src) << " on " << to_string(src.mesh()) << " -> "
                        << to_string(dst) << " on " << to_string(dst.mesh()));
    deliver(planned(src, dst), src, dst);
  }
}

TEST_CASE("partials are reduced before they are sent, as scatters if cheaper") {
  const auto src =
      value_of(TensorSpec::parse("bf16[4096,4096] P(sum)", mesh_at("8", 0)));
  const auto dst =
      value_of(TensorSpec::parse("bf16[4096,4096] S(0)", mesh_at("8", 8)));
  const CrossMeshPlan plan = planned(src, dst);
  REQUIRE(plan.before.steps.size() == 1);
  CHECK(plan.before.steps[0].kind == CollectiveKind::kReduceScatter);
  CHECK(plan.sent_layout == value_of(Layout::parse("S(0)")));
  CHECK(plan.transfers.size() == 8);
}

TEST_CASE("shards that overlap a region are found without a look at the rest") {
  for (const char* text :
       {"f32[13,7] S(0),S(1)", "f32[13,7] S(0),S(0)", "f32[13,7] R,S(1)",
        "f32[24,7] SS(0,4),S(1)", "f32[24,7] SS(0,2)@1,S(0)@0",
        "f32[2,7] S(0),S(0)", "f32[] R,R"}) {
    CAPTURE(text);
    const TensorSpec spec =
        value_of(TensorSpec::parse(text, mesh_at("3,2", 0)));
    const auto shards = redistribute::shards_of(spec);
    const redistribute::ShardIndex index(shards);
    const auto wanted_layout = spec.meta().rank() == 0 ? "R" : "S(0)";
    const TensorSpec wanted = value_of(TensorSpec::create(
        mesh_at("5", 0), value_of(Layout::parse(wanted_layout)), spec.meta()));
    for (const auto& target : redistribute::shards_of(wanted)) {
      std::vector<std::size_t> overlapping;
      const Elements of_target =
          elements(target.region.dims(), spec.meta().shape());
      for (std::size_t s = 0; s < shards.size(); ++s) {
        const Elements held =
            elements(shards[s].region.dims(), spec.meta().shape());
        if (std::any_of(held.begin(), held.end(), [&](std::int64_t element) {
              return of_target.contains(element);
            })) {
          overlapping.push_back(s);
        }
      }
      CHECK(index.overlapping(target.region) == overlapping);
    }
  }
}

TEST_CASE("a plan between meshes of 100,000 ranks") {
  const auto src =
      value_of(TensorSpec::parse("f32[100000,16] S(0)", mesh_at("100000", 0)));
  const auto dst = value_of(
      TensorSpec::parse("f32[100000,16] S(0),R", mesh_at("1000,100", 100'000)));
  CHECK_CODE(plan_between_meshes(src, dst, default_topology()),
             ErrorCode::kRedistributeMeshTooLarge);
  const auto alike = value_of(TensorSpec::parse("f32[100000,16] S(0),S(0)",
                                                mesh_at("1000,100", 100'000)));
  const CrossMeshPlan plan = planned(src, alike);
  CHECK(plan.transfers.size() == 100'000);
  CHECK(plan.received_bytes == 64);
  CHECK(plan.sent_bytes == 64);
}

TEST_CASE("what no cross-mesh plan can do is refused") {
  const auto src = value_of(TensorSpec::parse("f32[8] R", mesh_at("2", 0)));
  const Topology& h100 = default_topology();
  CHECK_CODE(
      plan_between_meshes(
          src, value_of(TensorSpec::parse("f32[8] P(sum)", mesh_at("2", 2))),
          h100),
      ErrorCode::kRedistributeMeshes);
  CHECK_CODE(
      plan_between_meshes(
          src, value_of(TensorSpec::parse("f32[9] R", mesh_at("2", 2))), h100),
      ErrorCode::kRedistributeTensor);
  CHECK_CODE(plan_between_meshes(
                 src, value_of(TensorSpec::parse("f32[8] R", mesh_at("2", 2))),
                 h100, {.memory_limit = 40}),
             ErrorCode::kRedistributeMemory);
}

}  // namespace
}  // namespace shardprop
