// TensorSpec: a tensor on a mesh: mesh + layout + TensorMeta (PyTorch:
// DTensorSpec).
//
// Invariants, checked by create():
//   * one placement per mesh dim, every sharded dim within the tensor;
//   * partials are defined on the dtype and of one kind (sum with avg
//   excepted);
//   * the layout is canonical (see canonical()): equality and hashing of specs
//     compare what ranks own, not how it was written.
//
// Printed as `bf16[8,2048,4096] S(0),R`; parses back given the mesh.
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

// The layout that says the same as `layout` for a tensor of `shape`: every
// rank holds the same elements in the same local order. Strided shards are
// written as shard order wherever that says the same, mesh dims of one rank
// stand in default order with no stride, and of several strided encodings the
// one with the smallest split factors is taken. Of encodings whose every piece
// is cut evenly, those that say the same have one canonical form.
// Precondition: check_layout() passes.
Layout canonical(const Layout& layout, const DeviceMesh& mesh,
                 std::span<const std::int64_t> shape);

// Whether the layout fits mesh and tensor. Errors: kPlacementCount,
// kShardDimOutOfRange, kPartialDType.
Result<void> check_layout(const Layout& layout, const DeviceMesh& mesh,
                          const TensorMeta& meta);

class TensorSpec {
 public:
  // A replicated f32 scalar on one rank.
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

  // Puts a tensor of other sizes in its place, laid out alike. Precondition: as
  // many dims, the same dtype, and a layout without strided shards and in
  // default order, which is canonical of any sizes.
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
