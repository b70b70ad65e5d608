// A program written by hand, run on threads with operators written by hand.

#include "execute/negating.h"
#include "support/result_checks.h"

#include <shardprop/collective/thread_world.h>
#include <shardprop/execute/program_run.h>
#include <shardprop/program/random_bits.h>

#include <vector>

namespace shardprop {
namespace {

using testing::negating;
using testing::value_of;

// The program is y = -x on S(0); z = all_gather(y); free y; return z.
SpmdProgram negation() {
  SpmdProgram program;
  program.mesh = value_of(DeviceMesh::parse("tp=2"));
  const Layout cut = value_of(Layout::parse("S(0)"));
  const Layout whole = Layout::replicated(1);
  const TensorMeta meta = value_of(TensorMeta::parse("f32[3]"));
  const auto add = [&](const char* name, const Layout& layout) {
    const ProgramValueId id(program.values.size());
    program.values.push_back({name, meta, layout, id});
    return id;
  };
  const ProgramValueId x = add("x", cut);
  const ProgramValueId y = add("y", cut);
  const ProgramValueId z = add("z", whole);
  program.inputs.push_back({InputKind::kUser, x, {}, true});
  program.nodes = {{"y", "aten.neg.default", {}, false, {x}, {y}}, {}};
  ProgramOp negate;
  negate.op = "aten.neg.default";
  negate.args = {{"self", x}};
  negate.outputs = {y};
  ProgramCollective gather;
  gather.step.kind = CollectiveKind::kAllGather;
  gather.step.mesh_dims = {0};
  gather.step.src = cut;
  gather.step.dst = whole;
  gather.step.bytes_per_rank = 8;
  gather.input = y;
  gather.output = z;
  program.steps = {{negate, 0, {}}, {gather, 1, {}}, {ProgramFree{{y}}, 1, {}}};
  program.copies.push_back({"y", z, 1, 1});
  program.outputs.push_back({OutputKind::kUser, z, {}});
  return program;
}

// The tensor as if its memory were on a device.
LocalTensor on_gpu(const LocalTensor& x) {
  return LocalTensor::wrap(x.data(), x.sizes(), x.dtype(), x.owner(),
                           {DeviceType::kCuda, 0});
}

// A communicator whose tensors are on a device.
class DeviceRank final : public Communicator {
 public:
  explicit DeviceRank() : Communicator(0, 2, Engine::kNccl, {}) {}
  MemoryOps& memory_ops() override { return memory_; }
  void abort(const Error&) override {}

 protected:
  Result<std::shared_ptr<Work>> do_start(const Group&, Group::Place,
                                         CollectiveCall) override {
    return fail(ErrorCode::kEngine, "nothing is exchanged here");
  }
  void add_engine_stats(CommunicatorStats&) const override {}

