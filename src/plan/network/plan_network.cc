#include "plan/network/plan_network.h"

#include "base/index.h"
#include "base/saturating.h"
#include "base/try.h"
#include "plan/network/network_memory.h"
#include "plan/problem/build/buffers.h"
#include "plan/tuning.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace shardprop {
namespace {

// Returns a share of a time, in parts of kOverlapMultiplierUnit. Costs are
// rounded down and credits are rounded up, so that the network's optimum stays
// a lower bound.
std::int64_t share_of(std::int64_t nanoseconds, std::int64_t price) {
  return saturated(WideInt{nanoseconds} * price / kOverlapMultiplierUnit);
}

std::int64_t share_rounded_up(std::int64_t nanoseconds, std::int64_t price) {
  return saturated((WideInt{nanoseconds} * price + kOverlapMultiplierUnit - 1) /
                   kOverlapMultiplierUnit);
}

class NetworkBuilder {
 public:
  NetworkBuilder(const PlanProblem& problem, const NetworkOptions& options)
      : problem_(problem),
        options_(options),
        identity_(identity_of(problem, options)),
        with_memory_(identity_.counts_memory),
        end_(static_cast<std::int64_t>(problem.graph().nodes().size())) {}

  Result<solver::Problem> build(
      std::vector<std::vector<LiveInterval>>& live_intervals,
      std::vector<solver::VariableId>& variables) {
    for (const PlanBuffer& buffer : problem_.buffers()) {
      live_intervals.push_back(live_intervals_of(buffer));
    }
    add_variables(live_intervals);
    variables = variable_;
    for (std::size_t s = 0; s < live_intervals.size(); ++s) {
      add_edges(problem_.buffers()[s], live_intervals[s]);
    }
    if (with_memory_) {
      add_accumulators();
      add_memory_rows(problem_, variable_, live_intervals, builder_);
      add_reserve();
      builder_.set_limit(*options_.memory_limit);
    }
    return std::move(builder_).build();
  }

  std::vector<std::int64_t> slots() && { return std::move(slots_); }

 private:
  enum class TableKind : std::uint8_t { kProducer, kNext, kTaken, kDirect };

  // ---- variables

  // Adds the variables in the order of the schedule, with the live intervals of
  // a buffer between its producer and its users. One sweep of messages of the
  // dual bound then covers the whole program.
  void add_variables(std::vector<std::vector<LiveInterval>>& live_intervals) {
    struct Entry {
      std::int64_t slot;
      int rank;                   // order at one slot, see below
      std::size_t variable;       // or buffer
      std::size_t live_interval;  // kNone for variables
    };
    constexpr std::size_t kNone = ~std::size_t{0};
    std::vector<Entry> entries;
    for (std::size_t v = 0; v < problem_.variables().size(); ++v) {
      const PlanVariable& variable = problem_.variables()[v];
      const auto index = static_cast<std::int64_t>(variable.index);
      switch (variable.kind) {
        case PlanVariable::Kind::kInput:
          entries.push_back({first_use(variable), 0, v, kNone});
          break;
        case PlanVariable::Kind::kOperator:
          entries.push_back({index, 2, v, kNone});
          break;
        case PlanVariable::Kind::kOutput:
          entries.push_back({end_, 2, v, kNone});
          break;
      }
    }
    for (std::size_t s = 0; s < live_intervals.size(); ++s) {
      const PlanBuffer& buffer = problem_.buffers()[s];
      for (std::size_t i = 0; i < live_intervals[s].size(); ++i) {
        if (i == 0 && !buffer.persistent) {
          entries.push_back({buffer.produced_at, 3, s, i});
        } else {
          entries.push_back({live_intervals[s][i].begin, 1, s, i});
        }
      }
    }
    std::stable_sort(
        entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
          return std::pair(a.slot, a.rank) < std::pair(b.slot, b.rank);
        });
    variable_.resize(problem_.variables().size());
    for (const Entry& entry : entries) {
      if (entry.live_interval == kNone) {
        variable_[entry.variable] = add_variable(
            costs_of(problem_.variables()[entry.variable]), entry.slot);
      } else {
        LiveInterval& live_interval =
            live_intervals[entry.variable][entry.live_interval];
        live_interval.variable = add_variable(
            std::vector<std::int64_t>(live_interval.sets->size(), 0),
            entry.slot);
      }
    }
  }

