// `StrongId<Tag>` is an index whose type cannot be confused with another index
// type.
//
//   using NodeId = StrongId<struct NodeTag>;
//   NodeId node{3};
//   nodes[node.index()];
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace shardprop {

template <class Tag>
class StrongId {
 public:
  static constexpr std::uint32_t kInvalidValue = 0xffffffffU;

  constexpr StrongId() = default;
  constexpr explicit StrongId(std::size_t value)
      : value_(static_cast<std::uint32_t>(value)) {}

  // Returns false for a default-constructed id, which refers to no element.
  constexpr bool valid() const { return value_ != kInvalidValue; }
  constexpr std::size_t index() const { return value_; }

  friend constexpr auto operator<=>(StrongId, StrongId) = default;

 private:
  std::uint32_t value_ = kInvalidValue;
};

}  // namespace shardprop

template <class Tag>
struct std::hash<shardprop::StrongId<Tag>> {
  std::size_t operator()(shardprop::StrongId<Tag> id) const noexcept {
    return id.index();
  }
};
