// Windows: runs of nodes of one phase, or one window per phase if there are
// many runs.
#include "plan/problem/overlap_windows.h"

#include "plan/small_graphs.h"
#include "plan/tuning.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;

// A schedule of one node per letter: `f` is forward, `b` is backward.
Graph scheduled(std::string_view phases) {
  const std::vector<GivenArgument> one = {{"", TensorArg{0}}};
  GraphBuilder b("scheduled", testing::standard_library());
  ValueId forward = test::add_input(b, InputKind::kUser, "x", "f32[8]");
  const ValueId w = test::add_input(b, InputKind::kParameter, "w", "f32[8]");
  ValueId backward = w;
  int n = 0;
  for (const char phase : phases) {
    ValueId& last = phase == 'f' ? forward : backward;
    last = test::add_op(b, "aten.relu.default", one, {last},
                        ("n" + std::to_string(n++)).c_str());
  }
  b.add_output({.value = forward});
  if (backward != w) {
    b.add_output(
        {.value = backward, .kind = OutputKind::kGradient, .target = w});
  }
  return value_of(std::move(b).build());
}

std::vector<std::size_t> windows_of(std::string_view phases) {
  const Graph graph = scheduled(phases);
  for (std::size_t n = 0; n < phases.size(); ++n) {
    REQUIRE((graph.nodes()[n].phase == Phase::kForward) == (phases[n] == 'f'));
  }
  const Windows windows(graph);
  std::vector<std::size_t> out;
  for (std::size_t slot = 0; slot <= phases.size(); ++slot) {
    out.push_back(windows.at(static_cast<std::int64_t>(slot)));
    CHECK(out.back() < windows.size());
  }
  return out;
}

using List = std::vector<std::size_t>;

TEST_CASE("each run of nodes of one phase is a window, the end in the last") {
  CHECK(windows_of("ff") == List{0, 0, 0});
  CHECK(windows_of("ffbbb") == List{0, 0, 1, 1, 1, 1});
  CHECK(windows_of("fbbf") == List{0, 1, 1, 2, 2});
  CHECK(Windows(scheduled("ffbb")).size() == 2);
}

TEST_CASE("more runs than kMostOverlapWindows make one window per phase") {
  std::string phases = "f";
  while (phases.size() < tuning::kMostOverlapWindows) {
    phases += phases.back() == 'f' ? 'b' : 'f';
  }
  const std::size_t runs = phases.size();
  CHECK(Windows(scheduled(phases)).size() == runs);
  phases += phases.back() == 'f' ? 'b' : 'f';
  CHECK(Windows(scheduled(phases)).size() == 2);
  const List windows = windows_of(phases);
  for (std::size_t n = 0; n < phases.size(); ++n) {
    CHECK(windows[n] == (phases[n] == 'f' ? 0U : 1U));
  }
  CHECK(windows.back() == windows[phases.size() - 1]);
}

TEST_CASE("a graph without nodes has one window") {
  const Windows windows(scheduled(""));
  CHECK(windows.size() == 1);
  CHECK(windows.at(0) == 0);
}

}  // namespace
}  // namespace shardprop
