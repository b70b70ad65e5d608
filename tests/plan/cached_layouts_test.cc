// Cached layouts of a buffer and the redistributions between them.
#include "plan/problem/build/cached_layouts.h"

#include "plan/problem/layout_relations.h"
#include "support/dear_topology.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/io/load_graph.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;

constexpr std::int64_t kNoWay = std::numeric_limits<std::int64_t>::max();

// A problem refers to its graph.
struct GraphAndProblem {
  GraphAndProblem(const std::string& name, const char* mesh, double overlap)
      : graph(value_of(load_graph("examples/graphs/tiny/" + name + ".json.gz",
                                  testing::standard_library()))),
        problem(value_of(PlanProblem::create(
            graph, value_of(DeviceMesh::parse(mesh)), testing::dear_compute(),
            testing::standard_library(), with_overlap(overlap)))) {}
  GraphAndProblem(const GraphAndProblem&) = delete;

  static PlanOptions with_overlap(double overlap) {
    PlanOptions options;
    options.overlap = overlap;
    return options;
  }

  Graph graph;
  PlanProblem problem;
};

// Returns the least transfer time until all of `wanted` are among `held`. Each
// transfer adds one wanted layout, from a layout that is held.
std::int64_t least_transfer(const BufferClass& kind,
                            std::set<BufferLayout> held,
                            const std::set<BufferLayout>& wanted) {
  std::int64_t least = kNoWay;
  bool missing = false;
  for (const BufferLayout to : wanted) {
    if (held.contains(to)) continue;
    missing = true;
    for (const BufferLayout from : held) {
      if (!kind.move(from, to).is_reachable()) continue;
      std::set<BufferLayout> more = held;
      more.insert(to);
      const std::int64_t rest = least_transfer(kind, more, wanted);
      if (rest == kNoWay) continue;
      least = std::min(least, kind.move(from, to).transfer() + rest);
    }
  }
  return missing ? least : 0;
}

// Checks that the transfers of `found` are possible one after the other and
// cost what it says.
void check_transfers(const PlanBuffer& buffer, std::set<BufferLayout> held,
                     const CachedLayouts& to, const Transition& found) {
  std::int64_t nanoseconds = 0;
  std::int64_t overlapped = 0;
  for (const Transfer& transfer : found.transfers) {
    CHECK(held.contains(transfer.from));
    CHECK(held.insert(transfer.to).second);
    const auto& move = buffer.kind->move(transfer.from, transfer.to);
    nanoseconds += move.nanoseconds;
    overlapped += move.overlapped;
  }
  CHECK(held.contains(to.first));
  CHECK(held.contains(to.second));
  CHECK(found.nanoseconds == nanoseconds);
  CHECK(found.overlapped == overlapped);
}

struct CountedTransitions {
  int free = 0;
  int single = 0;
  int pairs = 0;
};

void check_transition(const PlanBuffer& buffer, CachedLayouts from,
                      CachedLayouts to, CountedTransitions& counted) {
  CAPTURE(from.first);
  CAPTURE(from.second);
  CAPTURE(to.first);
  CAPTURE(to.second);
  const Transition found = transition(buffer, from, to);
  if (buffer.persistent && from.first != to.first) {
    CHECK(!found.is_possible);
    return;
  }
  const std::int64_t least = least_transfer(
      *buffer.kind, {from.first, from.second}, {to.first, to.second});
  REQUIRE(found.is_possible == (least != kNoWay));
  if (!found.is_possible) return;
  CHECK(found.nanoseconds + found.overlapped == least);
  check_transfers(buffer, {from.first, from.second}, to, found);
  if (found.transfers.empty()) ++counted.free;
  if (found.transfers.size() == 1) ++counted.single;
  if (found.transfers.size() == 2) ++counted.pairs;
}

TEST_CASE("a transition produces missing layouts in the cheapest order") {
  CountedTransitions counted;
  for (const double overlap : {0.0, 1.0}) {
    const GraphAndProblem both("gpt2_train_cuda", "2,2", overlap);
    const PlanProblem& problem = both.problem;
    std::size_t turn = 0;
    for (const PlanBuffer& buffer : problem.buffers()) {
      if (++turn % 4 != 0) continue;
      const auto sets = cached_layouts(problem, buffer);
      // Every pair of few sets; of many sets, each with some others.
      const std::size_t step = 1 + sets.size() / 12;
      for (std::size_t a = 0; a < sets.size(); a += step) {
        for (std::size_t b = 0; b < sets.size(); b += step) {
          check_transition(buffer, sets[a], sets[b], counted);
        }
      }
    }
  }
  CHECK(counted.free > 100);
  CHECK(counted.single > 100);
  CHECK(counted.pairs > 20);
}

