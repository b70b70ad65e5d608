// Reads the size of a factor in a notation: `:2`, `:num_samples`,
// `:output_size[0]`, `:min(m,n)`, `:pooled()` or `:?`.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/ops/notation.h>

#include "ops/names/rule_names.h"
#include "ops/rules/rule_reader.h"

#include <vector>

namespace shardprop {

// `known` has the dims of the operands read so far. With `is_complete`, words of
// sizes are looked up; words themselves may have notations, which are read before
// the vocabulary is complete. Adds the argument or word to `names`, unless it is null.
// Precondition: `:` is next.
Result<StatedSize> read_stated_size(RuleReader& in, const FactorName& factor,
                                    const std::vector<FactorName>& known,
                                    bool is_result, bool is_complete,
                                    RuleNames* names);

}  // namespace shardprop
