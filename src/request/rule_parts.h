// The parts of a rule of the user, `OP=RULE` or `DECLARATION=RULE`:
//
//   "acme::accum(Tensor x, int n=3) -> Tensor = pointwise()"
//     operator_of      "acme.accum"
//     declaration_of   "acme::accum(Tensor x, int n=3) -> Tensor "
//     row_of           " pointwise()"
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace shardprop {

// Returns the place of the `=` between operator and rule; npos if there is none.
// Defaults of a declaration and programs of a rule have others.
std::size_t equals_of(std::string_view rule);
// Returns the operator of a rule, or the name of a size ("s72" of "s72=8").
std::string operator_of(std::string_view rule);
// Returns the rule; empty if there is no `=`.
std::string_view row_of(std::string_view rule);
// Returns the declaration of the operator; empty if the rule has only its name.
std::string_view declaration_of(std::string_view rule);

std::string without_blanks(std::string_view text);

}  // namespace shardprop
