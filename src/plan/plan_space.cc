#include <shardprop/plan/plan_space.h>

namespace shardprop {
namespace {

// Returns a text such as "mesh dims 0, 1 as one, 2, 3, 4 as one, ".
std::string joined_in_words(std::uint32_t joined_dims) {
  std::string out;
  for (int m = 1; joined_dims >> m != 0; ++m) {
    if ((joined_dims >> m & 1U) == 0) continue;
    const bool goes_on = (joined_dims >> (m - 1) & 1U) != 0;
    if (!goes_on)
      out += (out.empty() ? "mesh dims " : "") + std::to_string(m - 1);
    out += ", " + std::to_string(m);
    if ((joined_dims >> (m + 1) & 1U) == 0) out += " as one, ";
  }
  return out;
}

}  // namespace

std::string to_string(const PlanSpace& space) {
  if (!space.most_runs) return {};
  if (*space.most_runs == 0) return "all replicated";
  if (*space.most_runs == 1) return "mesh dims in one run";
  const std::string runs =
      "in at most " + std::to_string(*space.most_runs) + " runs";
  if (space.joined_dims == 0) return "mesh dims " + runs;
  return joined_in_words(space.joined_dims) + runs;
}

}  // namespace shardprop
