// State is the planner's own encoding of a layout. It takes a few bytes and
// covers only the mesh dims larger than 1. Each placement is an index into an
// alphabet.
#pragma once

#include <shardprop/mesh/device_mesh.h>
#include <shardprop/placement/layout.h>
#include <shardprop/placement/tensor_meta.h>
#include <shardprop/redistribute/planner.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace shardprop::redistribute {

using Mask = std::uint32_t;  // a set of active mesh dims

// ActiveDims are the mesh dims larger than 1, the only part of a mesh that a
// search needs.
struct ActiveDims {
  explicit ActiveDims(const DeviceMesh& mesh);
  int count = 0;  // may exceed kMaxPlannedDims: check first
  InlineVector<std::int32_t, 8> mesh_dims;
  InlineVector<std::int64_t, 8> sizes;
};

// State has for each active mesh dim a symbol (index into Alphabet) and an
// order (place among the cuts of its tensor dim).
struct State {
  std::array<std::uint8_t, kMaxPlannedDims> symbol{};
  std::array<std::uint8_t, kMaxPlannedDims> order{};

  // Encodes the state as one word for comparison and hashing: 8 bits of symbol
  // and 4 bits of order per dim.
  std::uint64_t code() const {
    std::uint64_t code = 0;
    for (int i = 0; i < kMaxPlannedDims; ++i) {
      code = code << 12 | static_cast<std::uint64_t>(symbol[i]) << 4 | order[i];
    }
    return code;
  }
  // Returns the position of the bits of an active mesh dim.
  static constexpr std::uint8_t shift(std::size_t dim) {
    return static_cast<std::uint8_t>(12 * (kMaxPlannedDims - 1 - dim));
  }
  friend bool operator==(const State&, const State&) = default;
};

// Alphabet lists the placements that a search may use: R first, then shards,
// then partials.
class Alphabet {
 public:
  struct Symbol {
    Placement placement;
    std::int16_t dim = -1;    // tensor dim of a shard
    std::int32_t pieces = 1;  // split factor of a shard
    bool partial = false;
    bool shard() const { return dim >= 0; }
  };

  // Error: kRedistributeMeshTooLarge if there are more placements than fit.
  static Result<Alphabet> create(const ActiveDims& active,
                                 const TensorMeta& meta,
                                 std::span<const Layout> endpoints,
                                 SplitFactors split_factors);

  const Symbol& operator[](std::uint8_t symbol) const {
    return symbols_[symbol];
  }
  std::uint8_t first_shard() const { return 1; }
  std::uint8_t first_partial() const { return first_partial_; }
  std::uint8_t size() const {
    return static_cast<std::uint8_t>(symbols_.size());
  }
  bool has_strided() const { return strided_; }

  std::optional<std::uint8_t> find(Placement placement) const;

 private:
  std::vector<Symbol> symbols_;
  std::uint8_t first_partial_ = 1;
  bool strided_ = false;
};

// Returns nullopt if a placement is outside the alphabet. Mesh dims of size 1
// are ignored.
std::optional<State> to_state(const Layout& layout, const ActiveDims& active,
                              const Alphabet& alphabet);

// Returns the layout of `state`. Mesh dims of size 1 get their placements from
// `others`.
Layout to_layout(const State& state, const ActiveDims& active,
                 const Alphabet& alphabet, const Layout& others);

// Returns the state of the canonical layout; nullopt if it needs a placement
// outside the alphabet.
std::optional<State> canonical_state(const State& state,
                                     const ActiveDims& active,
                                     const Alphabet& alphabet,
                                     const DeviceMesh& mesh,
                                     std::span<const std::int64_t> shape);

}  // namespace shardprop::redistribute
