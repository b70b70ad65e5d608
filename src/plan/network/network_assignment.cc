#include "plan/network/network_assignment.h"

#include <shardprop/base/error.h>

#include <algorithm>
#include <numeric>
#include <string>

namespace shardprop {

void ChoicesLeft::check(const NetworkIdentity& network) const {
  if (variables_ && !(variables_->identity == network)) {
    throw InternalError("choices of one network are used with another");
  }
}

std::vector<std::uint32_t>& ChoicesLeft::named(
    const NetworkAssignment& assignment, std::size_t variable) {
  if (variable >= assignment.size()) {
    throw InternalError("a network has no variable " +
                        std::to_string(variable));
  }
  check(assignment.variables_->identity);
  variables_ = assignment.variables_;
  const auto [known, is_new] = left_.try_emplace(variable);
  if (is_new) {
    known->second.resize(assignment.num_choices(variable));
    std::iota(known->second.begin(), known->second.end(), 0U);
  }
  return known->second;
}

void ChoicesLeft::hold(const NetworkAssignment& assignment,
                       std::size_t variable) {
  std::vector<std::uint32_t>& left = named(assignment, variable);
  left = {assignment[variable]};
}

bool ChoicesLeft::forbid(const NetworkAssignment& assignment,
                         std::size_t variable) {
  std::vector<std::uint32_t>& left = named(assignment, variable);
  std::erase(left, assignment[variable]);
  return !left.empty();
}

bool ChoicesLeft::keep_if(const NetworkAssignment& assignment,
                          std::size_t variable,
                          const std::function<bool(std::uint32_t)>& is_kept) {
  std::vector<std::uint32_t>& left = named(assignment, variable);
  std::erase_if(left, [&](std::uint32_t choice) { return !is_kept(choice); });
  return !left.empty();
}

bool ChoicesLeft::contains(const NetworkAssignment& assignment) const {
  return std::all_of(left_.begin(), left_.end(), [&](const auto& named) {
    const auto& [variable, left] = named;
    return std::find(left.begin(), left.end(), assignment[variable]) !=
           left.end();
  });
}

const std::vector<std::uint32_t>* ChoicesLeft::of(
    const NetworkIdentity& network, std::size_t variable) const {
  check(network);
  const auto found = left_.find(variable);
  return found == left_.end() ? nullptr : &found->second;
}

}  // namespace shardprop
