#include "graph/analysis/index_spaces.h"

#include "graph/analysis/op_application.h"

#include <utility>

namespace shardprop {

std::size_t IndexSpaces::Hash::operator()(const OpSchema* call) const {
  return hash_application(*call);
}

bool IndexSpaces::Equal::operator()(const OpSchema* a,
                                    const OpSchema* b) const {
  return same_application(*a, *b);
}

const IndexSpace* IndexSpaces::of(const OpSchema& call) {
  const auto [at, is_new] = spaces_.try_emplace(&call);
  if (is_new) {
    Result<IndexSpace> space = library_.index_space(call);
    if (space) at->second = *std::move(space);
  }
  return at->second ? &*at->second : nullptr;
}

}  // namespace shardprop
