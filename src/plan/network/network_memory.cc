#include "plan/network/network_memory.h"

#include "base/saturating.h"
#include "plan/evaluate/live_memory.h"
#include "plan/network/view_memory.h"

#include <algorithm>
#include <cstdint>

namespace shardprop {
namespace {

class MemoryRows {
 public:
  MemoryRows(const PlanProblem& problem,
             std::span<const solver::VariableId> variables,
             solver::ProblemBuilder& builder)
      : problem_(problem),
        variables_(variables),
        builder_(builder),
        shown_(problem),
        end_(static_cast<std::int64_t>(problem.graph().nodes().size())) {}

  void add(PlanStorageId id, const std::vector<Stretch>& stretches) {
    const PlanStorage& storage = problem_.storage(id);
    const bool lone = has_lone_use(storage, true);
    // The buffer is as it was produced until it is cached in other layouts,
    // read by its single last use, or unused.
    std::int64_t until = storage.made_at + 1;
    if (storage.persistent) {
      until = end_ + 1;
    } else if (!stretches.empty()) {
      until = stretches[0].begin;
    } else if (lone) {
      until = storage.uses.back().slot;
    }
    add_made(id, until);
    for (std::size_t i = 0; i < stretches.size(); ++i) {
      std::int64_t end = stretches[i].end;
      if (i + 1 < stretches.size()) {
        end = stretches[i + 1].begin;
      } else if (lone) {
        end = std::max(end, storage.uses.back().slot);
      }
      add_held(id, stretches[i], end);
    }
    if (lone) add_lone(id);
  }

 private:
  solver::VariableId of(PlanVariableId id) const {
    return variables_[id.index()];
  }
  std::size_t choices(PlanVariableId id) const {
    return problem_.variable(id).choices->size();
  }
  bool is_parameter(const PlanStorage& storage) const {
    const PlanVariable& maker = problem_.variable(storage.maker);
    return maker.kind == PlanVariable::Kind::kInput &&
           problem_.graph().inputs()[maker.index].kind == InputKind::kParameter;
  }

  // Adds a parameter with its optimizer's state.
  void add_parameter(const PlanStorage& storage) {
    const PlanVariable& maker = problem_.variable(storage.maker);
    std::vector<std::int64_t> throughout;
    std::vector<std::int64_t> casts;
    for (std::size_t c = 0; c < choices(storage.maker); ++c) {
      const KeptParameter kept = kept_parameter(problem_, maker, c);
      throughout.push_back(
          sat_add(kept.parameter, sat_add(kept.optimizer, kept.working)));
      casts.push_back(kept.cast);
    }
    builder_.add_usage(of(storage.maker), {0, end_ + 1}, throughout);
    add_accumulated(storage.maker);
    if (*std::max_element(casts.begin(), casts.end()) == 0) return;
    for (const UseSegment& segment : storage.segments) {
      const SlotSpan span = span_of(storage, segment);
      builder_.add_usage(of(storage.maker), {span.first, span.last + 1}, casts);
    }
  }

  // A gradient that is accumulated in the layout of its optimizer's state
  // exists throughout. This adds the slots before it is produced.
  void add_accumulated(PlanVariableId id) {
    const PlanVariable& parameter = problem_.variable(id);
    const ChoiceSet& set = *parameter.choices;
    if (set.reduced_late.empty()) return;
    for (std::size_t u = 0; u < parameter.uses.size(); ++u) {
      const PlanStorage& gradient =
          problem_.storage(problem_.value(parameter.uses[u]).storage);
      if (gradient.made_at == 0 || !counts_gradient(problem_, id, u)) continue;
      std::vector<std::int64_t> bytes;
      for (std::size_t c = 0; c < set.size(); ++c) {
        bytes.push_back(
            set.reduced_late[c]
                ? 0
                : problem_.local_bytes(parameter.uses[u], set.layout(c, u)));
      }
      builder_.add_usage(of(id), {0, gradient.made_at}, bytes);
    }
  }

  // Adds the buffer as it was produced, until slot `until`.
  void add_made(PlanStorageId id, std::int64_t until) {
    const PlanStorage& storage = problem_.storage(id);
    if (is_parameter(storage)) return add_parameter(storage);
    const std::int64_t from =
        storage.shows ? shown_.covered_until(id) : storage.made_at;
    if (from >= until) return;
    std::vector<std::int64_t> bytes;
    bytes.reserve(choices(storage.maker));
    for (std::size_t c = 0; c < choices(storage.maker); ++c) {
      bytes.push_back(
          storage.shows ? shown_.share(id, c)
                        : storage.kind->bytes[problem_.state_made(storage, c)]);
    }
    builder_.add_usage(of(storage.maker), {from, until}, bytes);
  }

