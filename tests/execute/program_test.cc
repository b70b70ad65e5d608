// Tests which programs are refused, and the steps of small runs.
#include "support/result_checks.h"

#include <shardprop/collective/thread_world.h>
#include <shardprop/execute/executor.h>
#include <shardprop/redistribute/cross_mesh.h>
#include <shardprop/redistribute/planner.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;

TensorSpec spec(const char* text, const char* mesh,
                std::int64_t first_rank = 0) {
  const auto dims = value_of(DeviceMesh::parse(mesh)).dims();
  return value_of(
      TensorSpec::parse(text, value_of(DeviceMesh::create(dims, first_rank))));
}

RedistributePlan planned(const TensorSpec& src, const TensorSpec& dst) {
  return value_of(plan_redistribution(src, dst, default_topology()));
}

Result<RedistributeProgram> program_of(const TensorSpec& src,
                                       const TensorSpec& dst,
                                       std::int64_t rank) {
  return RedistributeProgram::create(planned(src, dst), src, dst, rank);
}

// All ranks of a world of `size` run the redistribution of zeros.
template <class Each>
void run_all(const TensorSpec& src, const TensorSpec& dst, std::int64_t size,
             const Each& each) {
  const RedistributePlan plan = planned(src, dst);
  const auto ends =
      run_ranks(size, {}, [&](Communicator& communicator) -> Result<void> {
        const auto program =
            RedistributeProgram::create(plan, src, dst, communicator.rank());
        if (!program) return fail(program.error());
        return each(communicator, *program);
      });
  for (const auto& end : ends) {
    CHECK_MESSAGE(end.has_value(), to_string(end.error()));
  }
}

TEST_CASE("a program is made for a rank of its mesh") {
  const TensorSpec from = spec("f32[8] S(0),R", "2,2", 4);
  const TensorSpec to = spec("f32[8] R,S(0)", "2,2", 4);
  const RedistributeProgram program = value_of(program_of(from, to, 6));
  CHECK(program.rank() == 6);
  CHECK(program.has_source());
  CHECK(program.source_shape() == Dims{4});
  CHECK(program.result_shape() == Dims{4});
  CHECK_CODE(program_of(from, to, 3), ErrorCode::kMeshCoordinate);
  const auto across = value_of(plan_between_meshes(
      from, spec("f32[8] S(0)", "2", 8), default_topology()));
  const TensorSpec away = spec("f32[8] S(0)", "2", 8);
  const auto sender =
      value_of(RedistributeProgram::create(across, from, away, 4));
  CHECK(sender.has_source());
  CHECK_FALSE(sender.has_result());
  CHECK_FALSE(value_of(RedistributeProgram::create(across, from, away, 9))
                  .has_source());
  CHECK_CODE(RedistributeProgram::create(across, from, away, 11),
             ErrorCode::kMeshCoordinate);
}

TEST_CASE("plans that do not hang together are refused") {
  const TensorSpec from = spec("f32[8,4] S(0)", "4");
  const TensorSpec to = spec("f32[8,4] S(1)", "4");
  const RedistributePlan plan = planned(from, to);
  const auto refused = [&](auto&& spoil) {
    RedistributePlan other = plan;
    spoil(other);
    CHECK_CODE(RedistributeProgram::create(other, from, to, 0),
               ErrorCode::kPlanStep);
  };
  refused([](RedistributePlan& p) { p.steps.clear(); });
  refused([](RedistributePlan& p) { p.steps.push_back(p.steps[0]); });
  refused([](RedistributePlan& p) {
    p.steps[0].kind = CollectiveKind::kBroadcast;
  });
  // A slice of what other ranks hold.
  refused(
      [](RedistributePlan& p) { p.steps[0].kind = CollectiveKind::kSlice; });
  // Nothing to reduce.
  refused([](RedistributePlan& p) {
    p.steps[0].kind = CollectiveKind::kAllReduce;
  });
  refused([](RedistributePlan& p) {
    p.steps[0].kind = CollectiveKind::kAllGather;
  });
  refused([](RedistributePlan& p) { p.steps[0].mesh_dims.clear(); });
  CHECK_CODE(
      RedistributeProgram::create(plan, from, spec("f32[8,5] S(1)", "4"), 0),
      ErrorCode::kRedistributeTensor);
  CHECK_CODE(RedistributeProgram::create(plan, from,
                                         spec("f32[8,4] S(1),R", "2,2"), 0),
             ErrorCode::kRedistributeMeshes);
}

