#include "plan/problem/constraints/pinned_choices.h"

#include "plan/problem/choices/choice_subsets.h"
#include "plan/tuning.h"

#include <algorithm>
#include <string>
#include <utility>

namespace shardprop {

PinnedChoices::PinnedChoices(ProblemData& data, PinnedValues values)
    : data_(data), values_(std::move(values)) {
  for (const GraphInput& input : data.graph.inputs()) {
    for (const PinnedLayout& pinned : values_.used(input.value)) {
      uses_[input.value].push_back(
          {input.value, &pinned, data.layouts.intern(pinned.layout)});
    }
  }
}

bool PinnedChoices::produces_pinned(const Node& node) const {
  return std::any_of(
      node.outputs.begin(), node.outputs.end(),
      [&](ValueId output) { return produced(output) != nullptr; });
}

std::shared_ptr<const ChoiceSet> PinnedChoices::that_make(
    const Node& node, std::shared_ptr<const ChoiceSet> set) {
  for (std::size_t o = 0; o < node.outputs.size(); ++o) {
    const PinnedLayout* pinned = produced(node.outputs[o]);
    if (pinned == nullptr) continue;
    auto kept = with_layout(set, set->num_uses + o,
                            data_.layouts.intern(pinned->layout));
    if (kept->size() > 0) {
      set = std::move(kept);
    } else {
      values_.pass_over(node.outputs[o], no_strategy(node, o, *set, *pinned));
    }
  }
  return set;
}

template <class Look>
std::shared_ptr<const ChoiceSet> PinnedChoices::take(
    const Node& node, std::shared_ptr<const ChoiceSet> set, const Look& look) {
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const auto found = uses_.find(node.inputs[i]);
    if (found == uses_.end()) continue;
    for (const Use& use : found->second) {
      if (!values_.is_for(*use.pinned, use.input, node)) continue;
      auto kept = with_layout(set, i, use.layout);
      const bool is_kept = kept->size() > 0;
      if (is_kept) set = std::move(kept);
      look(use, is_kept);
    }
  }
  return set;
}

std::shared_ptr<const ChoiceSet> PinnedChoices::that_take(
    const Node& node, std::shared_ptr<const ChoiceSet> set) {
  return take(node, std::move(set), [&](const Use& use, bool is_kept) {
    if (is_kept) values_.note_used(use.input, *use.pinned);
  });
}

PinnedChoices::Taken PinnedChoices::taken(
    const Node& node, std::shared_ptr<const ChoiceSet> set) {
  Taken out;
  take(node, std::move(set), [&](const Use&, bool is_kept) {
    ++out.all;
    if (is_kept) ++out.kept;
  });
  return out;
}

void PinnedChoices::pass_over_state(ValueId parameter) {
  const PinnedLayout* pinned = values_.state(parameter);
  if (pinned == nullptr) return;
  const std::string& name = data_.graph.value(parameter).display_name();
  const PinnedLayout* own = produced(parameter);
  const bool has_optimizer = data_.options.optimizer != Optimizer::kNone;
  values_.pass_over_state(
      parameter,
      Error{ErrorCode::kPinNoStrategy,
            has_optimizer ? "the state of `" + name + "` cannot be " +
                                to_string(pinned->layout)
                          : "`" + name + "` has no optimizer state",
            "--pin '" + to_string(data_.options.pins[pinned->pin]) + "'",
            own == nullptr || !has_optimizer
                ? std::vector<std::string>{}
                : std::vector<std::string>{"the parameter is pinned to " +
                                           to_string(own->layout)},
            has_optimizer
                ? "pin the parameter to the same layout, or to one that is "
                  "gathered from it"
                : "name an optimizer, as in --optimizer adamw"});
}

void PinnedChoices::see_view(const Node& view, const ChoiceSet& set) {
  const auto found = uses_.find(view.inputs[0]);
  if (found == uses_.end()) return;
  std::vector<Use> seen;
  for (Use use : found->second) {
    for (std::size_t c = 0; c < set.size(); ++c) {
      if (set.layout(c, 0) != use.layout) continue;
      use.layout = set.layout(c, 1);
      seen.push_back(use);
      break;
    }
  }
  uses_[view.outputs[0]] = std::move(seen);
}

std::shared_ptr<const ChoiceSet> PinnedChoices::with_layout(
    const std::shared_ptr<const ChoiceSet>& set, std::size_t operand,
    LayoutId required) {
  auto& kept = kept_[{set, operand, required}];
  if (!kept) kept = restricted(*set, operand, required);
  return kept;
}

Error PinnedChoices::no_strategy(const Node& node, std::size_t output,
                                 const ChoiceSet& set,
                                 const PinnedLayout& required) const {
  std::string produced;
  const auto& layouts = set.layouts[set.num_uses + output];
  for (std::size_t i = 0;
       i < std::min(layouts.size(), tuning::kMostListedLayouts); ++i) {
    produced += (i == 0 ? "" : "  ") + to_string(data_.layouts[layouts[i]]);
  }
  if (layouts.size() > tuning::kMostListedLayouts) produced += "  ...";
  return Error{ErrorCode::kPinNoStrategy,
               "no strategy of `" + node.op_name() + "` makes `" + node.name +
                   "` as " + to_string(required.layout),
               "--pin '" + to_string(data_.options.pins[required.pin]) + "'",
               {"it can be made as " + produced},
               "pin it to one of these, or pin what takes it instead"};
}

}  // namespace shardprop
