// Recurrent networks: a loop over time, cut over the batch alone. Every step
// needs all of the hidden state, and every gate all of the step before.

#include "ops/definitions/families.h"
#include "ops/forms/mapped.h"

#include <string>
#include <vector>

namespace shardprop {
namespace {

std::string network_notation(const OpCall& call, bool has_cell) {
  require(call.has("batch_first"), "packed sequences have no batch dim");
  const bool batch_first = call.boolean_or("batch_first", false);
  const TensorMeta& input = call.tensor("input");
  require(input.rank() == 3, "the input is not a batch of sequences");
  require(!(call.boolean_or("train", false) &&
            call.op().float_arg("dropout").value_or(0) > 0),
          "dropout between layers draws inside the kernel");
  const std::string sequence = batch_first ? "b[t]" : "[t]b";
  return sequence + "[_],[l]b[_],*->" + sequence + "[o],[l]b[h]" +
         (has_cell ? ",[l]b[c]" : "");
}

std::int64_t network_size(const OpCall& call, char letter) {
  auto hx = call.tensors("hx");
  if (hx.empty()) hx.push_back(call.tensor("hx"));
  require(hx[0].rank() == 3, "the hidden state does not have three dims");
  const std::int64_t hidden = hx[0].size(2);
  const std::int64_t cell = hx.back().size(2);
  const bool both = call.boolean_or("bidirectional", false);
  if (letter == 'c') return cell;
  if (letter == 'h') return hidden;
  return hidden * (both ? 2 : 1);
}

// The sequence is computed with time first.
Dims network_strides(const OpCall& call, const Dims& shape, DType dtype) {
  const bool sequence = shape[2] == network_size(call, 'o') &&
                        shape[0] == call.tensor("input").size(0) &&
                        shape[1] == call.tensor("input").size(1);
  Dims strides = make_meta(shape, dtype).strides();
  if (!sequence || !call.boolean_or("batch_first", false)) return strides;
  return {shape[2], multiply_sizes(shape[0], shape[2]), 1};
}

// Every sample goes through every gate's matrices, in every step of time.
void gate_products(const OpCall& call, IndexSpace& space) {
  const bool is_network = call.has("params");
  const std::vector<TensorMeta> weights =
      is_network ? call.tensors("params")
                 : std::vector{call.tensor("w_ih"), call.tensor("w_hh")};
  double products = 0;
  for (const TensorMeta& weight : weights) {
    if (weight.rank() == 2) products += static_cast<double>(weight.numel());
  }
  if (is_network) {
    const int time = call.boolean_or("batch_first", false) ? 1 : 0;
    products *= static_cast<double>(call.tensor("input").size(time));
  }
  space.flops_per_point = 2 * products;
}

OpDefinition network(bool has_cell) {
  return mapped(
             has_cell ? "lstm()" : "rnn()",
             [has_cell](const OpCall& call) {
               return network_notation(call, has_cell);
             },
             network_size)
      .strided(network_strides)
      .refine("", gate_products);
}

}  // namespace

void define_recurrent(Family f) {
  f.add("lstm.input", network(true));
  f.add({"gru.input", "rnn_tanh.input", "rnn_relu.input"}, network(false));
  f.add("lstm_cell", mapped("b[_],b[h],[__],[__],[_],[_]->b[h],b[h]")
                         .refine("", gate_products));
  f.add({"gru_cell", "rnn_tanh_cell", "rnn_relu_cell"},
        mapped("b[_],b[h],[__],[__],[_],[_]->b[h]").refine("", gate_products));
}

}  // namespace shardprop
