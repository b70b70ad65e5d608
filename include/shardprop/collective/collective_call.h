// CollectiveCall: one rank's part in one collective, as engines are asked for
// it.
//
// With n ranks in the group, i being this rank's index and T any number of
// tensors that travel together (a coalesced collective):
//
//   all_gather      inputs  T      inputs[t] goes to everyone
//                   outputs T*n    outputs[t*n+r] receives inputs[t] of r
//   reduce_scatter  inputs  T*n    inputs[t*n+r] is my term of what r gets
//                   outputs T      outputs[t] = op over ranks of inputs[t*n+i]
//   all_reduce      inputs  T      outputs[t] = op over ranks of inputs[t]
//                   outputs T
//   broadcast       inputs  T on the root, else 0; outputs T on every rank
//   all_to_all, permute, send_recv
//                   sends, receives: what goes to and comes from each peer
//
// Tensors that meet have one shape and dtype; they may be uneven over ranks
// (shards), strided and empty. A message's pieces pair up: the k-th piece sent
// arrives in the k-th piece received. A rank may send to itself; between two
// ranks there is at most one message a call. Every member of the group makes
// the call, also one that sends and receives nothing.
//
// Inputs are never written. An output may be the very view of an input in
// all_reduce (inputs[t], outputs[t]) and on the root of a broadcast; in
// all_gather outputs[t*n+i] may be inputs[t], in reduce_scatter outputs[t] may
// be inputs[t*n+i]: the in-place forms. Otherwise outputs overlap nothing.
#pragma once

#include <shardprop/collective/local_tensor.h>
#include <shardprop/mesh/collective_kind.h>
#include <shardprop/placement/placement.h>

#include <cstdint>
#include <string>
#include <vector>

namespace shardprop {

struct Message {
  std::int64_t peer = 0;  // index in the group
  std::vector<LocalTensor> pieces;
};

struct CollectiveCall {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  ReduceOp op = ReduceOp::kSum;  // of the two that reduce
  std::int64_t root = 0;         // of a broadcast: index in the group
  // Of an all_to_all: whether a message is counted (and may be sent) with the
  // room of the largest one, as engines without uneven exchanges do.
  bool padded = false;
  std::vector<LocalTensor> inputs;
  std::vector<LocalTensor> outputs;
  std::vector<Message> sends;
  std::vector<Message> receives;
  // What it is for, "step 2 of f32[8] S(0) -> R": stands in errors.
  std::string where;
};

// Logical payload: what this rank sends, padding included, by the formulas of
// nccl-tests' PERFORMANCE.md. Over ranks the most of it is what plans state.
//
//   all_gather      (n-1) * largest shard, over all T
//   reduce_scatter  (n-1) * largest shard
//   all_reduce      2 (n-1) * ceil(elements / n) * item size
//   all_to_all      what goes to others; padded: (n-1) * largest message
//   permute, send_recv   what goes to others
//   broadcast       all of it on the root, else 0
std::int64_t payload_bytes(const CollectiveCall& call, std::int64_t ranks,
                           std::int64_t index);

// "all_reduce(sum) of f32[8,4]", for messages.
std::string to_string(const CollectiveCall& call);

}  // namespace shardprop
