// The modifiers of definitions that test arguments and sizes.

#include <shardprop/ops/op_definition.h>

#include "ops/op_call.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

namespace shardprop {
namespace {

// Returns "name(a,b)".
std::string text_with(std::string_view name,
                      const std::vector<std::string>& arguments) {
  std::string text(name);
  text += '(';
  for (const std::string& argument : arguments) {
    if (text.back() != '(') text += ',';
    text += argument;
  }
  return text + ')';
}

}  // namespace

OpDefinition OpDefinition::one_of(std::string_view argument,
                                  std::vector<std::string> words) && {
  std::string text = "one_of(" + std::string(argument);
  for (const std::string& word : words) text += ',' + word;
  return std::move(*this)
      .with_check([name = std::string(argument), words = std::move(words)](
                      const OpCall& call, const IndexSpace&) {
        const auto given =
            call.has(name) ? call.op().string_arg(name) : std::nullopt;
        require(!given || std::find(words.begin(), words.end(), *given) !=
                              words.end(),
                "`" + name + "` is none of its words");
      })
      .say(text + ')');
}

OpDefinition OpDefinition::given_one(std::vector<std::string> arguments) && {
  std::string text = text_with("given_one", arguments);
  return std::move(*this)
      .with_check([arguments = std::move(arguments)](const OpCall& call,
                                                     const IndexSpace&) {
        const bool is_given = std::any_of(
            arguments.begin(), arguments.end(), [&](const std::string& name) {
              return call.has(name) &&
                     !std::holds_alternative<NoneArg>(call.op().arg(name));
            });
        require(is_given, "none of its bounds is given");
      })
      .say(text);
}

OpDefinition OpDefinition::nonempty_reduced() && {
  return std::move(*this)
      .with_check([](const OpCall&, const IndexSpace& space) {
        for (std::size_t f = 0; f < space.factors.size(); ++f) {
          require(space.outputs.empty() ||
                      space.outputs[0].holds(static_cast<int>(f)) ||
                      space.factors[f].size > 0,
                  "it reduces a dim without elements");
        }
      })
      .refine("nonempty_reduced()", [](const OpCall&, IndexSpace& space) {
        for (std::size_t f = 0; f < space.factors.size(); ++f) {
          const bool is_kept = space.outputs.empty() ||
                               space.outputs[0].holds(static_cast<int>(f));
          if (is_kept) continue;
          Factor& factor = space.factors[f];
          factor.least = std::max<std::int64_t>(factor.least, 1);
        }
      });
}

OpDefinition OpDefinition::scales(std::vector<std::string> arguments) && {
  std::string text = text_with("scales", arguments);
  return std::move(*this).refine(
      std::move(text), [arguments = std::move(arguments)](const OpCall& call,
                                                          IndexSpace& space) {
        const auto& outputs = call.op().outputs;
        if (outputs.empty() || is_floating(outputs[0].dtype())) return;
        for (const std::string& scale : arguments) {
          if (!call.has(scale)) continue;
          const double value = call.op().float_arg(scale).value_or(1);
          if (value == std::trunc(value)) continue;
          for (Factor& factor : space.factors) factor.least = 1;
        }
      });
}

}  // namespace shardprop
