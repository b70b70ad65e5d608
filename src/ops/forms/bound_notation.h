// `BoundNotation` applies a factor notation to a call: it gives each operand and
// result its factors. The forms einsum() and mapped() add what sharding a factor
// means.
#pragma once

#include "ops/forms/space_builder.h"

#include <shardprop/ops/notation.h>

#include <functional>
#include <vector>

namespace shardprop {

// Returns the size of a factor that only results have and the notation does not
// state.
using SizeOf = std::function<std::int64_t(const OpCall&, const FactorName&)>;

// `TermRank` is the number of dims of a term; `...` may have any number more.
struct TermRank {
  int least = 0;
  bool has_leading = false;
};
TermRank rank_of(const Term& term);
// Returns whether a tensor of that rank may be the operand of the term.
bool has_rank(const Term& term, int rank);

// Returns the term of each operand of the call; absent optional operands have
// none. The list is shorter than the call's if the notation has too few terms.
std::vector<const Term*> operand_terms(const Notation& notation,
                                       const OpSchema& op);

// Returns whether arguments of the call, or a number, are the size. Then an operand
// may have the factor, too.
bool is_of_call(const StatedSize& size);
// Returns a stated size of a call. Precondition: it does not depend on data.
std::int64_t stated_size(const StatedSize& size, const OpCall& call);

// Returns the first alternative whose conditions hold and whose terms have the
// ranks of the operands. If none does, the last one is returned, and binding it
// gives the reason.
const Notation& applicable(const std::vector<Notation>& alternatives,
                           const OpCall& call);

// Results that `output_mask` excludes, and those beyond the declared ones, are
// not produced.
BoundForm bind_notation(const Notation& notation, const OpCall& call,
                        const SizeOf& size);

}  // namespace shardprop
