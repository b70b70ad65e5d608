// LayoutGraph stores the layouts and moves that MoveTable lists.
#include "redistribute/layout_graph.h"

#include "redistribute/group_times.h"
#include "redistribute/move_price.h"
#include "redistribute/reference_search.h"
#include "support/result_checks.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <vector>

namespace shardprop {
namespace {

using redistribute::ActiveDims;
using redistribute::Alphabet;
using redistribute::Exits;
using redistribute::LayoutGraph;
using redistribute::LayoutGraphs;
using redistribute::LocalSize;
using redistribute::Mask;
using redistribute::Move;
using redistribute::MovePricer;
using redistribute::MoveTable;
using redistribute::State;
using redistribute::Targets;
using testing::value_of;

constexpr std::size_t kManyStates = 1 << 12;
const Placement kSum = Placement::partial(ReduceOp::kSum);

// A mesh, a tensor and the placements of its layouts.
struct Listed {
  Listed(std::string_view mesh_text, std::string_view tensor,
         std::vector<Placement> partials)
      : mesh(value_of(DeviceMesh::parse(mesh_text))),
        meta(value_of(TensorMeta::parse(tensor))),
        active(mesh),
        placements(std::move(partials)) {
    placements.push_back(Placement::replicate());
    for (int d = 0; d < meta.rank(); ++d) {
      placements.push_back(Placement::shard(d));
    }
    layouts = testing::all_layouts(mesh, placements);
    alphabet.emplace(value_of(
        Alphabet::create(active, meta, layouts, SplitFactors::kEndpoints)));
    graph = LayoutGraph::build(active, *alphabet, kManyStates);
    REQUIRE(graph != nullptr);
  }

