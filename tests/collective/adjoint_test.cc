// <A x, g> = <x, A* g>, summed over the members of a group.
#include <shardprop/collective/adjoint.h>

#include "collective/values.h"
#include "collective/worlds.h"
#include "support/result_checks.h"

#include <functional>

namespace shardprop {
namespace {

using testing::Numbers;
using testing::numbers_of;
using testing::on_engine_memory;
using testing::some_tensor;
using testing::value_of;

constexpr std::int64_t kRanks = 4;

double inner(const std::vector<LocalTensor>& a,
             const std::vector<LocalTensor>& b) {
  REQUIRE(a.size() == b.size());
  double sum = 0;
  for (std::size_t t = 0; t < a.size(); ++t) {
    const Numbers x = numbers_of(a[t]);
    const Numbers y = numbers_of(b[t]);
    REQUIRE(a[t].sizes() == b[t].sizes());
    for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  }
  return sum;
}

std::vector<LocalTensor> waited(const std::vector<AsyncTensor>& results) {
  std::vector<LocalTensor> out;
  for (const AsyncTensor& result : results) {
    out.push_back(value_of(result.wait()));
  }
  return out;
}

std::vector<LocalTensor> waited(const AsyncTensor& result) {
  return {value_of(result.wait())};
}

// Checks the identity for inputs of these shapes on every rank.
template <class Forward, class Adjoint>
void check_adjoint(const std::function<std::vector<Dims>(std::int64_t)>& shapes,
                   Forward&& forward, Adjoint&& adjoint) {
  const Group group = value_of(Group::ranks({2, 0, 3, 1}));
  on_engine_memory(kRanks, [&](Communicator& communicator) {
    const std::int64_t rank = communicator.rank();
    const auto index = group.place_of(rank)->index;
    const auto there = [&](const std::vector<LocalTensor>& tensors) {
      std::vector<LocalTensor> out;
      for (const LocalTensor& t : tensors) {
        out.push_back(testing::moved_to(communicator, t));
      }
      return out;
    };
    const auto back_on_host = [&](const std::vector<LocalTensor>& tensors) {
      std::vector<LocalTensor> out;
      for (const LocalTensor& t : tensors) {
        out.push_back(testing::moved_back(communicator, t));
      }
      return out;
    };
    std::vector<LocalTensor> x;
    for (const Dims& sizes : shapes(index)) {
      x.push_back(some_tensor(rank + static_cast<std::int64_t>(x.size()), sizes,
                              DType::kF64));
    }
    const std::vector<LocalTensor> y =
        back_on_host(waited(value_of(forward(communicator, there(x), group))));
    std::vector<LocalTensor> g;
    for (const LocalTensor& t : y) {
      g.push_back(some_tensor(3 * rank + 1, t.sizes(), DType::kF64));
    }
    const std::vector<LocalTensor> back =
        back_on_host(waited(value_of(adjoint(communicator, there(g), group))));
    const LocalTensor mine = testing::moved_to(
        communicator,
        testing::tensor_of({inner(y, g), inner(x, back)}, {2}, DType::kF64));
    const Numbers sums = numbers_of(testing::moved_back(
        communicator,
        value_of(value_of(all_reduce(communicator, mine, ReduceOp::kSum, group))
                     .wait())));
    CHECK(sums[0] != 0);
    CHECK(sums[0] == doctest::Approx(sums[1]).epsilon(1e-12));
  });
}

std::vector<Dims> alike(std::int64_t) { return {{8, 12}}; }

using Tensors = std::vector<LocalTensor>;

TEST_CASE("all_reduce, by sum and average") {
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAvg}) {
    check_adjoint(
        alike,
        [op](Communicator& c, const Tensors& x, const Group& group) {
          return all_reduce(c, x[0], op, group);
        },
        [op](Communicator& c, const Tensors& g, const Group& group) {
          return all_reduce_adjoint(c, g[0], op, group);
        });
  }
}

TEST_CASE("all_gather_tensor and reduce_scatter_tensor, along each dim") {
  for (const int dim : {0, 1}) {
    check_adjoint(
        alike,
        [dim](Communicator& c, const Tensors& x, const Group& group) {
          return all_gather_tensor(c, x[0], dim, group);
        },
        [dim](Communicator& c, const Tensors& g, const Group& group) {
          return all_gather_tensor_adjoint(c, g[0], dim, group);
        });
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAvg}) {
      check_adjoint(
          alike,
          [&](Communicator& c, const Tensors& x, const Group& group) {
            return reduce_scatter_tensor(c, x[0], op, dim, group);
          },
          [&](Communicator& c, const Tensors& g, const Group& group) {
            return reduce_scatter_tensor_adjoint(c, g[0], op, dim, group);
          });
    }
  }
}

