// AssignmentWalk visits every assignment of mesh dims that a composer allows.
#pragma once

#include <shardprop/mesh/device_mesh.h>
#include <shardprop/strategy/op_strategy.h>

#include <algorithm>
#include <cstdint>
#include <optional>

namespace shardprop {

// Returns the number of assignments of `dims` mesh dims to `choices` choices
// that have at most `runs` runs. A run is a sequence of neighbouring mesh dims
// with the same choice. The number saturates at 2^40.
inline std::int64_t assignments_in_runs(std::int64_t choices, int dims,
                                        int runs) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  std::int64_t sum = 0;
  std::int64_t of_runs = choices;  // of exactly r runs
  for (int r = 1; r <= std::min(runs, dims); ++r) {
    sum += of_runs;
    if (sum >= kMost) return kMost;
    // Fewer than 2^40 times at most 2^15 choices times at most 2^6 dims.
    of_runs = of_runs * (choices - 1) * (dims - r) / r;
  }
  return sum;
}

// AssignmentWalk enumerates the assignments one mesh dim at a time. It skips
// prefixes that no valid assignment has.
template <class Composer>
class AssignmentWalk {
 public:
  // `in_mesh_order`: no strategy shards a factor in another order.
  AssignmentWalk(const Composer& composer, const DeviceMesh& mesh,
                 const StrategyOptions& options, bool in_mesh_order)
      : composer_(composer),
        mesh_(mesh),
        joined_dims_(options.joined_dims),
        in_mesh_order_(in_mesh_order) {
    const int dims = mesh.num_active_dims();
    most_runs_ = std::min(dims, options.most_runs.value_or(dims));
    if (dims <= kMostFullDims || !options.most_assignments) return;
    const auto choices =
        static_cast<std::int64_t>(composer.choices().size()) + 1;
    while (most_runs_ > kLeastRuns &&
           assignments_in_runs(choices, dims, most_runs_) >
               *options.most_assignments) {
      --most_runs_;
    }
  }

  // Calls visit(assignment) until it returns false. Skips prefixes for which
  // follows(prefix) is false.
  template <class Follows, class Visit>
  void run(const Follows& follows, const Visit& visit) {
    Assignment prefix;
    extend(prefix, 0, follows, visit);
  }

 private:
  static constexpr int kMostFullDims = 3;
  static constexpr int kLeastRuns = 2;

  // `runs` counts the runs of the mesh dims larger than 1 in `prefix`.
  template <class Follows, class Visit>
  bool extend(Assignment& prefix, int runs, const Follows& follows,
              const Visit& visit) {
    const std::size_t at = prefix.size();
    if (at == static_cast<std::size_t>(mesh_.ndim())) return visit(prefix);
    const auto go_on = [&](std::int16_t choice, int with_it) {
      prefix.push_back(choice);
      const bool more = with_it > most_runs_ || !follows(prefix) ||
                        !composer_.may_begin(prefix, in_mesh_order_) ||
                        extend(prefix, with_it, follows, visit);
      prefix.pop_back();
      return more;
    };
    // A mesh dim of one rank stays unassigned, because any choice for it is
    // equivalent.
    if (mesh_.size(static_cast<int>(at)) == 1) return go_on(kUnassigned, runs);
    const std::optional<std::int16_t> before = last_given(prefix);
    const auto runs_with = [&](std::int16_t choice) {
      return before == choice ? runs : runs + 1;
    };
    if (most_runs_ == 0) return go_on(kUnassigned, 0);
    if (before && (joined_dims_ >> at & 1U) != 0) return go_on(*before, runs);
    if (!go_on(kUnassigned, runs_with(kUnassigned))) return false;
    for (const std::int16_t choice : composer_.choices()) {
      if (!go_on(choice, runs_with(choice))) return false;
    }
    return true;
  }

  // Returns the choice of the last mesh dim larger than 1.
  std::optional<std::int16_t> last_given(const Assignment& prefix) const {
    for (std::size_t m = prefix.size(); m-- > 0;) {
      if (mesh_.size(static_cast<int>(m)) > 1) return prefix[m];
    }
    return std::nullopt;
  }

  const Composer& composer_;
  const DeviceMesh& mesh_;
  std::uint32_t joined_dims_;
  bool in_mesh_order_;
  int most_runs_ = 0;
};

}  // namespace shardprop
