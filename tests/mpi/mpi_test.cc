// Tests of MPI's own parts: set-up of groups, parts, native reductions, results
// in flight.
#include <shardprop/collective/functional.h>
#include <shardprop/mpi/mpi_world.h>

#include "collective/values.h"
#include "mpi/mpi_call.h"
#include "mpi/mpi_worlds.h"
#include "support/result_checks.h"

#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

namespace shardprop {
namespace {

using namespace std::chrono_literals;
using testing::mpi_world;
using testing::reduced;
using testing::same_bits;
using testing::some_tensor;
using testing::value_of;

Group everyone() { return value_of(Group::world(mpi_world().size())); }

std::vector<LocalTensor> all_tensors(const Dims& sizes, DType dtype) {
  std::vector<LocalTensor> out;
  for (std::int64_t r = 0; r < mpi_world().size(); ++r) {
    out.push_back(some_tensor(r, sizes, dtype));
  }
  return out;
}

TEST_CASE("a world of processes knows itself") {
  Communicator& world = mpi_world();
  CHECK(world.engine() == Engine::kMpi);
  CHECK(world.size() >= 1);
  CHECK(world.rank() < world.size());
  int initialised = 0;
  MPI_Initialized(&initialised);
  CHECK(initialised != 0);
}

TEST_CASE("a barrier waits for the last one, and counts for nothing") {
  Communicator& world = mpi_world();
  const std::int64_t payload = world.stats().payload_bytes;
  if (world.rank() == 0) std::this_thread::sleep_for(50ms);
  // Processes of one machine share this clock.
  const auto now = [] {
    return static_cast<double>(
        std::chrono::steady_clock::now().time_since_epoch().count());
  };
  const double came = now();
  CHECK(world.barrier(everyone()).has_value());
  const double left = now();
  CHECK(world.stats().payload_bytes == payload);
  const LocalTensor mine = testing::tensor_of({came}, {1}, DType::kF64);
  const LocalTensor last = value_of(
      value_of(all_reduce(world, mine, ReduceOp::kMax, everyone())).wait());
  CHECK(testing::numbers_of(last)[0] <= left);
}

TEST_CASE("tensors larger than a part arrive complete") {
  Communicator& world = mpi_world();
  const std::int64_t rank = world.rank();
  const auto inputs = all_tensors({12, 1000}, DType::kI32);
  const LocalTensor& mine = inputs[static_cast<std::size_t>(rank)];
  const Group group = everyone();
  const LocalTensor sum =
      value_of(value_of(all_reduce(world, mine, ReduceOp::kSum, group)).wait());
  CHECK(same_bits(sum, reduced(ReduceOp::kSum, inputs)));
  const LocalTensor whole =
      value_of(value_of(all_gather_tensor(world, mine, 1, group)).wait());
  CHECK(same_bits(whole, testing::concatenated(inputs, 1)));
  const LocalTensor cast =
      value_of(value_of(broadcast(world, mine, 0, group)).wait());
  CHECK(same_bits(cast, inputs[0]));
}

// Returns byte (i, j) of a piece of the message from one rank to another.
std::uint8_t byte_of(std::int64_t from, std::int64_t to, std::int64_t piece,
                     std::int64_t i, std::int64_t j) {
  return static_cast<std::uint8_t>(31 * from + 17 * to + 7 * piece + 5 * i + j);
}

// u8[rows,run] with room between the rows, which go up or down in memory.
LocalTensor spread(std::int64_t rows, std::int64_t run, bool up) {
  const LocalTensor all =
      value_of(LocalTensor::zeros({rows, 2 * run + 1}, DType::kU8));
  const LocalTensor some = all.narrow(1, run / 2, run);
  if (up) return some;
  return LocalTensor::wrap(
      some.data_as<std::byte>() + (rows - 1) * some.strides()[0], some.sizes(),
      {-some.strides()[0], 1}, DType::kU8, some.owner());
}

TEST_CASE("messages of several strided pieces arrive complete") {
  Communicator& world = mpi_world();
  const std::int64_t me = world.rank();
  const auto at = [](const LocalTensor& t, std::int64_t i, std::int64_t j) {
    return t.data_as<std::uint8_t>() + i * t.strides()[0] + j * t.strides()[1];
  };
  // Up to a part, and more. Ranks receive into other strides.
  for (const std::int64_t run : {10, 150, 200, 400}) {
    CAPTURE(run);
    CollectiveCall call{.kind = CollectiveKind::kAllToAll};
    for (std::int64_t peer = 0; peer < world.size(); ++peer) {
      Message sent{peer, {}};
      Message received{peer, {}};
      for (const std::int64_t piece : {0, 1}) {
        const std::int64_t rows = 3 - piece;
        sent.pieces.push_back(spread(rows, run, piece == 0));
        received.pieces.push_back(
            me % 2 == 0 ? value_of(LocalTensor::empty({rows, run}, DType::kU8))
                        : spread(rows, run, piece == 1));
        for (std::int64_t i = 0; i < rows; ++i) {
          for (std::int64_t j = 0; j < run; ++j) {
            *at(sent.pieces.back(), i, j) = byte_of(me, peer, piece, i, j);
          }
        }
      }
      call.sends.push_back(std::move(sent));
      call.receives.push_back(std::move(received));
    }
    REQUIRE(world.run(everyone(), call).has_value());
    bool right = true;
    for (const Message& message : call.receives) {
      for (std::size_t p = 0; p < 2; ++p) {
        const LocalTensor& piece = message.pieces[p];
        for (std::int64_t i = 0; i < piece.size(0); ++i) {
          for (std::int64_t j = 0; j < run; ++j) {
            right = right && *at(piece, i, j) ==
                                 byte_of(message.peer, me,
                                         static_cast<std::int64_t>(p), i, j);
          }
        }
      }
    }
    CHECK(right);
  }
  // The gather is along the last dim.
  const auto inputs = all_tensors({3, 200}, DType::kU8);
  const LocalTensor whole = value_of(
      value_of(all_gather_tensor(world, inputs[static_cast<std::size_t>(me)], 1,
                                 everyone()))
          .wait());
  CHECK(same_bits(whole, testing::concatenated(inputs, 1)));
}

TEST_CASE("min and max keep a NaN wherever it is") {
  Communicator& world = mpi_world();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16}) {
    for (const ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax}) {
      for (std::int64_t at = 0; at < world.size(); ++at) {
        const LocalTensor mine = testing::tensor_of(
            {world.rank() == at ? nan : 1.0, static_cast<double>(world.rank())},
            {2}, dtype);
        const auto out = testing::numbers_of(
            value_of(value_of(all_reduce(world, mine, op, everyone())).wait()));
        CHECK(std::isnan(out[0]));
        CHECK(
            out[1] ==
            (op == ReduceOp::kMin ? 0 : static_cast<double>(world.size() - 1)));
      }
    }
  }
}

