// A staged operation keeps memory and opens and closes posts, on any engine.
#include "collective/staged_op.h"

#include <shardprop/base/error.h>

#include "support/result_checks.h"

#include <memory>
#include <new>
#include <string>

namespace shardprop {
namespace {

using testing::value_of;

class CountingOp final : public collective::StagedOp {
 public:
  explicit CountingOp(const Group::Ranks& ranks)
      : StagedOp(ranks, 0, 0, {}, host_memory_ops()) {}

  Result<void> send(std::int64_t, const LocalTensor&) override { return {}; }
  Result<void> receive(std::int64_t, const LocalTensor&) override { return {}; }

  int opened = 0;
  int closed = 0;
  int discarded = 0;
  bool engine_is_busy = false;

 protected:
  Result<void> open_posts() override {
    ++opened;
    return {};
  }
  Result<void> close_posts() override {
    ++closed;
    return {};
  }
  void discard_posts() noexcept override { ++discarded; }
  Result<bool> through() override { return true; }
  bool busy() const override { return engine_is_busy; }
  void forget() override {}
};

TEST_CASE("posts are closed after a stage, and discarded after a failed one") {
  const Group::Ranks ranks{0, 1};
  CountingOp op(ranks);
  CHECK(op.begin([](auto&) { return Result<void>(); }).has_value());
  CHECK(op.opened == 1);
  CHECK(op.closed == 1);
  CHECK(op.discarded == 0);
  CHECK_CODE(op.begin([](auto&) -> Result<void> {
    return fail(ErrorCode::kOutOfMemory, "full");
  }),
             ErrorCode::kOutOfMemory);
  CHECK(op.discarded == 1);
  CHECK_CODE(op.begin([](auto&) -> Result<void> { throw std::bad_alloc(); }),
             ErrorCode::kOutOfMemory);
  CHECK(op.discarded == 2);
  CHECK_THROWS_AS(
      (void)op.begin([](auto&) -> Result<void> { throw InternalError("bug"); }),
      InternalError);
  CHECK(op.opened == 4);
  CHECK(op.closed == 1);
  CHECK(op.discarded == 3);
}

TEST_CASE("what the engine may still read is kept for ever, all else is not") {
  const Group::Ranks ranks{0, 1};
  for (const bool busy : {false, true}) {
    CAPTURE(busy);
    auto counts = std::make_shared<std::string>("1,2,3");
    auto records = std::make_shared<std::string>("all_gather of f32[8]");
    const std::weak_ptr<std::string> kept = counts;
    const std::weak_ptr<std::string> in_stage = records;
    {
      CountingOp op(ranks);
      op.engine_is_busy = busy;
      op.keep(counts);
      op.then([held = records](auto&) { return Result<void>(); });
      counts.reset();
      records.reset();
      op.abandon({ErrorCode::kTimeout, "late"});
    }
    CHECK(kept.expired() == !busy);
    // A stage that will not run owns nothing that the engine reads.
    CHECK(in_stage.expired());
  }
}

TEST_CASE("an operation that is over keeps nothing") {
  const Group::Ranks ranks{0, 1};
  auto counts = std::make_shared<std::string>("1,2,3");
  const std::weak_ptr<std::string> kept = counts;
  CountingOp op(ranks);
  op.keep(std::move(counts));
  op.advance();
  CHECK(op.over());
  CHECK(kept.expired());
}

}  // namespace
}  // namespace shardprop
