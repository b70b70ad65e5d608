// The modifiers of definitions that test arguments and sizes.

#include <shardprop/ops/op_definition.h>

#include "ops/op_call.h"
#include "ops/schema/operand_name.h"
#include "ops/text_with_arguments.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

namespace shardprop {
namespace {

// Returns "`min` and `max`".
std::string listed(const std::vector<std::string>& words,
                   std::string_view last_joint) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? last_joint : ", ";
    text += '`' + words[i] + '`';
  }
  return text;
}

// Returns "dim 1 of `self`": a dim of an operand that has the factor.
std::string dim_with(const OpCall& call, const IndexSpace& space, int factor) {
  for (std::size_t i = 0; i < space.inputs.size(); ++i) {
    const auto& dims = space.inputs[i].dims;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      if (std::find(dims[d].begin(), dims[d].end(), factor) == dims[d].end()) {
        continue;
      }
      return "dim " + std::to_string(d) + " of `" + operand_name(call.op(), i) +
             '`';
    }
  }
  return "a dim";
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
        if (!given ||
            std::find(words.begin(), words.end(), *given) != words.end()) {
          return;
        }
        call_error('`' + name + "` is `" + std::string(*given) +
                   "`, expected " + listed(words, " or "));
      })
      .say(text + ')');
}

OpDefinition OpDefinition::given_one(std::vector<std::string> arguments) && {
  std::string text = text_with_arguments("given_one", arguments);
  return std::move(*this)
      .with_check([arguments = std::move(arguments)](const OpCall& call,
                                                     const IndexSpace&) {
        const bool is_given = std::any_of(
            arguments.begin(), arguments.end(), [&](const std::string& name) {
              return call.has(name) &&
                     !std::holds_alternative<NoneArg>(call.op().arg(name));
            });
        if (is_given) return;
        call_error(listed(arguments, " and ") +
                   " are None, expected at least one");
      })
      .say(text);
}

OpDefinition OpDefinition::nonempty_reduced() && {
  return std::move(*this)
      .with_check([](const OpCall& call, const IndexSpace& space) {
        for (std::size_t f = 0; f < space.factors.size(); ++f) {
          const auto factor = static_cast<int>(f);
          if (space.factors[f].size > 0 || space.outputs.empty() ||
              space.outputs[0].holds(factor)) {
            continue;
          }
          call_error(dim_with(call, space, factor) +
                     " has 0 elements and is reduced, expected at least 1");
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
  std::string text = text_with_arguments("scales", arguments);
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
