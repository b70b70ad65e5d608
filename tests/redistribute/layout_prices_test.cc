// LayoutPrices gives the prices of MovePricer, and PricedMoves stores them.
#include "redistribute/layout_prices.h"

#include "redistribute/growing_layout_graph.h"
#include "redistribute/priced_moves.h"
#include "support/result_checks.h"

#include <string_view>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

using redistribute::ActiveDims;
using redistribute::Alphabet;
using redistribute::Exits;
using redistribute::GroupTimes;
using redistribute::GrowingLayoutGraph;
using redistribute::LayoutGraph;
using redistribute::LayoutPrices;
using redistribute::MovePrice;
using redistribute::MovePricer;
using redistribute::PricedMoves;
using redistribute::State;
using redistribute::Targets;
using testing::value_of;

// A mesh, a tensor and an alphabet with some partial.
struct PricedTensor {
  PricedTensor(std::string_view mesh_text, std::string_view tensor,
               std::string_view layout)
      : mesh(value_of(DeviceMesh::parse(mesh_text))),
        meta(value_of(TensorMeta::parse(tensor))),
        active(mesh),
        times(default_topology(), mesh, active, 0) {
    const Layout layouts[] = {value_of(Layout::parse(layout))};
    alphabet = value_of(Alphabet::create(active, meta, layouts,
                                         SplitFactors::kEndpointsAndMesh));
  }

  DeviceMesh mesh;
  TensorMeta meta;
  ActiveDims active;
  GroupTimes times;
  Alphabet alphabet;
};

TEST_CASE("every move of a graph has the price of MovePricer") {
  int moves = 0;
  for (const auto& [mesh, tensor] :
       {std::pair{"2,4", "bf16[64,48]"}, std::pair{"2,3", "f32[7,5]"},
        std::pair{"2,2,2", "f32[16,3,8]"}, std::pair{"4", "f32[0,8]"}}) {
    CAPTURE(mesh);
    CAPTURE(tensor);
    const PricedTensor priced(mesh, tensor,
                              std::string_view(mesh) == "4" ? "P(sum)"
                              : std::string_view(mesh) == "2,2,2"
                                  ? "P(sum),P(avg),R"
                                  : "P(sum),P(avg)");
    const auto graph =
        LayoutGraph::build(priced.active, priced.alphabet, 1 << 12);
    REQUIRE(graph != nullptr);
    const auto& states = graph->states();
    LayoutPrices prices(priced.times, priced.active, *graph, priced.meta);
    prices.resize(states.size());
    MovePricer pricer(priced.times, priced.active, priced.alphabet,
                      priced.meta);
    const PricedMoves stored(priced.times, priced.active, *graph, priced.meta,
                             true);
    REQUIRE(!stored.is_too_large());
    REQUIRE(stored.states() == states);
    LayoutGraph::Scratch scratch;
    for (std::uint32_t at = 0; at < states.size(); ++at) {
      const auto from_size = pricer.local_size(states[at]);
      CHECK(prices.bytes(at) == pricer.bytes(from_size));
      CHECK(stored.bytes(at) == pricer.bytes(from_size));
      auto next = stored.from(at).begin();
      const Exits& exits = graph->exits(at, scratch);
      for (std::size_t r = 0; r < exits.runs.size(); ++r) {
        const Exits::Run& run = exits.runs[r];
        LayoutPrices::RunPrices run_prices(prices, at, run);
        const std::int64_t least =
            prices.least_nanoseconds(at, run.move, run.group);
        const Targets& targets = graph->targets(at, exits, r, scratch);
        for (std::size_t k = 0; k < targets.states.size(); ++k, ++next) {
          const std::uint32_t to = targets.states[k];
          const MovePrice price =
              pricer.price(run.move, run.group, states[at], from_size,
                           states[to], pricer.local_size(states[to]));
          CHECK(run_prices.nanoseconds(targets.forms[k], to) ==
                price.nanoseconds);
          CHECK(least <= price.nanoseconds);
          CHECK(prices.price(at, run.move, run.group, to).held_bytes ==
                price.held_bytes);
          REQUIRE(next != stored.from(at).end());
          CHECK(next->to == to);
          CHECK(next->label == redistribute::label_of(price.nanoseconds, 0));
          CHECK(next->held_bytes == price.held_bytes);
          ++moves;
        }
      }
      CHECK(next == stored.from(at).end());
    }
  }
  CHECK(moves > 1000);
}

TEST_CASE("a growing graph numbers each canonical form once") {
  // The cuts SS(0,2),S(0) of 16 elements are those of S(0) in reverse order.
  const PricedTensor priced("2,2", "f32[16,8]", "SS(0,2),S(0)");
  REQUIRE(priced.alphabet.has_strided());
  GrowingLayoutGraph graph(priced.active, priced.alphabet, priced.mesh,
                           priced.meta.shape());
  const auto state_of = [&](std::string_view layout) {
    return to_state(value_of(Layout::parse(layout)), priced.active,
                    priced.alphabet)
        .value();
  };
  CHECK(!graph.find(state_of("R,R")).has_value());
  CHECK(graph.insert(state_of("R,R")) == 0);
  CHECK(graph.insert(state_of("R,R")) == 0);
  const Layout strided = value_of(Layout::parse("SS(0,2),S(0)"));
  const Layout form = canonical(strided, priced.mesh, priced.meta.shape());
  const auto number = graph.insert_canonical(state_of("SS(0,2),S(0)"));
  REQUIRE(number.has_value());
  CHECK(*number == 1);
  CHECK(graph.insert_canonical(state_of("SS(0,2),S(0)")) == number);
  CHECK(graph.insert(state_of(to_string(form))) == *number);
  CHECK(graph.states().size() == 2);
}

}  // namespace
}  // namespace shardprop
