// This file has the modifiers that set the strides of results.

#include <shardprop/ops/op_definition.h>

#include "base/quantities.h"
#include "ops/forms/shared_form.h"
#include "ops/op_call.h"
#include "ops/rules/rule_words.h"
#include "ops/space/view_strides.h"
#include "ops/text_with_arguments.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

namespace shardprop {
namespace {

Dims elementwise_strides(const OpCall& call, const Dims&, DType dtype) {
  return elementwise(call.op().inputs, dtype).strides();
}

// Returns the declared number of results; a list may have any number.
std::size_t most_results(const OpCall& call) {
  const auto& returns = call.op().function->returns();
  const bool has_list =
      std::any_of(returns.begin(), returns.end(),
                  [](const ArgumentSchema& one) { return one.is_list; });
  return has_list ? std::numeric_limits<std::size_t>::max() : returns.size();
}

}  // namespace

OpDefinition OpDefinition::with_strides(StridesOf strides) && {
  strides_.assign(1, std::move(strides));
  return std::move(*this);
}

OpDefinition OpDefinition::strided(StridesOf strides) && {
  unprinted_.emplace_back("strided");
  return std::move(*this).with_strides(std::move(strides));
}

OpDefinition OpDefinition::strided(std::string_view word) && {
  const StridesOf* strides = rule_words().find_strides(word);
  if (strides == nullptr) {
    throw InternalError("`" + std::string(word) + "` is no word of strides");
  }
  return std::move(*this).with_strides(*strides).say("strided(" +
                                                     std::string(word) + ")");
}

OpDefinition OpDefinition::elementwise() && {
  return std::move(*this)
      .with_strides(elementwise_strides)
      .say("elementwise()");
}

OpDefinition OpDefinition::elementwise(std::vector<std::string> arguments) && {
  std::string text = text_with_arguments("elementwise", arguments);
  return std::move(*this)
      .with_strides([arguments = std::move(arguments)](
                        const OpCall& call, const Dims& shape, DType dtype) {
        std::vector<TensorMeta> operands;
        for (const std::string& argument : arguments) {
          if (const TensorMeta* meta = call.optional_tensor(argument)) {
            operands.push_back(*meta);
          }
        }
        const TensorMeta laid_out = shardprop::elementwise(operands, dtype);
        // The result is reduced, or an operand that is not named makes it
        // larger.
        return laid_out.shape() == shape ? laid_out.strides()
                                         : make_meta(shape, dtype).strides();
      })
      .say(text);
}

OpDefinition OpDefinition::like(std::vector<std::string> arguments) && {
  strides_.clear();
  for (const std::string& name : arguments) {
    strides_.emplace_back(
        [name](const OpCall& call, const Dims& shape, DType dtype) {
          return dense_like(call.tensor(name), shape, dtype).strides();
        });
  }
  OpDefinition row =
      std::move(*this).say(text_with_arguments("like", arguments));
  if (arguments.size() < 2) return row;
  return std::move(row).with_check(
      [names = arguments.size()](const OpCall& call, const IndexSpace&) {
        require(names <= most_results(call), [&] {
          return "`like` names " + counted(names, "argument") +
                 ", the call has " + counted(most_results(call), "result");
        });
      });
}

OpDefinition OpDefinition::contiguous() && {
  return std::move(*this)
      .with_strides([](const OpCall&, const Dims& shape, DType dtype) {
        return make_meta(shape, dtype).strides();
      })
      .say("contiguous()");
}

OpDefinition with_implied_strides(OpDefinition form,
                                  OpDefinition::StridesOf strides) {
  return std::move(form).with_strides(std::move(strides));
}

}  // namespace shardprop
