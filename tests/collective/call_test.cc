// Tests the limits of collective calls, their counts, and the errors of wrong
// calls.
#include <shardprop/collective/collective_call.h>
#include <shardprop/collective/functional.h>

#include "collective/values.h"
#include "collective/worlds.h"
#include "support/result_checks.h"

namespace shardprop {
namespace {

using testing::on_ranks;
using testing::value_of;

LocalTensor floats(Dims sizes) {
  return value_of(LocalTensor::zeros(std::move(sizes), DType::kF32));
}

TEST_CASE("shapes of results, without running") {
  CHECK(value_of(all_gather_shape({3, 8}, 1, 4)) == Dims{3, 32});
  CHECK(value_of(all_gather_shape({3, 8}, -2, 4)) == Dims{12, 8});
  CHECK(value_of(reduce_scatter_shape({3, 8}, -1, 4)) == Dims{3, 2});
  CHECK(value_of(all_to_all_single_shape({6, 8}, {}, 3)) == Dims{6, 8});
  CHECK(value_of(all_to_all_single_shape(
            {6, 8}, {.output = {{1, 2}}, .input = {{4, 2}}}, 2)) == Dims{3, 8});

  CHECK_CODE(all_gather_shape({3, 8}, 2, 4), ErrorCode::kCollectiveDim);
  CHECK_CODE(all_gather_shape({}, 0, 4), ErrorCode::kCollectiveDim);
  CHECK_CODE(reduce_scatter_shape({3, 8}, -3, 4), ErrorCode::kCollectiveDim);
  CHECK_CODE(reduce_scatter_shape({3, 8}, 0, 2), ErrorCode::kCollectiveDim);
  const auto splits = [](Splits given) {
    return all_to_all_single_shape({6}, given, 2);
  };
  CHECK_CODE(all_to_all_single_shape({}, {}, 2), ErrorCode::kCollectiveDim);
  CHECK_CODE(all_to_all_single_shape({5}, {}, 2), ErrorCode::kCollectiveSplits);
  CHECK_CODE(splits({.output = {{3, 3}}}), ErrorCode::kCollectiveSplits);
  CHECK_CODE(splits({.input = {{3, 3}}}), ErrorCode::kCollectiveSplits);
  CHECK_CODE(splits({.output = {{3, 3}}, .input = {{6}}}),
             ErrorCode::kCollectiveSplits);
  CHECK_CODE(splits({.output = {{1, 2, 3}}, .input = {{3, 3}}}),
             ErrorCode::kCollectiveSplits);
  CHECK_CODE(splits({.output = {{3, 3}}, .input = {{7, -1}}}),
             ErrorCode::kCollectiveSplits);
  CHECK_CODE(splits({.output = {{3, 3}}, .input = {{3, 2}}}),
             ErrorCode::kCollectiveSplits);
}

TEST_CASE("payload is what the formulas say, padding included") {
  const auto gather = [](std::vector<std::int64_t> shards) {
    CollectiveCall call{.kind = CollectiveKind::kAllGather,
                        .inputs = {floats({shards[0]})}};
    for (const std::int64_t shard : shards) {
      call.outputs.push_back(floats({shard}));
    }
    return call;
  };
  CHECK(payload_bytes(gather({6, 6, 6}), 3, 0) == 2 * 24);
  // Uneven shards are padded to the largest.
  CHECK(payload_bytes(gather({6, 6, 1}), 3, 2) == 2 * 24);
  CHECK(payload_bytes(gather({6}), 1, 0) == 0);

  const CollectiveCall scatter{
      .kind = CollectiveKind::kReduceScatter,
      .inputs = {floats({5}), floats({2}), floats({4}), floats({4})},
      .outputs = {floats({5}), floats({4})}};
  CHECK(payload_bytes(scatter, 2, 0) == 20 + 16);

  const auto reduce = [](std::int64_t count) {
    return CollectiveCall{.kind = CollectiveKind::kAllReduce,
                          .inputs = {floats({count})},
                          .outputs = {floats({count})}};
  };
  CHECK(payload_bytes(reduce(8), 4, 0) == 2 * 3 * 2 * 4);
  CHECK(payload_bytes(reduce(9), 4, 0) == 2 * 3 * 3 * 4);

  CollectiveCall exchange{
      .kind = CollectiveKind::kAllToAll,
      .sends = {{0, {floats({3})}}, {1, {floats({5}), floats({1})}}}};
  CHECK(payload_bytes(exchange, 3, 0) == 24);
  CHECK(payload_bytes(exchange, 3, 1) == 12);
  exchange.padded = true;
  CHECK(payload_bytes(exchange, 3, 1) == 2 * 24);

  const CollectiveCall cast{.kind = CollectiveKind::kBroadcast,
                            .inputs = {floats({7})},
                            .outputs = {floats({7})}};
  CHECK(payload_bytes(cast, 3, 0) == 28);
  CHECK(payload_bytes(cast, 1, 0) == 0);
}

TEST_CASE("calls read well in messages") {
  CHECK(to_string(CollectiveCall{.kind = CollectiveKind::kAllReduce,
                                 .op = ReduceOp::kMax,
                                 .inputs = {floats({2, 3})},
                                 .outputs = {floats({2, 3})},
                                 .where = "step 2"}) ==
        "all_reduce(max) of f32[2,3] (step 2)");
  CHECK(to_string(CollectiveCall{
            .kind = CollectiveKind::kAllGather,
            .inputs = std::vector<LocalTensor>(5, floats({1}))}) ==
        "all_gather of f32[1], f32[1], f32[1] and 2 more");
  CHECK(to_string(CollectiveCall{.kind = CollectiveKind::kPermute,
                                 .sends = {{1, {floats({4})}}}}) ==
        "permute of 1 messages, 16 bytes");
  CHECK(to_string(CollectiveCall{.kind = CollectiveKind::kBroadcast,
                                 .root = 1,
                                 .outputs = {floats({4})}}) ==
        "broadcast from index 1 of f32[4]");
}

// Wrong on one rank alone, refused there without effect.
template <class Call>
void refused(ErrorCode code, Call&& call) {
  const Group group = value_of(Group::world(2));
  on_ranks(2, [&](Communicator& communicator) {
    CHECK_CODE(call(communicator, group), code);
    CHECK(communicator.stats().calls == 0);
    // The refused call is not counted: the next call is the first.
    CHECK(communicator.barrier(group).has_value());
    CHECK(communicator.stats().calls == 1);
  });
}

TEST_CASE("calls that are not what they say are refused") {
  const auto start = [](CollectiveCall call) {
    return [call](Communicator& communicator, const Group& group) {
      return communicator.start(group, call);
    };
  };
  using Kind = CollectiveKind;
  constexpr auto kWrong = ErrorCode::kCollectiveCall;
  refused(kWrong, start({.kind = Kind::kSlice}));
  refused(kWrong, start({.kind = Kind::kAllGather,
                         .inputs = {floats({2})},
                         .outputs = {floats({2})}}));
  refused(kWrong, start({.kind = Kind::kReduceScatter,
                         .inputs = {floats({2})},
                         .outputs = {floats({2})}}));
  refused(kWrong, start({.kind = Kind::kAllReduce, .inputs = {floats({2})}}));
  refused(kWrong, start({.kind = Kind::kAllReduce,
                         .inputs = {floats({2})},
                         .outputs = {floats({3})}}));
  refused(kWrong, start({.kind = Kind::kBroadcast, .root = 2}));
  refused(kWrong, start({.kind = Kind::kPermute,
                         .inputs = {floats({2})},
                         .outputs = {floats({2})}}));
  refused(kWrong, start({.kind = Kind::kAllReduce, .sends = {{0, {}}}}));
  refused(kWrong,
          start({.kind = Kind::kSendRecv, .sends = {{2, {floats({2})}}}}));
  refused(kWrong, start({.kind = Kind::kSendRecv,
                         .sends = {{0, {floats({2})}}, {0, {}}}}));
  const auto to_self = [](Communicator& communicator, const Group& group) {
    return communicator.start(
        group, {.kind = Kind::kSendRecv,
                .sends = {{communicator.rank(), {floats({2})}}}});
  };
  refused(kWrong, to_self);
}

TEST_CASE("outputs may not overlap what is read") {
  constexpr auto kOverlap = ErrorCode::kCollectiveOverlap;
  refused(kOverlap, [](Communicator& communicator, const Group& group) {
    const LocalTensor memory = floats({9});
    return all_reduce(communicator, memory.narrow(0, 0, 8), ReduceOp::kSum,
                      group, {.out = memory.narrow(0, 1, 8)});
  });
  refused(kOverlap, [](Communicator& communicator, const Group& group) {
    const LocalTensor memory = floats({8});
    return all_to_all_single(communicator, memory, {}, group, {.out = memory});
  });
  refused(kOverlap, [](Communicator& communicator, const Group& group) {
    // The call gets the slice of the other rank.
    const LocalTensor memory = floats({8});
    return all_gather_tensor(communicator,
                             memory.narrow(0, 4 * (1 - communicator.rank()), 4),
                             0, group, {.out = memory});
  });
}

TEST_CASE("reductions that a dtype does not have") {
  const auto reduce = [](ReduceOp op, DType dtype) {
    return [op, dtype](Communicator& communicator, const Group& group) {
      return all_reduce(communicator, value_of(LocalTensor::zeros({4}, dtype)),
                        op, group);
    };
  };
  refused(ErrorCode::kReduction, reduce(ReduceOp::kBand, DType::kF32));
  refused(ErrorCode::kReduction, reduce(ReduceOp::kAvg, DType::kI32));
  refused(ErrorCode::kReduction, reduce(ReduceOp::kMax, DType::kU32));
  refused(ErrorCode::kReduction, reduce(ReduceOp::kProduct, DType::kC64));
  refused(ErrorCode::kReduction, reduce(ReduceOp::kSum, DType::kF8E8M0FNU));
}

TEST_CASE("groups that a rank cannot call") {
  refused(ErrorCode::kGroup, [](Communicator& communicator, const Group&) {
    return communicator.barrier(value_of(Group::world(3)));
  });
  refused(ErrorCode::kNotInGroup, [](Communicator& communicator, const Group&) {
    return communicator.barrier(
        value_of(Group::ranks({1 - communicator.rank()})));
  });
}

TEST_CASE("outputs, permutations and devices that do not fit") {
  refused(ErrorCode::kCollectiveCall,
          [](Communicator& communicator, const Group& group) {
            return all_gather_tensor(communicator, floats({4}), 0, group,
                                     {.out = floats({4})});
          });
  refused(ErrorCode::kCollectiveCall,
          [](Communicator& communicator, const Group& group) {
            const LocalTensor inputs[] = {floats({4}), floats({2})};
            return all_reduce_coalesced(communicator, inputs, ReduceOp::kSum,
                                        group, {.outs = {floats({4})}});
          });
  for (const std::vector<std::int64_t>& to :
       {std::vector<std::int64_t>{0}, {0, 0}, {0, 2}, {-1, 0}}) {
    refused(ErrorCode::kCollectiveCall,
            [&to](Communicator& communicator, const Group& group) {
              return permute_tensor(communicator, floats({4}), to, group);
            });
  }
  refused(ErrorCode::kCollectiveDevice,
          [](Communicator& communicator, const Group& group) {
            const LocalTensor there = LocalTensor::wrap(
                nullptr, {4}, DType::kF32, nullptr, {DeviceType::kCuda, 0});
            return all_reduce(communicator, there, ReduceOp::kSum, group);
          });
}

}  // namespace
}  // namespace shardprop