  // Returns the bytes of a cached layout. A view that was produced in it adds
  // nothing while the buffer that it aliases is counted for its own uses
  // (`covered`). Afterwards it adds its share.
  std::int64_t held(PlanStorageId id, StorageState state, bool covered) const {
    const PlanStorage& storage = problem_.storage(id);
    const std::int64_t own = storage.kind->bytes[state];
    if (!storage.shows) return own;
    const std::int64_t share = shown_.share_in(id, state);
    if (share == ShownMemory::kNotMade) return own;
    if (covered) return 0;
    // A view with one layout is always as it was produced.
    return storage.kind->num_states() == 1 ? share : std::min(own, share);
  }

  std::int64_t held(PlanStorageId id, const HeldSet& set, bool covered) const {
    const PlanStorage& storage = problem_.storage(id);
    const std::vector<std::int64_t>& own = storage.kind->bytes;
    const bool two = set.second != set.first;
    if (storage.persistent) return two ? own[set.second] : 0;
    if (!two) return held(id, set.first, covered);
    // At most one of the two layouts is that of the buffer as it was produced.
    return std::min(sat_add(held(id, set.first, covered), own[set.second]),
                    sat_add(own[set.first], held(id, set.second, covered)));
  }

  // Adds `bytes(choice, covered)` for each choice over the slots `when`.
  template <class Bytes>
  void add_usage(PlanStorageId id, solver::VariableId variable,
                 solver::Interval when, std::size_t choices,
                 const Bytes& bytes) {
    const auto add = [&](std::int64_t from, std::int64_t until, bool covered) {
      if (from >= until) return;
      std::vector<std::int64_t> of_choices;
      of_choices.reserve(choices);
      for (std::size_t c = 0; c < choices; ++c) {
        of_choices.push_back(bytes(c, covered));
      }
      builder_.add_usage(variable, {from, until}, of_choices);
    };
    if (!problem_.storage(id).shows) return add(when.lo, when.hi, false);
    const std::int64_t covered = shown_.covered_until(id);
    add(when.lo, std::min(when.hi, covered), true);
    add(std::max(when.lo, covered), when.hi, false);
  }

  void add_held(PlanStorageId id, const Stretch& stretch, std::int64_t end) {
    add_usage(id, stretch.variable, {stretch.begin, end}, stretch.sets->size(),
              [&](std::size_t c, bool covered) {
                return held(id, (*stretch.sets)[c], covered);
              });
  }

  // Adds the layout that the last user reads, if no live interval includes it.
  void add_lone(PlanStorageId id) {
    const PlanStorage& storage = problem_.storage(id);
    const std::size_t last = storage.uses.size() - 1;
    const StorageUse& use = storage.uses[last];
    add_usage(id, of(use.variable), {use.slot, use.until + 1},
              choices(use.variable), [&](std::size_t c, bool covered) {
                return held(id, problem_.state_wanted(storage, last, c),
                            covered);
              });
  }

  const PlanProblem& problem_;
  std::span<const solver::VariableId> variables_;
  solver::ProblemBuilder& builder_;
  ShownMemory shown_;
  std::int64_t end_;
};

}  // namespace

bool counts_gradient(const PlanProblem& problem, PlanVariableId parameter,
                     std::size_t use) {
  const PlanVariable& reader = problem.variable(parameter);
  const PlanStorage& gradient =
      problem.storage(problem.value(reader.uses[use]).storage);
  const auto first = std::find_if(
      gradient.uses.begin(), gradient.uses.end(), [&](const StorageUse& other) {
        return !problem.variable(other.variable).choices->reduced_late.empty();
      });
  return first != gradient.uses.end() && first->variable == parameter &&
         first->operand == use;
}

bool has_lone_use(const PlanStorage& storage, bool with_memory) {
  return !storage.segments.empty() && storage.segments.back().count == 1 &&
         !(with_memory && storage.persistent);
}

void add_memory_rows(const PlanProblem& problem,
                     std::span<const solver::VariableId> variables,
                     std::span<const std::vector<Stretch>> stretches,
                     solver::ProblemBuilder& builder) {
  MemoryRows rows(problem, variables, builder);
  for (std::size_t s = 0; s < stretches.size(); ++s) {
    rows.add(PlanStorageId(s), stretches[s]);
  }
}

}  // namespace shardprop
