// `LinearJson` is JSON whose objects keep their members in the order of
// insertion. Reading, filling and writing an object of n members takes n steps;
// nlohmann's ordered_json takes n^2.
//
// Insertion never searches for an existing key. A key that is inserted twice is
// stored twice, and find() returns the first.
#pragma once

#include <nlohmann/json.hpp>

#include <functional>
#include <iterator>
#include <memory>
#include <utility>

namespace shardprop {

template <class Key, class T, class IgnoredLess = std::less<Key>,
          class Allocator = std::allocator<std::pair<const Key, T>>>
struct AppendedMap : nlohmann::ordered_map<Key, T, IgnoredLess, Allocator> {
  using Base = nlohmann::ordered_map<Key, T, IgnoredLess, Allocator>;
  using Base::Base;
  using Container = typename Base::Container;
  using iterator = typename Base::iterator;

  template <class Name, class Value>
  std::pair<iterator, bool> emplace(Name&& key, Value&& value) {
    if (this->size() == this->capacity()) grow();
    // The value is constructed in place: a temporary value would need a
    // destructor that allocates if memory is exhausted.
    Container::emplace_back(std::forward<Name>(key),
                            std::forward<Value>(value));
    return {std::prev(this->end()), true};
  }
  template <class Name>
  T& operator[](Name&& key) {
    return emplace(std::forward<Name>(key), nullptr).first->second;
  }

 private:
  // The default growth of a vector of pairs with a constant key would copy all
  // values recursively. Values move only after all allocations have succeeded.
  void grow() {
    Container larger;
    larger.reserve(2 * this->size() + 4);
    for (const auto& member : *this) larger.emplace_back(member.first, nullptr);
    auto to = larger.begin();
    for (auto& member : *this) (to++)->second = std::move(member.second);
    Container::swap(larger);
  }
};

using LinearJson = nlohmann::basic_json<AppendedMap>;

}  // namespace shardprop