  solver::VariableId add_variable(std::vector<std::int64_t> costs,
                                  std::int64_t slot) {
    const auto* left = options_.left.of(identity_, slots_.size());
    slots_.push_back(slot);
    if (left != nullptr) {
      std::vector<std::int64_t> kept(costs.size(), solver::kForbidden);
      for (const std::uint32_t choice : *left) {
        kept[choice] = costs[choice];
      }
      costs = std::move(kept);
    }
    return builder_.add_variable(costs);
  }

  // Compute earns the multiplier of its slot. A gather after an update costs
  // the multiplier of the first window.
  std::vector<std::int64_t> costs_of(const PlanVariable& variable) const {
    std::vector<std::int64_t> costs = variable.choices->costs;
    if (options_.overlap_multipliers.empty()) return costs;
    const auto slot = static_cast<std::int64_t>(variable.index);
    for (std::size_t c = 0; c < costs.size(); ++c) {
      if (variable.kind == PlanVariable::Kind::kOperator) {
        costs[c] -=
            share_rounded_up(variable.choices->compute[c], price_at(slot));
      } else if (!variable.choices->overlapped.empty()) {
        costs[c] = sat_add(
            costs[c], share_of(variable.choices->overlapped[c], price_at(0)));
      }
    }
    return costs;
  }

  std::int64_t price_at(std::int64_t slot) const {
    return options_.overlap_multipliers.empty()
               ? 0
               : options_.overlap_multipliers[index(slot)];
  }

  std::int64_t first_use(const PlanVariable& input) const {
    const PlanBuffer& buffer =
        problem_.buffer(problem_.value(input.makes[0]).buffer);
    return buffer.uses.empty() ? 0 : buffer.uses[0].slot;
  }

  // ---- stretches

  bool stands_alone(const PlanBuffer& buffer, std::size_t segment) const {
    return segment + 1 == buffer.segments.size() &&
           has_lone_use(buffer, with_memory_);
  }

  std::int64_t begin_of(const PlanBuffer& buffer, std::size_t segment) const {
    return buffer.uses[buffer.segments[segment].first].slot;
  }

  std::vector<LiveInterval> live_intervals_of(const PlanBuffer& buffer) {
    std::vector<LiveInterval> out;
    std::int64_t at = buffer.produced_at + (buffer.persistent ? 0 : 1);
    for (std::size_t g = 0; g < buffer.segments.size(); ++g) {
      const UseSegment& segment = buffer.segments[g];
      const std::int64_t begin = begin_of(buffer, g);
      const bool pause = with_memory_ && begin > at &&
                         (g > 0 || (!buffer.persistent &&
                                    begin - at > tuning::kLongPauseNodes));
      if (pause)
        out.push_back(live_interval(buffer, segment.first, 0, at, begin));
      if (stands_alone(buffer, g)) break;
      std::int64_t until = begin;
      for (std::size_t u = 0; u < segment.count; ++u) {
        until = std::max(until, buffer.uses[segment.first + u].until);
      }
      out.push_back(live_interval(buffer, segment.first, segment.count, begin,
                                  until + 1));
      at = until + 1;
    }
    return out;
  }

  LiveInterval live_interval(const PlanBuffer& buffer, std::size_t first_use,
                             std::size_t num_uses, std::int64_t begin,
                             std::int64_t end) {
    auto& sets = sets_[buffer.kind.get()];
    if (!sets) {
      sets = std::make_shared<const std::vector<CachedLayouts>>(
          cached_layouts(problem_, buffer));
    }
    return {{}, sets, first_use, num_uses, begin, end};
  }

  // ---- costs

