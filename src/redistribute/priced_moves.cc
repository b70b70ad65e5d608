#include "redistribute/priced_moves.h"

#include "redistribute/growing_layout_graph.h"

namespace shardprop::redistribute {

PricedMoves::PricedMoves(const GroupTimes& times, const ActiveDims& active,
                         const LayoutGraph& graph, const TensorMeta& meta,
                         bool requires_held_bytes) {
  LayoutPrices prices(times, active, graph, meta);
  const auto& states = graph.states();
  prices.resize(states.size());
  LayoutGraph::Scratch scratch;
  std::vector<PricedMove> moves;
  for (std::uint32_t at = 0; at < states.size() && !is_too_large(); ++at) {
    const Exits& exits = graph.exits(at, scratch);
    for (std::size_t r = 0; r < exits.runs.size(); ++r) {
      const Exits::Run& run = exits.runs[r];
      const Targets& targets = graph.targets(at, exits, r, scratch);
      LayoutPrices::RunPrices run_prices(prices, at, run);
      for (std::size_t k = 0; k < targets.states.size(); ++k) {
        const std::uint32_t to = targets.states[k];
        if (requires_held_bytes) {
          const MovePrice price = prices.price(at, run.move, run.group, to);
          moves.push_back(
              {to, label_of(price.nanoseconds, 0), price.held_bytes});
        } else {
          moves.push_back(
              {to, label_of(run_prices.nanoseconds(targets.forms[k], to), 0),
               0});
        }
      }
    }
    append(moves);
  }
  finish(prices, states);
}

PricedMoves::PricedMoves(const GroupTimes& times, const ActiveDims& active,
                         const Alphabet& alphabet, const DeviceMesh& mesh,
                         const TensorMeta& meta) {
  GrowingLayoutGraph graph(active, alphabet, mesh, meta.shape());
  const auto& states = graph.states();
  LayoutPrices prices(times, active, alphabet, meta, states);
  // All layouts can be reached from the replicated layout.
  graph.insert(State{});
  prices.resize(states.size());
  std::vector<PricedMove> moves;
  for (std::uint32_t at = 0; at < states.size() && !is_too_large(); ++at) {
    graph.for_each_move(
        State(states[at]), [](Move, Mask) { return true; },
        [&](Move move, Mask group, const State& produced) {
          const auto to = graph.insert_canonical(produced);
          if (!to || *to == at) return;
          if (states.size() > prices.size()) prices.resize(states.size());
          const MovePrice price = prices.price(at, move, group, *to);
          moves.push_back(
              {*to, label_of(price.nanoseconds, 0), price.held_bytes});
        });
    append(moves);
  }
  finish(prices, states);
}

// Moves the moves of the next layout out of the buffer.
void PricedMoves::append(std::vector<PricedMove>& moves) {
  count_ += moves.size();
  moves_.emplace_back(moves.begin(), moves.end());
  moves.clear();
}

void PricedMoves::finish(LayoutPrices& prices,
                         const std::vector<State>& states) {
  if (is_too_large()) return;
  states_ = states;
  for (std::uint32_t at = 0; at < states.size(); ++at) {
    bytes_.push_back(prices.bytes(at));
  }
}

}  // namespace shardprop::redistribute