TEST_CASE("all_to_all_single, with and without splits") {
  check_adjoint(
      alike,
      [](Communicator& c, const Tensors& x, const Group& group) {
        return all_to_all_single(c, x[0], {}, group);
      },
      [](Communicator& c, const Tensors& g, const Group& group) {
        return all_to_all_single_adjoint(c, g[0], {}, group);
      });
  // From i to j go (i + 2j) % 3 rows.
  const auto rows = [](std::int64_t from, std::int64_t to) {
    return (from + 2 * to) % 3;
  };
  const auto splits = [rows](std::int64_t index) {
    Splits out{.output = std::vector<std::int64_t>(),
               .input = std::vector<std::int64_t>()};
    for (std::int64_t j = 0; j < kRanks; ++j) {
      out.output->push_back(rows(j, index));
      out.input->push_back(rows(index, j));
    }
    return out;
  };
  check_adjoint(
      [rows](std::int64_t index) {
        std::int64_t all = 0;
        for (std::int64_t j = 0; j < kRanks; ++j) all += rows(index, j);
        return std::vector<Dims>{{all, 5}};
      },
      [splits](Communicator& c, const Tensors& x, const Group& group) {
        return all_to_all_single(
            c, x[0], splits(group.place_of(c.rank())->index), group);
      },
      [splits](Communicator& c, const Tensors& g, const Group& group) {
        return all_to_all_single_adjoint(
            c, g[0], splits(group.place_of(c.rank())->index), group);
      });
}

TEST_CASE("broadcast, from every root") {
  for (std::int64_t root = 0; root < kRanks; ++root) {
    check_adjoint(
        alike,
        [root](Communicator& c, const Tensors& x, const Group& group) {
          return broadcast(c, x[0], root, group);
        },
        [root](Communicator& c, const Tensors& g, const Group& group) {
          return broadcast_adjoint(c, g[0], root, group);
        });
  }
}

TEST_CASE("permute_tensor") {
  const std::vector<std::int64_t> to = {2, 0, 3, 1};
  check_adjoint(
      alike,
      [&to](Communicator& c, const Tensors& x, const Group& group) {
        return permute_tensor(c, x[0], to, group);
      },
      [&to](Communicator& c, const Tensors& g, const Group& group) {
        return permute_tensor_adjoint(c, g[0], to, group);
      });
}

TEST_CASE("coalesced forms") {
  const auto shapes = [](std::int64_t) {
    return std::vector<Dims>{{8, 2}, {4}, {12, 3}};
  };
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAvg}) {
    check_adjoint(
        shapes,
        [op](Communicator& c, const Tensors& x, const Group& group) {
          return all_reduce_coalesced(c, x, op, group);
        },
        [op](Communicator& c, const Tensors& g, const Group& group) {
          return all_reduce_coalesced_adjoint(c, g, op, group);
        });
    check_adjoint(
        shapes,
        [op](Communicator& c, const Tensors& x, const Group& group) {
          return reduce_scatter_tensor_coalesced(c, x, op, group);
        },
        [op](Communicator& c, const Tensors& g, const Group& group) {
          return reduce_scatter_tensor_coalesced_adjoint(c, g, op, group);
        });
  }
  check_adjoint(
      shapes,
      [](Communicator& c, const Tensors& x, const Group& group) {
        return all_gather_into_tensor_coalesced(c, x, group);
      },
      [](Communicator& c, const Tensors& g, const Group& group) {
        return all_gather_into_tensor_coalesced_adjoint(c, g, group);
      });
}

TEST_CASE("what is not linear has no adjoint") {
  const Group group = value_of(Group::world(1));
  on_engine_memory(1, [&](Communicator& c) {
    const LocalTensor g =
        testing::moved_to(c, some_tensor(0, {4}, DType::kF32));
    const LocalTensor list[] = {g};
    constexpr auto kNone = ErrorCode::kNoAdjoint;
    CHECK_CODE(all_reduce_adjoint(c, g, ReduceOp::kMax, group), kNone);
    CHECK_CODE(
        reduce_scatter_tensor_adjoint(c, g, ReduceOp::kProduct, 0, group),
        kNone);
    CHECK_CODE(all_reduce_coalesced_adjoint(c, list, ReduceOp::kMin, group),
               kNone);
    CHECK_CODE(
        reduce_scatter_tensor_coalesced_adjoint(c, list, ReduceOp::kMin, group),
        kNone);
    const std::int64_t no_permutation[] = {1};
    CHECK_CODE(permute_tensor_adjoint(c, g, no_permutation, group),
               ErrorCode::kCollectiveCall);
    CHECK_CODE(broadcast_adjoint(c, g, 1, group), ErrorCode::kCollectiveCall);
  });
}

TEST_CASE("gradients of averages are complex where inputs are") {
  const Group group = value_of(Group::world(2));
  on_engine_memory(2, [&](Communicator& c) {
    const LocalTensor parts = some_tensor(0, {3, 2}, DType::kF64);
    const LocalTensor g = testing::moved_to(
        c, LocalTensor::wrap(parts.data(), {3}, DType::kC128, parts.owner()));
    const LocalTensor back = testing::moved_back(
        c, value_of(value_of(reduce_scatter_tensor_adjoint(c, g, ReduceOp::kAvg,
                                                           0, group))
                        .wait()));
    REQUIRE(back.sizes() == Dims{6});
    for (int i = 0; i < 12; ++i) {
      CHECK(back.data_as<double>()[i] == parts.data_as<double>()[i % 6] / 2);
    }
  });
}

}  // namespace
}  // namespace shardprop
