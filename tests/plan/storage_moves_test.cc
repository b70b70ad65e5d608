// Ways between the states of storages, worked out a second time: every value,
// every state between, straight from what redistributions take.
#include "base/index.h"
#include "plan/problem/plan_problem.h"
#include "support/dear_topology.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/io/load_graph.h>

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace shardprop {
namespace {

using testing::dear_compute;
using testing::value_of;
using Move = BufferClass::Move;

// The cheapest of the values that show both states; the first of equals.
Move direct(const PlanProblem& problem, const PlanBuffer& buffer,
            std::size_t from, std::size_t to) {
  Move best{.nanoseconds = kUnreachable};
  for (std::size_t v = 0; v < buffer.values.size(); ++v) {
    const LayoutId src = buffer.kind->layouts[v][from];
    const LayoutId dst = buffer.kind->layouts[v][to];
    if (!src.valid() || !dst.valid()) continue;
    const ValueId value = buffer.values[v];
    const std::int64_t moved = problem.move_nanoseconds(value, src, dst);
    if (moved >= kUnreachable) continue;
    const Move move{
        .nanoseconds = moved + problem.cut_nanoseconds(buffer, value, src, dst),
        .overlapped = problem.overlappable_nanoseconds(value, src, dst),
        .value = static_cast<std::uint32_t>(v)};
    if (move.transfer() < best.transfer()) best = move;
  }
  return best;
}

struct CountedMoves {
  int direct = 0;
  int indirect = 0;
  int none = 0;
};

void check_moves(const PlanProblem& problem, const PlanBuffer& buffer,
                 CountedMoves& counted) {
  const auto n = static_cast<BufferLayout>(buffer.kind->num_states());
  std::vector<Move> ways;
  for (BufferLayout from = 0; from < n; ++from) {
    for (BufferLayout to = 0; to < n; ++to) {
      ways.push_back(direct(problem, buffer, from, to));
    }
  }
  const auto way = [&](std::size_t from, std::size_t to) -> const Move& {
    return ways[from * n + to];
  };
  for (BufferLayout from = 0; from < n; ++from) {
    for (BufferLayout to = 0; to < n; ++to) {
      Move best = way(from, to);
      if (best.is_reachable()) {
        ++counted.direct;
      } else {
        for (BufferLayout via = 0; via < n; ++via) {
          const Move& there = way(from, via);
          const Move& on = way(via, to);
          if (there.transfer() + on.transfer() >= best.transfer()) continue;
          best = {.nanoseconds = there.nanoseconds + on.nanoseconds,
                  .overlapped = there.overlapped + on.overlapped,
                  .via = via};
        }
        ++(best.is_reachable() ? counted.indirect : counted.none);
      }
      const Move& move = buffer.kind->move(from, to);
      CAPTURE(from);
      CAPTURE(to);
      REQUIRE(move.is_reachable() == best.is_reachable());
      if (!best.is_reachable()) continue;
      CHECK(move.nanoseconds == best.nanoseconds);
      CHECK(move.overlapped == best.overlapped);
      CHECK(move.via == best.via);
      if (move.via == Move::kDirect) CHECK(move.value == best.value);
    }
  }
}

TEST_CASE("transfers between layouts are the cheapest of one or two moves") {
  CountedMoves counted;
  for (const std::string name :
       {"gpt2_train_cuda", "mixtral_infer", "resnet_train"}) {
    const Graph graph =
        value_of(load_graph("examples/graphs/tiny/" + name + ".json.gz",
                            testing::standard_library()));
    for (const double overlap : {0.0, 1.0}) {
      CAPTURE(name);
      CAPTURE(overlap);
      PlanOptions options;
      options.overlap = overlap;
      const PlanProblem problem = value_of(PlanProblem::create(
          graph, value_of(DeviceMesh::parse("2,2")), dear_compute(),
          testing::standard_library(), options));
      for (const PlanBuffer& buffer : problem.buffers()) {
        check_moves(problem, buffer, counted);
      }
    }
  }
  CHECK(counted.direct > 1000);
  CHECK(counted.indirect > 10);
}

}  // namespace
}  // namespace shardprop
