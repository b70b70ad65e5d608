#include "ops/rules/fixed_notation.h"

#include <shardprop/base/error.h>

#include <algorithm>
#include <utility>

namespace shardprop {
namespace {

bool has_full_dims(const Term& term) {
  return term.is_replicated ||
         std::any_of(term.dims.begin(), term.dims.end(),
                     [](const TermDim& dim) {
                       return dim.kind == TermDim::Kind::kAny ||
                              (dim.factors.size() == 1 &&
                               dim.factors[0].use != DimUse::kSharded);
                     });
}

}  // namespace

std::vector<Notation> fixed_notations(std::string_view text) {
  auto parsed = parse_notations(text);
  if (!parsed) {
    throw InternalError("not a notation: " + std::string(text) + ": " +
                        parsed.error().message);
  }
  return *std::move(parsed);
}

Notation fixed_notation(std::string_view text) {
  return std::move(fixed_notations(text)[0]);
}

bool reads_as_einsum(const std::vector<Notation>& alternatives) {
  return std::none_of(
      alternatives.begin(), alternatives.end(), [](const Notation& notation) {
        return std::any_of(notation.inputs.begin(), notation.inputs.end(),
                           has_full_dims) ||
               std::any_of(notation.outputs.begin(), notation.outputs.end(),
                           has_full_dims);
      });
}

std::string notation_text(std::string_view form,
                          const std::vector<Notation>& alternatives) {
  const std::string text = to_string(alternatives);
  if (form == (reads_as_einsum(alternatives) ? "einsum" : "mapped")) {
    return text;
  }
  return std::string(form) + '(' + text + ')';
}

}  // namespace shardprop
