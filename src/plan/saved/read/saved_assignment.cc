#include "plan/saved/read/saved_assignment.h"

#include "base/try.h"
#include "plan/evaluate/produced_layouts.h"

#include <shardprop/placement/tensor_spec.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

namespace shardprop {
namespace {

class SavedAssignment {
 public:
  SavedAssignment(const PlanProblem& problem, const Plan& saved,
                  const SavedChoices& choices)
      : graph_(problem.graph()), saved_(saved), choices_(choices) {
    for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
      const GraphOutput& output = graph_.outputs()[i];
      tied_.emplace(std::pair(output.target, output.value), i);
    }
  }

  Result<PlanAssignment> run(const PlanProblem& problem,
                             std::vector<std::uint32_t> chosen) {
    PlanAssignment out;
    out.choices = std::move(chosen);
    SP_CHECK(add_copies(problem, out));
    SP_CHECK(add_uses(problem, out));
    // A bucket in line is filled before or after the slot for which its copies
    // are made.
    for (const auto& [said, copy] : place_of_) {
      if (saved_.copies[said].bucket && !saved_.copies[said].in_flight) {
        out.copies[copy].produced_at = first_read_[copy];
      }
    }
    out.freed_at = read_as_produced(problem, out);
    return out;
  }

 private:
  Result<void> add_copies(const PlanProblem& problem, PlanAssignment& out) {
    const auto nodes = static_cast<std::int64_t>(graph_.nodes().size());
    for (const std::size_t c : choices_.moved) {
      const PlannedCopy& said = saved_.copies[c];
      const ValueId value = choices_.value_named.at(said.from);
      const PlanValue& planned = problem.value(value);
      AssignedCopy copy;
      copy.buffer = planned.buffer;
      copy.value = planned.place;
      const std::vector<LayoutId>& layouts =
          problem.buffer(copy.buffer).kind->layouts[copy.value];
      const Layout dst =
          canonical(said.dst, saved_.mesh, graph_.value(value).meta.shape());
      std::size_t state = 0;
      while (state < layouts.size() &&
             !(layouts[state].valid() &&
               problem.layouts()[layouts[state]] == dst)) {
        ++state;
      }
      if (state == layouts.size()) {
        return fail(broken_plan("`" + said.from + "` cannot have this layout",
                                place_in("copies", c, ".dst")));
      }
      copy.state = static_cast<BufferLayout>(state);
      if (said.source) {
        const auto of = place_of_.find(*said.source);
        if (of == place_of_.end()) {
          return fail(broken_plan("its source is a later copy",
                                  place_in("copies", c, ".of")));
        }
        copy.source = of->second;
      }
      copy.produced_at = std::min(said.produced_at, nodes);
      copy.freed_at = std::min(said.freed_at, nodes);
      place_of_[c] = out.copies.size();
      first_read_.push_back(nodes);
      out.copies.push_back(copy);
    }
    return {};
  }

  // Returns the copy that a value is read from: the named one, or the copy that
  // a view before it was read from.
  Result<std::optional<std::size_t>> read(
      const PlanProblem& problem, ValueId value,
      std::optional<std::size_t> named) const {
    while (!named && problem.value(value).place > 0) {
      const std::size_t view = graph_.value(value).producer.index();
      value = graph_.nodes()[view].inputs[0];
      named = saved_.nodes[view].inputs[0].copy;
    }
    if (!named) return std::optional<std::size_t>();
    if (is_view_of_copy(saved_.copies[*named]))
      named = saved_.copies[*named].source;
    const auto known = place_of_.find(*named);
    if (known == place_of_.end()) {
      return fail(broken_plan("a node reads this copy, which is not produced",
                              place_in("copies", *named)));
    }
    return std::optional(known->second);
  }

  Result<void> add_uses(const PlanProblem& problem, PlanAssignment& out) {
    for (const PlanBuffer& buffer : problem.buffers()) {
      auto& of_buffer = out.read.emplace_back();
      for (const BufferUse& use : buffer.uses) {
        const PlanVariable& user = problem.variable(use.variable);
        const ValueId value = buffer.values[use.value];
        SP_ASSIGN(auto copy, read(problem, value, named_by(user, use.operand)));
        of_buffer.push_back(copy);
        if (copy) {
          std::int64_t& slot = first_read_.at(*copy);
          slot = std::min(slot, use.slot);
        }
      }
    }
    return {};
  }

  std::optional<std::size_t> named_by(const PlanVariable& user,
                                      std::uint32_t operand) const {
    switch (user.kind) {
      case PlanVariable::Kind::kOperator:
        return saved_.nodes[user.index].inputs[operand].copy;
      case PlanVariable::Kind::kOutput:
        return saved_.outputs[user.index].value.copy;
      case PlanVariable::Kind::kInput:
        break;
    }
    // The use is a gradient or an update, which is an output.
    const auto found = tied_.find({user.makes[0], user.uses[operand]});
    if (found == tied_.end()) return std::nullopt;
    return saved_.outputs[found->second].value.copy;
  }

  const Graph& graph_;
  const Plan& saved_;
  const SavedChoices& choices_;
  // By target and value of an output: its index.
  std::map<std::pair<ValueId, ValueId>, std::size_t> tied_;
  std::unordered_map<std::size_t, std::size_t> place_of_;
  std::vector<std::int64_t> first_read_;  // by copy of the assignment
};

}  // namespace

Result<PlanAssignment> saved_assignment(const PlanProblem& problem,
                                        const Plan& saved,
                                        const SavedChoices& choices,
                                        std::vector<std::uint32_t> chosen) {
  return SavedAssignment(problem, saved, choices)
      .run(problem, std::move(chosen));
}

}  // namespace shardprop
