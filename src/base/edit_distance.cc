#include "base/edit_distance.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

namespace shardprop {
namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// edit_distance() ignores case.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change =
          diagonal + (lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
    }
  }
  return row[b.size()];
}

// lacks_only() is true if `part` is `whole` with letters left out; case does
// not matter.
bool lacks_only(std::string_view part, std::string_view whole) {
  std::size_t at = 0;
  for (const char letter : whole) {
    if (at < part.size() && lower(part[at]) == lower(letter)) ++at;
  }
  return at == part.size();
}

}  // namespace

std::string did_you_mean(std::string_view wrong,
                         std::span<const std::string_view> known) {
  std::string_view nearest;
  bool is_part = false;
  std::size_t least = std::max<std::size_t>(1, wrong.size() / 3) + 1;
  for (const std::string_view name : known) {
    const std::size_t length_gap = name.size() > wrong.size()
                                       ? name.size() - wrong.size()
                                       : wrong.size() - name.size();
    if (length_gap > least) continue;
    const std::size_t distance = edit_distance(wrong, name);
    // If two names are equally near, a name that only lacks or adds letters
    // wins.
    const bool typed = lacks_only(name, wrong) || lacks_only(wrong, name);
    if (distance < least ||
        (distance == least && !nearest.empty() && typed && !is_part)) {
      least = distance;
      nearest = name;
      is_part = typed;
    }
  }
  if (!nearest.empty()) return "did you mean `" + std::string(nearest) + "`?";
  constexpr std::size_t kMostListed = 8;
  std::string list;
  for (std::size_t i = 0; i < known.size() && i < kMostListed; ++i) {
    list += (i == 0 ? "known: " : ", ") + std::string(known[i]);
  }
  if (known.size() > kMostListed) list += ", …";
  return list;
}

}  // namespace shardprop
