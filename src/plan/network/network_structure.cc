#include "plan/network/network_structure.h"

#include "plan/network/network_memory.h"
#include "plan/tuning.h"

#include <algorithm>
#include <utility>

namespace shardprop {
namespace {

class StructureBuilder {
 public:
  StructureBuilder(const NetworkIdentity& identity,
                   std::optional<std::int64_t> most_uncounted)
      : problem_(*identity.problem),
        with_memory_(identity.counts_memory),
        has_reserve_(identity.has_reserve),
        end_(static_cast<std::int64_t>(problem_.graph().nodes().size())),
        tables_(problem_, most_uncounted) {}

  NetworkStructure build() && {
    for (const PlanBuffer& buffer : problem_.buffers()) {
      out_.live_intervals.push_back(live_intervals_of(buffer));
    }
    add_variables();
    for (std::size_t b = 0; b < out_.live_intervals.size(); ++b) {
      add_edges(problem_.buffers()[b], out_.live_intervals[b]);
    }
    if (with_memory_) add_accumulators();
    if (has_reserve_) out_.reserve = add_variable({end_, 1, {}});
    out_.tables = std::move(tables_).take();
    return std::move(out_);
  }

 private:
  // ---- variables

  // Adds the variables in the order of the schedule, with the live intervals of
  // a buffer between its producer and its users. One sweep of messages of the
  // dual bound then covers the whole program.
  void add_variables() {
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
    for (std::size_t b = 0; b < out_.live_intervals.size(); ++b) {
      const PlanBuffer& buffer = problem_.buffers()[b];
      for (std::size_t i = 0; i < out_.live_intervals[b].size(); ++i) {
        if (i == 0 && !buffer.persistent) {
          entries.push_back({buffer.produced_at, 3, b, i});
        } else {
          entries.push_back({out_.live_intervals[b][i].begin, 1, b, i});
        }
      }
    }
    std::stable_sort(
        entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
          return std::pair(a.slot, a.rank) < std::pair(b.slot, b.rank);
        });
    out_.variable.resize(problem_.variables().size());
    for (const Entry& entry : entries) {
      if (entry.live_interval == kNone) {
        const PlanVariableId id(entry.variable);
        out_.variable[entry.variable] =
            add_variable({entry.slot, choices(id), {id}});
      } else {
        LiveInterval& live_interval =
            out_.live_intervals[entry.variable][entry.live_interval];
        live_interval.variable =
            add_variable({entry.slot, live_interval.sets->size(), {}});
      }
    }
  }

  solver::VariableId add_variable(const NetworkVariable& variable) {
    out_.variables.push_back(variable);
    return solver::VariableId(out_.variables.size() - 1);
  }

  std::int64_t first_use(const PlanVariable& input) const {
    const PlanBuffer& buffer =
        problem_.buffer(problem_.value(input.makes[0]).buffer);
    return buffer.uses.empty() ? 0 : buffer.uses[0].slot;
  }
  solver::VariableId of(PlanVariableId id) const {
    return out_.variable[id.index()];
  }
  std::size_t choices(PlanVariableId id) const {
    return problem_.variable(id).choices->size();
  }

  // ---- live intervals

  bool is_lone_use(const PlanBuffer& buffer, std::size_t segment) const {
    return segment + 1 == buffer.segments.size() &&
           has_lone_use(buffer, with_memory_);
  }

  static std::int64_t begin_of(const PlanBuffer& buffer, std::size_t segment) {
    return buffer.uses[buffer.segments[segment].first].slot;
  }

