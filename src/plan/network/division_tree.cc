#include "plan/network/division_tree.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace shardprop {

namespace {

// Returns the indices of the choices with these labels, in ascending order.
std::vector<std::uint32_t> choices_with(
    const NetworkLabels::Choices& choices,
    const std::vector<std::uint64_t>& labels) {
  std::vector<std::uint32_t> out;
  for (std::uint32_t c = 0; c < choices.size(); ++c) {
    if (std::find(labels.begin(), labels.end(), choices[c]) != labels.end()) {
      out.push_back(c);
    }
  }
  return out;
}

// Leaves the choices in `first`, or the other ones. Returns whether there is one.
bool keep_part(ChoicesLeft& left, std::size_t variable,
               const std::vector<std::uint32_t>& first, bool is_first,
               const NetworkAssignment& all) {
  return left.keep_if(all, variable, [&](std::uint32_t choice) {
    return std::binary_search(first.begin(), first.end(), choice) == is_first;
  });
}

// Returns whether each part of the division has a choice.
std::pair<bool, bool> parts_of(const ChoicesLeft& left, std::size_t variable,
                               const std::vector<std::uint32_t>& first,
                               const NetworkAssignment& all) {
  ChoicesLeft in_first = left;
  ChoicesLeft in_second = left;
  return {keep_part(in_first, variable, first, true, all),
          keep_part(in_second, variable, first, false, all)};
}

}  // namespace

bool has_windows(const DivisionTree& tree, std::size_t windows) {
  return !tree.nodes.empty() &&
         std::all_of(tree.nodes.begin(), tree.nodes.end(),
                     [&](const DivisionTree::Node& node) {
                       return node.is_divided() ||
                              node.multipliers.size() == windows;
                     });
}

NetworkDivisions::NetworkDivisions(const DivisionTree& tree,
                                   const NetworkLabels& labels,
                                   const NetworkAssignment& all)
    : nodes_(1) {
  std::unordered_map<std::uint64_t, std::size_t> variables;
  for (std::size_t v = 0; v < labels.variables.size(); ++v) {
    variables.emplace(labels.variables[v], v);
  }
  struct Open {
    std::size_t of_tree = 0;
    std::size_t node = 0;
  };
  std::vector<Open> open(1);
  while (!open.empty()) {
    const Open here = open.back();
    open.pop_back();
    const DivisionTree::Node* node = &tree.nodes[here.of_tree];
    const auto found = variables.find(node->variable);
    if (!node->is_divided() || found == variables.end()) {
      while (node->is_divided()) node = &tree.nodes[node->parts[0]];
      Node& leaf = nodes_[here.node];
      leaf.multipliers = node->multipliers;
      if (node->messages) {
        leaf.messages = std::make_shared<const solver::Messages>(
            messages_from(labels, *node->messages));
      }
      continue;
    }
    std::vector<std::uint32_t> first =
        choices_with(*labels.choices[found->second], node->first);
    const auto [has_first, has_second] =
        parts_of(nodes_[here.node].left, found->second, first, all);
    if (has_first && has_second) {
      const std::size_t part =
          divide(here.node, found->second, std::move(first), all);
      open.push_back({node->parts[1], part + 1});
      open.push_back({node->parts[0], part});
    } else {
      // All choices that are left are in one part.
      open.push_back({node->parts[has_first ? 0 : 1], here.node});
    }
  }
}

std::size_t NetworkDivisions::divide(std::size_t node, std::size_t variable,
                                     std::vector<std::uint32_t> first,
                                     const NetworkAssignment& all) {
  const std::size_t part = nodes_.size();
  Node& whole = nodes_[node];
  Node in_first;
  in_first.multipliers = std::exchange(whole.multipliers, {});
  in_first.messages = std::exchange(whole.messages, nullptr);
  in_first.left = whole.left;
  whole.variable = variable;
  whole.first = std::move(first);
  whole.parts[0] = part;
  whole.parts[1] = part + 1;
  Node in_second = in_first;
  keep_part(in_first.left, variable, whole.first, true, all);
  keep_part(in_second.left, variable, whole.first, false, all);
  nodes_.push_back(std::move(in_first));
  nodes_.push_back(std::move(in_second));
  return part;
}

DivisionTree NetworkDivisions::named(const NetworkLabels& labels) const {
  DivisionTree out;
  for (const Node& node : nodes_) {
    DivisionTree::Node named;
    if (node.is_divided()) {
      named.variable = labels.variables[node.variable];
      for (const std::uint32_t choice : node.first) {
        named.first.push_back((*labels.choices[node.variable])[choice]);
      }
      named.parts[0] = node.parts[0];
      named.parts[1] = node.parts[1];
    } else {
      named.multipliers = node.multipliers;
      if (node.messages) {
        named.messages = std::make_shared<const NamedMessages>(
            named_messages(labels, *node.messages));
      }
    }
    out.nodes.push_back(std::move(named));
  }
  return out;
}

}  // namespace shardprop
