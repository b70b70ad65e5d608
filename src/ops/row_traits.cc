#include <shardprop/ops/row_traits.h>

#include <shardprop/ops/op_definition.h>

#include <shardprop/ops/argument.h>

#include <algorithm>
#include <utility>
#include <variant>

namespace shardprop {
namespace {

constexpr std::pair<Distribution, std::string_view> kDistributions[] = {
    {Distribution::kNotStated, "not_stated"},
    {Distribution::kUnit, "unit"},
    {Distribution::kUniform, "uniform"},
    {Distribution::kNormal, "normal"},
    {Distribution::kLogNormal, "log_normal"},
    {Distribution::kExponential, "exponential"},
    {Distribution::kCauchy, "cauchy"},
    {Distribution::kGeometric, "geometric"},
    {Distribution::kIntegers, "integers"},
    {Distribution::kBernoulli, "bernoulli"},
    {Distribution::kPermutation, "permutation"},
    {Distribution::kDropout, "dropout"},
    {Distribution::kFeatureDropout, "feature_dropout"},
    {Distribution::kAlphaDropout, "alpha_dropout"},
    {Distribution::kFeatureAlphaDropout, "feature_alpha_dropout"},
    {Distribution::kAttention, "attention"},
    {Distribution::kAttentionBackward, "attention_backward"},
    {Distribution::kPoisson, "poisson"},
    {Distribution::kMultinomial, "multinomial"}};

constexpr std::pair<IndexBound, std::string_view> kBounds[] = {
    {IndexBound::kDim, "dim"},
    {IndexBound::kListedDim, "listed_dim"},
    {IndexBound::kElements, "elements"},
    {IndexBound::kRows, "rows"},
    {IndexBound::kClasses, "classes"}};

const TensorMeta& operand_of(const OpSchema& op, std::string_view argument) {
  return op.inputs[op.tensor_arg(argument).value_or(0)];
}

std::int64_t size_along_dim(const OpSchema& op) {
  const TensorMeta& self = operand_of(op, "self");
  std::int64_t dim = op.has_arg("dim") ? op.int_arg("dim").value_or(0) : 0;
  if (dim < 0) dim += self.rank();
  if (dim < 0 || dim >= self.rank()) return 1;
  return self.size(static_cast<int>(dim));
}

std::int64_t size_of_listed_dim(const OpSchema& op, std::size_t operand) {
  const auto* list = std::get_if<std::vector<TensorArg>>(&op.arg("indices"));
  const TensorMeta& self = operand_of(op, "self");
  for (std::size_t d = 0; list != nullptr && d < list->size(); ++d) {
    if ((*list)[d].operand == static_cast<std::int32_t>(operand)) {
      return self.size(static_cast<int>(d));
    }
  }
  return 0;
}

std::int64_t classes_of_self(const OpSchema& op) {
  const TensorMeta& self = operand_of(op, "self");
  return self.rank() == 0 ? 1 : self.size(self.rank() == 1 ? 0 : 1);
}

}  // namespace

std::string_view to_string(Distribution distribution) {
  return kDistributions[static_cast<std::size_t>(distribution)].second;
}

std::optional<Distribution> distribution_named(std::string_view text) {
  for (const auto& [distribution, name] : kDistributions) {
    if (name == text) return distribution;
  }
  return std::nullopt;
}

std::int64_t index_bound(const ArgumentDomain& domain, const OpSchema& op,
                         std::size_t operand) {
  switch (domain.below) {
    case IndexBound::kNone:
      return 0;
    case IndexBound::kDim:
      return size_along_dim(op);
    case IndexBound::kListedDim:
      return size_of_listed_dim(op, operand);
    case IndexBound::kElements:
      return operand_of(op, "self").numel();
    case IndexBound::kRows:
      return operand_of(op, "weight").size(0);
    case IndexBound::kClasses:
      return classes_of_self(op);
    case IndexBound::kArgument:
      return op.has_arg(domain.bound_argument)
                 ? op.int_arg(domain.bound_argument).value_or(1)
                 : 1;
  }
  return 0;
}

std::string bound_text(const ArgumentDomain& domain) {
  for (const auto& [bound, name] : kBounds) {
    if (bound == domain.below) return std::string(name);
  }
  return domain.bound_argument;
}

void set_bound(ArgumentDomain& domain, std::string_view text) {
  for (const auto& [bound, name] : kBounds) {
    if (name != text) continue;
    domain.below = bound;
    return;
  }
  domain.below = IndexBound::kArgument;
  domain.bound_argument = text;
}

bool RowTraits::selects_from(std::string_view argument) const {
  return selected &&
         (selected->empty() || std::find(selected->begin(), selected->end(),
                                         argument) != selected->end());
}

OpDefinition OpDefinition::draws(Distribution distribution) && {
  traits_.distribution = distribution;
  return std::move(*this).say("draws(" + std::string(to_string(distribution)) +
                              ")");
}

OpDefinition OpDefinition::with_domain(ArgumentDomain domain) && {
  const std::string& argument = domain.argument;
  std::string text = domain.positive ? "positive(" + argument
                     : domain.nonzero
                         ? "nonzero(" + argument
                         : "below(" + argument + ',' + bound_text(domain);
  traits_.domains.push_back(std::move(domain));
  return std::move(*this).say(text + ")");
}

OpDefinition OpDefinition::below(std::string_view argument,
                                 IndexBound bound) && {
  return std::move(*this).with_domain(
      {.argument = std::string(argument), .below = bound});
}

OpDefinition OpDefinition::below(std::string_view argument,
                                 std::string_view bound_argument) && {
  ArgumentDomain domain{.argument = std::string(argument)};
  set_bound(domain, bound_argument);
  return std::move(*this).with_domain(std::move(domain));
}

OpDefinition OpDefinition::positive(std::string_view argument) && {
  return std::move(*this).with_domain(
      {.argument = std::string(argument), .positive = true});
}

OpDefinition OpDefinition::nonzero(std::string_view argument) && {
  return std::move(*this).with_domain(
      {.argument = std::string(argument), .nonzero = true});
}

OpDefinition OpDefinition::in_order() && {
  traits_.order = OperandOrder::kAsWhole;
  return std::move(*this).say("in_order()");
}

OpDefinition OpDefinition::in_dense_rows() && {
  traits_.order = OperandOrder::kDenseRows;
  return std::move(*this).say("in_dense_rows()");
}

}  // namespace shardprop
