// What the dims of a program's tensors are: batch, tokens, what tensor
// parallelism cuts, experts. Found in the structure of the graph, not in names.
//
// A role begins somewhere and is followed through the operators (dim_trace.h):
//   batch     the first dim of what the user gives
//   tokens    the second dim of token ids, or of [batch, tokens, features]
//   tensor    the columns of the first product of a pair, up to the rows of the
//             second: of feed-forward blocks, of attention by heads; the
//             vocabulary of embedding and loss
//   experts   the first dim of parameters of rank 3 or more that products take,
//             where each index of it is a matrix of its own
// A product is the first of a pair where what it makes, through whatever is
// not blocked along it and without meeting the residual stream, is contracted
// in another, or ends in the loss.
#pragma once

#include "base/index.h"
#include "plan/dim_trace.h"

#include <shardprop/graph/graph.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace shardprop {

enum class DimRole : std::uint8_t { kBatch, kTokens, kTensor, kExperts };
inline constexpr std::size_t kNumDimRoles = 4;

class DimRoles {
 public:
  // `spaces`: of every node, null where it has none. The graph and they must
  // outlive the object.
  DimRoles(const Graph& graph, std::vector<const IndexSpace*> spaces);

  // The factor of a node that the role is followed through.
  const std::optional<FactorTrace>& factor(NodeId node, DimRole role) const {
    return of(role).nodes[node.index()];
  }
  const std::optional<DimTrace>& dim(ValueId value, DimRole role) const {
    return of(role).values[value.index()];
  }
  bool has(DimRole role) const;

  // A product of something with a parameter.
  bool is_product(NodeId node) const {
    return weight_[node.index()].has_value();
  }

 private:
  struct Traced {
    std::vector<std::optional<DimTrace>> values;
    std::vector<std::optional<FactorTrace>> nodes;
  };
  const Traced& of(DimRole role) const { return traced_[index(role)]; }
  Traced& of(DimRole role) { return traced_[index(role)]; }

  void find_parameters();
  void find_products();
  void seed_batch();
  void seed_tokens();
  void seed_experts();
  void follow(DimRole role);
  void follow_tensor();
  // One walk; products in `alone` begin nothing. Returns those that turn out
  // to be no first of a pair.
  std::vector<NodeId> walk_tensor(const std::vector<bool>& alone);

  // The operand whose trace the node follows, by how much it holds.
  std::optional<FactorTrace> strongest(const Node& node, DimRole role) const;
  void mark_outputs(const Node& node, DimRole role, const FactorTrace& trace);
  // A value on the way from a product to its parameter; `maker`, and the factor
  // of it that is followed, of those that lie in between.
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

  const Graph& graph_;
  std::vector<const IndexSpace*> spaces_;
  std::array<Traced, kNumDimRoles> traced_;
  // By value: the parameter that it shows or is a cast of.
  std::vector<ValueId> parameter_;
  // By node: the operand of a product that is a parameter.
  std::vector<std::optional<std::size_t>> weight_;
};

}  // namespace shardprop
