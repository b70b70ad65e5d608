// `hash_mix` is the mixing step that the hash of every regular type uses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace shardprop {

// Mixes `value` into `seed`: the finaliser of MurmurHash3 applied to `seed`
// times the golden ratio plus `value`.
constexpr std::uint64_t hash_mix(std::uint64_t seed, std::uint64_t value) {
  std::uint64_t h = seed * 0x9e3779b97f4a7c15ULL + value;
  h ^= h >> 33;
  h *= 0xff51afd7ed558ccdULL;
  h ^= h >> 33;
  h *= 0xc4ceb9fe1a85ec53ULL;
  h ^= h >> 33;
  return h;
}

template <class T>
std::size_t hash_combine(std::size_t seed, const T& value) {
  return hash_mix(seed, std::hash<T>{}(value));
}

// Returns a hash of a range of hashable elements and of its length.
template <class Range>
std::size_t hash_range(std::size_t seed, const Range& range) {
  std::size_t count = 0;
  for (const auto& element : range) {
    seed = hash_combine(seed, element);
    ++count;
  }
  return hash_mix(seed, count);
}

}  // namespace shardprop
