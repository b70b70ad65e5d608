#include "ops/trace/choice.h"

#include <string_view>

namespace shardprop {
namespace {

constexpr std::string_view kName = "if_cut";

}  // namespace

DecompositionStep step_of(const Choice& choice) {
  DecompositionStep step;
  step.op.name = kName;
  step.op.args = {{"of", LocalRef{-1, choice.operand}},
                  {"dim", Argument(std::int64_t{choice.dim})},
                  {"cut", choice.cut},
                  {"whole", choice.whole}};
  return step;
}

std::optional<Choice> choice_of(const DecompositionStep& step) {
  if (step.op.name != kName) return std::nullopt;
  const auto ref = [&](std::size_t i) {
    return std::get<LocalRef>(step.op.args[i].second);
  };
  const auto dim =
      std::get<std::int64_t>(std::get<Argument>(step.op.args[1].second));
  return Choice{ref(0).index, static_cast<int>(dim), ref(2), ref(3)};
}

}  // namespace shardprop
