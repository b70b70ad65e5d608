#include "ops/schema/suggest_operator.h"

#include "base/edit_distance.h"

#include <algorithm>
#include <vector>

namespace shardprop {
namespace {

// Returns "add" for "aten.add.Tensor". Only this part is compared, because the
// rest is the same for almost all names.
std::string_view packet(std::string_view name) {
  const std::size_t first = name.find('.');
  const std::size_t last = name.rfind('.');
  if (first == std::string_view::npos) return name;
  if (first == last) return name.substr(first + 1);
  return name.substr(first + 1, last - first - 1);
}

std::string list_of(std::span<const std::string_view> names) {
  constexpr std::size_t kMostListed = 8;
  std::string out;
  for (std::size_t i = 0; i < std::min(names.size(), kMostListed); ++i) {
    out += out.empty() ? "`" : ", `";
    out += names[i];
    out += '`';
  }
  if (names.size() > kMostListed) out += ", …";
  return out;
}

}  // namespace

std::string suggest_operator(std::string_view wanted,
                             std::span<const std::string> names) {
  const auto overloads = [&](std::string_view name) {
    std::vector<std::string_view> found;
    for (const std::string& known : names) {
      if (packet(known) == name) found.push_back(known);
    }
    return found;
  };
  const std::string_view operator_name = packet(wanted);
  std::vector<std::string_view> found = overloads(operator_name);
  const bool spelled = !found.empty();
  if (!spelled) {
    std::vector<std::string_view> packets;
    for (const std::string& known : names) packets.push_back(packet(known));
    const std::string nearest = did_you_mean(operator_name, packets);
    const std::size_t begin = nearest.find('`');
    if (begin == std::string::npos) return "`shardprop ops` lists operators";
    found = overloads(std::string_view(nearest).substr(
        begin + 1, nearest.rfind('`') - begin - 1));
  }
  const auto ends_alike = [&](std::string_view name) {
    const std::size_t dot = name.rfind('.');
    return wanted.ends_with(name.substr(dot));
  };
  // Prefers the overload of the same name, then the default one, then the only
  // one.
  const bool has_overload = std::count(wanted.begin(), wanted.end(), '.') == 2;
  for (const std::string_view name : found) {
    const bool meant = has_overload ? ends_alike(name) && !spelled
                                    : name.ends_with(".default");
    if (meant || found.size() == 1) {
      return "did you mean `" + std::string(name) + "`?";
    }
  }
  return (spelled ? "its overloads are " : "did you mean one of ") +
         list_of(found);
}

}  // namespace shardprop
