// `CollectiveCall` is the part of one rank in one collective, in the form that
// engines receive.
//
// Let n be the number of ranks in the group, i the index of this rank, and T
// the number of tensors in the call (a coalesced collective has several):
//
//   all_gather      inputs  T      inputs[t] goes to all members
//                   outputs T*n    outputs[t*n+r] receives inputs[t] of r
//   reduce_scatter  inputs  T*n    inputs[t*n+r]: this rank's term for rank r
//                   outputs T      outputs[t] = op over ranks of inputs[t*n+i]
//   all_reduce      inputs  T      outputs[t] = op over ranks of inputs[t]
//                   outputs T
//   broadcast       inputs  T on the root, else 0; outputs T on every rank
//   all_to_all, permute, send_recv
//                   sends, receives: the tensors to and from each peer
//
// Tensors that are combined have one shape and dtype. They may be uneven over
// ranks (shards), strided and empty. The k-th piece of a message that is sent
// arrives in the k-th piece received. A rank may send to itself. Between two
// ranks there is at most one message per call. Every member must make the call,
// even if it sends and receives nothing.
//
// Inputs are never written. An output may be the same view as an input in these
// in-place forms:
//
//   * all_reduce, and the root of a broadcast: outputs[t] and inputs[t];
//   * all_gather: outputs[t*n+i] and inputs[t];
//   * reduce_scatter: outputs[t] and inputs[t*n+i].
//
// Otherwise no output overlaps another tensor of the call.
#pragma once

#include <shardprop/collective/local_tensor.h>
#include <shardprop/mesh/collective_kind.h>
#include <shardprop/placement/placement.h>

#include <cstdint>
#include <string>
#include <vector>

namespace shardprop {

// `Message` is the pieces that a rank exchanges with one peer in one direction.
struct Message {
  std::int64_t peer = 0;  // index in the group
  std::vector<LocalTensor> pieces;
};

struct CollectiveCall {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  ReduceOp op = ReduceOp::kSum;  // for all_reduce and reduce_scatter
  std::int64_t root = 0;         // for broadcast: index in the group
  // For all_to_all: if true, every message is counted (and may be sent) at the
  // size of the largest one. Engines without uneven exchanges send in this way.
  bool padded = false;
  std::vector<LocalTensor> inputs;
  std::vector<LocalTensor> outputs;
  std::vector<Message> sends;
  std::vector<Message> receives;
  // Purpose, for error messages: "step 2 of f32[8] S(0) -> R".
  std::string where;
};

// Returns the logical payload in bytes: the bytes that this rank sends,
// including padding, by the formulas of nccl-tests' PERFORMANCE.md. Plans state
// its maximum over ranks.
//
//   all_gather      (n-1) * largest shard, over all T
//   reduce_scatter  (n-1) * largest shard
//   all_reduce      2 (n-1) * ceil(elements / n) * item size
//   all_to_all      bytes sent to others; padded: (n-1) * largest message
//   permute, send_recv   bytes sent to others
//   broadcast       all bytes on the root, else 0
std::int64_t payload_bytes(const CollectiveCall& call, std::int64_t ranks,
                           std::int64_t index);

// Prints "all_reduce(sum) of f32[8,4]", for messages.
std::string to_string(const CollectiveCall& call);

}  // namespace shardprop
