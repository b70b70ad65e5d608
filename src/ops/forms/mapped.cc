#include "ops/forms/mapped.h"

#include "ops/forms/shared_form.h"
#include "ops/rules/fixed_notation.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace shardprop {
namespace {

bool has_dim(const std::vector<int>& dims, int dim) {
  return std::find(dims.begin(), dims.end(), dim) != dims.end();
}

DimUse use_of(const std::vector<int>& full, int dim) {
  return has_dim(full, dim) ? DimUse::kFull : DimUse::kSharded;
}

}  // namespace

OpDefinition mapped(std::vector<Notation> alternatives, SizeOf size) {
  const auto shared =
      std::make_shared<const std::vector<Notation>>(std::move(alternatives));
  return shared_form(notation_text("mapped", *shared),
                     [shared, size = std::move(size)](const OpCall& call) {
                       return bind_notation(applicable(*shared, call), call,
                                            size);
                     });
}

OpDefinition mapped(std::string_view notation, SizeOf size) {
  return mapped(fixed_notations(notation), std::move(size));
}

OpDefinition mapped(std::string name, NotationOf notation, SizeOf size) {
  return shared_form(std::move(name),
                     [notation = std::move(notation),
                      size = std::move(size)](const OpCall& call) {
                       return bind_notation(notation(call), call, size);
                     });
}

Term term_of_dims(int rank, const std::vector<int>& full) {
  Term term;
  for (int dim = 0; dim < rank; ++dim) {
    term.add(FactorName::of_dim(dim), use_of(full, dim));
  }
  return term;
}

Term dims_from(int first, int rank) {
  Term term;
  for (int dim = 0; dim < rank; ++dim) {
    term.add(FactorName::of_dim(first + dim));
  }
  return term;
}

Term term_with(int rank, int dim, const Term& there) {
  Term term;
  for (int d = 0; d < rank; ++d) {
    if (d != dim) {
      term.add(FactorName::of_dim(d));
      continue;
    }
    term.dims.insert(term.dims.end(), there.dims.begin(), there.dims.end());
  }
  return term;
}

std::vector<Term> broadcast_terms(
    const std::vector<const TensorMeta*>& operands,
    const std::vector<int>& full) {
  Dims shape;
  for (const TensorMeta* operand : operands) {
    shape = broadcast(shape, operand->shape());
  }
  const int rank = static_cast<int>(shape.size());
  std::vector<Term> terms;
  for (const TensorMeta* operand : operands) {
    Term& term = terms.emplace_back();
    for (int dim = rank - operand->rank(); dim < rank; ++dim) {
      const bool repeats =
          operand->size(dim - rank + operand->rank()) != shape[index(dim)];
      if (repeats) {
        term.any();
      } else {
        term.add(FactorName::of_dim(dim), use_of(full, dim));
      }
    }
  }
  return terms;
}

void adds_up(IndexSpace& space, ReduceOp op) {
  space.seal();
  for (std::size_t f = 0; f < space.factors.size(); ++f) {
    for (std::size_t o = 0; o < space.outputs.size(); ++o) {
      if (space.outputs[o].holds(static_cast<int>(f))) continue;
      space.outputs_without[o][f] = Without::partial(op);
      space.factors[f].least = 1;
    }
  }
}

}  // namespace shardprop
