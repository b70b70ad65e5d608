// This file has products in factor notation: a factor that a result lacks is
// summed, and the operator is linear in each operand.

#include "ops/forms/bound_notation.h"
#include "ops/forms/forms.h"
#include "ops/forms/shared_form.h"
#include "ops/rules/fixed_notation.h"
#include "ops/space/contraction_order.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace shardprop {
namespace {

// Three or more operands are multiplied two at a time. This takes fewer points
// than the product of all factor sizes.
void share_out_products(IndexSpace& space) {
  if (space.outputs.empty()) return;
  std::vector<double> sizes;
  double points = 1;
  for (const Factor& factor : space.factors) {
    sizes.push_back(static_cast<double>(factor.size));
    points *= sizes.back();
  }
  if (summed_inputs(space, space.outputs[0]).size() <= 2 || points == 0) return;
  space.flops_per_point *= least_products(space, sizes) / points;
}

// Returns the number of points of full dims, which have no factor: 6 for
// `m{k},{k}n->mn` if k is 6.
double points_of_full_dims(const std::vector<const Term*>& terms,
                           const OpSchema& op) {
  std::vector<FactorName> counted;
  double points = 1;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const std::vector<TermDim>& dims = terms[i]->dims;
    const auto rank = static_cast<std::size_t>(op.inputs[i].rank());
    // Leading dims are on the left, and an added term may lack its first dims.
    for (std::size_t d = 1; d <= std::min(dims.size(), rank); ++d) {
      const TermDim& dim = dims[dims.size() - d];
      if (dim.kind == TermDim::Kind::kLeading) break;
      if (dim.factors.size() != 1 || dim.factors[0].use != DimUse::kFull ||
          std::find(counted.begin(), counted.end(), dim.factors[0].name) !=
              counted.end()) {
        continue;
      }
      counted.push_back(dim.factors[0].name);
      points *= static_cast<double>(op.inputs[i].shape()[rank - d]);
    }
  }
  return points;
}

BoundForm bind_product(const Notation& notation, const OpCall& call) {
  BoundForm bound = bind_notation(notation, call, {});
  const std::vector<const Term*> terms = operand_terms(notation, call.op());
  IndexSpace& space = bound.space;
  for (std::size_t f = 0; f < space.factors.size(); ++f) {
    bool summed = true;
    for (std::size_t o = 0; o < space.outputs.size(); ++o) {
      if (space.outputs[o].holds(static_cast<int>(f))) {
        summed = false;
      } else {
        space.outputs_without[o][f] = kTermsOfSum;
      }
    }
    // An added term must not be counted once per rank.
    for (std::size_t i = 0; summed && i < space.inputs.size(); ++i) {
      if (terms[i]->is_added && !space.inputs[i].holds(static_cast<int>(f))) {
        space.inputs_without[i][f] = kTermsOfSum;
      }
    }
  }
  space.product = ProductKind::kPlain;
  space.flops_per_point = 2 * points_of_full_dims(terms, call.op());
  share_out_products(space);
  return bound;
}

// A product is linear in each operand. A partial sum requires added terms that
// are partial sums too. A partial average allows added terms that are partial
// averages or replicated.
void product_linearities(const Notation& notation, const OpCall& call,
                         IndexSpace& space) {
  const std::vector<const Term*> terms = operand_terms(notation, call.op());
  const bool any_added =
      std::any_of(terms.begin(), terms.end(),
                  [](const Term* term) { return term->is_added; });
  const auto add = [&](std::size_t factor, ReduceOp kind, bool with_added) {
    std::vector<std::optional<ReduceOp>> inputs(space.inputs.size());
    inputs[factor] = kind;
    for (std::size_t j = 0; with_added && j < inputs.size(); ++j) {
      if (terms[j]->is_added) inputs[j] = kind;
    }
    add_linearity(
        call, space, std::move(inputs),
        std::vector<std::optional<ReduceOp>>(space.outputs.size(), kind));
  };
  for (std::size_t i = 0; i < terms.size(); ++i) {
    if (!terms[i]->is_added) add(i, ReduceOp::kSum, true);
  }
  for (std::size_t i = 0; i < terms.size(); ++i) {
    if (terms[i]->is_added) continue;
    add(i, ReduceOp::kAvg, false);
    if (any_added) add(i, ReduceOp::kAvg, true);
  }
}

}  // namespace

OpDefinition einsum(std::vector<Notation> alternatives) {
  const auto shared =
      std::make_shared<const std::vector<Notation>>(std::move(alternatives));
  return with_implied(
      shared_form(notation_text("einsum", *shared),
                  [shared](const OpCall& call) {
                    return bind_product(applicable(*shared, call), call);
                  }),
      [shared](const OpCall& call, IndexSpace& space) {
        product_linearities(applicable(*shared, call), call, space);
      });
}

OpDefinition einsum(std::string_view text) {
  return einsum(fixed_notations(text));
}

OpDefinition einsum(std::string name, NotationOf notation) {
  return with_implied(shared_form(std::move(name),
                                  [notation](const OpCall& call) {
                                    return bind_product(notation(call), call);
                                  }),
                      [notation](const OpCall& call, IndexSpace& space) {
                        product_linearities(notation(call), call, space);
                      });
}

}  // namespace shardprop
