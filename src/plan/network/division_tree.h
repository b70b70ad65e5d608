// `DivisionTree` holds the branches of a search with names instead of indices: how
// the choices were divided, and the multipliers and messages of each branch.
//
//   all plans: o_proj is S(1), _ or not
//     S(1), _   not divided; multipliers 0.2, 1; messages
//     the rest  not divided; multipliers 1, 1; messages
//
// The two parts of a division contain all choices of any problem, since the second
// one has all that the first one lacks. So the branches of a tree cover all plans
// of any problem.
#pragma once

#include "plan/network/named_messages.h"
#include "plan/network/network_assignment.h"

#include <shardprop/solver/solve.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace shardprop {

struct DivisionTree {
  struct Node {
    // The label of the divided variable, and those of its choices in the first
    // part.
    std::uint64_t variable = 0;
    std::vector<std::uint64_t> first;
    // Indices of the two parts; 0 if the node is not divided.
    std::size_t parts[2] = {0, 0};
    // The multipliers and messages of the best bound, if the node is not divided.
    // The multipliers are by load of an overlap window (window_loads.h), from 0
    // to 1.
    std::vector<double> multipliers;
    std::shared_ptr<const NamedMessages> messages;  // null if there are none

    bool is_divided() const { return parts[0] != 0; }
  };
  std::vector<Node> nodes;  // the first one is the root
};

// NetworkDivisions is the same with the indices of one network.
class NetworkDivisions {
 public:
  struct Node {
    std::size_t variable = 0;
    std::vector<std::uint32_t> first;
    std::size_t parts[2] = {0, 0};
    std::vector<double> multipliers;
    std::shared_ptr<const solver::Messages> messages;
    ChoicesLeft left;  // the choices that the divisions leave

    bool is_divided() const { return parts[0] != 0; }
  };

  // Has node 0, which is not divided.
  NetworkDivisions() : nodes_(1) {}
  // Makes the divisions of the tree that the network can make. `all` is any
  // assignment of the network. A node whose variable the network lacks is not
  // divided. It then has the multipliers and messages of one of its branches.
  NetworkDivisions(const DivisionTree& tree, const NetworkLabels& labels,
                   const NetworkAssignment& all);

  Node& operator[](std::size_t node) { return nodes_[node]; }
  std::size_t size() const { return nodes_.size(); }
  // Divides a node. Its parts begin with its multipliers and messages. Returns the
  // index of the first one; the second one follows. `all` is any assignment of the
  // network.
  std::size_t divide(std::size_t node, std::size_t variable,
                     std::vector<std::uint32_t> first,
                     const NetworkAssignment& all);

  // Precondition: the labels are those of the network.
  DivisionTree named(const NetworkLabels& labels) const;

 private:
  std::vector<Node> nodes_;
};

// Returns whether all branches have multipliers for this number of windows.
bool has_windows(const DivisionTree& tree, std::size_t windows);

}  // namespace shardprop