TEST_CASE("many collectives under way, waited for in another order") {
  Communicator& world = mpi_world();
  const Group group = everyone();
  std::vector<AsyncTensor> results;
  for (int i = 0; i < 40; ++i) {
    const LocalTensor mine = some_tensor(
        world.rank() + i, {30 * i}, i % 2 == 0 ? DType::kF32 : DType::kF16);
    results.push_back(value_of(all_reduce(world, mine, ReduceOp::kSum, group)));
  }
  // Ranks disagree about the order of waits, not about that of calls.
  for (int k = 0; k < 40; ++k) {
    const int i = world.rank() % 2 == 0 ? k : 39 - k;
    std::vector<LocalTensor> inputs;
    for (std::int64_t r = 0; r < world.size(); ++r) {
      inputs.push_back(
          some_tensor(r + i, {30 * i}, i % 2 == 0 ? DType::kF32 : DType::kF16));
    }
    CHECK(same_bits(value_of(results[static_cast<std::size_t>(i)].wait()),
                    reduced(ReduceOp::kSum, inputs)));
  }
}

TEST_CASE("dropped results are reaped by later calls") {
  Communicator& world = mpi_world();
  const Group group = everyone();
  auto memory = std::make_shared<std::vector<float>>(5000, 1.0F);
  const std::weak_ptr<std::vector<float>> watch = memory;
  {
    const LocalTensor mine =
        LocalTensor::wrap(memory->data(), {5000}, DType::kF32, memory);
    memory.reset();
    CHECK(all_reduce(world, mine, ReduceOp::kAvg, group).has_value());
  }
  CHECK(world.barrier(group).has_value());
  // Each rank in its own time, so without another collective.
  while (world.stats().parked > 0) REQUIRE_FALSE(world.failure().has_value());
  CHECK(watch.expired());
  CHECK(world.stats().abandoned == 0);
}

TEST_CASE(
    "communicators of others are duplicated, several worlds are one's own") {
  MPI_Comm split = MPI_COMM_NULL;
  const int colour = static_cast<int>(mpi_world().rank() % 2);
  MPI_Comm_split(MPI_COMM_WORLD, colour, 0, &split);
  {
    MpiOptions options;
    options.parent = MPI_Comm_c2f(split);
    const auto half = value_of(mpi_communicator(options));
    const Group group = value_of(Group::world(half->size()));
    const LocalTensor mine = testing::tensor_of({1.0}, {1}, DType::kI64);
    const LocalTensor sum = value_of(
        value_of(all_reduce(*half, mine, ReduceOp::kSum, group)).wait());
    CHECK(testing::numbers_of(sum)[0] == static_cast<double>(half->size()));
  }
  // Still MPI's, and ours to free.
  int size = 0;
  CHECK(MPI_Comm_size(split, &size) == MPI_SUCCESS);
  MPI_Comm_free(&split);
  CHECK(mpi_world().barrier(everyone()).has_value());
}

TEST_CASE("parts of messages that MPI cannot count are refused") {
  for (const std::int64_t part :
       {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1} << 31}) {
    CAPTURE(part);
    MpiOptions options;
    options.largest_part = part;
    const auto refused = mpi_communicator(options);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().code == ErrorCode::kInvalidArgument);
    CHECK(refused.error().message.find("largest_part") != std::string::npos);
  }
}

TEST_CASE("the longest timeout is a timeout, not one that is over at once") {
  Communicator& world = mpi_world();
  const auto before = world.timeout();
  world.set_timeout(std::chrono::milliseconds::max());
  CHECK(world.barrier(everyone()).has_value());
  // A group that has to be set up.
  Group::Ranks backwards;
  for (std::int64_t r = world.size(); r-- > 0;) backwards.push_back(r);
  CHECK(world.barrier(value_of(Group::ranks(backwards))).has_value());
  world.set_timeout(before);
  MpiOptions options;
  options.common.timeout = std::chrono::milliseconds::max();
  const auto another = value_of(mpi_communicator(options));
  CHECK(another->barrier(everyone()).has_value());
}

}  // namespace
}  // namespace shardprop
