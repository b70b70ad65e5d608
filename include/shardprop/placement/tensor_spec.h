// `TensorSpec` is a tensor on a mesh: mesh, layout and TensorMeta (PyTorch:
// DTensorSpec).
//
// Invariants, checked by create():
//   * there is one placement per mesh dim; sharded dims are dims of the tensor;
//   * partials are defined on the dtype and are of one kind, except sum with
//     avg;
//   * the layout is canonical (see canonical()); equality and hashing compare
//     which elements each rank holds, not how the layout was written.
//
// It is printed as `bf16[8,2048,4096] S(0),R`, and parses back given the mesh.
//
//   auto mesh = DeviceMesh::parse("dp=2,tp=4").value();
//   auto spec = TensorSpec::parse("f32[16,8] SS(0,4),S(0)", mesh).value();
//   to_string(spec);   // f32[16,8] S(0)@1,S(0)@0
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/mesh/device_mesh.h>
#include <shardprop/placement/layout.h>
#include <shardprop/placement/tensor_meta.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace shardprop {

// Returns the canonical form of `layout` for a tensor of `shape`. Under it
// every rank holds the same elements in the same local order.
//
// 1. A strided shard becomes a shard order if a shard order is equivalent.
// 2. A mesh dim of one rank has default order and no stride.
// 3. Among equivalent strided encodings the one with the smallest split factors
//    is chosen.
//
// If every piece is sharded evenly, equivalent encodings have one canonical
// form. Precondition: check_layout() passes.
Layout canonical(const Layout& layout, const DeviceMesh& mesh,
                 std::span<const std::int64_t> shape);

// Checks that the layout fits the mesh and the tensor. Errors: kPlacementCount,
// kShardDimOutOfRange, kPartialDType.
Result<void> check_layout(const Layout& layout, const DeviceMesh& mesh,
                          const TensorMeta& meta);

class TensorSpec {
 public:
  // Makes a replicated f32 scalar on one rank.
  TensorSpec();
  // Errors: those of check_layout().
  static Result<TensorSpec> create(DeviceMesh mesh, const Layout& layout,
                                   TensorMeta meta);
  // Errors: kPlacementSyntax, kTensorMeta, and those of create().
  static Result<TensorSpec> parse(std::string_view text, DeviceMesh mesh);

  const DeviceMesh& mesh() const { return mesh_; }
  const Layout& layout() const { return layout_; }
  const TensorMeta& meta() const { return meta_; }
  Placement placement(int mesh_dim) const { return layout_[mesh_dim]; }

  // Replaces the meta by one of other sizes and keeps the layout.
  // Preconditions: the same rank and dtype, no strided shards, and default
  // shard order. This layout is canonical for all sizes.
  void resize(TensorMeta meta) { meta_ = std::move(meta); }

  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;

 private:
  TensorSpec(DeviceMesh mesh, Layout layout, TensorMeta meta);
  DeviceMesh mesh_;
  Layout layout_;
  TensorMeta meta_;
};

std::string to_string(const TensorSpec& spec);

}  // namespace shardprop

template <>
struct std::hash<shardprop::TensorSpec> {
  std::size_t operator()(const shardprop::TensorSpec& s) const noexcept {
    std::size_t h = s.mesh().hash();
    h = shardprop::hash_combine(h, s.layout());
    return shardprop::hash_combine(h, s.meta());
  }
};
