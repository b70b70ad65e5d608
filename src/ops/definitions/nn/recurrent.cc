// Recurrent networks are loops over time, so only the batch is sharded. Every
// step needs the full hidden state, and every gate needs the full previous
// step. Packed sequences are concatenated by time and have no batch dim.

#include "ops/definitions/families.h"
#include "ops/definitions/words.h"
#include "ops/forms/mapped.h"

#include <string>
#include <vector>

namespace shardprop {
namespace {

// Returns whether the kernel drops elements between layers, with random numbers
// of its own.
bool drops_states(const OpCall& call) {
  return call.boolean_or("train", false) && call.integer("num_layers") > 1 &&
         call.op().float_arg("dropout").value_or(0) > 0;
}

Notation network_notation(const OpCall& call, bool has_cell) {
  const bool is_packed = call.has("data");
  const bool batch_first = call.boolean_or("batch_first", false);
  require(
      call.tensor(is_packed ? "data" : "input").rank() == (is_packed ? 2 : 3),
      "the input is not a batch of sequences");
  const bool is_full = is_packed || drops_states(call);
  const DimUse batch = is_full ? DimUse::kFull : DimUse::kSharded;
  Term sequence;
  if (is_packed) {
    sequence.full({'n'});
  } else if (batch_first) {
    sequence.add('b', batch).full({'t'});
  } else {
    sequence.full({'t'}).add('b', batch);
  }
  const auto state = [&](Term size) {
    Term term = Term().full({'l'}).add('b', batch);
    term.dims.push_back(size.dims[0]);
    return term;
  };
  Notation notation;
  notation.inputs.push_back(Term(sequence).any());
  if (is_packed) notation.inputs.push_back(Term::replicated());  // lengths
  notation.inputs.push_back(state(Term().any()));
  notation.inputs.back().is_each = true;
  notation.inputs.push_back(Term::replicated());
  notation.inputs.back().is_each = true;
  notation.outputs = {Term(sequence).full({'o'}), state(Term().full({'h'}))};
  // The result is computed with time as the first dim.
  if (batch_first && !is_packed) {
    notation.outputs[0].order = ResultOrder::kSwapped;
  }
  if (has_cell) notation.outputs.push_back(state(Term().full({'c'})));
  return notation;
}

std::int64_t network_size(const OpCall& call, const FactorName& letter) {
  auto hx = call.tensors("hx");
  if (hx.empty()) hx.push_back(call.tensor("hx"));
  require(hx[0].rank() == 3, "the hidden state does not have three dims");
  const std::int64_t hidden = size_of(hx[0], 2);
  const std::int64_t cell = size_of(hx.back(), 2);
  const bool both = call.boolean_or("bidirectional", false);
  if (letter == 'c') return cell;
  if (letter == 'h') return hidden;
  return hidden * (both ? 2 : 1);
}

// Every time step multiplies every sample by the matrices of all gates.
void gate_products(const OpCall& call, IndexSpace& space) {
  const bool is_network = call.has("params");
  const std::vector<TensorMeta> weights =
      is_network ? call.tensors("params")
                 : std::vector{call.tensor("w_ih"), call.tensor("w_hh")};
  double products = 0;
  for (const TensorMeta& weight : weights) {
    if (weight.rank() == 2) products += static_cast<double>(weight.numel());
  }
  if (is_network && call.has("data")) {
    products *= static_cast<double>(size_of(call.tensor("data"), 0));
  } else if (is_network) {
    const TensorMeta& input = call.tensor("input");
    const int time = call.boolean_or("batch_first", false) ? 1 : 0;
    products *= static_cast<double>(size_of(input, time));
    // If the batch is not a factor, its samples are not counted as points.
    if (drops_states(call))
      products *= static_cast<double>(size_of(input, 1 - time));
  }
  space.flops_per_point = 2 * products;
}

OpDefinition network(bool has_cell) {
  return form(has_cell ? "lstm()" : "rnn()")
      .refine("gate_products()")
      .refine("random_states()");
}

}  // namespace

void words_of_recurrent(RuleWords& words) {
  for (const bool has_cell : {false, true}) {
    words.form(mapped(
        has_cell ? "lstm()" : "rnn()",
        [has_cell](const OpCall& call) {
          return network_notation(call, has_cell);
        },
        network_size));
  }
  words.modifier("gate_products()", gate_products);
  words.modifier("random_states()", [](const OpCall& call, IndexSpace& space) {
    space.is_random = drops_states(call);
  });
}

void define_recurrent(Family f) {
  f.add("lstm.input", network(true));
  f.add({"gru.input", "rnn_tanh.input", "rnn_relu.input"}, network(false));
  constexpr const char* kPacked =
      "replicated: packed sequences lie one behind another by time";
  f.add("lstm.data", network(true), kPacked);
  f.add({"gru.data", "rnn_tanh.data", "rnn_relu.data"}, network(false),
        kPacked);
  f.add("lstm_cell",
        mapped("b_,b{h}*,__,__,_,_->b{h},b{h}").refine("gate_products()"));
  f.add({"gru_cell", "rnn_tanh_cell", "rnn_relu_cell"},
        mapped("b_,b{h},__,__,_,_->b{h}").refine("gate_products()"));
}

}  // namespace shardprop
