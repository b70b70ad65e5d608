// Evaluates conditions on the sizes of a program, in the two forms in which
// torch.export writes them.
//
//   holds("Equality(Mod(Symbol('s77'), Integer(4)), Integer(0))", {{"s77", 6}})
//   guard_holds("4*L['x'].size()[0] <= 128", sizes)
#pragma once

#include <shardprop/graph/sym_expr.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace shardprop::pt2 {

// Returns whether a comparison of sizes holds (SymPy's srepr). Empty if a symbol
// is unbound, or if the text is another expression.
std::optional<bool> holds(std::string_view srepr,
                          const SymExpr::Bindings& bindings);

// Returns the size of a dim of an input; empty if it is unknown.
using SizeOfInput = std::function<std::optional<std::int64_t>(
    std::string_view input, std::size_t dim)>;

// Returns whether a guard holds: a comparison in Python between sums, products
// and quotients of numbers and of `L['input'].size()[dim]`. Empty if the text is
// another expression.
std::optional<bool> guard_holds(std::string_view python,
                                const SizeOfInput& size);

}  // namespace shardprop::pt2
