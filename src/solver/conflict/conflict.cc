#include "solver/conflict/conflict.h"

#include "solver/model/solve_budget.h"
#include "solver/tuning.h"

#include <algorithm>
#include <map>
#include <new>
#include <optional>
#include <span>

namespace shardprop::solver {
namespace {

struct Part {
  enum class Kind : std::uint8_t { kPin, kVariable, kEdge, kMemory } kind;
  std::size_t index = 0;  // pin, variable or edge
  std::int64_t time = 0;  // kMemory
};

bool has_forbidden(std::span<const std::int64_t> costs) {
  return std::any_of(costs.begin(), costs.end(), is_forbidden);
}

std::vector<std::int64_t> only_forbidden(std::span<const std::int64_t> costs) {
  std::vector<std::int64_t> out(costs.size(), 0);
  for (std::size_t i = 0; i < costs.size(); ++i) {
    if (is_forbidden(costs[i])) out[i] = kForbidden;
  }
  return out;
}

// Returns every constraint of the problem. A memory constraint is one time of
// each interval in which no usage begins or ends. Only intervals after a
// beginning can be the tightest.
std::vector<Part> all_parts(const Problem& problem) {
  std::vector<Part> parts;
  for (std::size_t i = 0; i < problem.pins().size(); ++i) {
    parts.push_back({Part::Kind::kPin, i});
  }
  if (problem.limit().has_value()) {
    std::vector<std::pair<std::int64_t, bool>> events;  // time, begins
    for (std::size_t v = 0; v < problem.num_variables(); ++v) {
      for (std::size_t u = 0; u < problem.num_usages(VariableId(v)); ++u) {
        const Interval when = problem.usage(VariableId(v), u).when;
        if (when.empty()) continue;
        events.emplace_back(when.lo, true);
        events.emplace_back(when.hi, false);
      }
    }
    std::sort(events.begin(), events.end());
    for (std::size_t i = 0; i < events.size(); ++i) {
      // The live set is largest at the last beginning before an end.
      const bool largest =
          events[i].second && (i + 1 == events.size() || !events[i + 1].second);
      if (largest) parts.push_back({Part::Kind::kMemory, 0, events[i].first});
    }
  }
  for (std::size_t v = 0; v < problem.num_variables(); ++v) {
    if (has_forbidden(problem.costs(VariableId(v)))) {
      parts.push_back({Part::Kind::kVariable, v});
    }
  }
  for (std::size_t e = 0; e < problem.num_edges(); ++e) {
    if (has_forbidden(problem.table(problem.edge(EdgeId(e)).table).costs)) {
      parts.push_back({Part::Kind::kEdge, e});
    }
  }
  return parts;
}

// PartialProblem contains only the constraints `parts`. Its costs are zero;
// with `count_bytes_at`, they are the bytes at that time.
class PartialProblem {
 public:
  PartialProblem(const Problem& problem, std::span<const Part> parts,
                 std::optional<std::int64_t> count_bytes_at)
      : problem_(problem), count_at_(count_bytes_at) {
    std::map<std::size_t, bool> involved;  // variable: forbids costs
    std::vector<std::int64_t> times;
    for (const Part& part : parts) {
      switch (part.kind) {
        case Part::Kind::kPin:
          involved.try_emplace(problem.pins()[part.index].variable.index(),
                               false);
          break;
        case Part::Kind::kVariable:
          involved[part.index] = true;
          break;
        case Part::Kind::kEdge: {
          const Edge& edge = problem.edge(EdgeId(part.index));
          involved.try_emplace(edge.a.index(), false);
          involved.try_emplace(edge.b.index(), false);
          break;
        }
        case Part::Kind::kMemory:
          times.push_back(part.time);
          break;
      }
    }
    std::sort(times.begin(), times.end());
    for (std::size_t v = 0; v < problem.num_variables(); ++v) {
      bool uses =
          count_at_.has_value() && uses_bytes_at(VariableId(v), *count_at_);
      for (std::size_t u = 0; u < problem.num_usages(VariableId(v)); ++u) {
        uses = uses ||
               !steps_of(problem.usage(VariableId(v), u).when, times).empty();
      }
      if (uses) involved.try_emplace(v, false);
    }
    std::map<std::size_t, VariableId> mine;
    for (const auto& [v, with_forbidden] : involved) {
      std::vector<std::int64_t> costs =
          with_forbidden ? only_forbidden(problem.costs(VariableId(v)))
                         : std::vector<std::int64_t>(
                               problem.num_choices(VariableId(v)), 0);
      if (count_at_.has_value()) add_bytes(VariableId(v), *count_at_, costs);
      const VariableId id = builder_.add_variable(costs);
      mine.emplace(v, id);
      // Only the chosen times count; each is one time step.
      for (std::size_t u = 0; u < problem.num_usages(VariableId(v)); ++u) {
        const Usage usage = problem.usage(VariableId(v), u);
        const Interval steps = steps_of(usage.when, times);
        if (!steps.empty()) builder_.add_usage(id, steps, usage.bytes);
      }
    }
    for (const Part& part : parts) {
      if (part.kind == Part::Kind::kPin) {
        const Pin& pin = problem.pins()[part.index];
        builder_.pin(mine.at(pin.variable.index()), pin.choice);
      } else if (part.kind == Part::Kind::kEdge) {
        const Edge& edge = problem.edge(EdgeId(part.index));
        const Table table = problem.table(edge.table);
        builder_.add_edge(mine.at(edge.a.index()), mine.at(edge.b.index()),
                          builder_.add_table(table.rows, table.columns,
                                             only_forbidden(table.costs)));
      }
    }
    if (problem.limit().has_value()) builder_.set_limit(*problem.limit());
  }

