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
             std::span<const solver::VariableId> variables)
      : problem_(problem),
        variables_(variables),
        viewed_(problem),
        end_(static_cast<std::int64_t>(problem.graph().nodes().size())) {}

  void add(PlanBufferId id, const std::vector<LiveInterval>& live_intervals) {
    const PlanBuffer& buffer = problem_.buffer(id);
    const bool lone = has_lone_use(buffer, true);
    // The buffer is as it was produced until it is cached in other layouts,
    // read by its single last use, or unused.
    std::int64_t until = buffer.produced_at + 1;
    if (buffer.persistent) {
      until = end_ + 1;
    } else if (!live_intervals.empty()) {
      until = live_intervals[0].issued;
    } else if (lone) {
      until = buffer.uses.back().slot;
    }
    add_produced(id, until);
    for (std::size_t i = 0; i < live_intervals.size(); ++i) {
      std::int64_t end = live_intervals[i].end;
      if (i + 1 < live_intervals.size()) {
        end = live_intervals[i + 1].issued;
      } else if (lone) {
        end = std::max(end, buffer.uses.back().slot);
      }
      add_cached(id, live_intervals[i], end);
    }
    if (lone) add_lone(id);
    if (lone && live_intervals.empty()) add_reduced(id);
  }

  std::vector<MemoryUsage> usages() && { return std::move(out_); }

 private:
  void add_usage(solver::VariableId variable, solver::Interval when,
                 std::vector<std::int64_t> bytes) {
    out_.push_back({variable, when, std::move(bytes)});
  }

  solver::VariableId of(PlanVariableId id) const {
    return variables_[id.index()];
  }
  std::size_t choices(PlanVariableId id) const {
    return problem_.variable(id).choices->size();
  }
  bool is_parameter(const PlanBuffer& buffer) const {
    const PlanVariable& producer = problem_.variable(buffer.producer);
    return producer.kind == PlanVariable::Kind::kInput &&
           problem_.graph().inputs()[producer.index].kind ==
               InputKind::kParameter;
  }

  // Adds a parameter with its optimizer's state.
  void add_parameter(const PlanBuffer& buffer) {
    const PlanVariable& producer = problem_.variable(buffer.producer);
    std::vector<std::int64_t> throughout;
    std::vector<std::int64_t> casts;
    for (std::size_t c = 0; c < choices(buffer.producer); ++c) {
      const KeptParameter kept = kept_parameter(problem_, producer, c);
      throughout.push_back(
          sat_add(kept.parameter, sat_add(kept.optimizer, kept.working)));
      casts.push_back(kept.cast);
    }
    add_usage(of(buffer.producer), {0, end_ + 1}, throughout);
    add_accumulated(buffer.producer);
    if (*std::max_element(casts.begin(), casts.end()) == 0) return;
    for (const UseSegment& segment : buffer.segments) {
      const SlotSpan span = span_of(buffer, segment);
      add_usage(of(buffer.producer), {span.first, span.last + 1}, casts);
    }
  }

  // A gradient that is accumulated in the layout of its optimizer's state
  // exists throughout. This adds the slots before it is produced.
  void add_accumulated(PlanVariableId id) {
    const PlanVariable& parameter = problem_.variable(id);
    const ChoiceSet& set = *parameter.choices;
    if (set.reduced_late.empty()) return;
    for (std::size_t u = 0; u < parameter.uses.size(); ++u) {
      const PlanBuffer& gradient =
          problem_.buffer(problem_.value(parameter.uses[u]).buffer);
      if (gradient.produced_at == 0 || !counts_gradient(problem_, id, u))
        continue;
      std::vector<std::int64_t> bytes;
      for (std::size_t c = 0; c < set.size(); ++c) {
        bytes.push_back(
            set.reduced_late[c]
                ? 0
                : problem_.local_bytes(parameter.uses[u], set.layout(c, u)));
      }
      add_usage(of(id), {0, gradient.produced_at}, bytes);
    }
  }

  // Adds the buffer as it was produced, until slot `until`.
  void add_produced(PlanBufferId id, std::int64_t until) {
    const PlanBuffer& buffer = problem_.buffer(id);
    if (is_parameter(buffer)) return add_parameter(buffer);
    const std::int64_t from =
        buffer.view_of_use ? viewed_.covered_until(id) : buffer.produced_at;
    if (from >= until) return;
    std::vector<std::int64_t> bytes;
    bytes.reserve(choices(buffer.producer));
    for (std::size_t c = 0; c < choices(buffer.producer); ++c) {
      bytes.push_back(
          buffer.inside_kernel ? 0
          : buffer.view_of_use
              ? viewed_.share(id, c)
              : buffer.kind->bytes[problem_.layout_produced(buffer, c)]);
    }
    add_usage(of(buffer.producer), {from, until}, bytes);
  }

  // Returns the bytes of a cached layout. A view that was produced in it adds
  // nothing while the buffer that it aliases is counted for its own uses
  // (`covered`). Afterwards it adds its share.
  std::int64_t cached(PlanBufferId id, BufferLayout state, bool covered) const {
    const PlanBuffer& buffer = problem_.buffer(id);
    const std::int64_t own = buffer.kind->bytes[state];
    if (buffer.inside_kernel && is_produced(buffer, state)) return 0;
    if (!buffer.view_of_use) return own;
    const std::int64_t share = viewed_.share_in(id, state);
    if (share == ViewMemory::kNotMade) return own;
    if (covered) return 0;
    // A view with one layout is always as it was produced.
    return buffer.kind->num_states() == 1 ? share : std::min(own, share);
  }

  // Returns whether the buffer may have been produced in the layout. Inside a
  // kernel it takes no memory then.
  static bool is_produced(const PlanBuffer& buffer, BufferLayout state) {
    const std::vector<BufferLayout>& produced = buffer.kind->produced;
    return std::find(produced.begin(), produced.end(), state) != produced.end();
  }

  std::int64_t cached(PlanBufferId id, const CachedLayouts& set,
                      bool covered) const {
    const PlanBuffer& buffer = problem_.buffer(id);
    const std::vector<std::int64_t>& own = buffer.kind->bytes;
    const bool two = set.second != set.first;
    if (buffer.persistent) return two ? own[set.second] : 0;
    if (!two) return cached(id, set.first, covered);
    // At most one of the two layouts is that of the buffer as it was produced.
    return std::min(sat_add(cached(id, set.first, covered), own[set.second]),
                    sat_add(own[set.first], cached(id, set.second, covered)));
  }

  // Adds `bytes(choice, covered)` for each choice over the slots `when`.
  template <class Bytes>
  void add_usage(PlanBufferId id, solver::VariableId variable,
                 solver::Interval when, std::size_t choices,
                 const Bytes& bytes) {
    const auto add = [&](std::int64_t from, std::int64_t until, bool covered) {
      if (from >= until) return;
      std::vector<std::int64_t> of_choices;
      of_choices.reserve(choices);
      for (std::size_t c = 0; c < choices; ++c) {
        of_choices.push_back(bytes(c, covered));
      }
      add_usage(variable, {from, until}, of_choices);
    };
    if (!problem_.buffer(id).view_of_use) return add(when.lo, when.hi, false);
    const std::int64_t covered = viewed_.covered_until(id);
    add(when.lo, std::min(when.hi, covered), true);
    add(std::max(when.lo, covered), when.hi, false);
  }

  void add_cached(PlanBufferId id, const LiveInterval& live_interval,
                  std::int64_t end) {
    add_usage(id, live_interval.variable, {live_interval.issued, end},
              live_interval.sets->size(), [&](std::size_t c, bool covered) {
                return cached(id, (*live_interval.sets)[c], covered);
              });
  }

  // Adds the layout that the last user reads, if no live interval includes it.
  void add_lone(PlanBufferId id) {
    const PlanBuffer& buffer = problem_.buffer(id);
    const std::size_t last = buffer.uses.size() - 1;
    const BufferUse& use = buffer.uses[last];
    add_usage(id, of(use.variable), {use.slot, use.until + 1},
              choices(use.variable), [&](std::size_t c, bool covered) {
                return cached(id, problem_.layout_required(buffer, last, c),
                              covered);
              });
  }

  // Adds the buffer as it was produced while a reduction that overlaps with
  // compute reads it, for producers' choices that no reader takes as they are.
  void add_reduced(PlanBufferId id) {
    const PlanBuffer& buffer = problem_.buffer(id);
    const std::size_t last = buffer.uses.size() - 1;
    const BufferUse& use = buffer.uses[last];
    const std::int64_t until = problem_.release_slot(buffer, use.slot) + 1;
    if (until <= use.slot + 1 || buffer.view_of_use) return;
    const std::size_t readers = choices(use.variable);
    std::vector<std::int64_t> bytes;
    for (std::size_t c = 0; c < choices(buffer.producer); ++c) {
      const BufferLayout produced = problem_.layout_produced(buffer, c);
      bool is_moved = true;
      for (std::size_t r = 0; r < readers && is_moved; ++r) {
        is_moved = problem_.layout_required(buffer, last, r) != produced;
      }
      bytes.push_back(is_moved ? buffer.kind->bytes[produced] : 0);
    }
    const std::int64_t from = std::max(use.slot, buffer.produced_at + 1);
    add_usage(of(buffer.producer), {from, until}, bytes);
  }

  const PlanProblem& problem_;
  std::span<const solver::VariableId> variables_;
  ViewMemory viewed_;
  std::int64_t end_;
  std::vector<MemoryUsage> out_;
};

}  // namespace

bool counts_gradient(const PlanProblem& problem, PlanVariableId parameter,
                     std::size_t use) {
  const PlanVariable& reader = problem.variable(parameter);
  const PlanBuffer& gradient =
      problem.buffer(problem.value(reader.uses[use]).buffer);
  const auto first = std::find_if(
      gradient.uses.begin(), gradient.uses.end(), [&](const BufferUse& other) {
        return !problem.variable(other.variable).choices->reduced_late.empty();
      });
  return first != gradient.uses.end() && first->variable == parameter &&
         first->operand == use;
}

bool has_lone_use(const PlanBuffer& buffer, bool with_memory) {
  return !buffer.segments.empty() && buffer.segments.back().count == 1 &&
         !(with_memory && buffer.persistent);
}

std::vector<MemoryUsage> memory_usages(
    const PlanProblem& problem, std::span<const solver::VariableId> variables,
    std::span<const std::vector<LiveInterval>> live_intervals) {
  MemoryRows rows(problem, variables);
  for (std::size_t b = 0; b < live_intervals.size(); ++b) {
    rows.add(PlanBufferId(b), live_intervals[b]);
  }
  return std::move(rows).usages();
}

}  // namespace shardprop
