#include <shardprop/ops/op_definition.h>

#include "ops/forms/mapped.h"
#include "ops/forms/shared_form.h"
#include "ops/op_call.h"
#include "ops/rules/rule_words.h"
#include "ops/rules/type_rule.h"
#include "ops/space/view_strides.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace shardprop {
namespace {

std::string_view to_string(ProductKind kind) {
  switch (kind) {
    case ProductKind::kNone:
      return "none";
    case ProductKind::kPlain:
      return "plain";
    case ProductKind::kConvolution:
      return "convolution";
    case ProductKind::kAttention:
      return "attention";
  }
  return "";
}

}  // namespace

OpDefinition::OpDefinition(std::string text, Bind bind)
    : text_(std::move(text)), bind_(std::move(bind)) {}

OpDefinition OpDefinition::say(std::string_view text) && {
  text_ += '.';
  text_ += text;
  return std::move(*this);
}

OpDefinition OpDefinition::with_type(TypeOf type) && {
  type_ = std::move(type);
  return std::move(*this);
}

OpDefinition OpDefinition::typed(TypeOf type) && {
  unprinted_.emplace_back("typed");
  return std::move(*this).with_type(std::move(type));
}

OpDefinition OpDefinition::typed(std::string_view rule) && {
  auto parsed_rule = TypeRule::parse(rule);
  if (!parsed_rule) throw InternalError(parsed_rule.error().message);
  const auto shared = std::make_shared<const TypeRule>(*std::move(parsed_rule));
  return std::move(*this)
      .with_type([shared](const OpCall& call, std::size_t result) {
        return shared->of(call, result);
      })
      .say("typed(" + to_string(*shared) + ")");
}

OpDefinition OpDefinition::typed(DType dtype) && {
  return std::move(*this)
      .with_type([dtype](const OpCall&, std::size_t) { return dtype; })
      .say("typed(" + std::string(to_string(dtype)) + ")");
}

OpDefinition OpDefinition::promoted() && {
  return std::move(*this)
      .with_type(
          [](const OpCall& call, std::size_t) { return promoted_dtype(call); })
      .say("promoted()");
}

OpDefinition OpDefinition::floating() && {
  return std::move(*this)
      .with_type([](const OpCall& call, std::size_t) {
        return to_floating(promoted_dtype(call));
      })
      .say("floating()");
}

OpDefinition OpDefinition::boolean() && {
  return std::move(*this)
      .with_type([](const OpCall&, std::size_t) { return DType::kBool; })
      .say("boolean()");
}

OpDefinition OpDefinition::of(std::string_view argument) && {
  return std::move(*this)
      .with_type(
          [name = std::string(argument)](const OpCall& call, std::size_t) {
            return call.tensor(name).dtype();
          })
      .say("of(" + std::string(argument) + ")");
}

OpDefinition OpDefinition::checked(Check check) && {
  unprinted_.emplace_back("checked");
  return std::move(*this).with_check(std::move(check));
}

OpDefinition OpDefinition::checked(std::string_view word) && {
  const Check* check = rule_words().find_check(word);
  if (check == nullptr) {
    throw InternalError("`" + std::string(word) + "` is no check");
  }
  return std::move(*this).with_check(*check).say(word);
}

OpDefinition OpDefinition::with_check(Check check) && {
  bind_ = [bind = std::move(bind_),
           check = std::move(check)](const OpCall& call) {
    BoundForm bound = bind(call);
    bound.space.seal();
    check(call, bound.space);
    return bound;
  };
  return std::move(*this);
}

OpDefinition OpDefinition::refine(std::string name, Refine refine) && {
  if (name.empty()) {
    throw InternalError("a refinement of `" + text_ + "` has no name");
  }
  return std::move(*this).refined(std::move(refine)).say(name);
}

OpDefinition OpDefinition::refine(std::string_view word) && {
  const Refine* refine = rule_words().find_modifier(word);
  if (refine == nullptr) {
    throw InternalError("`" + std::string(word) + "` is no modifier");
  }
  return std::move(*this).refined(*refine).say(word);
}

OpDefinition OpDefinition::refined(Refine refine) && {
  refinements_.push_back(std::move(refine));
  return std::move(*this);
}

OpDefinition OpDefinition::random() && {
  return std::move(*this).refine(
      "random()",
      [](const OpCall&, IndexSpace& space) { space.is_random = true; });
}

OpDefinition OpDefinition::free() && {
  return std::move(*this).refine(
      "free()", [](const OpCall&, IndexSpace& space) { space.is_free = true; });
}

OpDefinition OpDefinition::free_where_viewed() && {
  return std::move(*this).refine(
      "free_where_viewed()", [](const OpCall& call, IndexSpace& space) {
        space.is_free = !call.op().outputs.empty() &&
                        !call.boolean_or("copy", false) &&
                        is_reshaped_view(call.first(), call.op().outputs[0]);
      });
}

OpDefinition OpDefinition::conjugated() && {
  conjugates_ = true;
  return std::move(*this).say("conjugated()");
}

OpDefinition OpDefinition::filling() && {
  bind_ = [view = std::move(bind_)](const OpCall& call) {
    BoundForm bound = view(call);
    for (auto& result : bound.results) {
      if (result) result->strides.reset();
    }
    return bound;
  };
  strides_.clear();
  // The form is that of the view, which is counted as custom once.
  custom_ = false;
  return std::move(*this).refine(
      "filling()",
      [](const OpCall&, IndexSpace& space) { space.is_free = false; });
}

