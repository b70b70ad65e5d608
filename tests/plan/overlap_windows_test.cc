// Windows: one for each block and phase, as runs of slots, and what hides in
// which.
#include "plan/problem/overlap_windows.h"

#include "plan/small_graphs.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/io/load_graph.h>

#include <doctest/doctest.h>

#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;

// A schedule of one node per letter: `f` is forward, `b` is backward.
Graph scheduled(std::string_view phases) {
  GraphBuilder b("scheduled", testing::standard_library());
  ValueId forward = test::add_input(b, InputKind::kUser, "x", "f32[8]");
  const ValueId w = test::add_input(b, InputKind::kParameter, "w", "f32[8]");
  ValueId backward = w;
  int n = 0;
  // No two neighbours are equal, so that nothing is a repeated block.
  const char* const ops[] = {"aten.relu.default", "aten.exp.default",
                             "aten.neg.default",  "aten.sin.default",
                             "aten.cos.default",  "aten.abs.default"};
  for (const char phase : phases) {
    ValueId& last = phase == 'f' ? forward : backward;
    last = test::add_op(b, ops[n % 6], {{"", TensorArg{0}}}, {last},
                        ("n" + std::to_string(n)).c_str());
    ++n;
  }
  b.add_output({.value = forward});
  if (backward != w) {
    b.add_output(
        {.value = backward, .kind = OutputKind::kGradient, .target = w});
  }
  return value_of(std::move(b).build());
}

Windows windows_of(const Graph& graph, std::size_t parts) {
  const std::vector<std::int64_t> weights(graph.nodes().size(), 1);
  return Windows(graph, Blocks(graph, weights, parts));
}

using List = std::vector<std::size_t>;

// Returns the window of each slot, and checks that windows are runs.
List slots_of(std::string_view phases, std::size_t parts) {
  const Graph graph = scheduled(phases);
  for (std::size_t n = 0; n < phases.size(); ++n) {
    REQUIRE((graph.nodes()[n].phase == Phase::kForward) == (phases[n] == 'f'));
  }
  const Windows windows = windows_of(graph, parts);
  List out;
  for (std::size_t s = 0; s <= phases.size(); ++s) {
    const auto slot = static_cast<std::int64_t>(s);
    out.push_back(windows.at(slot));
    REQUIRE(out.back() < windows.size());
    CHECK(windows.first_slot(out.back()) <= slot);
    CHECK(windows.last_slot(out.back()) >= slot);
  }
  return out;
}

TEST_CASE("each part of a phase is a window, the end in the last") {
  CHECK(slots_of("ffff", 2) == List{0, 0, 1, 1, 1});
  CHECK(slots_of("ffbbb", 1) == List{0, 0, 1, 1, 1, 1});
  CHECK(slots_of("ffbb", 2) == List{0, 1, 2, 3, 3});
  CHECK(slots_of("ffffbbbb", 2) == List{0, 0, 1, 1, 2, 2, 3, 3, 3});
}

TEST_CASE("a window begins where the fewest nodes are on the wrong side") {
  CHECK(slots_of("fbff", 1) == List{0, 0, 0, 0, 0});
  CHECK(slots_of("fffbbfbb", 1) == List{0, 0, 0, 1, 1, 1, 1, 1, 1});
  CHECK(slots_of("fbfbfb", 1).front() == 0);
}

// Returns the slot with the fewest nodes on the wrong side of the begin of
// `place`, and the first one of equal slots.
std::size_t begin_by_count(const List& places, std::size_t place) {
  std::size_t best = 0;
  std::size_t fewest = places.size() + 1;
  for (std::size_t slot = 0; slot <= places.size(); ++slot) {
    std::size_t wrong = 0;
    for (std::size_t n = 0; n < places.size(); ++n) {
      if ((n < slot) == (places[n] >= place)) ++wrong;
    }
    if (wrong >= fewest) continue;
    fewest = wrong;
    best = slot;
  }
  return best;
}

TEST_CASE("windows begin where counting each slot finds the fewest nodes") {
  std::mt19937 random(57);
  for (int round = 0; round < 40; ++round) {
    std::string phases;
    while (phases.size() < 24) phases += random() % 2 == 0 ? 'f' : 'b';
    CAPTURE(phases);
    const Graph graph = scheduled(phases);
    const std::vector<std::int64_t> weights(phases.size(), 1);
    const Blocks blocks(graph, weights, 3);
    const std::size_t count = 2 * blocks.blocks().size();
    List places;
    for (const Node& node : graph.nodes()) {
      const std::size_t block = blocks.block_of(node.id);
      places.push_back(node.phase == Phase::kForward ? block
                                                     : count - 1 - block);
    }
    std::set<std::int64_t> expected;
    for (std::size_t place = 0; place < count; ++place) {
      const std::size_t begin = begin_by_count(places, place);
      if (begin < phases.size()) {
        expected.insert(static_cast<std::int64_t>(begin));
      }
    }
    const Windows windows(graph, blocks);
    std::set<std::int64_t> begins;
    for (std::size_t w = 0; w < windows.size(); ++w) {
      begins.insert(windows.first_slot(w));
    }
    CHECK(begins == expected);
  }
}

TEST_CASE("a graph without nodes has one window") {
  const Windows windows = windows_of(scheduled(""), 4);
  CHECK(windows.size() == 1);
  CHECK(windows.at(0) == 0);
  CHECK_FALSE(windows.of_gather(0));
  CHECK_FALSE(windows.of_reduction(0));
  CHECK(Windows().size() == 1);
}

TEST_CASE("gathers hide one window ahead and reductions one window behind") {
  const Windows windows = windows_of(scheduled("ffffbbbb"), 2);
  CHECK_FALSE(windows.of_gather(0));
  CHECK_FALSE(windows.of_gather(1));
  CHECK(windows.of_gather(2) == 0);
  CHECK(windows.of_gather(7) == 2);
  CHECK(windows.of_gather(8) == 2);
  // The source of a reduction at slot 6 was produced at slot 5, in window 2.
  CHECK(windows.of_reduction(6) == 3);
  CHECK_FALSE(windows.of_reduction(7));
  CHECK_FALSE(windows.of_reduction(8));
}

TEST_CASE("equal layers in one phase are of one class") {
  const Graph graph = value_of(load_graph(
      "examples/graphs/llama3_8b_train.json.gz", testing::standard_library()));
  const Windows windows = windows_of(graph, 8);
  CHECK(windows.size() > 60);
  std::set<std::size_t> classes;
  for (std::size_t w = 0; w < windows.size(); ++w) {
    classes.insert(windows.class_of(w));
    if (w > 0) CHECK(windows.first_slot(w) == windows.last_slot(w - 1) + 1);
  }
  CHECK(classes.size() < 10);
}

}  // namespace
}  // namespace shardprop
