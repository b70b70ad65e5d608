// Prints the local program of each rank in words.
#pragma once

#include <shardprop/strategy/local_context.h>
#include <shardprop/strategy/local_program.h>

#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace shardprop::testing {

// Steps by name; collectives as "all_reduce(max)", "all_gather".
inline std::vector<std::string> steps_of(const LocalProgram& program) {
  std::vector<std::string> names;
  for (const LocalStep& step : program.steps) {
    if (const auto* op = std::get_if<LocalOp>(&step)) {
      names.push_back(op->name);
    } else {
      const auto& collective = std::get<LocalCollective>(step);
      std::string name(to_string(collective.kind));
      if (collective.op) {
        name += "(" + std::string(to_string(*collective.op)) + ")";
      }
      names.push_back(std::move(name));
    }
  }
  return names;
}

// "all_reduce of 8 bytes", in order.
inline std::vector<std::string> messages_of(const LocalContext& context) {
  std::vector<std::string> out;
  for (const LocalStep& step : local_program(context).steps) {
    if (const auto* one = std::get_if<LocalCollective>(&step)) {
      out.push_back(std::string(to_string(one->kind)) + " of " +
                    std::to_string(one->bytes) + " bytes");
    }
  }
  return out;
}

using Messages = std::vector<std::string>;

}  // namespace shardprop::testing
