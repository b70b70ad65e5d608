// `plan_to_text` writes a Plan as text for users: a summary in words, totals,
// the layouts of parameters, and the transfers, costliest first. Repeated
// layers with equal plans share one line: `layers.0..31 (x32)`.
#pragma once

#include <shardprop/plan/plan.h>

#include <string>

namespace shardprop {

// `TextOptions` select the length of the text.
struct TextOptions {
  // True: every module and every redistribution, with its reason. False: about
  // one screen of text.
  bool detail = false;
  // True: the search procedures follow, with their clocks and gains, and the
  // demanded factor shardings, if there are any.
  bool statistics = false;
};

// Returns the text, which ends in a newline. Its form may change; scripts read
// plan_to_json().
std::string plan_to_text(const Plan& plan, const TextOptions& options = {});

}  // namespace shardprop