OpDefinition OpDefinition::flops(double per_point) && {
  return std::move(*this).refine(
      "flops(" + std::to_string(std::llround(per_point)) + ")",
      [per_point](const OpCall&, IndexSpace& space) {
        space.flops_per_point = per_point;
      });
}

OpDefinition OpDefinition::multiplies(ProductKind kind) && {
  return std::move(*this).refine(
      "multiplies(" + std::string(to_string(kind)) + ")",
      [kind](const OpCall&, IndexSpace& space) { space.product = kind; });
}

OpDefinition OpDefinition::normalises() && {
  return std::move(*this).refine(
      "normalises()",
      [](const OpCall&, IndexSpace& space) { space.normalises = true; });
}

OpDefinition OpDefinition::carries() && {
  return std::move(*this).refine(
      "carries()",
      [](const OpCall&, IndexSpace& space) { space.carries = true; });
}

OpDefinition OpDefinition::writes_into(std::string_view argument) && {
  return std::move(*this).refine(
      "writes_into(" + std::string(argument) + ")",
      [name = std::string(argument)](const OpCall& call, IndexSpace& space) {
        space.writes_into = static_cast<int>(call.operand(name));
      });
}

OpDefinition OpDefinition::local_shape(std::string_view argument,
                                       int output) && {
  std::string text = "local_shape(" + std::string(argument);
  if (output > 0) text += ',' + std::to_string(output);
  return std::move(*this).refine(
      text + ")", [name = std::string(argument), output](const OpCall& call,
                                                         IndexSpace& space) {
        require(std::cmp_less(output, call.op().outputs.size()),
                "a result that a shape describes is not produced");
        LocalArgument local{name, true, {}};
        const int rank = call.op().outputs[index(output)].rank();
        for (int dim = 0; dim < rank; ++dim) {
          local.values.push_back(RankScalar::output_size(output, dim));
        }
        space.local_arguments.push_back(std::move(local));
      });
}

OpDefinition OpDefinition::local_size(std::string_view argument, int dim) && {
  return std::move(*this).refine(
      "local_size(" + std::string(argument) + ',' + std::to_string(dim) + ')',
      [name = std::string(argument), dim](const OpCall& call,
                                          IndexSpace& space) {
        const auto& outputs = call.op().outputs;
        require(!outputs.empty() && dim < outputs[0].rank() &&
                    call.integer(name) == outputs[0].size(dim),
                [&] {
                  return "`" + name + "` is not the size of dim " +
                         std::to_string(dim) + " of the result";
                });
        space.local_arguments.push_back(
            {name, false, {RankScalar::output_size(0, dim)}});
      });
}

OpDefinition OpDefinition::blocked(std::string_view dims) && {
  return std::move(*this).refine(
      "blocked(" + std::string(dims) + ")",
      [name = std::string(dims)](const OpCall& call, IndexSpace& space) {
        for (const int dim : call.dims(name, call.first().rank())) {
          for (const FactorId id : space.inputs[0].dims[index(dim)]) {
            space.factor(id).kind = FactorKind::kBlocked;
            space.factor(id).reason =
                "`" + name + "` of " + call.op().name() + " runs over it";
          }
        }
      });
}

OpDefinition OpDefinition::nonempty() && {
  return std::move(*this).refine(
      "nonempty()", [](const OpCall&, IndexSpace& space) {
        for (Factor& factor : space.factors) {
          factor.least = std::max<std::int64_t>(factor.least, 1);
        }
      });
}

OpDefinition OpDefinition::nonempty(std::string_view factor) && {
  return std::move(*this).refine(
      "nonempty(" + std::string(factor) + ")",
      [letter = factor[0]](const OpCall&, IndexSpace& space) {
        for (Factor& own : space.factors) {
          if (own.letter != letter) continue;
          own.least = std::max<std::int64_t>(own.least, 1);
        }
      });
}

OpDefinition OpDefinition::reduced_without(ReduceOp op) && {
  return std::move(*this).refine(
      "reduced_without(" + std::string(shardprop::to_string(op)) + ")",
      [op](const OpCall&, IndexSpace& space) { adds_up(space, op); });
}

OpDefinition OpDefinition::same_without(std::string_view factor) && {
  return std::move(*this).refine(
      "same_without(" + std::string(factor) + ")",
      [letter = factor[0]](const OpCall&, IndexSpace& space) {
        for (std::size_t f = 0; f < space.factors.size(); ++f) {
          if (space.factors[f].letter != letter) continue;
          for (auto& without : space.outputs_without) {
            without[f] = Without::same();
          }
        }
      });
}

OpDefinition OpDefinition::nonlinear() && {
  return std::move(*this).refine(
      "nonlinear()",
      [](const OpCall&, IndexSpace& space) { space.linearities.clear(); });
}

OpDefinition shared_form(std::string text, OpDefinition::Bind bind) {
  return {std::move(text), std::move(bind)};
}

OpDefinition with_implied(OpDefinition form, OpDefinition::Refine refine) {
  return std::move(form).refined(std::move(refine));
}

OpDefinition custom(std::string name, OpDefinition::Bind bind) {
  OpDefinition row(std::move(name), std::move(bind));
  row.custom_ = true;
  return row;
}

}  // namespace shardprop
