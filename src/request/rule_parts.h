// The parts of a rule of the user, `OP=RULE` or `DECLARATION=RULE`:
//
//   "acme::accum(Tensor x, int n=3) -> Tensor = pointwise()"
//     operator_of      "acme.accum"
//     declaration_of   "acme::accum(Tensor x, int n=3) -> Tensor "
//     row_of           " pointwise()"
#pragma once

#include <shardprop/base/error.h>

#include <cstddef>
#include <optional>
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

// Returns the place of an error at "column N", from 0; nullopt if it names no column.
std::optional<std::size_t> column_of(const Error& error);
// Moves the column of an error about a text that begins at column `from` of another
// one, from 0.
Error moved(Error error, std::size_t from);

}  // namespace shardprop