TEST_CASE("terms are combined in dtypes that there is a cast to") {
  CHECK(program_of(spec("bf16[8] P(sum,f32)", "2"), spec("bf16[8] R", "2"), 0)
            .has_value());
  CHECK_CODE(
      program_of(spec("i32[8] P(sum,i64)", "2"), spec("i32[8] R", "2"), 0),
      ErrorCode::kReduction);
  CHECK_CODE(program_of(spec("f8e5m2fnuz[8] P(sum)", "2"),
                        spec("f8e5m2fnuz[8] P(avg)", "2"), 0),
             ErrorCode::kReduction);
}

TEST_CASE("a source must be the shard that its layout says") {
  const TensorSpec from = spec("f32[8] S(0)", "2");
  const TensorSpec to = spec("f32[8] R", "2");
  run_all(from, to, 2,
          [](Communicator& communicator,
             const RedistributeProgram& program) -> Result<void> {
            const auto other = LocalTensor::zeros({5}, DType::kF32).value();
            const auto wrong = run(program, communicator, other);
            if (wrong || wrong.error().code != ErrorCode::kLocalTensor) {
              return fail(ErrorCode::kInvalidArgument, "it was taken");
            }
            const auto ints = LocalTensor::zeros({4}, DType::kI32).value();
            if (run(program, communicator, ints)) {
              return fail(ErrorCode::kInvalidArgument, "it was taken");
            }
            // The refused run sent no data: a correct run still works.
            const auto own = LocalTensor::zeros({4}, DType::kF32).value();
            auto out = run(program, communicator, own);
            return out ? Result<void>() : fail(out.error());
          });
}

TEST_CASE("a program runs on its own rank's communicator") {
  const TensorSpec from = spec("f32[8] S(0)", "2");
  const TensorSpec to = spec("f32[8] R", "2");
  const auto program = value_of(program_of(from, to, 1));
  ThreadWorld world(2);
  const auto communicator = world.communicator(0);
  const auto source = value_of(LocalTensor::zeros({4}, DType::kF32));
  CHECK_CODE(run(program, *communicator, source), ErrorCode::kLocalTensor);
}

TEST_CASE("memory of a device is refused where the host would copy it") {
  const TensorSpec from = spec("f32[8] R", "2");
  const TensorSpec to = spec("f32[8] S(0)", "2");
  const auto program = value_of(program_of(from, to, 0));
  ThreadWorld world(2);
  const auto communicator = world.communicator(0);
  float unreachable[8];
  const LocalTensor source = LocalTensor::wrap(unreachable, {8}, DType::kF32,
                                               nullptr, {DeviceType::kCuda, 0});
  CHECK_CODE(run(program, *communicator, source), ErrorCode::kCollectiveDevice);
}

// https://github.com/pytorch/pytorch/issues/118836: a shorter shard has strides
// of its own sizes, not those of a full one.
TEST_CASE("shards of different sizes are each row-major") {
  const auto check = [](const char* from, const char* to, Dims whole_shard) {
    run_all(
        spec(from, "2"), spec(to, "2"), 2,
        [&](Communicator& communicator,
            const RedistributeProgram& program) -> Result<void> {
          const auto own =
              LocalTensor::zeros(program.source_shape(), DType::kF32).value();
          const LocalTensor out = run(program, communicator, own).value();
          const bool last = communicator.rank() == 1;
          const std::int64_t columns = whole_shard[1] - (last ? 1 : 0);
          if (out.sizes() != Dims{whole_shard[0], columns} ||
              out.strides() != Dims{columns, 1}) {
            return fail(ErrorCode::kInvalidArgument, to_string(out));
          }
          return {};
        });
  };
  check("f32[3,9] R", "f32[3,9] S(1)", {3, 5});
  check("f32[3,9] S(0)", "f32[3,9] S(1)", {3, 5});
  check("f32[3,9] P(sum)", "f32[3,9] S(1)", {3, 5});
}

