// The form of operators that work on some dims of their operands, alike for
// all others.
//
//   mapped("...[mn]->...[mk],...[kn]", sizes)     a QR decomposition
//   mapped("tb[_],[_]b[_],*->tb[o],[l]b[h]", ...)  a recurrent network
//
// One term per declared tensor argument; a list argument has one term for all
// of its elements. A letter is a factor, cut in all operands at once; letters
// in square brackets are held whole, and so are `_`, a dim of any size, and
// `*`, an operand of any rank. `...` stands for leading dims, aligned on the
// right as in broadcasting. A result whose term ends in `!` is produced whatever
// `output_mask` says; the matrices of one that ends in `^` lie column by column;
// of one that ends in `~`, the first two dims lie exchanged; one that is `-` is
// not produced. Nothing is summed and nothing is linear: a row says so.
#pragma once

#include "ops/op_call.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {

// The size of a letter that only results have.
using SizeOf = std::function<std::int64_t(const OpCall&, char letter)>;
// Each such letter has size 1.
inline std::int64_t size_one(const OpCall&, char) { return 1; }

// Precondition: well-formed text.
OpDefinition mapped(std::string_view notation, SizeOf size = {});
// The notation chosen by the call.
OpDefinition mapped(std::string name,
                    std::function<std::string(const OpCall&)> notation,
                    SizeOf size = {});

// Returns the letter of a dim: "a" of dim 0. Rules that use letters of their own
// give the last one that dims may have. Refuses tensors of more dims.
char dim_letter(int dim, char last = 'z');
// A letter for each dim, from the `first` on: letters_from(2, 3) is "cde".
std::string letters_from(int first, int rank);
// A letter for each dim, those of `whole` held whole: "a[b]c".
std::string dims_notation(int rank, const std::vector<int>& whole);
// Terms of operands that broadcast, the dims of `whole` (of the shape that they
// broadcast to) held whole.
std::vector<std::string> broadcast_terms(
    const std::vector<const TensorMeta*>& operands,
    const std::vector<int>& whole);

// Factors that a result lacks are reduced by `op`, where they have an element.
void adds_up(IndexSpace& space, ReduceOp op);
// Results without that dim are the same, whichever part of it a rank has.
std::function<void(const OpCall&, IndexSpace&)> alike_but_along(char letter);

}  // namespace shardprop