  std::vector<LiveInterval> live_intervals_of(const PlanBuffer& buffer) {
    std::vector<LiveInterval> out;
    std::int64_t at = buffer.produced_at + (buffer.persistent ? 0 : 1);
    for (std::size_t g = 0; g < buffer.segments.size(); ++g) {
      const UseSegment& segment = buffer.segments[g];
      const std::int64_t begin = begin_of(buffer, g);
      const std::int64_t issued =
          std::max(at, problem_.issue_slot(buffer, begin));
      const bool has_pause = with_memory_ && issued > at &&
                             (g > 0 || (!buffer.persistent &&
                                        begin - at > tuning::kLongPauseNodes));
      if (has_pause) {
        out.push_back(
            {{}, tables_.sets_of(buffer), segment.first, 0, at, at, issued});
      }
      if (is_lone_use(buffer, g)) break;
      std::int64_t until = begin;
      for (std::size_t u = 0; u < segment.count; ++u) {
        until = std::max(until, buffer.uses[segment.first + u].until);
      }
      out.push_back({{},
                     tables_.sets_of(buffer),
                     segment.first,
                     segment.count,
                     issued,
                     begin,
                     until + 1});
      at = until + 1;
    }
    return out;
  }

  // ---- edges

  // The transfers of the edge are needed in `slot`.
  void add_edge(const PlanBuffer& buffer, solver::VariableId a,
                solver::VariableId b, std::size_t table, std::int64_t slot) {
    out_.edges.push_back(
        {a, b, table, {{problem_.overlap_window(buffer, slot), 1}}});
  }

  void add_edges(const PlanBuffer& buffer,
                 const std::vector<LiveInterval>& live_intervals) {
    for (std::size_t i = 0; i < live_intervals.size(); ++i) {
      const LiveInterval& here = live_intervals[i];
      if (i == 0) {
        add_edge(buffer, of(buffer.producer), here.variable,
                 tables_.from_producer(buffer), here.begin);
      } else {
        add_edge(buffer, live_intervals[i - 1].variable, here.variable,
                 tables_.to_next_interval(buffer), here.begin);
      }
      for (std::size_t u = here.first_use; u < here.first_use + here.num_uses;
           ++u) {
        add_reader(buffer, here, u);
      }
    }
    if (!has_lone_use(buffer, with_memory_)) return;
    const std::size_t last = buffer.uses.size() - 1;
    if (!live_intervals.empty()) {
      add_reader(buffer, live_intervals.back(), last);
      return;
    }
    const BufferUse& use = buffer.uses[last];
    add_edge(buffer, of(buffer.producer), of(use.variable),
             tables_.from_producer_to_reader(buffer, last), use.slot);
  }

  void add_reader(const PlanBuffer& buffer, const LiveInterval& cached,
                  std::size_t use) {
    add_edge(buffer, cached.variable, of(buffer.uses[use].variable),
             tables_.to_reader(buffer, use), buffer.uses[use].slot);
  }

  // ---- accumulators

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
    const solver::VariableId accumulator =
        add_variable({gradient.produced_at, bytes.size(), {}});
    // The producer's choice allows its own bytes, or 0.
    add_edge(gradient, of(gradient.producer), accumulator,
             tables_.allowed(produced.size(), bytes.size(),
                             [&](std::size_t c, std::size_t b) {
                               return b == 0 || bytes[b] == produced[c];
                             }),
             gradient.produced_at);
    // The parameter's choice decides which of the two it is.
    add_edge(gradient, of(parameter), accumulator,
             tables_.allowed(choices(parameter), bytes.size(),
                             [&](std::size_t c, std::size_t b) {
                               return bytes.size() == 1 ||
                                      is_late[c] == (b > 0);
                             }),
             gradient.produced_at);
    out_.accumulators.push_back(
        {accumulator, gradient.produced_at, std::move(bytes)});
  }

  const PlanProblem& problem_;
  bool with_memory_;
  bool has_reserve_;
  std::int64_t end_;
  TransferTables tables_;
  NetworkStructure out_;
};

}  // namespace

NetworkStructure structure_of(const NetworkIdentity& identity,
                              std::optional<std::int64_t> most_uncounted) {
  return StructureBuilder(identity, most_uncounted).build();
}

}  // namespace shardprop
