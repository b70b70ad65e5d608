// Propagators, calls and layouts as the tests of this module write them.
#pragma once

#include "support/result_checks.h"

#include <shardprop/ops/op_library.h>
#include <shardprop/ops/op_schema.h>
#include <shardprop/propagate/caching_propagator.h>
#include <shardprop/propagate/sharding_propagator.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardprop::testing {

inline const std::shared_ptr<const OpLibrary>& shared_library() {
  static const auto kLibrary = OpLibrary::standard();
  return kLibrary;
}

inline ShardingPropagator propagator_on(std::string_view mesh,
                                        PropagatorOptions options = {}) {
  return value_of(ShardingPropagator::create(
      value_of(DeviceMesh::parse(mesh)), default_topology(), shared_library(),
      std::move(options)));
}

inline CachingPropagator cache_of(ShardingPropagator propagator,
                                  const CacheOptions& options = {}) {
  return value_of(CachingPropagator::create(std::move(propagator), options));
}

inline std::vector<Layout> layouts(const std::vector<std::string_view>& texts) {
  std::vector<Layout> out;
  for (const std::string_view text : texts) {
    out.push_back(value_of(Layout::parse(text)));
  }
  return out;
}

// Outputs left out. The tensors in order, then other arguments by name.
inline OpSchema call(std::string_view name,
                     const std::vector<std::string>& tensors,
                     const std::vector<GivenArgument>& others = {}) {
  std::vector<TensorMeta> metas;
  std::vector<GivenArgument> given;
  for (const std::string& text : tensors) {
    given.push_back({"", TensorArg{static_cast<std::int32_t>(metas.size())}});
    metas.push_back(value_of(TensorMeta::parse(text)));
  }
  given.insert(given.end(), others.begin(), others.end());
  return value_of(make_op_schema(shared_library()->find(name), std::move(given),
                                 std::move(metas)));
}

}  // namespace shardprop::testing
