// Samples calls of any operator of the library on tensors with random layouts,
// and similar calls: with other scalars, other sizes or other layouts. A cache
// might confuse the similar calls with the original.
#pragma once

#include <shardprop/mesh/device_mesh.h>
#include <shardprop/ops/op_library.h>
#include <shardprop/ops/op_schema.h>
#include <shardprop/placement/layout.h>
#include <shardprop/propagate/output_sharding.h>

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace shardprop::testing {

struct DrawnCall {
  OpSchema op;  // outputs left out
  std::vector<Layout> layouts;
};

class CallDrawer {
 public:
  CallDrawer(const OpLibrary& library, DeviceMesh mesh, std::uint64_t seed);

  // Samples a call of any operator with a definition. The result is nullopt if
  // the definition refuses each of a few tries.
  std::optional<DrawnCall> call();
  std::optional<DrawnCall> call_of(const std::string& name);
  // Returns a call that differs from `call` in one property.
  DrawnCall sibling(const DrawnCall& call);

  const std::vector<std::string>& names() const { return names_; }

 private:
  std::int64_t below(std::int64_t n);
  bool one_in(std::int64_t n) { return below(n) == 0; }
  std::int64_t size();
  Dims shape();
  TensorArg tensor(const ArgumentSchema& declared);
  std::int64_t integer(const ArgumentSchema& declared);
  Argument value_of(const ArgumentSchema& declared);
  Layout layout(const TensorMeta& meta);
  std::vector<Layout> layouts(const OpSchema& op);
  void change_scalars(OpSchema& op);
  void change_sizes(DrawnCall& call);

  const OpLibrary& library_;
  DeviceMesh mesh_;
  std::mt19937_64 random_;
  std::vector<std::string> names_;
  // These members belong to the call that is being sampled.
  Dims common_;
  DType dtype_ = DType::kF32;
  std::vector<TensorMeta> tensors_;
};

// Returns the difference of two answers; empty if they are equal.
std::string difference(const OutputSharding& a, const OutputSharding& b,
                       const DeviceMesh& mesh);

// The call in words, for a test that fails.
std::string to_text(const DrawnCall& call);

}  // namespace shardprop::testing
