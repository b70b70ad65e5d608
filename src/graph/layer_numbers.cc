#include "graph/layer_numbers.h"

#include "base/parse_int.h"

#include <algorithm>
#include <cstddef>

namespace shardprop {
namespace {

std::string_view component_at(std::string_view name, std::size_t begin) {
  return name.substr(begin, name.find('.', begin) - begin);
}

// Returns the begin of the first component in which two names differ.
std::size_t first_difference(std::string_view a, std::string_view b) {
  const auto same = static_cast<std::size_t>(
      std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
  const std::size_t dot =
      same == 0 ? std::string_view::npos : a.rfind('.', same - 1);
  return dot == std::string_view::npos ? 0 : dot + 1;
}

}  // namespace

LayerNumbers::LayerNumbers(
    const std::vector<std::pair<std::string, std::string>>& names,
    std::int64_t inserted)
    : inserted_(inserted) {
  for (const auto& [name, next] : names) {
    if (name == next) continue;
    const std::size_t at = first_difference(name, next);
    const auto first = parse_int(component_at(name, at));
    const auto second = parse_int(component_at(next, at));
    if (!first || !second || *second <= *first) continue;
    if (numbers_ && *first >= numbers_->first) continue;
    numbers_ = {name.substr(0, at), *first, *second - *first};
  }
}

template <class Next>
std::string LayerNumbers::renumbered(std::string_view name,
                                     const Next& next) const {
  if (!numbers_ || !name.starts_with(numbers_->prefix)) {
    return std::string(name);
  }
  const std::size_t at = numbers_->prefix.size();
  const std::string_view component = component_at(name, at);
  const auto number = parse_int(component);
  if (!number) return std::string(name);
  return numbers_->prefix + std::to_string(next(*number)) +
         std::string(name.substr(at + component.size()));
}

std::string LayerNumbers::of_copy(std::string_view name,
                                  std::int64_t copy) const {
  return renumbered(name, [&](std::int64_t number) {
    return number + copy * numbers_->step;
  });
}

std::string LayerNumbers::of_original(std::string_view name) const {
  return renumbered(name, [&](std::int64_t number) {
    const bool is_later = number >= numbers_->first + numbers_->step;
    return number + (is_later ? inserted_ * numbers_->step : 0);
  });
}

}  // namespace shardprop
