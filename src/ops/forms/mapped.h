// `mapped()` is the form of operators that work on some dims of their operands
// and are independent along all others.
//
//   mapped("...{mn}->...{mu},...{un}", sizes)    a QR decomposition
//   mapped("tb_,{l}b_,**->tb{o},{l}b{h}", ...)   a recurrent network
//
// It sums no factor and is not linear; the definition declares both. The
// notation is that of <shardprop/ops/notation.h>.
#pragma once

#include "ops/forms/bound_notation.h"

#include <string>
#include <string_view>
#include <vector>

namespace shardprop {

OpDefinition mapped(std::vector<Notation> alternatives, SizeOf size = {});
// Precondition: the text is well-formed.
OpDefinition mapped(std::string_view notation, SizeOf size = {});
// Chooses the notation by the call.
OpDefinition mapped(std::string name, NotationOf notation, SizeOf size = {});

// These functions build terms with one factor for each dim of a tensor, named by
// FactorName::of_dim(). The dims of `full` are full.
Term term_of_dims(int rank, const std::vector<int>& full = {});
// Names the dims from `first` on: dims_from(2, 3) is cde.
Term dims_from(int first, int rank);
// Like term_of_dims(), but `there` is in place of dim `dim`. Without `there`
// the dim is absent.
Term term_with(int rank, int dim, const Term& there);
// Returns the terms of operands that broadcast. The dims of `full`, of the
// broadcast shape, are full.
std::vector<Term> broadcast_terms(
    const std::vector<const TensorMeta*>& operands,
    const std::vector<int>& full);

// Declares that results are reduced by `op` over factors that they lack, if
// each rank has an element of them.
void adds_up(IndexSpace& space, ReduceOp op);

}  // namespace shardprop
