// Each functional collective against its definition: all dtypes, all
// reductions, every kind of group, in place, into given outputs.
#include <shardprop/collective/functional.h>

#include "collective/values.h"
#include "collective/worlds.h"
#include "support/result_checks.h"

#include <array>
#include <string>

namespace shardprop {
namespace {

using testing::concatenated;
using testing::kReducedDTypes;
using testing::on_ranks;
using testing::reduced;
using testing::same_bits;
using testing::some_tensor;
using testing::value_of;

struct NamedGroup {
  std::string name;
  Group group;
  std::int64_t world;
};

// Every way to name a group; sizes 1 to 4, orders that are not ascending.
std::vector<NamedGroup> some_groups() {
  const DeviceMesh square = value_of(DeviceMesh::parse("dp=2,tp=2"));
  const DeviceMesh grid = value_of(DeviceMesh::parse("dp=2,tp=3"));
  const std::int32_t both[] = {1, 0};
  return {
      {"world", value_of(Group::world(4)), 4},
      {"ranks", value_of(Group::ranks({3, 0, 2})), 4},
      {"one rank", value_of(Group::ranks({1})), 2},
      {"lists", value_of(Group::lists({{2, 0}, {1, 3}})), 4},
      {"1-D mesh", value_of(Group::mesh(value_of(DeviceMesh::parse("x=3")))),
       3},
      {"mesh dim", value_of(Group::mesh_dim(square, "tp")), 4},
      {"outer mesh dim", value_of(Group::mesh_dim(square, 0)), 4},
      {"larger mesh dim", value_of(Group::mesh_dim(grid, "tp")), 6},
      {"mesh dims", value_of(Group::mesh_dims(grid, both)), 6},
  };
}

// Runs `body` on every member of every group, with its list of ranks.
template <class Body>
void on_groups(Body&& body) {
  for (const NamedGroup& named : some_groups()) {
    CAPTURE(named.name);
    on_ranks(named.world, [&](Communicator& communicator) {
      const auto place = named.group.place_of(communicator.rank());
      if (!place) return;
      const Group::Ranks ranks = named.group.list(place->list);
      body(communicator, named.group, ranks,
           static_cast<std::size_t>(place->index));
    });
  }
}

std::vector<LocalTensor> tensors_of(const Group::Ranks& ranks,
                                    const Dims& sizes, DType dtype) {
  std::vector<LocalTensor> out;
  for (const std::int64_t rank : ranks) {
    out.push_back(some_tensor(rank, sizes, dtype));
  }
  return out;
}

bool has(ReduceOp op, DType dtype) { return is_defined(op, dtype); }

TEST_CASE("all_reduce is the reduction over the group") {
  on_groups([](Communicator& communicator, const Group& group,
               const Group::Ranks& ranks, std::size_t me) {
    for (const DType dtype : kReducedDTypes) {
      for (const ReduceOp op : kAllReduceOps) {
        if (!has(op, dtype)) continue;
        CAPTURE(to_string(dtype));
        CAPTURE(to_string(op));
        const auto inputs = tensors_of(ranks, {5, 3}, dtype);
        const LocalTensor& mine = inputs[me];
        const auto result = value_of(all_reduce(communicator, mine, op, group));
        CHECK(same_bits(value_of(result.wait()), reduced(op, inputs)));
        CHECK(same_bits(mine, some_tensor(ranks[me], {5, 3}, dtype)));
      }
    }
  });
}

TEST_CASE("all_reduce of what is large, empty, a scalar or strided") {
  on_groups([](Communicator& communicator, const Group& group,
               const Group::Ranks& ranks, std::size_t me) {
    for (const Dims& sizes : {Dims{}, Dims{0}, Dims{3, 0, 2}, Dims{1},
                              Dims{70001}, Dims{3, 20000}}) {
      const auto inputs = tensors_of(ranks, sizes, DType::kF32);
      const auto result =
          value_of(all_reduce(communicator, inputs[me], ReduceOp::kSum, group));
      CHECK(
          same_bits(value_of(result.wait()), reduced(ReduceOp::kSum, inputs)));
    }
    std::vector<LocalTensor> inputs;
    for (const LocalTensor& dense :
         tensors_of(ranks, {300, 100}, DType::kBF16)) {
      inputs.push_back(dense.transpose(0, 1));
    }
    const auto result =
        value_of(all_reduce(communicator, inputs[me], ReduceOp::kMax, group));
    CHECK(same_bits(value_of(result.wait()), reduced(ReduceOp::kMax, inputs)));
  });
}

TEST_CASE("all_reduce in place and into a given output") {
  on_groups([](Communicator& communicator, const Group& group,
               const Group::Ranks& ranks, std::size_t me) {
    for (const std::int64_t size : {7, 50000}) {
      const auto inputs = tensors_of(ranks, {size, 3}, DType::kF16);
      const LocalTensor sum = reduced(ReduceOp::kAvg, inputs);
      const LocalTensor mine = testing::packed(inputs[me]);
      const auto in_place = value_of(
          all_reduce(communicator, mine, ReduceOp::kAvg, group, {.out = mine}));
      CHECK(value_of(in_place.wait()).data() == mine.data());
      CHECK(same_bits(mine, sum));

      const LocalTensor given =
          value_of(LocalTensor::empty({3, size}, DType::kF16)).transpose(0, 1);
      const auto result = value_of(all_reduce(
          communicator, inputs[me], ReduceOp::kAvg, group, {.out = given}));
      CHECK(result.wait().has_value());
      CHECK(same_bits(given, sum));
    }
  });
}

TEST_CASE("all_gather_tensor sets the inputs side by side") {
  on_groups([](Communicator& communicator, const Group& group,
               const Group::Ranks& ranks, std::size_t me) {
    for (const DType dtype : all_dtypes()) {
      if (item_size(dtype) == 0) continue;
      // Collectives move bits unchanged, also bits that are not valid values.
      std::vector<LocalTensor> inputs;
      for (const std::int64_t rank : ranks) {
        const LocalTensor bytes =
            some_tensor(rank, {2 * 3 * 5 * item_size(dtype)}, DType::kI8);
        inputs.push_back(
            LocalTensor::wrap(bytes.data(), {2, 3, 5}, dtype, bytes.owner()));
      }
      for (const int dim : {0, 1, 2, -1}) {
        CAPTURE(to_string(dtype));
        CAPTURE(dim);
        const auto result =
            value_of(all_gather_tensor(communicator, inputs[me], dim, group));
        const LocalTensor expected =
            concatenated(inputs, dim < 0 ? dim + 3 : dim);
        CHECK(result.sizes() == expected.sizes());
        const LocalTensor data = value_of(result.wait());
        CHECK(data.is_contiguous());
        CHECK(same_bits(data, expected));
      }
    }
  });
}

TEST_CASE("all_gather_tensor from its own slice of the output") {
  on_groups([](Communicator& communicator, const Group& group,
               const Group::Ranks& ranks, std::size_t me) {
    for (const int dim : {0, 1}) {
      const auto inputs = tensors_of(ranks, {4, 6}, DType::kI16);
      const LocalTensor expected = concatenated(inputs, dim);
      const LocalTensor out =
          value_of(LocalTensor::zeros(expected.sizes(), DType::kI16));
      const std::int64_t share = inputs[me].size(dim);
      const LocalTensor mine =
          out.narrow(dim, static_cast<std::int64_t>(me) * share, share);
      REQUIRE(copy(inputs[me], mine).has_value());
      const auto result = value_of(
          all_gather_tensor(communicator, mine, dim, group, {.out = out}));
      CHECK(result.wait().has_value());
      CHECK(same_bits(out, expected));
    }
  });
}

TEST_CASE("reduce_scatter_tensor leaves each its share of the reduction") {
  on_groups([](Communicator& communicator, const Group& group,
               const Group::Ranks& ranks, std::size_t me) {
    const std::int64_t n = group.size();
    for (const DType dtype : kReducedDTypes) {
      for (const ReduceOp op : kAllReduceOps) {
        if (!has(op, dtype)) continue;
        for (const int dim : {0, 1}) {
          CAPTURE(to_string(dtype));
          CAPTURE(to_string(op));
          const Dims sizes = dim == 0 ? Dims{2 * n, 3} : Dims{2, 3 * n};
          const auto inputs = tensors_of(ranks, sizes, dtype);
          const auto result = value_of(
              reduce_scatter_tensor(communicator, inputs[me], op, dim, group));
          const LocalTensor whole = reduced(op, inputs);
          const std::int64_t share = whole.size(dim) / n;
          const LocalTensor expected =
              whole.narrow(dim, static_cast<std::int64_t>(me) * share, share);
          CHECK(result.sizes() == expected.sizes());
          CHECK(same_bits(value_of(result.wait()), expected));
          CHECK(same_bits(inputs[me], some_tensor(ranks[me], sizes, dtype)));
        }
      }
    }
  });
}

TEST_CASE("reduce_scatter_tensor into its own slice of the input") {
  on_groups([](Communicator& communicator, const Group& group,
               const Group::Ranks& ranks, std::size_t me) {
    const std::int64_t n = group.size();
    const auto inputs = tensors_of(ranks, {20000 * n}, DType::kF32);
    const LocalTensor mine = testing::packed(inputs[me]);
    const LocalTensor slice =
        mine.narrow(0, 20000 * static_cast<std::int64_t>(me), 20000);
    const auto result = value_of(reduce_scatter_tensor(
        communicator, mine, ReduceOp::kSum, 0, group, {.out = slice}));
    CHECK(result.wait().has_value());
    CHECK(same_bits(
        slice, reduced(ReduceOp::kSum, inputs)
                   .narrow(0, 20000 * static_cast<std::int64_t>(me), 20000)));
  });
}

TEST_CASE("all_to_all_single deals out rows") {
  on_groups([](Communicator& communicator, const Group& group,
               const Group::Ranks& ranks, std::size_t me) {
    const auto n = static_cast<std::size_t>(group.size());
    for (const DType dtype : kReducedDTypes) {
      const std::int64_t share = 2;
      const auto inputs = tensors_of(ranks, {share * group.size(), 3}, dtype);
      std::vector<LocalTensor> mine;
      for (const LocalTensor& input : inputs) {
        mine.push_back(
            input.narrow(0, share * static_cast<std::int64_t>(me), share));
      }
      const auto result =
          value_of(all_to_all_single(communicator, inputs[me], {}, group));
      CHECK(same_bits(value_of(result.wait()), concatenated(mine, 0)));
    }
    // Member s sends member r (s + 2r) % 4 rows, some of them none.
    const auto rows = [](std::size_t from, std::size_t to) {
      return static_cast<std::int64_t>((from + 2 * to) % 4);
    };
    std::vector<LocalTensor> came;
    Splits splits{.output = std::vector<std::int64_t>(),
                  .input = std::vector<std::int64_t>()};
    LocalTensor input;
    for (std::size_t s = 0; s < n; ++s) {
      std::int64_t before = 0;
      std::int64_t all = 0;
      for (std::size_t r = 0; r < n; ++r) {
        if (r < me) before += rows(s, r);
        all += rows(s, r);
      }
      const LocalTensor tensor = some_tensor(ranks[s], {all, 3}, DType::kI64);
      came.push_back(tensor.narrow(0, before, rows(s, me)));
      splits.output->push_back(rows(s, me));
      splits.input->push_back(rows(me, s));
      if (s == me) input = tensor;
    }
    const auto result =
        value_of(all_to_all_single(communicator, input, splits, group));
    const LocalTensor expected = concatenated(came, 0);
    CHECK(result.sizes() == expected.sizes());
    CHECK(same_bits(value_of(result.wait()), expected));
  });
}

TEST_CASE("broadcast gives everyone the root's") {
  on_groups([](Communicator& communicator, const Group& group,
               const Group::Ranks& ranks, std::size_t me) {
    for (std::int64_t root = 0; root < group.size(); ++root) {
      for (const DType dtype : kReducedDTypes) {
        const auto inputs = tensors_of(ranks, {4, 3}, dtype);
        const LocalTensor& expected = inputs[static_cast<std::size_t>(root)];
        const auto result =
            value_of(broadcast(communicator, inputs[me], root, group));
        CHECK(same_bits(value_of(result.wait()), expected));
        CHECK(same_bits(inputs[me], some_tensor(ranks[me], {4, 3}, dtype)));

        const LocalTensor mine = testing::packed(inputs[me]);
        const auto in_place =
            value_of(broadcast(communicator, mine, root, group, {.out = mine}));
        CHECK(in_place.wait().has_value());
        CHECK(same_bits(mine, expected));
      }
    }
  });
}

TEST_CASE("permute_tensor hands tensors on") {
  on_groups([](Communicator& communicator, const Group& group,
               const Group::Ranks& ranks, std::size_t me) {
    const std::int64_t n = group.size();
    for (std::int64_t shift = 0; shift < n; ++shift) {
      std::vector<std::int64_t> to;
      for (std::int64_t i = 0; i < n; ++i) to.push_back((i + shift) % n);
      for (const DType dtype : kReducedDTypes) {
        const auto inputs = tensors_of(ranks, {3, 5}, dtype);
        const auto result =
            value_of(permute_tensor(communicator, inputs[me], to, group));
        const auto from = static_cast<std::size_t>(
            (static_cast<std::int64_t>(me) + n - shift) % n);
        CHECK(same_bits(value_of(result.wait()), inputs[from]));
      }
    }
  });
}

TEST_CASE("coalesced collectives do what single ones do") {
  on_groups([](Communicator& communicator, const Group& group,
               const Group::Ranks& ranks, std::size_t me) {
    const std::int64_t n = group.size();
    const std::array<Dims, 3> shapes = {Dims{2 * n}, Dims{n, 3}, Dims{0, 4}};
    const std::array<DType, 3> dtypes = {DType::kF32, DType::kBF16,
                                         DType::kI32};
    std::vector<LocalTensor> inputs;
    for (std::size_t t = 0; t < 3; ++t) {
      inputs.push_back(some_tensor(ranks[me], shapes[t], dtypes[t]));
    }
    const auto sums = value_of(
        all_reduce_coalesced(communicator, inputs, ReduceOp::kSum, group));
    const auto wholes =
        value_of(all_gather_into_tensor_coalesced(communicator, inputs, group));
    const auto shares = value_of(reduce_scatter_tensor_coalesced(
        communicator, inputs, ReduceOp::kSum, group));
    for (std::size_t t = 0; t < 3; ++t) {
      const auto all = tensors_of(ranks, shapes[t], dtypes[t]);
      const LocalTensor sum = reduced(ReduceOp::kSum, all);
      CHECK(same_bits(value_of(sums[t].wait()), sum));
      CHECK(same_bits(value_of(wholes[t].wait()), concatenated(all, 0)));
      const std::int64_t share = sum.size(0) / n;
      CHECK(same_bits(
          value_of(shares[t].wait()),
          sum.narrow(0, static_cast<std::int64_t>(me) * share, share)));
    }
    // In place.
    std::vector<LocalTensor> mine;
    for (const LocalTensor& input : inputs) {
      mine.push_back(testing::packed(input));
    }
    const auto in_place = value_of(all_reduce_coalesced(
        communicator, mine, ReduceOp::kSum, group, {.outs = mine}));
    for (std::size_t t = 0; t < 3; ++t) {
      CHECK(in_place[t].wait().has_value());
      CHECK(same_bits(mine[t], value_of(sums[t].wait())));
    }
  });
}

TEST_CASE("complex numbers add up") {
  const Group group = value_of(Group::world(3));
  on_ranks(3, [&](Communicator& communicator) {
    const auto floats = [](std::int64_t rank) {
      return some_tensor(rank, {4, 2}, DType::kF32);
    };
    const LocalTensor mine = floats(communicator.rank());
    const LocalTensor input =
        LocalTensor::wrap(mine.data(), {4}, DType::kC64, mine.owner());
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAvg}) {
      const LocalTensor out =
          value_of(value_of(all_reduce(communicator, input, op, group)).wait());
      const LocalTensor parts =
          LocalTensor::wrap(out.data(), {4, 2}, DType::kF32, out.owner());
      CHECK(same_bits(parts, reduced(op, {floats(0), floats(1), floats(2)})));
    }
  });
}

TEST_CASE("unsigned integers wrap") {
  const Group group = value_of(Group::world(2));
  on_ranks(2, [&](Communicator& communicator) {
    std::uint16_t value[] = {
        static_cast<std::uint16_t>(communicator.rank() == 0 ? 65535 : 3)};
    const auto input = LocalTensor::wrap(value, {1}, DType::kU16);
    const LocalTensor out = value_of(
        value_of(all_reduce(communicator, input, ReduceOp::kSum, group))
            .wait());
    CHECK(out.data_as<std::uint16_t>()[0] == 2);
  });
}

}  // namespace
}  // namespace shardprop
