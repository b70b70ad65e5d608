// `NamedMessages` are messages of a dual bound (solver::Messages) with names
// instead of indices, so that networks of other problems can start from them.
#pragma once

#include "plan/network/plan_network.h"

#include <shardprop/solver/solve.h>

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace shardprop {

// NetworkLabels names the variables of a network and their choices. A label is
// a hash. If two variables have the same label, the messages of one are used
// for both, which costs time only.
struct NetworkLabels {
  using Choices = std::vector<std::uint64_t>;

  explicit NetworkLabels(const PlanNetwork& network);

  // By variable of the network. Variables with the same choices share them.
  std::vector<std::uint64_t> variables;
  std::vector<std::shared_ptr<const Choices>> choices;
};

struct NamedMessages {
  // Message is a message between two variables, by the receiver's choices.
  struct Message {
    std::uint64_t sender = 0;
    std::uint64_t receiver = 0;
    std::vector<float> costs;
  };
  std::vector<Message> messages;
  // By the label of a receiver.
  std::unordered_map<std::uint64_t,
                     std::shared_ptr<const NetworkLabels::Choices>>
      choices;
};

NamedMessages named_messages(const NetworkLabels& labels,
                             const solver::Messages& messages);

// Returns the messages between variables that the network has. A choice that
// the start does not know has an infinite cost, which means that it is unknown.
solver::Messages messages_from(const NetworkLabels& labels,
                               const NamedMessages& start);

}  // namespace shardprop
