// A Plan as text for people: what it is in words, totals, how parameters lie,
// and what is sent, dearest first. Repeated layers that are planned alike stand
// once: `layers.0..31 (x32)`.
#pragma once

#include <shardprop/plan/plan.h>

#include <string>

namespace shardprop {

struct TextOptions {
  // Every module and every redistribution, with its reason; else about a
  // screen.
  bool detail = false;
};

// Ends in a newline. Not stable: scripts read plan_to_json().
std::string plan_to_text(const Plan& plan, const TextOptions& options = {});

}  // namespace shardprop
