// stable_order() sorts elements by their keys as far as dependences allow.
//
//   keys 2, 0, 1; element 1 (key 0) needs element 0 (key 2)  ->  2, 0, 1
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

namespace shardprop {

// `needs[e]` has the elements that come before e. The result lacks elements if they
// need each other.
template <class Key>
std::vector<std::size_t> stable_order(
    const std::vector<Key>& keys,
    const std::vector<std::vector<std::size_t>>& needs) {
  std::vector<std::vector<std::size_t>> readers(keys.size());
  std::vector<std::size_t> missing(keys.size(), 0);
  using Ready = std::pair<Key, std::size_t>;
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  for (std::size_t e = 0; e < keys.size(); ++e) {
    for (const std::size_t need : needs[e]) readers[need].push_back(e);
    missing[e] = needs[e].size();
    if (missing[e] == 0) ready.emplace(keys[e], e);
  }
  std::vector<std::size_t> order;
  while (!ready.empty()) {
    const std::size_t e = ready.top().second;
    ready.pop();
    order.push_back(e);
    for (const std::size_t reader : readers[e]) {
      if (--missing[reader] == 0) ready.emplace(keys[reader], reader);
    }
  }
  return order;
}

}  // namespace shardprop
