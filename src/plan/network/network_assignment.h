// NetworkAssignment holds the choices of one network's variables, together with
// the identity of those variables.
//
// Networks of one plan problem differ in their variables: a network that counts
// memory has more live intervals than one that does not, and a reserve adds one
// variable. The index of a variable of one network therefore means nothing in
// another. PlanNetwork alone makes assignments. Every use of an assignment
// checks that it belongs to the network in use, and throws InternalError if it
// does not. A plan of one network reaches another as a PlanAssignment only.
#pragma once

#include <shardprop/solver/checker.h>
#include <shardprop/solver/problem.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace shardprop {

class PlanProblem;

// Networks of one identity have the same variables, with the same choices.
struct NetworkIdentity {
  const PlanProblem* problem = nullptr;
  bool counts_memory = false;
  bool has_reserve = false;

  friend bool operator==(const NetworkIdentity&,
                         const NetworkIdentity&) = default;
};

struct NetworkVariables {
  NetworkIdentity identity;
  // By variable.
  std::vector<std::int64_t> slots;  // of the schedule
  std::vector<std::uint32_t> num_choices;
};

class NetworkAssignment {
 public:
  // Belongs to no network.
  NetworkAssignment() = default;

  bool empty() const { return choices_.empty(); }
  std::size_t size() const { return choices_.size(); }
  std::uint32_t operator[](std::size_t variable) const {
    return choices_[variable];
  }
  std::int64_t slot(std::size_t variable) const {
    return variables_->slots[variable];
  }
  std::uint32_t num_choices(std::size_t variable) const {
    return variables_->num_choices[variable];
  }
  bool is_of(const NetworkIdentity& network) const {
    return variables_ && variables_->identity == network;
  }
  bool is_of_network_of(const NetworkAssignment& other) const {
    return other.variables_ && is_of(other.variables_->identity);
  }
  friend bool operator==(const NetworkAssignment&,
                         const NetworkAssignment&) = default;

 private:
  friend class ChoicesLeft;
  friend class PlanNetwork;
  NetworkAssignment(std::shared_ptr<const NetworkVariables> variables,
                    solver::Assignment choices)
      : variables_(std::move(variables)), choices_(std::move(choices)) {}

  std::shared_ptr<const NetworkVariables> variables_;
  solver::Assignment choices_;
};

// ChoicesLeft lists the choices that a restricted network keeps. A variable
// that is not named keeps all of its choices.
class ChoicesLeft {
 public:
  // Leaves the variable the choice that it has in the assignment.
  void hold(const NetworkAssignment& assignment, std::size_t variable);
  // Forbids that choice. False if no choice is left.
  bool forbid(const NetworkAssignment& assignment, std::size_t variable);

  // Leaves the variable those of its choices for which `is_kept(choice)` holds.
  // Returns false if no choice is left.
  bool keep_if(const NetworkAssignment& assignment, std::size_t variable,
               const std::function<bool(std::uint32_t)>& is_kept);

  bool empty() const { return left_.empty(); }
  // Returns whether the assignment has remaining choices only.
  bool contains(const NetworkAssignment& assignment) const;
  // Returns the remaining choices of a variable of this network; null if it
  // keeps all.
  const std::vector<std::uint32_t>* of(const NetworkIdentity& network,
                                       std::size_t variable) const;

 private:
  std::vector<std::uint32_t>& named(const NetworkAssignment& assignment,
                                    std::size_t variable);
  void check(const NetworkIdentity& network) const;

  std::shared_ptr<const NetworkVariables> variables_;
  std::map<std::size_t, std::vector<std::uint32_t>> left_;
};

}  // namespace shardprop