  // `uncounted(r, c)` returns the bytes of a pair that the network does not
  // count.
  template <class Cost, class Uncounted>
  solver::TableId table(const PlanBuffer& buffer, TableKind what,
                        std::size_t use, std::int64_t slot, std::size_t rows,
                        std::size_t columns, const Cost& cost,
                        const Uncounted& uncounted) {
    const auto takes_too_much = [&](std::size_t r, std::size_t c) {
      return options_.most_uncounted &&
             uncounted(r, c) > *options_.most_uncounted;
    };
    const std::int64_t price = price_at(slot);
    const auto key = std::tuple{buffer.kind.get(), what, use, price};
    if (const auto known = tables_.find(key); known != tables_.end()) {
      return known->second;
    }
    std::vector<std::int64_t> costs;
    costs.reserve(rows * columns);
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t c = 0; c < columns; ++c) {
        const auto way = cost(r, c);
        costs.push_back(
            !way.is_possible || takes_too_much(r, c)
                ? solver::kForbidden
                : sat_add(way.nanoseconds, share_of(way.overlapped, price)));
      }
    }
    return tables_.emplace(key, builder_.add_table(rows, columns, costs))
        .first->second;
  }

  solver::VariableId of(PlanVariableId id) const {
    return variable_[id.index()];
  }

  CachedLayouts produced(const PlanBuffer& buffer, std::size_t choice) const {
    const BufferLayout state = problem_.layout_produced(buffer, choice);
    return {state, state};
  }
  BufferLayout required(const PlanBuffer& buffer, std::size_t use,
                        std::size_t choice) const {
    return problem_.layout_required(buffer, use, choice);
  }
  // Returns how the user's choice reads the buffer. A gradient that is
  // accumulated first is reduced once a step.
  Fetch read_by(const PlanBuffer& buffer, CachedLayouts cached, std::size_t use,
                std::size_t choice) const {
    const Fetch way = fetch(buffer, cached, required(buffer, use, choice));
    const PlanVariable& user = problem_.variable(buffer.uses[use].variable);
    if (way.is_possible && problem_.is_reduced_late(user, choice)) {
      return once_a_step(problem_, buffer, way.from,
                         required(buffer, use, choice));
    }
    return way;
  }
  std::size_t choices(PlanVariableId id) const {
    return problem_.variable(id).choices->size();
  }

  // Returns the scratch bytes of moving a buffer between two states, without
  // its source and result.
  std::int64_t beside(const PlanBuffer& buffer, BufferLayout from,
                      BufferLayout to) const {
    const BufferClass& kind = *buffer.kind;
    const BufferClass::Move& move = kind.move(from, to);
    if (!move.is_reachable()) return 0;
    if (move.via != BufferClass::Move::kDirect) {
      const auto via = static_cast<BufferLayout>(move.via);
      return sat_add(kind.bytes[via], std::max(beside(buffer, from, via),
                                               beside(buffer, via, to)));
    }
    const ValueId value = buffer.values[move.value];
    const LayoutId src = kind.layouts[move.value][from];
    const LayoutId dst = kind.layouts[move.value][to];
    return problem_.redistribution_peak(value, src, dst) -
           problem_.local_bytes(value, src) - problem_.local_bytes(value, dst);
  }
  // A view owns no bytes as it is produced: the buffer that it aliases is
  // counted.
  static std::int64_t source_bytes(const PlanBuffer& buffer,
                                   BufferLayout state) {
    return buffer.view_of_use ? 0 : buffer.kind->bytes[state];
  }
  // Returns the bytes of a transition that the network does not count: its
  // scratch, and the sources that it drops, which exist while it runs.
  std::int64_t uncounted(const PlanBuffer& buffer, CachedLayouts from,
                         CachedLayouts to) const {
    std::int64_t sources = 0;
    std::int64_t room = 0;
    for (const Transfer& making : transition(buffer, from, to).transfers) {
      if (!to.has(making.from) && !buffer.persistent) {
        sources = sat_add(sources, source_bytes(buffer, making.from));
      }
      room = std::max(room, beside(buffer, making.from, making.to));
    }
    return sat_add(sources, room);
  }

  void add_edges(const PlanBuffer& buffer,
                 const std::vector<LiveInterval>& live_intervals) {
    const std::size_t made_ways = choices(buffer.producer);
    for (std::size_t i = 0; i < live_intervals.size(); ++i) {
      const LiveInterval& here = live_intervals[i];
      const std::vector<CachedLayouts>& sets = *here.sets;
      if (i == 0) {
        builder_.add_edge(
            of(buffer.producer), here.variable,
            table(
                buffer, TableKind::kProducer, 0, here.begin, made_ways,
                sets.size(),
                [&](std::size_t r, std::size_t c) {
                  return transition(buffer, produced(buffer, r), sets[c]);
                },
                [&](std::size_t r, std::size_t c) {
                  return uncounted(buffer, produced(buffer, r), sets[c]);
                }));
      } else {
        builder_.add_edge(live_intervals[i - 1].variable, here.variable,
                          table(
                              buffer, TableKind::kNext, 0, here.begin,
                              sets.size(), sets.size(),
                              [&](std::size_t r, std::size_t c) {
                                return transition(buffer, sets[r], sets[c]);
                              },
                              [&](std::size_t r, std::size_t c) {
                                return uncounted(buffer, sets[r], sets[c]);
                              }));
      }
      for (std::size_t u = here.first_use; u < here.first_use + here.num_uses;
           ++u) {
        add_taking(buffer, here, u);
      }
    }
    if (!has_lone_use(buffer, with_memory_)) return;
    const std::size_t last = buffer.uses.size() - 1;
    if (!live_intervals.empty()) {
      add_taking(buffer, live_intervals.back(), last);
      return;
    }
    const PlanVariableId user = buffer.uses[last].variable;
    builder_.add_edge(
        of(buffer.producer), of(user),
        table(
            buffer, TableKind::kDirect, last, buffer.uses[last].slot, made_ways,
            choices(user),
            [&](std::size_t r, std::size_t c) {
              return read_by(buffer, produced(buffer, r), last, c);
            },
            [&](std::size_t r, std::size_t c) {
              const BufferLayout from = produced(buffer, r).first;
              const BufferLayout to = required(buffer, last, c);
              return from == to ? 0
                                : sat_add(source_bytes(buffer, from),
                                          beside(buffer, from, to));
            }));
  }

  void add_taking(const PlanBuffer& buffer, const LiveInterval& cached,
                  std::size_t use) {
    const PlanVariableId user = buffer.uses[use].variable;
    const std::vector<CachedLayouts>& sets = *cached.sets;
    builder_.add_edge(
        cached.variable, of(user),
        table(
            buffer, TableKind::kTaken, use, buffer.uses[use].slot, sets.size(),
            choices(user),
            [&](std::size_t r, std::size_t c) {
              return read_by(buffer, sets[r], use, c);
            },
            [&](std::size_t r, std::size_t c) {
              const BufferLayout to = required(buffer, use, c);
              if (sets[r].has(to)) return std::int64_t{0};
              const BufferLayout from = fetch(buffer, sets[r], to).from;
              return sat_add(buffer.kind->bytes[to], beside(buffer, from, to));
            }));
  }

  // ---- memory

  // A gradient that is accumulated unreduced exists, in its produced layout,
  // from the beginning of the step on. Its bytes depend on the choices of its
  // producer and of its parameter. So each such gradient gets a variable of its
  // own, the bytes of its accumulator, with an edge to each of the two.
  void add_accumulators() {
    for (std::size_t v = 0; v < problem_.variables().size(); ++v) {
      const PlanVariable& parameter = problem_.variables()[v];
      if (parameter.choices->reduced_late.empty()) continue;
      for (std::size_t u = 0; u < parameter.uses.size(); ++u) {
        const PlanBuffer& buffer =
            problem_.buffer(problem_.value(parameter.uses[u]).buffer);
        if (buffer.produced_at > 0 &&
            counts_gradient(problem_, PlanVariableId(v), u)) {
          add_accumulator(PlanVariableId(v), buffer);
        }
      }
    }
  }

  void add_accumulator(PlanVariableId parameter, const PlanBuffer& gradient) {
    std::vector<std::int64_t> produced;
    for (std::size_t c = 0; c < choices(gradient.producer); ++c) {
      produced.push_back(problem_.local_bytes(
          gradient.values[0], problem_.variable(gradient.producer)
                                  .choices->layout(c, gradient.operand)));
    }
    // The bytes by choice of the accumulator are 0, or those of a producer's
    // choice.
    std::vector<std::int64_t> bytes = produced;
    bytes.push_back(0);
    std::sort(bytes.begin(), bytes.end());
    bytes.erase(std::unique(bytes.begin(), bytes.end()), bytes.end());
    const std::vector<bool>& is_late =
        problem_.variable(parameter).choices->reduced_late;
    const solver::VariableId accumulator = add_variable(
        std::vector<std::int64_t>(bytes.size(), 0), gradient.produced_at);
    // The producer's choice allows its own bytes, or 0.
    add_allowed(gradient.producer, accumulator, bytes.size(),
                [&](std::size_t c, std::size_t b) {
                  return b == 0 || bytes[b] == produced[c];
                });
    // The parameter's choice decides which of the two it is.
    add_allowed(parameter, accumulator, bytes.size(),
                [&](std::size_t c, std::size_t b) {
                  return bytes.size() == 1 || is_late[c] == (b > 0);
                });
    builder_.add_usage(accumulator, {0, gradient.produced_at}, bytes);
  }

  template <class Allows>
  void add_allowed(PlanVariableId row, solver::VariableId column,
                   std::size_t columns, const Allows& allows) {
    std::vector<std::int64_t> costs;
    for (std::size_t r = 0; r < choices(row); ++r) {
      for (std::size_t c = 0; c < columns; ++c) {
        costs.push_back(allows(r, c) ? 0 : solver::kForbidden);
      }
    }
    auto [known, is_new] =
        allowed_.try_emplace(std::tuple{choices(row), columns, costs});
    if (is_new) {
      known->second = builder_.add_table(choices(row), columns, costs);
    }
    builder_.add_edge(of(row), column, known->second);
  }

  void add_reserve() {
    if (!identity_.has_reserve) return;
    const solver::VariableId variable = add_variable({0}, end_);
    for (std::size_t t = 0; t < options_.reserved.size(); ++t) {
      if (options_.reserved[t] == 0) continue;
      const auto slot = static_cast<std::int64_t>(t);
      builder_.add_usage(variable, {slot, slot + 1},
                         {&options_.reserved[t], 1});
    }
  }

  const PlanProblem& problem_;
  const NetworkOptions& options_;
  NetworkIdentity identity_;
  bool with_memory_;
  std::int64_t end_;
  solver::ProblemBuilder builder_;
  std::vector<solver::VariableId> variable_;
  std::map<const BufferClass*,
           std::shared_ptr<const std::vector<CachedLayouts>>>
      sets_;
  std::map<std::tuple<const BufferClass*, TableKind, std::size_t, std::int64_t>,
           solver::TableId>
      tables_;
  // Known tables of 0 and kForbidden, by rows, columns and entries.
  std::map<std::tuple<std::size_t, std::size_t, std::vector<std::int64_t>>,
           solver::TableId>
      allowed_;
  std::vector<std::int64_t> slots_;  // by variable of the network
};

}  // namespace

