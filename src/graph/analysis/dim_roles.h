// DimRoles finds the roles of a program's tensor dims: batch, tokens, the dims
// that tensor parallelism shards, experts. It reads the structure of the graph
// and no names.
//
// Each role starts at certain dims and is followed through the operators
// (dim_trace.h):
//   batch     the first dim of user inputs: the one by whose rows the matmuls
//             with parameters run
//   tokens    the second dim of token ids, or of [batch, tokens, features], if
//             matmuls with parameters run over it
//   tensor    the columns of the first matmul of a pair, up to the rows of the
//             second: of feed-forward blocks, of attention by heads; the
//             vocabulary of embedding and loss. If a split divides the columns
//             into equal pieces, the role is that of each piece: the trace of
//             q, k and v in one matmul has outer 3
//   experts   the first dim of parameters of rank 3 or more that matmuls read,
//             if each index of it is a matrix of its own
// A dim of size 1 is in no factor, so a batch of 1 is not followed. A matmul is
// the first of a pair if its columns reach another matmul that contracts them,
// or the loss. On the way there must be no operator that is blocked along them,
// and no residual stream.
#pragma once

#include "base/index.h"
#include "graph/analysis/dim_trace.h"

#include <shardprop/graph/graph.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace shardprop {

enum class DimRole : std::uint8_t { kBatch, kTokens, kTensor, kExperts };
inline constexpr std::size_t kNumDimRoles = 4;

// Returns the floating-point operations of one call.
double flops_of(const IndexSpace& space);

class DimRoles {
 public:
  // `spaces` has the index space of every node, or null. The graph must outlive
  // the object, and so must the index spaces.
  DimRoles(const Graph& graph, std::vector<const IndexSpace*> spaces);

  // Returns the factor of a node through which the role is followed.
  const std::optional<FactorTrace>& factor(NodeId node, DimRole role) const {
    return of(role).nodes[node.index()];
  }
  const std::optional<DimTrace>& dim(ValueId value, DimRole role) const {
    return of(role).values[value.index()];
  }
  bool has(DimRole role) const;
  // The role of the rows that data parallelism shards: the batch, or the tokens
  // if the batch is 1.
  DimRole rows() const { return rows_; }

  // Returns the operand of a matmul that is a parameter; empty for other nodes.
  const std::optional<std::size_t>& weight(NodeId node) const {
    return weight_[node.index()];
  }
  bool is_product(NodeId node) const { return weight(node).has_value(); }
  // Returns whether the factor is one of the rows of a matmul with a parameter:
  // it is kept in the result of the matmul, or summed over in the parameter's
  // gradient. Kernels of convolutions have no such rows.
  bool is_row(NodeId node, FactorId factor) const;

 private:
  struct Traced {
    std::vector<std::optional<DimTrace>> values;
    std::vector<std::optional<FactorTrace>> nodes;
  };
  const Traced& of(DimRole role) const { return traced_[index(role)]; }
  Traced& of(DimRole role) { return traced_[index(role)]; }

  void find_parameters();
  void find_products();
  void find_gradients();
  void seed_batch();
  bool runs_by_rows(const Node& node, FactorId factor) const;
  double flops_by_rows() const;
  void seed_tokens();
  void drop_idle_tokens();
  void seed_experts();
  void follow(DimRole role);
  void follow_tensor();
  // Walks the graph once; matmuls in `alone` begin no pair. Returns the matmuls
  // that began a pair without a second.
  std::vector<NodeId> walk_tensor(const std::vector<bool>& alone);
  // Marks the gradients of parameters with the tensor role, and their
  // producers, if the walk through the program has not marked them.
  void follow_gradients();
  void follow_back(ValueId value, const DimTrace& at);

  // Returns the trace that the node follows: the one with the most elements in
  // its operands. Computed operands decide before parameters.
  std::optional<FactorTrace> strongest(const Node& node, DimRole role) const;
  void mark_outputs(const Node& node, DimRole role, const FactorTrace& trace);
  // Hop is a value on the way from a matmul to its parameter. `maker` is its
  // producer and `factor` the factor of the producer that is followed. The
  // parameter itself has neither.
  struct Hop {
    ValueId value;
    DimTrace dim;
    NodeId maker;
    std::optional<FactorTrace> factor;
  };
  std::vector<Hop> way_back(const Node& node, std::size_t operand,
                            const FactorTrace& trace) const;
  void mark_parameter(const Node& node, std::size_t operand,
                      const FactorTrace& trace);
  std::optional<std::size_t> looked_up(const Node& node) const;
  bool is_stream(ValueId value) const;
  // Returns the number of equal pieces into which the dim is split after views:
  // 3 for fused queries, keys and values. Returns 1 if no split follows, or if
  // its pieces cannot be sharded.
  std::int64_t pieces_of(ValueId value, const DimTrace& at) const;

  const Graph& graph_;
  DimRole rows_ = DimRole::kBatch;
  std::vector<const IndexSpace*> spaces_;
  std::array<Traced, kNumDimRoles> traced_;
  // By value: its parameter, if it is a view or a cast of one.
  std::vector<ValueId> parameter_;
  // By node: the operand of a matmul that is a parameter.
  std::vector<std::optional<std::size_t>> weight_;
  // By node: whether it is the matmul that computes a parameter's gradient.
  std::vector<bool> makes_gradient_;
};

}  // namespace shardprop
