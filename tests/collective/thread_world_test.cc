#include <shardprop/collective/thread_world.h>

#include "support/result_checks.h"

namespace shardprop {
namespace {

using testing::value_of;

TEST_CASE("ranks gather what they hold") {
  const Group group = value_of(Group::world(4));
  const auto ends = run_ranks(4, {}, [&](Communicator& communicator) {
    const auto mine = LocalTensor::empty({3}, DType::kI32).value();
    for (int i = 0; i < 3; ++i) {
      mine.data_as<std::int32_t>()[i] =
          static_cast<std::int32_t>(10 * communicator.rank() + i);
    }
    const auto all = LocalTensor::empty({12}, DType::kI32).value();
    CollectiveCall call{.kind = CollectiveKind::kAllGather, .inputs = {mine}};
    for (int r = 0; r < 4; ++r) {
      call.outputs.push_back(all.narrow(0, 3 * r, 3));
    }
    const Result<void> done = communicator.run(group, call);
    for (int i = 0; i < 12; ++i) {
      CHECK(all.data_as<std::int32_t>()[i] == 10 * (i / 3) + i % 3);
    }
    CHECK(communicator.stats().payload_bytes == 36);
    return done;
  });
  for (const Result<void>& end : ends) CHECK(end.has_value());
}

}  // namespace
}  // namespace shardprop