 private:
  class DeviceMemory final : public MemoryOps {
   public:
    Device device() const override { return {DeviceType::kCuda, 0}; }
    Result<LocalTensor> allocate(const Dims&, DType) override {
      return fail(ErrorCode::kOutOfMemory, "there is no device");
    }
    Result<void> copy(const LocalTensor&, const LocalTensor&, double) override {
      return {};
    }
    Result<void> reduce(ReduceOp, std::span<const LocalTensor>,
                        const LocalTensor&, double) override {
      return {};
    }
    Result<void> fill(const LocalTensor&, const void*) override { return {}; }
    Result<void> transfer(const LocalTensor&, const LocalTensor&) override {
      return {};
    }
    Result<void> finish() override { return {}; }
  };
  DeviceMemory memory_;
};

// A `Run` has the results of each rank. Rank 0 holds {1, 2}, rank 1 {3}.
struct Run {
  std::vector<Result<std::vector<LocalTensor>>> outputs;
  std::vector<ProgramRunReport> reports;
};

Run run_on_two(const SpmdProgram& program) {
  Run out;
  out.outputs.resize(2);
  out.reports.resize(2);
  const auto ends = run_ranks(2, {}, [&](Communicator& rank) -> Result<void> {
    const auto at = static_cast<std::size_t>(rank.rank());
    LocalTensor x =
        value_of(LocalTensor::empty({at == 0 ? 2 : 1}, DType::kF32));
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      x.data_as<float>()[i] = static_cast<float>(at * 2 + i + 1);
    }
    out.outputs[at] = run(program, rank, std::vector<LocalTensor>{x},
                          negating(), &out.reports[at]);
    return {};
  });
  return out;
}

TEST_CASE("ranks run operators on their parts and exchange them") {
  const Run run = run_on_two(negation());
  for (std::size_t r = 0; r < 2; ++r) {
    const LocalTensor z = value_of(run.outputs[r]).at(0);
    REQUIRE(z.sizes() == Dims{3});
    CHECK(z.data_as<float>()[0] == -1);
    CHECK(z.data_as<float>()[2] == -3);
    CHECK(run.reports[r].step_payload_bytes ==
          std::vector<std::int64_t>{0, 8, 0});
  }
  // x, y and z of rank 0.
  CHECK(run.reports[0].peak_bytes == 8 + 8 + 12);
}

TEST_CASE("a value that was freed is not read") {
  SpmdProgram program = negation();
  std::swap(program.steps[1], program.steps[2]);
  const Run run = run_on_two(program);
  CHECK_CODE(run.outputs[0], ErrorCode::kProgramValue);
  CHECK(run.outputs[0].error().message.find("`y`") != std::string::npos);
}

TEST_CASE("a result of another shape than its layout is refused") {
  SpmdProgram program = negation();
  program.values[1].layout = Layout::replicated(1);
  const Run run = run_on_two(program);
  CHECK_CODE(run.outputs[0], ErrorCode::kLocalTensor);
  CHECK(run.outputs[0].error().location.find("y") != std::string::npos);
}

TEST_CASE("shards draw what the full tensor would") {
  SpmdProgram program = negation();
  program.values[1].meta = value_of(TensorMeta::parse("i64[3]"));
  program.values[2].meta = program.values[1].meta;
  ProgramOp draw;
  draw.op = "shardprop.random_bits";
  draw.args = {{"seed", Argument(std::int64_t{5})},
               {"node", Argument(std::int64_t{7})},
               {"word", Argument(std::int64_t{1})}};
  draw.outputs = program.nodes[0].outputs;
  program.steps[0].action = draw;
  auto& gather = std::get<ProgramCollective>(program.steps[1].action);
  gather.step.dtype = DType::kI64;
  const Run run = run_on_two(program);
  const LocalTensor z = value_of(run.outputs[1]).at(0);
  for (std::uint64_t i = 0; i < 3; ++i) {
    CHECK(z.data_as<std::int64_t>()[i] == random_bits(5, 7, i, 1));
  }
}

TEST_CASE("a program on memory of a device is refused, not read") {
  const SpmdProgram program = negation();
  const LocalTensor x = value_of(LocalTensor::zeros({2}, DType::kF32));
  DeviceRank device;
  const auto on_device =
      run(program, device, std::vector<LocalTensor>{on_gpu(x)}, negating());
  CHECK_CODE(on_device, ErrorCode::kCollectiveDevice);
  CHECK(on_device.error().message.find("host memory") != std::string::npos);
  ThreadWorld world(1);
  const auto host = world.communicator(0);
  CHECK_CODE(
      run(program, *host, std::vector<LocalTensor>{on_gpu(x)}, negating()),
      ErrorCode::kCollectiveDevice);
}

TEST_CASE("a seed that is no single i64 is refused") {
  for (const auto& seed : {value_of(LocalTensor::zeros({2}, DType::kI64)),
                           value_of(LocalTensor::zeros({1}, DType::kI32)),
                           value_of(LocalTensor::zeros({0}, DType::kI64))}) {
    CAPTURE(to_string(seed));
    SpmdProgram program = negation();
    ProgramOp draw;
    draw.op = "shardprop.random_bits";
    draw.args = {{"seed", program.inputs[0].value},
                 {"node", Argument(std::int64_t{7})},
                 {"word", Argument(std::int64_t{1})}};
    draw.outputs = program.nodes[0].outputs;
    program.steps[0].action = draw;
    ThreadWorld world(1);
    const auto rank = world.communicator(0);
    const auto refused =
        run(program, *rank, std::vector<LocalTensor>{seed}, negating());
    CHECK_CODE(refused, ErrorCode::kLocalTensor);
    CHECK(refused.error().message.find("seed") != std::string::npos);
  }
}

}  // namespace
}  // namespace shardprop
