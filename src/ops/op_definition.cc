#include <shardprop/ops/op_definition.h>

#include "ops/forms/shared_form.h"
#include "ops/op_call.h"
#include "ops/program_text.h"
#include "ops/view_strides.h"

#include <algorithm>
#include <utility>

namespace shardprop {

OpDefinition::OpDefinition(std::string text, Bind bind)
    : text_(std::move(text)), bind_(std::move(bind)) {}

OpDefinition OpDefinition::say(std::string_view text) && {
  text_ += '.';
  text_ += text;
  return std::move(*this);
}

OpDefinition OpDefinition::typed(TypeOf type) && {
  type_ = std::move(type);
  return std::move(*this);
}

OpDefinition OpDefinition::typed(DType dtype) && {
  return std::move(*this).typed(
      [dtype](const OpCall&, std::size_t) { return dtype; });
}

OpDefinition OpDefinition::promoted() && {
  return std::move(*this).typed(
      [](const OpCall& call, std::size_t) { return promoted_dtype(call); });
}

OpDefinition OpDefinition::floating() && {
  return std::move(*this).typed([](const OpCall& call, std::size_t) {
    return to_floating(promoted_dtype(call));
  });
}

OpDefinition OpDefinition::boolean() && {
  return std::move(*this).typed(DType::kBool);
}

OpDefinition OpDefinition::of(std::string_view argument) && {
  return std::move(*this).typed(
      [name = std::string(argument)](const OpCall& call, std::size_t) {
        return call.tensor(name).dtype();
      });
}

OpDefinition OpDefinition::strided(StridesOf strides) && {
  strides_ = std::move(strides);
  return std::move(*this);
}

OpDefinition OpDefinition::elementwise() && {
  return std::move(*this).strided(
      [](const OpCall& call, const Dims&, DType dtype) {
        return shardprop::elementwise(call.op().inputs, dtype).strides();
      });
}

OpDefinition OpDefinition::elementwise(std::vector<std::string> arguments) && {
  return std::move(*this).strided(
      [arguments = std::move(arguments)](const OpCall& call, const Dims& shape,
                                         DType dtype) {
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
      });
}

OpDefinition OpDefinition::like(std::string_view argument) && {
  return std::move(*this).strided(
      [name = std::string(argument)](const OpCall& call, const Dims& shape,
                                     DType dtype) {
        return dense_like(call.tensor(name), shape, dtype).strides();
      });
}

OpDefinition OpDefinition::checked(Check check) && {
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
  refinements_.push_back(std::move(refine));
  if (name.empty()) return std::move(*this);
  return std::move(*this).say(name);
}

OpDefinition OpDefinition::random() && {
  return std::move(*this).refine(
      "random()",
      [](const OpCall&, IndexSpace& space) { space.is_random = true; });
}

OpDefinition OpDefinition::free() && {
  return std::move(*this).refine(
      "", [](const OpCall&, IndexSpace& space) { space.is_free = true; });
}

OpDefinition OpDefinition::free_where_viewed() && {
  return std::move(*this).refine("", [](const OpCall& call, IndexSpace& space) {
    space.is_free = !call.boolean_or("copy", false) &&
                    is_reshaped_view(call.first(), call.op().outputs[0]);
  });
}

OpDefinition OpDefinition::conjugated() && {
  conjugates_ = true;
  return std::move(*this);
}

OpDefinition OpDefinition::filling() && {
  bind_ = [view = std::move(bind_)](const OpCall& call) {
    BoundForm bound = view(call);
    for (auto& result : bound.results) {
      if (result) result->strides.reset();
    }
    return bound;
  };
  strides_ = nullptr;
  // The form is that of the view, which is counted as custom once.
  custom_ = false;
  return std::move(*this).refine(
      "", [](const OpCall&, IndexSpace& space) { space.is_free = false; });
}

OpDefinition OpDefinition::flops(double per_point) && {
  return std::move(*this).refine("",
                                 [per_point](const OpCall&, IndexSpace& space) {
                                   space.flops_per_point = per_point;
                                 });
}

OpDefinition OpDefinition::multiplies(ProductKind kind) && {
  return std::move(*this).refine(
      "", [kind](const OpCall&, IndexSpace& space) { space.product = kind; });
}

OpDefinition OpDefinition::normalises() && {
  return std::move(*this).refine(
      "", [](const OpCall&, IndexSpace& space) { space.normalises = true; });
}

OpDefinition OpDefinition::carries() && {
  return std::move(*this).refine(
      "", [](const OpCall&, IndexSpace& space) { space.carries = true; });
}

OpDefinition OpDefinition::writes_into(std::string_view argument) && {
  return std::move(*this).refine(
      "",
      [name = std::string(argument)](const OpCall& call, IndexSpace& space) {
        space.writes_into = static_cast<int>(call.operand(name));
      });
}

OpDefinition OpDefinition::local_shape(std::string_view argument,
                                       int output) && {
  return std::move(*this).refine(
      "", [name = std::string(argument), output](const OpCall& call,
                                                 IndexSpace& space) {
        LocalArgument local{name, true, {}};
        const int rank = call.op().outputs[index(output)].rank();
        for (int dim = 0; dim < rank; ++dim) {
          local.values.push_back(RankScalar::output_size(output, dim));
        }
        space.local_arguments.push_back(std::move(local));
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
  return std::move(*this).refine("", [](const OpCall&, IndexSpace& space) {
    for (Factor& factor : space.factors) {
      factor.least = std::max<std::int64_t>(factor.least, 1);
    }
  });
}

namespace {

std::shared_ptr<const ProgramText> parsed(std::string_view text) {
  auto program = parse_program(text);
  if (!program) throw InternalError(program.error().message);
  return std::make_shared<const ProgramText>(*std::move(program));
}

}  // namespace

OpDefinition OpDefinition::decomposed(std::string_view text) && {
  program_ = parsed(text);
  per_rank_ = false;
  return std::move(*this)
      .opened({FactorKind::kBlocked, FactorKind::kScanned})
      .say("decomposed()");
}

OpDefinition OpDefinition::per_rank(std::string_view text,
                                    std::optional<FactorKind> kind) && {
  program_ = parsed(text);
  per_rank_ = true;
  if (kind) return std::move(*this).opened({*kind}).say("per_rank()");
  return std::move(*this).say("per_rank()");
}

// Lets the program shard factors of these kinds. Its results are replicated if
// they lack such a factor.
OpDefinition OpDefinition::opened(std::vector<FactorKind> kinds) && {
  return std::move(*this).refine("", [kinds = std::move(kinds)](
                                         const OpCall&, IndexSpace& space) {
    const auto is_meant = [&](const Factor& factor) {
      return std::find(kinds.begin(), kinds.end(), factor.kind) != kinds.end();
    };
    // A factor of size 0 has no elements to shard.
    for (const Factor& factor : space.factors) {
      if (is_meant(factor) && factor.size == 0) return;
    }
    for (std::size_t f = 0; f < space.factors.size(); ++f) {
      Factor& factor = space.factors[f];
      if (!is_meant(factor)) continue;
      factor.program = ProgramUse::kWhenSharded;
      factor.least = std::max<std::int64_t>(factor.least, 1);
      for (std::size_t o = 0; o < space.outputs.size(); ++o) {
        Without& without = space.outputs_without[o][f];
        if (without.is_forbidden()) without = Without::same();
      }
    }
  });
}

OpDefinition shared_form(std::string text, OpDefinition::Bind bind) {
  return {std::move(text), std::move(bind)};
}

OpDefinition custom(std::string name, OpDefinition::Bind bind) {
  OpDefinition row(std::move(name), std::move(bind));
  row.custom_ = true;
  return row;
}

}  // namespace shardprop
