#include "plan/network/named_messages.h"

#include "base/index.h"
#include "plan/problem/problem_data.h"

#include <shardprop/base/hash.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <utility>

namespace shardprop {
namespace {

class NetworkLabeller {
 public:
  NetworkLabeller(const PlanNetwork& network, NetworkLabels& out)
      : network_(network), problem_(network.problem()), out_(out) {}

  void run() {
    out_.variables.assign(network_.num_variables(), 0);
    out_.choices.resize(network_.num_variables());
    for (std::size_t v = 0; v < problem_.variables().size(); ++v) {
      const PlanVariable& variable = problem_.variables()[v];
      const solver::VariableId id = network_.variable(PlanVariableId(v));
      // The first of the variables that choose alike names all of them.
      if (out_.choices[id.index()]) continue;
      out_.variables[id.index()] = label_of(variable);
      out_.choices[id.index()] = choices_of(*variable.choices);
    }
    for (std::size_t b = 0; b < problem_.buffers().size(); ++b) {
      const PlanBuffer& buffer = problem_.buffers()[b];
      const auto intervals = network_.live_intervals(PlanBufferId(b));
      for (std::size_t i = 0; i < intervals.size(); ++i) {
        const auto v = intervals[i].variable.index();
        if (out_.choices[v]) continue;
        out_.variables[v] = hash_mix(named(kInterval, buffer.values[0]), i);
        out_.choices[v] = choices_of(*buffer.kind, intervals[i]);
      }
    }
    // Other variables belong to networks that count memory.
    for (auto& choices : out_.choices) {
      if (!choices) choices = std::make_shared<const NetworkLabels::Choices>();
    }
  }

 private:
  enum Kind : std::uint64_t { kInput, kOperator, kOutput, kInterval };

  std::uint64_t named(Kind kind, ValueId value) const {
    return hash_combine(kind, problem_.graph().value(value).display_name());
  }

  std::uint64_t label_of(const PlanVariable& variable) const {
    switch (variable.kind) {
      case PlanVariable::Kind::kInput:
        return named(kInput, variable.makes[0]);
      case PlanVariable::Kind::kOperator:
        return hash_combine(std::uint64_t{kOperator},
                            problem_.graph().nodes()[variable.index].name);
      case PlanVariable::Kind::kOutput:
        return named(kOutput, variable.uses[0]);
    }
    return 0;
  }

  std::uint64_t hash_of(LayoutId id) {
    if (!id.valid()) return 0;
    if (hashes_.size() <= id.index()) hashes_.resize(id.index() + 1);
    std::uint64_t& known = hashes_[id.index()];
    if (known == 0) known = std::hash<Layout>{}(problem_.layouts()[id]);
    return known;
  }

  std::shared_ptr<const NetworkLabels::Choices> choices_of(
      const ChoiceSet& set) {
    auto& known = of_sets_[&set];
    if (known) return known;
    NetworkLabels::Choices out;
    for (std::size_t c = 0; c < set.size(); ++c) {
      std::uint64_t label = 0;
      for (std::size_t o = 0; o < set.layouts.size(); ++o) {
        label = hash_mix(label, hash_of(set.layout(c, o)));
      }
      if (!set.state_layouts.empty()) {
        label = hash_mix(label, hash_of(set.state_layouts[c]));
      }
      if (!set.reduced_late.empty()) {
        label = hash_mix(label, set.reduced_late[c] ? 1 : 0);
      }
      out.push_back(label);
    }
    known = std::make_shared<const NetworkLabels::Choices>(std::move(out));
    return known;
  }

  std::shared_ptr<const NetworkLabels::Choices> choices_of(
      const BufferClass& kind, const LiveInterval& interval) {
    auto& known = of_intervals_[{&kind, interval.sets.get()}];
    if (known) return known;
    std::vector<std::uint64_t> states(kind.num_states(), 0);
    for (const std::vector<LayoutId>& layouts : kind.layouts) {
      for (std::size_t s = 0; s < states.size(); ++s) {
        states[s] = hash_mix(states[s], hash_of(layouts[s]));
      }
    }
    NetworkLabels::Choices out;
    for (const CachedLayouts& cached : *interval.sets) {
      out.push_back(hash_mix(states[cached.first], states[cached.second]));
    }
    known = std::make_shared<const NetworkLabels::Choices>(std::move(out));
    return known;
  }

  const PlanNetwork& network_;
  const PlanProblem& problem_;
  NetworkLabels& out_;
  std::vector<std::uint64_t> hashes_;  // by layout; 0 if it is unknown
  std::unordered_map<const ChoiceSet*,
                     std::shared_ptr<const NetworkLabels::Choices>>
      of_sets_;
  std::map<std::pair<const BufferClass*, const void*>,
           std::shared_ptr<const NetworkLabels::Choices>>
      of_intervals_;
};

// Returns, by choice of `to`, the index of the same choice in `from`; -1 if
// there is none.
std::vector<std::int64_t> places_of(const NetworkLabels::Choices& to,
                                    const NetworkLabels::Choices& from) {
  std::unordered_map<std::uint64_t, std::int64_t> known;
  for (std::size_t c = 0; c < from.size(); ++c) {
    known.emplace(from[c], static_cast<std::int64_t>(c));
  }
  std::vector<std::int64_t> out;
  for (const std::uint64_t label : to) {
    const auto found = known.find(label);
    out.push_back(found == known.end() ? -1 : found->second);
  }
  return out;
}

}  // namespace

NetworkLabels::NetworkLabels(const PlanNetwork& network) {
  NetworkLabeller(network, *this).run();
}

NamedMessages named_messages(const NetworkLabels& labels,
                             const solver::Messages& messages) {
  NamedMessages out;
  out.messages.reserve(messages.told.size());
  for (const auto& [ends, told] : messages.told) {
    const auto [sender, receiver] = ends;
    out.messages.push_back({labels.variables[sender],
                            labels.variables[receiver],
                            {told.begin(), told.end()}});
    out.choices.try_emplace(labels.variables[receiver],
                            labels.choices[receiver]);
  }
  return out;
}

solver::Messages messages_from(const NetworkLabels& labels,
                               const NamedMessages& start) {
  std::unordered_map<std::uint64_t, std::uint32_t> variables;
  for (std::size_t v = 0; v < labels.variables.size(); ++v) {
    variables.emplace(labels.variables[v], static_cast<std::uint32_t>(v));
  }
  std::map<
      std::pair<const NetworkLabels::Choices*, const NetworkLabels::Choices*>,
      std::vector<std::int64_t>>
      places;  // empty for equal choices
  solver::Messages out;
  for (const NamedMessages::Message& message : start.messages) {
    const auto sender = variables.find(message.sender);
    const auto receiver = variables.find(message.receiver);
    if (sender == variables.end() || receiver == variables.end()) continue;
    const auto& to = labels.choices[receiver->second];
    const auto& from = start.choices.at(message.receiver);
    auto [place, is_new] = places.try_emplace({to.get(), from.get()});
    if (is_new && *to != *from) place->second = places_of(*to, *from);
    std::vector<double>& told = out.told[{sender->second, receiver->second}];
    if (place->second.empty()) {
      told.assign(message.costs.begin(), message.costs.end());
      continue;
    }
    for (const std::int64_t c : place->second) {
      told.push_back(c >= 0 && index(c) < message.costs.size()
                         ? static_cast<double>(message.costs[index(c)])
                         : std::numeric_limits<double>::infinity());
    }
  }
  return out;
}

}  // namespace shardprop
