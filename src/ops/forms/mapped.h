// `mapped()` is the rule of operators that work on some dims of their operands
// and are independent along all others.
//
//   mapped("...[mn]->...[mk],...[kn]", sizes)     a QR decomposition
//   mapped("tb[_],[_]b[_],*->tb[o],[l]b[h]", ...)  a recurrent network
//
// A rule has one term per declared tensor argument. A list argument has one
// term for all of its elements.
// 1. A letter is a factor, which is sharded in all operands at once.
// 2. Letters in square brackets are blocked.
// 3. `_` is a blocked dim of any size, and `*` a replicated operand of any
//    rank.
// 4. `...` are leading dims, aligned on the right as in broadcasting.
// 5. A result whose term ends in `!` is produced even if `output_mask` excludes
//    it.
// 6. The matrices of a result whose term ends in `^` are stored column by
//    column.
// 7. The first two dims of a result whose term ends in `~` are swapped in
//    memory.
// 8. A result whose term is `-` is not produced.
//
// The rule sums no factor and is not linear; the definition declares both.
#pragma once

#include "ops/op_call.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {

// Returns the size of a letter that only results have.
using SizeOf = std::function<std::int64_t(const OpCall&, char letter)>;
// Returns size 1 for each such letter.
inline std::int64_t size_one(const OpCall&, char) { return 1; }

// Precondition: the text is well-formed.
OpDefinition mapped(std::string_view notation, SizeOf size = {});
// Chooses the rule by the call.
OpDefinition mapped(std::string name,
                    std::function<std::string(const OpCall&)> notation,
                    SizeOf size = {});

// Returns the letter of a dim: "a" of dim 0. Rules with letters of their own
// give `last`, the last letter that a dim may have. Rejects tensors with more
// dims.
char dim_letter(int dim, char last = 'z');
// Returns a letter for each dim, starting at letter `first`: letters_from(2, 3)
// is "cde".
std::string letters_from(int first, int rank);
// Returns a letter for each dim; those of `whole` are blocked: "a[b]c".
std::string dims_notation(int rank, const std::vector<int>& whole);
// Returns the terms of operands that broadcast. The dims of `whole`, of the
// broadcast shape, are blocked.
std::vector<std::string> broadcast_terms(
    const std::vector<const TensorMeta*>& operands,
    const std::vector<int>& whole);

// Declares that results are reduced by `op` over factors that they lack, if
// each rank has an element of them.
void adds_up(IndexSpace& space, ReduceOp op);
// Declares that results without that dim are the same on every rank, whichever
// part of it the rank has.
std::function<void(const OpCall&, IndexSpace&)> alike_but_along(char letter);

}  // namespace shardprop
