#include "ops/program/choice.h"

#include "base/index.h"

#include <string_view>

namespace shardprop {
namespace {

constexpr std::string_view kNames[] = {"if_cut", "if_joined", "if_unaligned"};

}  // namespace

std::optional<Choice::If> condition_named(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kNames); ++i) {
    if (kNames[i] == name) return static_cast<Choice::If>(i);
  }
  return std::nullopt;
}

DecompositionStep step_of(const Choice& choice) {
  DecompositionStep step;
  step.op.name = kNames[index(choice.condition)];
  step.op.args = {{"of", LocalRef{-1, choice.operand}},
                  {"dim", Argument(std::int64_t{choice.dim})},
                  {"cut", choice.cut},
                  {"whole", choice.whole}};
  return step;
}

std::optional<Choice> choice_of(const DecompositionStep& step) {
  const auto condition = condition_named(step.op.name);
  if (!condition) return std::nullopt;
  const auto ref = [&](std::size_t i) {
    return std::get<LocalRef>(step.op.args[i].second);
  };
  const auto dim =
      std::get<std::int64_t>(std::get<Argument>(step.op.args[1].second));
  return Choice{*condition, ref(0).index, static_cast<int>(dim), ref(2),
                ref(3)};
}

}  // namespace shardprop
