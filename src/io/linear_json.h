// LinearJson: JSON whose objects keep their members in the order in which they
// came. An object of n members takes n steps to read, fill and write, where
// nlohmann's ordered_json takes n^2.
//
// Filling never looks for a key that is there already: one that comes twice
// stands twice, and find() meets the first.
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
    // Made in place: a value that is still on its way would have to be taken
    // apart if there were no memory for it.
    Container::emplace_back(std::forward<Name>(key),
                            std::forward<Value>(value));
    return {std::prev(this->end()), true};
  }
  template <class Name>
  T& operator[](Name&& key) {
    return emplace(std::forward<Name>(key), nullptr).first->second;
  }

 private:
  // Left to itself, a vector of pairs with a constant key would copy the values
  // and all that is below them. Nothing has moved while anything can fail.
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
