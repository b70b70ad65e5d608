#include "plan/network/shared_variables.h"

#include "plan/problem/equal_choices.h"

#include <map>
#include <tuple>
#include <utility>

namespace shardprop {
namespace {

class SharedVariables {
 public:
  SharedVariables(const PlanProblem& problem, NetworkStructure structure)
      : equal_(problem.equal_choices()),
        problem_(problem),
        out_(std::move(structure)) {
    for (std::size_t v = 0; v < out_.variables.size(); ++v) {
      first_.push_back(solver::VariableId(v));
    }
  }

  NetworkStructure run() && {
    share_problem_variables();
    share_live_intervals();
    share_accumulators();
    renumber();
    rewrite();
    share_edges();
    return std::move(out_);
  }

 private:
  void share_problem_variables() {
    for (std::size_t v = 0; v < out_.variable.size(); ++v) {
      first_[out_.variable[v].index()] =
          out_.variable[equal_.first(PlanVariableId(v)).index()];
    }
  }

  void share_live_intervals() {
    std::map<std::vector<std::size_t>, std::size_t> known;  // buffer, by key
    for (std::size_t b = 0; b < out_.live_intervals.size(); ++b) {
      if (out_.live_intervals[b].empty()) continue;
      const auto [first, is_new] = known.try_emplace(key_of(b), b);
      if (is_new) continue;
      for (std::size_t i = 0; i < out_.live_intervals[b].size(); ++i) {
        first_[out_.live_intervals[b][i].variable.index()] =
            out_.live_intervals[first->second][i].variable;
      }
    }
  }

  // Keys of buffers with the same edges are equal.
  std::vector<std::size_t> key_of(std::size_t b) const {
    const PlanBuffer& buffer = problem_.buffers()[b];
    const auto [kind, is_new] =
        kinds_.try_emplace(buffer.kind.get(), kinds_.size());
    std::vector<std::size_t> key{
        kind->second, equal_.first(buffer.producer).index(), buffer.operand};
    for (const BufferUse& use : buffer.uses) {
      key.insert(key.end(), {equal_.first(use.variable).index(), use.operand});
    }
    for (const LiveInterval& interval : out_.live_intervals[b]) {
      key.insert(key.end(), {interval.first_use, interval.num_uses});
    }
    return key;
  }

  void share_accumulators() {
    if (out_.accumulators.empty()) return;
    // By variable: its neighbours and the tables between.
    std::map<solver::VariableId, std::vector<std::size_t>> keys;
    for (const NetworkAccumulator& accumulator : out_.accumulators) {
      keys[accumulator.variable] = {};
    }
    for (const NetworkEdge& edge : out_.edges) {
      const auto key = keys.find(edge.b);
      if (key == keys.end()) continue;
      key->second.push_back(first_[edge.a.index()].index());
      key->second.push_back(edge.table);
    }
    std::map<std::pair<std::vector<std::size_t>, std::vector<std::int64_t>>,
             solver::VariableId>
        known;
    for (const NetworkAccumulator& accumulator : out_.accumulators) {
      first_[accumulator.variable.index()] =
          known
              .try_emplace(
                  {std::move(keys[accumulator.variable]), accumulator.bytes},
                  accumulator.variable)
              .first->second;
    }
  }

  // The first variable of a group need not come first in the schedule: the last
  // layer is the first one in the backward phase.
  void renumber() {
    std::vector<NetworkVariable> variables;
    number_.resize(first_.size());
    std::vector<bool> is_known(first_.size(), false);
    for (std::size_t v = 0; v < first_.size(); ++v) {
      const std::size_t first = first_[v].index();
      NetworkVariable& own = out_.variables[v];
      if (!is_known[first]) {
        is_known[first] = true;
        number_[first] = solver::VariableId(variables.size());
        variables.push_back({own.slot, own.num_choices, {}});
      }
      number_[v] = number_[first];
      auto& of = variables[number_[v].index()].of_problem;
      of.insert(of.end(), own.of_problem.begin(), own.of_problem.end());
    }
    out_.variables = std::move(variables);
  }

  void rewrite() {
    const auto renumber = [&](solver::VariableId& id) {
      id = number_[id.index()];
    };
    for (solver::VariableId& id : out_.variable) renumber(id);
    for (auto& of_buffer : out_.live_intervals) {
      for (LiveInterval& interval : of_buffer) renumber(interval.variable);
    }
    for (NetworkAccumulator& accumulator : out_.accumulators) {
      renumber(accumulator.variable);
    }
    if (out_.reserve) renumber(*out_.reserve);
    for (NetworkEdge& edge : out_.edges) {
      renumber(edge.a);
      renumber(edge.b);
    }
  }

  void share_edges() {
    std::map<std::tuple<solver::VariableId, solver::VariableId, std::size_t>,
             std::size_t>
        known;
    std::vector<NetworkEdge> edges;
    for (NetworkEdge& edge : out_.edges) {
      const auto [at, is_new] =
          known.try_emplace({edge.a, edge.b, edge.table}, edges.size());
      if (is_new) {
        edges.push_back(std::move(edge));
      } else {
        add_shares(edge.shares, edges[at->second].shares);
      }
    }
    out_.edges = std::move(edges);
  }

  // Windows come in the order of the schedule, or in its reverse.
  static void add_shares(const std::vector<NetworkEdge::Share>& from,
                         std::vector<NetworkEdge::Share>& to) {
    for (const NetworkEdge::Share& share : from) {
      if (!to.empty() && to.back().window == share.window) {
        to.back().count += share.count;
      } else {
        to.push_back(share);
      }
    }
  }

  const EqualChoices& equal_;
  const PlanProblem& problem_;
  NetworkStructure out_;
  // By variable of the structure as it was given: the first one of its group,
  // and the variable of the result.
  std::vector<solver::VariableId> first_;
  std::vector<solver::VariableId> number_;
  mutable std::map<const BufferClass*, std::size_t> kinds_;
};

}  // namespace

NetworkStructure with_shared_variables(const PlanProblem& problem,
                                       NetworkStructure structure) {
  if (problem.equal_choices().empty()) return structure;
  return SharedVariables(problem, std::move(structure)).run();
}

}  // namespace shardprop