TEST_CASE("a fetch is the cheaper transfer from a cached layout, or none") {
  const GraphAndProblem both("gpt2_train_cuda", "2,2", 1.0);
  const PlanProblem& problem = both.problem;
  int compared = 0;
  for (const PlanBuffer& buffer : problem.buffers()) {
    const auto states = static_cast<BufferLayout>(buffer.kind->num_states());
    for (const CachedLayouts& cached : cached_layouts(problem, buffer)) {
      if (cached.first == cached.second && compared > 2'000) continue;
      for (BufferLayout to = 0; to < states; ++to) {
        const Fetch found = fetch(buffer, cached, to);
        if (cached.has(to)) {
          CHECK(found.from == to);
          CHECK(found.nanoseconds == 0);
          CHECK(found.overlapped == 0);
          continue;
        }
        const auto& one = buffer.kind->move(cached.first, to);
        const auto& two = buffer.kind->move(cached.second, to);
        CHECK(found.nanoseconds + found.overlapped ==
              std::min(one.transfer(), two.transfer()));
        CHECK(cached.has(found.from));
        CHECK(found.nanoseconds ==
              buffer.kind->move(found.from, to).nanoseconds);
        CHECK(found.is_possible == (one.is_reachable() || two.is_reachable()));
        ++compared;
      }
    }
    if (compared > 20'000) break;
  }
  CHECK(compared > 1'000);
}

bool are_related(const PlanProblem& problem, const BufferClass& kind,
                 const CachedLayouts& set) {
  return std::any_of(
      kind.layouts.begin(), kind.layouts.end(), [&](const auto& layouts) {
        if (!layouts[set.first].valid() || !layouts[set.second].valid()) {
          return false;
        }
        const Layout& a = problem.layouts()[layouts[set.first]];
        const Layout& b = problem.layouts()[layouts[set.second]];
        return mesh_dims_apart(a, b) <= 1 || gathers(a, b) || gathers(b, a);
      });
}

TEST_CASE("the cached layouts of a buffer are those of plan_assignment.h") {
  int inputs = 0;
  int pairs = 0;
  for (const char* mesh : {"2,2", "2,2,2"}) {
    const bool few = std::string(mesh) == "2,2";
    const GraphAndProblem both("gpt2_train_cuda", mesh, 0);
    const PlanProblem& problem = both.problem;
    for (const PlanBuffer& buffer : problem.buffers()) {
      const BufferClass& kind = *buffer.kind;
      const std::set<BufferLayout> produced(kind.produced.begin(),
                                            kind.produced.end());
      std::set<BufferLayout> required;
      for (const auto& of_use : kind.required) {
        required.insert(of_use.begin(), of_use.end());
      }
      std::set<BufferLayout> alone;
      std::set<std::pair<BufferLayout, BufferLayout>> seen;
      for (const CachedLayouts& set : cached_layouts(problem, buffer)) {
        CHECK(seen.emplace(set.first, set.second).second);
        if (set.first == set.second) {
          alone.insert(set.first);
          continue;
        }
        ++pairs;
        CHECK(required.contains(set.second));
        if (buffer.persistent) {
          CHECK(produced.contains(set.first));
          CHECK(kind.move(set.first, set.second).is_reachable());
          if (!few) CHECK(are_related(problem, kind, set));
        } else {
          CHECK(few);
          CHECK(buffer.uses.size() >= 3);
          CHECK(set.first < set.second);
          CHECK(required.contains(set.first));
          CHECK(are_related(problem, kind, set));
        }
      }
      if (buffer.persistent) {
        ++inputs;
        CHECK(alone == produced);
      } else {
        CHECK(alone.size() == kind.num_states());
      }
    }
  }
  CHECK(inputs > 10);
  CHECK(pairs > 100);
}

}  // namespace
}  // namespace shardprop
