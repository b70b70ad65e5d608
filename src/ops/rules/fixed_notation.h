// Notations that are written in this library, and the text of a rule that has
// only a notation.
#pragma once

#include <shardprop/ops/notation.h>

#include <string>
#include <string_view>
#include <vector>

namespace shardprop {

// Precondition: the text parses.
std::vector<Notation> fixed_notations(std::string_view text);
Notation fixed_notation(std::string_view text);

// A notation without a form is einsum(...) if it only has sharded factors, and
// mapped(...) if it has full or blocked dims.
bool reads_as_einsum(const std::vector<Notation>& alternatives);

// Returns the rule `form(alternatives)`, or the alternatives alone if they read
// as this form.
std::string notation_text(std::string_view form,
                          const std::vector<Notation>& alternatives);

}  // namespace shardprop