  Solution solve(const SolveOptions& options) && {
    const auto built = std::move(builder_).build();
    if (!built.has_value()) {
      throw InternalError("a part of a sound problem is not sound");
    }
    return solve_plainly(*built, options);
  }

 private:
  // Returns the times, by index, that are within the interval.
  static Interval steps_of(Interval when,
                           const std::vector<std::int64_t>& times) {
    const auto place = [&](std::int64_t time) {
      return std::lower_bound(times.begin(), times.end(), time) - times.begin();
    };
    return {place(when.lo), place(when.hi)};
  }
  bool uses_bytes_at(VariableId v, std::int64_t time) const {
    for (std::size_t u = 0; u < problem_.num_usages(v); ++u) {
      const Interval when = problem_.usage(v, u).when;
      if (when.lo <= time && time < when.hi) return true;
    }
    return false;
  }
  void add_bytes(VariableId v, std::int64_t time,
                 std::vector<std::int64_t>& to) const {
    for (std::size_t u = 0; u < problem_.num_usages(v); ++u) {
      const Usage usage = problem_.usage(v, u);
      if (usage.when.lo > time || time >= usage.when.hi) continue;
      for (std::size_t c = 0; c < to.size(); ++c) {
        if (!is_forbidden(to[c])) to[c] += usage.bytes[c];
      }
    }
  }

  const Problem& problem_;
  std::optional<std::int64_t> count_at_;
  ProblemBuilder builder_;
};

class Explainer {
 public:
  Explainer(const Problem& problem, const SolveOptions& options)
      : problem_(problem), options_(options), budget_(budget_of(options)) {
    options_.threads = 1;
    options_.work_limit = tuning::kConflictCheckWork;
    options_.progress = nullptr;
    options_.go_on = nullptr;  // the callback knows only the full problem
  }

  Conflict run() {
    std::vector<Part> parts = explain({}, all_parts(problem_), false);
    Conflict conflict;
    conflict.irreducible = !unsure_;
    for (const Part& part : parts) {
      switch (part.kind) {
        case Part::Kind::kPin:
          conflict.pins.push_back(problem_.pins()[part.index]);
          break;
        case Part::Kind::kVariable:
          conflict.variables.emplace_back(part.index);
          break;
        case Part::Kind::kEdge:
          conflict.edges.emplace_back(part.index);
          break;
        case Part::Kind::kMemory:
          conflict.memory.push_back({part.time, bytes_short(parts, part)});
          break;
      }
    }
    return conflict;
  }

 private:
  // Throws std::bad_alloc if the solver ended because memory was refused. Its
  // answer then gives no reason to keep a part.
  Solution solved(std::span<const Part> parts,
                  std::optional<std::int64_t> count_at) const {
    Solution answer = PartialProblem(problem_, parts, count_at).solve(options_);
    if (answer.failure && answer.failure->code == ErrorCode::kOutOfMemory) {
      throw std::bad_alloc();
    }
    return answer;
  }

  bool infeasible(std::span<const Part> parts) {
    // After the time limit, every part is kept: the set is still a conflict.
    if (budget_.is_cut_off()) {
      unsure_ = true;
      return false;
    }
    const Solution answer = solved(parts, std::nullopt);
    unsure_ = unsure_ || answer.status == Status::kUnknown;
    return answer.status == Status::kInfeasible;
  }

  // Returns the parts of `candidates` that form an irreducible set together
  // with all of `background`. Precondition: the two together are infeasible.
  std::vector<Part> explain(const std::vector<Part>& background,
                            std::vector<Part> candidates,
                            bool background_grew) {
    if (background_grew && infeasible(background)) return {};
    if (candidates.size() <= 1) return candidates;
    const auto middle =
        candidates.begin() + static_cast<std::ptrdiff_t>(candidates.size() / 2);
    const std::vector<Part> first(candidates.begin(), middle);
    const std::vector<Part> second(middle, candidates.end());
    const auto join = [](std::vector<Part> a, const std::vector<Part>& b) {
      a.insert(a.end(), b.begin(), b.end());
      return a;
    };
    const std::vector<Part> from_second =
        explain(join(background, first), second, !first.empty());
    const std::vector<Part> from_first =
        explain(join(background, from_second), first, !from_second.empty());
    return join(from_first, from_second);
  }

  Int128 bytes_short(const std::vector<Part>& parts, const Part& step) {
    std::vector<Part> others;
    for (const Part& part : parts) {
      if (part.kind != step.kind || part.time != step.time)
        others.push_back(part);
    }
    if (budget_.is_cut_off()) return 0;
    const Solution least = solved(others, step.time);
    return least.lower_bound.value_or(Int128{*problem_.limit()}) -
           *problem_.limit();
  }

  const Problem& problem_;
  SolveOptions options_;
  Budget budget_;
  bool unsure_ = false;
};

}  // namespace

Conflict find_conflict(const Problem& problem, const SolveOptions& options) {
  return Explainer(problem, options).run();
}

}  // namespace shardprop::solver