  DeviceMesh mesh;
  TensorMeta meta;
  ActiveDims active;
  std::vector<Placement> placements;
  std::vector<Layout> layouts;
  std::optional<Alphabet> alphabet;
  std::shared_ptr<const LayoutGraph> graph;
};

std::vector<Listed> some_lists() {
  std::vector<Listed> out;
  out.emplace_back("4", "f32[8]", std::vector<Placement>{});
  out.emplace_back("2,1,3", "f32[8,6]", std::vector{kSum});
  out.emplace_back("2,4", "f32[8,16,8]",
                   std::vector{kSum, Placement::partial(ReduceOp::kAvg)});
  out.emplace_back("2,4", "f32[8]",
                   std::vector{kSum, Placement::partial(ReduceOp::kMax)});
  out.emplace_back("2,2,2", "f32[8,8]", std::vector{kSum});
  return out;
}

using OneMove = std::tuple<Move, Mask, std::uint64_t>;

std::set<OneMove> moves_of_table(const Listed& listed, const State& from) {
  std::set<OneMove> out;
  MoveTable(listed.active, *listed.alphabet)
      .for_each(
          from, [](Move, Mask) { return true; },
          [&](Move move, Mask group, const State& to) {
            out.insert({move, group, to.code()});
          });
  return out;
}

std::set<OneMove> moves_of_graph(const LayoutGraph& graph, std::uint32_t from) {
  std::set<OneMove> out;
  LayoutGraph::Scratch scratch;
  const Exits& exits = graph.exits(from, scratch);
  for (std::size_t run = 0; run < exits.runs.size(); ++run) {
    for (const std::uint32_t to :
         graph.targets(from, exits, run, scratch).states) {
      out.insert({exits.runs[run].move, exits.runs[run].group,
                  graph.states()[to].code()});
    }
  }
  return out;
}

TEST_CASE("the states of a LayoutGraph are all layouts of its alphabet") {
  for (const Listed& listed : some_lists()) {
    std::set<std::uint64_t> expected;
    for (const Layout& layout : listed.layouts) {
      expected.insert(
          to_state(layout, listed.active, *listed.alphabet).value().code());
    }
    std::set<std::uint64_t> found;
    for (const State& state : listed.graph->states()) {
      found.insert(state.code());
    }
    CHECK(found == expected);
    CHECK(found.size() == listed.graph->states().size());
  }
}

TEST_CASE("the moves of a LayoutGraph are those of MoveTable") {
  for (const Listed& listed : some_lists()) {
    const LayoutGraph& graph = *listed.graph;
    // Every layout that a path from the replicated layout reaches.
    std::set<std::uint32_t> reached = {graph.number(State{})};
    std::vector<std::uint32_t> waiting = {graph.number(State{})};
    while (!waiting.empty()) {
      const std::uint32_t at = waiting.back();
      waiting.pop_back();
      const auto expected = moves_of_table(listed, graph.states()[at]);
      CHECK(moves_of_graph(graph, at) == expected);
      CHECK(moves_of_graph(graph, at) == expected);  // now from the cache
      for (const auto& [move, group, code] : expected) {
        const auto to = graph.find(code);
        REQUIRE(to.has_value());
        if (reached.insert(*to).second) waiting.push_back(*to);
      }
    }
    CHECK(reached.size() == graph.states().size());
  }
}

TEST_CASE("a LayoutGraph counts the parts of each tensor dim") {
  for (const Listed& listed : some_lists()) {
    const LayoutGraph& graph = *listed.graph;
    for (std::uint32_t at = 0; at < graph.states().size(); ++at) {
      const Layout layout =
          to_layout(graph.states()[at], listed.active, *listed.alphabet,
                    Layout::replicated(listed.mesh.ndim()));
      CAPTURE(to_string(layout));
      std::vector<std::int64_t> parts(
          static_cast<std::size_t>(listed.meta.rank()), 1);
      std::int64_t all_parts = 1;
      for (int m = 0; m < listed.mesh.ndim(); ++m) {
        if (!layout[m].is_shard()) continue;
        parts[static_cast<std::size_t>(layout[m].dim())] *= listed.mesh.size(m);
        all_parts *= listed.mesh.size(m);
      }
      CHECK(std::ranges::equal(graph.parts(at), parts));
      CHECK(graph.all_parts(at) == all_parts);
      CHECK(graph.is_in_mesh_order(at) == layout.has_default_order());
      CHECK(graph.number(graph.states()[at]) == at);
    }
    CHECK(!graph.find(~std::uint64_t{0}).has_value());
  }
}

TEST_CASE("targets in mesh order precede the others") {
  for (const Listed& listed : some_lists()) {
    const LayoutGraph& graph = *listed.graph;
    LayoutGraph::Scratch scratch;
    for (std::uint32_t at = 0; at < graph.states().size(); ++at) {
      const Exits& exits = graph.exits(at, scratch);
      for (std::size_t run = 0; run < exits.runs.size(); ++run) {
        const Targets& targets = graph.targets(at, exits, run, scratch);
        REQUIRE(targets.forms.size() == targets.states.size());
        for (std::size_t k = 0; k < targets.states.size(); ++k) {
          CHECK(graph.is_in_mesh_order(targets.states[k]) ==
                (k < targets.in_order));
        }
      }
    }
  }
}

TEST_CASE("exchanges of one form between even shards cost the same") {
  // Every layout cuts every dim evenly into parts of more than one element.
  for (const auto& [mesh, tensor] :
       {std::pair{"2,2,2", "f32[64,64,64]"}, std::pair{"2,4", "bf16[64,64]"}}) {
    const Listed listed(mesh, tensor, {});
    const LayoutGraph& graph = *listed.graph;
    const redistribute::GroupTimes times(default_topology(), listed.mesh,
                                         listed.active, 0);
    MovePricer pricer(times, listed.active, *listed.alphabet, listed.meta);
    std::map<std::tuple<Mask, std::int64_t, redistribute::MoveForm>,
             std::int64_t>
        prices;
    int compared = 0;
    LayoutGraph::Scratch scratch;
    for (std::uint32_t at = 0; at < graph.states().size(); ++at) {
      const State& from = graph.states()[at];
      const LocalSize from_size = pricer.local_size(from);
      REQUIRE(from_size.even);
      const Exits& exits = graph.exits(at, scratch);
      for (std::size_t run = 0; run < exits.runs.size(); ++run) {
        const auto [move, group] = exits.runs[run];
        if (move != Move::kExchange) continue;
        const Targets& targets = graph.targets(at, exits, run, scratch);
        for (std::size_t k = 0; k < targets.states.size(); ++k) {
          const State& to = graph.states()[targets.states[k]];
          const std::int64_t price = pricer
                                         .price(move, group, from, from_size,
                                                to, pricer.local_size(to))
                                         .nanoseconds;
          const auto [known, is_new] = prices.try_emplace(
              {group, graph.all_parts(at), targets.forms[k]}, price);
          CHECK(known->second == price);
          compared += is_new ? 0 : 1;
        }
      }
    }
    CHECK(compared > 10);
    CHECK(prices.size() > 3);
  }
}

TEST_CASE("a LayoutGraph of too many layouts is not built") {
  const Listed listed("2,4", "f32[8,16]", {kSum});
  const std::size_t count = listed.graph->states().size();
  CHECK(LayoutGraph::build(listed.active, *listed.alphabet, count) != nullptr);
  CHECK(LayoutGraph::build(listed.active, *listed.alphabet, count - 1) ==
        nullptr);
}

TEST_CASE("LayoutGraphs builds a graph for an alphabet that recurs") {
  const Listed listed("2,4", "f32[8,16]", {});
  const Listed others("2,4", "f32[8,16]", {kSum});
  const LayoutGraphs graphs;
  for (int request = 1; request <= 3; ++request) {
    CHECK(graphs.get(listed.active, *listed.alphabet) == nullptr);
  }
  const auto built = graphs.get(listed.active, *listed.alphabet);
  REQUIRE(built != nullptr);
  CHECK(built->states() == listed.graph->states());
  CHECK(graphs.get(listed.active, *listed.alphabet) == built);
  // Other partials are another alphabet, which was not requested yet.
  CHECK(graphs.get(others.active, *others.alphabet) == nullptr);
  CHECK(graphs.listed(listed.active, 2, listed.meta, {}) == built);
  const auto with_sum =
      graphs.listed(listed.active, 2, listed.meta, {&kSum, 1});
  REQUIRE(with_sum != nullptr);
  CHECK(with_sum->states() == others.graph->states());
}

TEST_CASE("an alphabet with strided shards has no LayoutGraph") {
  const DeviceMesh mesh = value_of(DeviceMesh::parse("2,2"));
  const TensorMeta meta = value_of(TensorMeta::parse("f32[16,8]"));
  const ActiveDims active(mesh);
  const Layout strided = value_of(Layout::parse("SS(0,4),R"));
  const Alphabet alphabet = value_of(
      Alphabet::create(active, meta, {&strided, 1}, SplitFactors::kEndpoints));
  const LayoutGraphs graphs;
  for (int request = 0; request < 10; ++request) {
    CHECK(graphs.get(active, alphabet) == nullptr);
  }
}

}  // namespace
}  // namespace shardprop