NetworkIdentity identity_of(const PlanProblem& problem,
                            const NetworkOptions& options) {
  const bool counts_memory = options.memory_limit.has_value();
  return {&problem, counts_memory, counts_memory && !options.reserved.empty()};
}

Result<PlanNetwork> PlanNetwork::create(const PlanProblem& problem,
                                        const NetworkOptions& options) {
  PlanNetwork out(problem);
  NetworkBuilder builder(problem, options);
  SP_ASSIGN(out.network_, builder.build(out.live_intervals_, out.variable_));
  NetworkVariables variables{
      identity_of(problem, options), std::move(builder).slots(), {}};
  for (std::size_t v = 0; v < out.network_->num_variables(); ++v) {
    variables.num_choices.push_back(static_cast<std::uint32_t>(
        out.network_->num_choices(solver::VariableId(v))));
  }
  if (variables.slots.size() != variables.num_choices.size()) {
    throw InternalError("a variable of a network has no slot");
  }
  out.variables_ =
      std::make_shared<const NetworkVariables>(std::move(variables));
  return out;
}

NetworkAssignment PlanNetwork::assignment(solver::Assignment choices) const {
  if (choices.size() != variables_->slots.size()) {
    throw InternalError("an assignment has " + std::to_string(choices.size()) +
                        " choices, its network " +
                        std::to_string(variables_->slots.size()) +
                        " variables");
  }
  return {variables_, std::move(choices)};
}

const solver::Assignment& PlanNetwork::choices(
    const NetworkAssignment& assignment) const {
  if (!assignment.is_of(variables_->identity)) {
    throw InternalError("an assignment of one network is used with another");
  }
  return assignment.choices_;
}

}  // namespace shardprop
