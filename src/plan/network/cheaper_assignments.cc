#include "plan/network/cheaper_assignments.h"

#include "base/index.h"
#include "base/saturating.h"

#include <algorithm>

namespace shardprop {
namespace {

// Returns the sum, or kForbidden if a term is forbidden.
std::int64_t allowed_sum(std::int64_t a, std::int64_t b) {
  if (solver::is_forbidden(a) || solver::is_forbidden(b)) {
    return solver::kForbidden;
  }
  return std::min(sat_add(a, b), solver::kForbidden);
}

// Returns the end of the last interval over which a variable uses bytes.
std::int64_t end_of_usages(const solver::Problem& network) {
  std::int64_t end = 0;
  for (std::size_t v = 0; v < network.num_variables(); ++v) {
    const solver::VariableId id(v);
    for (std::size_t u = 0; u < network.num_usages(id); ++u) {
      end = std::max(end, network.usage(id, u).when.hi);
    }
  }
  return end;
}

}  // namespace

CheaperAssignments::CheaperAssignments(const solver::Problem& network)
    : network_(network),
      arcs_(network.num_variables()),
      least_from_(network.num_variables()),
      least_of_root_(network.num_variables(), 0),
      choices_(network.num_variables(), 0),
      bytes_(index(end_of_usages(network)), 0) {
  for (std::size_t v = 0; v < arcs_.size(); ++v) {
    const auto costs = network_.costs(solver::VariableId(v));
    least_from_[v].assign(costs.begin(), costs.end());
  }
  find_arcs();
  find_least_costs();
}

void CheaperAssignments::find_arcs() {
  for (const solver::Edge& edge : network_.edges()) {
    const solver::Table table = network_.table(edge.table);
    const std::size_t a = edge.a.index();
    const std::size_t b = edge.b.index();
    if (a == b) {
      for (std::size_t c = 0; c < least_from_[a].size(); ++c) {
        least_from_[a][c] =
            allowed_sum(least_from_[a][c], table.costs[c * table.columns + c]);
      }
      continue;
    }
    Arc arc;
    arc.earlier = std::min(a, b);
    arc.table = table;
    arc.earlier_is_row = a < b;
    arcs_[std::max(a, b)].push_back(std::move(arc));
  }
}

// From the last variable to the first, the least cost of a variable goes to its
// last earlier neighbour, with the edge between them. Other edges give theirs
// alone. So each cost is counted once.
void CheaperAssignments::find_least_costs() {
  for (std::size_t v = arcs_.size(); v-- > 0;) {
    std::vector<std::int64_t>& own = least_from_[v];
    std::vector<Arc>& arcs = arcs_[v];
    const auto parent = std::max_element(
        arcs.begin(), arcs.end(),
        [](const Arc& a, const Arc& b) { return a.earlier < b.earlier; });
    if (parent == arcs.end()) {
      least_of_root_[v] = *std::min_element(own.begin(), own.end());
      least_ = allowed_sum(least_, least_of_root_[v]);
      continue;
    }
    for (Arc& arc : arcs) {
      std::vector<std::int64_t>& earlier = least_from_[arc.earlier];
      arc.least.assign(earlier.size(), solver::kForbidden);
      const bool is_parent = &arc == &*parent;
      for (std::size_t e = 0; e < earlier.size(); ++e) {
        for (std::size_t c = 0; c < own.size(); ++c) {
          const std::int64_t rest = is_parent ? own[c]
                                    : solver::is_forbidden(own[c])
                                        ? solver::kForbidden
                                        : 0;
          arc.least[e] =
              std::min(arc.least[e], allowed_sum(arc.cost(e, c), rest));
        }
        earlier[e] = allowed_sum(earlier[e], arc.least[e]);
      }
      work_ += earlier.size() * own.size();
    }
  }
}

// Returns the choices that may lead to an assignment below a cost, the cheapest
// first. `least` is the least cost with the choices of the earlier variables.
std::vector<CheaperAssignments::Candidate> CheaperAssignments::candidates(
    std::size_t variable, std::int64_t least, std::int64_t below) {
  std::int64_t expected = least_of_root_[variable];
  for (const Arc& arc : arcs_[variable]) {
    expected += arc.least[choices_[arc.earlier]];
  }
  std::vector<Candidate> out;
  for (std::uint32_t c = 0; c < least_from_[variable].size(); ++c) {
    std::int64_t cost = least_from_[variable][c];
    for (const Arc& arc : arcs_[variable]) {
      cost = allowed_sum(cost, arc.cost(choices_[arc.earlier], c));
    }
    if (solver::is_forbidden(cost)) continue;
    cost += least - expected;
    if (cost < below) out.push_back({cost, c});
  }
  work_ += least_from_[variable].size() * (arcs_[variable].size() + 1);
  std::stable_sort(
      out.begin(), out.end(),
      [](const Candidate& a, const Candidate& b) { return a.cost < b.cost; });
  return out;
}

// Returns whether the bytes are within the limit wherever the variable uses
// bytes.
bool CheaperAssignments::fits(std::size_t variable) const {
  if (!network_.limit()) return true;
  const solver::VariableId id(variable);
  for (std::size_t u = 0; u < network_.num_usages(id); ++u) {
    const solver::Interval when = network_.usage(id, u).when;
    for (std::int64_t t = when.lo; t < when.hi; ++t) {
      if (bytes_[index(t)] > *network_.limit()) return false;
    }
  }
  return true;
}

void CheaperAssignments::use_bytes(std::size_t variable, std::uint32_t choice,
                                   int sign) {
  const solver::VariableId id(variable);
  for (std::size_t u = 0; u < network_.num_usages(id); ++u) {
    const solver::Usage usage = network_.usage(id, u);
    for (std::int64_t t = usage.when.lo; t < usage.when.hi; ++t) {
      bytes_[index(t)] += sign * usage.bytes[choice];
    }
    work_ += static_cast<std::uint64_t>(
        std::max<std::int64_t>(usage.when.hi - usage.when.lo, 0));
  }
}

bool CheaperAssignments::run(const Visitor& visitor, Budget& budget,
                             std::uint64_t visit_work) {
  // The candidates of each chosen variable, and the one that is chosen.
  struct Level {
    std::vector<Candidate> candidates;
    std::size_t next = 0;
    bool uses_bytes = false;
  };
  const auto spend = [&] {
    budget.charge(work_);
    work_ = 0;
    return !budget.is_stopped();
  };
  if (arcs_.empty() || solver::is_forbidden(least_)) return true;
  std::vector<Level> levels;
  levels.push_back({candidates(0, least_, visitor.below())});
  while (!levels.empty()) {
    if (!spend()) return false;
    Level& level = levels.back();
    const std::size_t v = levels.size() - 1;
    if (level.uses_bytes) use_bytes(v, choices_[v], -1);
    level.uses_bytes = false;
    if (level.next == level.candidates.size() ||
        level.candidates[level.next].cost >= visitor.below()) {
      levels.pop_back();
      continue;
    }
    const Candidate chosen = level.candidates[level.next++];
    choices_[v] = chosen.choice;
    use_bytes(v, chosen.choice, 1);
    level.uses_bytes = true;
    if (!fits(v)) continue;
    if (v + 1 < arcs_.size()) {
      levels.push_back({candidates(v + 1, chosen.cost, visitor.below())});
      continue;
    }
    visitor.visit(choices_);
    work_ += visit_work;
  }
  return true;
}

}  // namespace shardprop
