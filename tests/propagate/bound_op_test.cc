// BoundOp: what a call determines apart from its layouts. BoundOps caches it.
#include "propagate/bound_op.h"

#include "propagate/fixtures.h"

#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace shardprop {
namespace {

using testing::call;
using testing::shared_library;
using testing::value_of;

DeviceMesh pair_mesh() { return value_of(DeviceMesh::parse("2")); }

TEST_CASE("a bound call has its outputs, its space and what it reads") {
  const BoundOp bound =
      value_of(bind_op(*shared_library(), pair_mesh(),
                       call("aten.add.Tensor", {"f32[16,8]", "f32[8]"})));
  REQUIRE(bound.op->outputs.size() == 1);
  CHECK(to_string(bound.op->outputs[0]) == "f32[16,8]");
  CHECK(bound.space->inputs.size() == 2);
  CHECK(bound.writes.empty());
  // self, other, alpha: the sign of alpha is read.
  REQUIRE(bound.looks.size() == 3);
  CHECK(bound.looks[2] == Look::kSign);
}

TEST_CASE("an in-place call writes its first operand, which is its result") {
  const BoundOp bound =
      value_of(bind_op(*shared_library(), pair_mesh(),
                       call("aten.add_.Tensor", {"f32[16,8]", "f32[8]"})));
  REQUIRE(bound.writes.size() == 1);
  CHECK(bound.writes[0].operand == 0);
  CHECK(bound.writes[0].output == 0U);
}

TEST_CASE("equal calls share one bound call, others do not") {
  BoundOps calls(shared_library(), pair_mesh());
  const auto mm = [](const std::string& rows) {
    return call("aten.mm.default", {"f32[" + rows + ",8]", "f32[8,4]"});
  };
  const auto first = value_of(calls.get(mm("16")));
  CHECK(value_of(calls.get(mm("16"))) == first);
  CHECK(value_of(calls.get(mm("18"))) != first);
  CHECK(value_of(calls.get(mm("18")))->op->inputs[0].size(0) == 18);
  CHECK(value_of(calls.get(mm("16"))) == first);
}

TEST_CASE("a call that cannot be bound is an error each time") {
  BoundOps calls(shared_library(), pair_mesh());
  const OpSchema bad = call("aten.mm.default", {"f32[16,8]", "f32[9,4]"});
  const auto expected = bind_op(*shared_library(), pair_mesh(), bad);
  REQUIRE(!expected.has_value());
  for (int request = 0; request < 2; ++request) {
    CHECK_CODE(calls.get(bad), expected.error().code);
  }
}

TEST_CASE("threads that bind one call get the same bound call") {
  BoundOps calls(shared_library(), pair_mesh());
  const OpSchema mm = call("aten.mm.default", {"f32[16,8]", "f32[8,4]"});
  std::vector<std::shared_ptr<const BoundOp>> found(4);
  std::vector<std::thread> threads;
  for (auto& mine : found) {
    threads.emplace_back([&] { mine = calls.get(mm).value(); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& mine : found) CHECK(mine == found.front());
}

TEST_CASE("an operand that is not read gets a replicated place") {
  // In training, the second operand (`self`) is not read.
  const OpSchema op = call("aten.rrelu_with_noise_backward.default",
                           {"f32[64,8]", "f32[64,8]", "f32[64,8]"},
                           {{"lower", 0.125},
                            {"upper", 0.5},
                            {"training", true},
                            {"self_is_result", false}});
  const IndexSpace space =
      *value_of(bind_op(*shared_library(), pair_mesh(), op)).space;
  REQUIRE(space.unread == std::vector<std::size_t>{1});
  const IndexSpace full = with_unread_whole(space);
  for (const DimFactors& dim : full.inputs[1].dims) CHECK(dim.empty());
  for (const Without& without : full.inputs_without[1]) {
    CHECK(without == Without::same());
  }
  // The other operands are as they were.
  CHECK(full.inputs[0] == space.inputs[0]);
  CHECK(full.inputs[2] == space.inputs[2]);
  CHECK(full.outputs == space.outputs);
}

}  // namespace
}  // namespace shardprop
