// OverlapBranching: the branches of an earlier search, and those for the next one.
#include "plan/search/overlap_branching.h"

#include <memory>
#include <utility>

namespace shardprop {

bool OverlapBranching::open_earlier() {
  const DivisionTree* tree = search_.branches();
  if (tree == nullptr || network_.memory_limit ||
      !has_windows(*tree, network_.overlap_multipliers.size())) {
    return false;
  }
  const PlanNetwork& network = search_.network(network_);
  divisions_ = NetworkDivisions(
      *tree, search_.labels(network_),
      network.assignment(solver::Assignment(network.num_variables(), 0)));
  bool fits = false;
  for (std::size_t n = 0; n < divisions_.size(); ++n) {
    if (divisions_[n].is_divided()) continue;
    Branch branch;
    branch.node = n;
    branch.left = divisions_[n].left;
    branch.multipliers = divisions_[n].multipliers;
    branch.messages = divisions_[n].messages;
    const bool is_bounded = !budget_.is_stopped();
    if (is_bounded) bound_at(branch, branch.multipliers);
    if (is_bounded && branch.bound >= target()) {
      fits = true;
      close(branch.bound);
    } else {
      open(std::move(branch));
    }
  }
  // A search that stopped early does not know whether they fit.
  if (fits || budget_.is_stopped()) return true;
  search_.forget_branches();
  divisions_ = {};
  open_.clear();
  return false;
}

// Bounds the branches once more with all choices that their divisions leave, up to
// the cost of the best plan. The messages of the last bound are for the choices that
// were not left out at a target, and another problem has another target.
void OverlapBranching::keep_branches() {
  if (network_.memory_limit || !search_.problem().options().keeps_warm_start) {
    return;
  }
  for (std::size_t n = 0; n < divisions_.size() && !budget_.is_stopped(); ++n) {
    NetworkDivisions::Node& node = divisions_[n];
    if (node.is_divided() || !node.messages) continue;
    solver::Messages messages = *node.messages;
    NetworkOptions options = at(node.multipliers);
    options.left = node.left;
    search_.improve(messages, options, best_.solution().evaluation.objective,
                    budget_);
    node.messages =
        std::make_shared<const solver::Messages>(std::move(messages));
  }
  search_.keep(divisions_.named(search_.labels(network_)));
}

}  // namespace shardprop