TEST_CASE("a plan without steps gives the source back") {
  const TensorSpec same = spec("f32[8] S(0)", "2");
  run_all(same, same, 2,
          [](Communicator& communicator,
             const RedistributeProgram& program) -> Result<void> {
            const auto own = LocalTensor::zeros({4}, DType::kF32).value();
            const auto out = run(program, communicator, own).value();
            if (!out.same_view(own)) {
              return fail(ErrorCode::kInvalidArgument, "it was copied");
            }
            return {};
          });
}

TEST_CASE("every byte that a run allocates is asked of the caller, and freed") {
  const TensorSpec from = spec("f32[6,5] S(0),P(sum)", "3,2");
  const TensorSpec to = spec("f32[6,5] S(1),R", "3,2");
  const std::int64_t peak = planned(from, to).peak_bytes;
  run_all(
      from, to, 6,
      [peak](Communicator& communicator,
             const RedistributeProgram& program) -> Result<void> {
        const auto source =
            LocalTensor::zeros(program.source_shape(), DType::kF32).value();
        auto live = std::make_shared<std::atomic<std::int64_t>>(0);
        std::int64_t most = 0;
        RunOptions options;
        options.allocate = [&](const Dims& sizes,
                               DType dtype) -> Result<LocalTensor> {
          auto made = LocalTensor::empty(sizes, dtype).value();
          const std::int64_t bytes = made.bytes();
          most = std::max(most, *live += bytes);
          const std::shared_ptr<void> owner(
              made.data(),
              [live, bytes, held = made.owner()](void*) { *live -= bytes; });
          return LocalTensor::wrap(made.data(), made.sizes(), dtype, owner);
        };
        RunReport report;
        {
          const auto out =
              run(program, communicator, source, options, &report).value();
          if (*live != out.bytes()) {
            return fail(ErrorCode::kInvalidArgument, "more than the result");
          }
        }
        if (*live != 0 || most + source.bytes() != report.peak_bytes ||
            report.peak_bytes > peak || report.allocations == 0) {
          return fail(ErrorCode::kInvalidArgument, "bytes are miscounted");
        }
        return {};
      });
}

TEST_CASE("memory that runs out is said, on every rank") {
  const TensorSpec from = spec("f32[6] S(0)", "2");
  const TensorSpec to = spec("f32[6] R", "2");
  const RedistributePlan plan = planned(from, to);
  const auto ends =
      run_ranks(2, {}, [&](Communicator& communicator) -> Result<void> {
        const auto program =
            RedistributeProgram::create(plan, from, to, communicator.rank())
                .value();
        const auto source = LocalTensor::zeros({3}, DType::kF32).value();
        RunOptions options;
        if (communicator.rank() == 1) {
          options.allocate = [](const Dims&, DType) -> Result<LocalTensor> {
            return fail(ErrorCode::kOutOfMemory, "none left");
          };
        }
        auto out = run(program, communicator, source, options);
        return out ? Result<void>() : fail(out.error());
      });
  CHECK_CODE(ends[1], ErrorCode::kOutOfMemory);
  CHECK_CODE(ends[0], ErrorCode::kRankFailed);
}

TEST_CASE("steps are announced") {
  const TensorSpec from = spec("f32[4,4] S(0),R", "2,2");
  const TensorSpec to = spec("f32[4,4] R,S(1)", "2,2");
  run_all(from, to, 4,
          [](Communicator& communicator,
             const RedistributeProgram& program) -> Result<void> {
            const auto source =
                LocalTensor::zeros(program.source_shape(), DType::kF32).value();
            std::vector<std::size_t> seen;
            RunOptions options;
            options.before_step = [&](std::size_t i) { seen.push_back(i); };
            if (!run(program, communicator, source, options) ||
                seen != std::vector<std::size_t>{0, 1} ||
                program.step_count() != 2) {
              return fail(ErrorCode::kInvalidArgument, "two steps");
            }
            return {};
          });
}

}  // namespace
}  // namespace shardprop
