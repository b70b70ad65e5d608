// `WarmStart` holds the messages of a search's best bound for the next search of
// the same process, with names instead of indices. The next problem may have
// other pins, sizes or layers.
//
//   search of lm_head.weight=R,R  ->  messages between the cached layouts of
//   lm_head.weight and mm_224, by pairs of layouts
//   search without the pin        ->  starts from the messages of the pairs that
//                                     both problems have
//
// Any messages give a valid bound (solver::Messages). So nothing depends on how
// well the two problems agree except the time of the next search.
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

struct WarmStart {
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

std::shared_ptr<const WarmStart> warm_start_of(
    const NetworkLabels& labels, const solver::Messages& messages);

// Returns the messages between variables that the network has. A choice that
// the start does not know has an infinite cost, which means that it is unknown.
solver::Messages messages_from(const NetworkLabels& labels,
                               const WarmStart& start);

}  // namespace shardprop
