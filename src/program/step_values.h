// Visits the values that a step of a program reads and produces.
#pragma once

#include <shardprop/program/spmd_program.h>

#include <variant>
#include <vector>

namespace shardprop {

// Calls visit(id) for every value that a step reads.
template <class Visit>
void for_each_taken(const ProgramStep& step, const Visit& visit) {
  if (const auto* op = std::get_if<ProgramOp>(&step.action)) {
    for (const auto& [name, value] : op->args) {
      if (const auto* id = std::get_if<ProgramValueId>(&value)) {
        if (id->valid()) visit(*id);
      } else if (const auto* list =
                     std::get_if<std::vector<ProgramValueId>>(&value)) {
        for (const ProgramValueId element : *list) {
          if (element.valid()) visit(element);
        }
      }
    }
  } else if (const auto* collective =
                 std::get_if<ProgramCollective>(&step.action)) {
    visit(collective->input);
  }
}

// Calls visit(id) for every value that a step produces.
template <class Visit>
void for_each_made(const ProgramStep& step, const Visit& visit) {
  if (const auto* op = std::get_if<ProgramOp>(&step.action)) {
    for (const ProgramValueId id : op->outputs) {
      if (id.valid()) visit(id);
    }
  } else if (const auto* collective =
                 std::get_if<ProgramCollective>(&step.action)) {
    visit(collective->output);
  }
}

}  // namespace shardprop
