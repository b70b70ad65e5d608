// AlternativePlans makes the plans in which one user of a plan makes another
// choice and everything else stays as it is. It knows nothing of prices: it makes
// every way in which the operands of the user may be produced and its results
// restored.
#pragma once

#include "plan/evaluate/plan_assignment.h"
#include "plan/explain/alternatives.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace shardprop::test {

class AlternativePlans {
 public:
  // The arguments must outlive the object.
  AlternativePlans(const PlanProblem& problem, const PlanAssignment& plan)
      : problem_(problem),
        plan_(plan),
        users_(users_of_copies(problem, plan)) {}

  // Calls visit(assignment) for each plan with `choice` of `user`. Returns false
  // if there are more than `most`, which are then not all visited.
  template <class Visit>
  bool each(PlanVariableId user, std::uint32_t choice, std::size_t most,
            const Visit& visit) {
    user_ = user;
    is_gone_.assign(plan_.copies.size(), false);
    const PlanVariable& variable = problem_.variable(user);
    for (std::size_t u = 0; u < variable.uses.size(); ++u) drop_chain(u);
    PlanAssignment start = plan_;
    start.choices[user.index()] = choice;
    left_ = most;
    return results(start, 0, visit);
  }

 private:
  using Source = std::optional<std::size_t>;  // empty: the buffer as produced

  PlanBufferId buffer_of(ValueId value) const {
    return problem_.value(value).buffer;
  }
  Source& read_by(PlanAssignment& plan, std::size_t operand) const {
    const PlanVariable& variable = problem_.variable(user_);
    return plan.read[buffer_of(variable.uses[operand]).index()]
                    [variable.use_places[operand]];
  }

  // Marks the copies that only this operand needs.
  void drop_chain(std::size_t operand) {
    PlanAssignment own = plan_;
    for (Source copy = read_by(own, operand); copy;
         copy = plan_.copies[*copy].source) {
      if (users_[*copy].uses.size() + users_[*copy].copies.size() != 1) return;
      is_gone_[*copy] = true;
    }
  }

  BufferLayout layout_of(const PlanAssignment& plan, PlanBufferId id,
                         const Source& source) const {
    if (source) return plan.copies[*source].state;
    const PlanBuffer& buffer = problem_.buffer(id);
    return problem_.layout_produced(buffer,
                                    plan.choices[buffer.producer.index()]);
  }

  // Adds the copies that lead from `source` to layout `to` in `slot`, and keeps
  // the last one until `until`. Returns false if no transfer leads there.
  bool add_moves(PlanAssignment& plan, PlanBufferId id, Source& source,
                 BufferLayout to, std::int64_t slot, std::int64_t until) const {
    const BufferLayout from = layout_of(plan, id, source);
    std::int64_t& freed_at =
        source ? plan.copies[*source].freed_at : plan.freed_at[id.index()];
    if (from == to) {
      freed_at = std::max(freed_at, until);
      return true;
    }
    const BufferClass::Move& move = problem_.buffer(id).kind->move(from, to);
    if (!move.is_reachable()) return false;
    if (move.via != BufferClass::Move::kDirect) {
      return add_moves(plan, id, source, static_cast<BufferLayout>(move.via),
                       slot, slot) &&
             add_moves(plan, id, source, to, slot, until);
    }
    freed_at = std::max(freed_at, slot);
    plan.copies.push_back({id, to, move.value, source, slot, until});
    source = plan.copies.size() - 1;
    return true;
  }

  // The copies that are made from a result as it is restored: none, those for
  // which its layout is nearer than the new one, or all.
  enum class Restored : std::uint8_t { kNone, kNearer, kAll };

  // Gives the copies and readers of result `m` and of later ones their layouts:
  // each may use the result as it is now produced, or restored to the layout in
  // which it was produced before.
  template <class Visit>
  bool results(const PlanAssignment& plan, std::size_t m, const Visit& visit) {
    const PlanVariable& variable = problem_.variable(user_);
    if (m == variable.makes.size()) return operands(plan, 0, visit);
    const PlanBufferId id = buffer_of(variable.makes[m]);
    const BufferLayout before = layout_of(plan_, id, {});
    if (before == layout_of(plan, id, {})) return results(plan, m + 1, visit);
    for (const Restored restored :
         {Restored::kNone, Restored::kNearer, Restored::kAll}) {
      PlanAssignment next = plan;
      if (!replace(next, id, before, restored)) continue;
      if (!results(next, m + 1, visit)) return false;
    }
    return true;
  }

  bool replace(PlanAssignment& plan, PlanBufferId id, BufferLayout before,
               Restored restored_copies) const {
    const BufferLayout produced = layout_of(plan, id, {});
    const auto& kind = *problem_.buffer(id).kind;
    const auto is_restored = [&](BufferLayout to) {
      return restored_copies == Restored::kAll ||
             (restored_copies == Restored::kNearer &&
              kind.move(before, to).transfer() <
                  kind.move(produced, to).transfer());
    };
    const std::int64_t produced_at = problem_.buffer(id).produced_at;
    Source restored;
    const bool is_read =
        std::any_of(plan.read[id.index()].begin(), plan.read[id.index()].end(),
                    [](const Source& source) { return !source; });
    bool has_restored = is_read;
    for (std::size_t c = 0; c < plan_.copies.size(); ++c) {
      const AssignedCopy& copy = plan_.copies[c];
      has_restored = has_restored || (!is_gone_[c] && copy.buffer == id &&
                                      !copy.source && is_restored(copy.state));
    }
    if (has_restored) {
      if (!add_moves(plan, id, restored, before, produced_at,
                     plan_.freed_at[id.index()])) {
        return false;
      }
      for (Source& source : plan.read[id.index()]) {
        if (!source) source = restored;
      }
    }
    for (std::size_t c = 0; c < plan_.copies.size(); ++c) {
      const AssignedCopy copy = plan_.copies[c];
      if (is_gone_[c] || copy.buffer != id || copy.source) continue;
      if (is_restored(copy.state)) {
        plan.copies[c].source = restored;
        continue;
      }
      // The copy has the new layout, or other moves make it from that layout.
      Source made;
      if (!add_moves(plan, id, made, copy.state, copy.produced_at,
                     copy.freed_at)) {
        return false;
      }
      for (Source& source : plan.read[id.index()]) {
        if (source == c) source = made;
      }
      for (AssignedCopy& other : plan.copies) {
        if (other.source == c) other.source = made;
      }
      plan.copies[c].freed_at = kDropped;
    }
    return true;
  }

  template <class Visit>
  bool operands(const PlanAssignment& plan, std::size_t u, const Visit& visit) {
    const PlanVariable& variable = problem_.variable(user_);
    if (u == variable.uses.size()) {
      if (left_-- == 0) return false;
      visit(ordered(plan));
      return true;
    }
    const PlanBufferId id = buffer_of(variable.uses[u]);
    const PlanBuffer& buffer = problem_.buffer(id);
    const BufferUse& use = buffer.uses[variable.use_places[u]];
    const BufferLayout required = problem_.layout_required(
        buffer, variable.use_places[u], plan.choices[user_.index()]);
    for (const Source& from : sources(plan, u, id, use)) {
      PlanAssignment next = plan;
      Source source = from;
      if (!add_moves(next, id, source, required, use.slot, use.until)) continue;
      read_by(next, u) = source;
      if (!operands(next, u + 1, visit)) return false;
    }
    return true;
  }

  // Returns what the operand may be made of: the buffer as produced, each copy
  // that exists in the slot, and the source of the operand's own copies.
  std::vector<Source> sources(const PlanAssignment& plan, std::size_t operand,
                              PlanBufferId id, const BufferUse& use) const {
    std::vector<Source> out{std::nullopt};
    PlanAssignment own = plan_;
    Source own_source = read_by(own, operand);
    while (own_source && is_gone_[*own_source]) {
      own_source = plan_.copies[*own_source].source;
    }
    for (std::size_t c = 0; c < plan.copies.size(); ++c) {
      const AssignedCopy& copy = plan.copies[c];
      const bool is_dropped =
          copy.freed_at == kDropped || (c < is_gone_.size() && is_gone_[c]);
      if (is_dropped || copy.buffer != id || copy.produced_at > use.slot) {
        continue;
      }
      if (copy.freed_at >= use.slot || own_source == c) out.emplace_back(c);
    }
    return out;
  }

  // Returns the assignment without the dropped copies, sources first.
  PlanAssignment ordered(const PlanAssignment& plan) const {
    PlanAssignment out = plan;
    out.copies.clear();
    std::vector<Source> place(plan.copies.size());
    // A copy comes after its source: so many rounds place every copy.
    for (bool grows = true; grows;) {
      grows = false;
      for (std::size_t c = 0; c < plan.copies.size(); ++c) {
        AssignedCopy copy = plan.copies[c];
        const bool is_dropped =
            copy.freed_at == kDropped || (c < is_gone_.size() && is_gone_[c]);
        if (is_dropped || place[c] || (copy.source && !place[*copy.source])) {
          continue;
        }
        if (copy.source) copy.source = place[*copy.source];
        place[c] = out.copies.size();
        out.copies.push_back(copy);
        grows = true;
      }
    }
    for (auto& of_buffer : out.read) {
      for (Source& source : of_buffer) {
        if (source) source = place[*source];
      }
    }
    return out;
  }

  static constexpr std::int64_t kDropped = -1;

  const PlanProblem& problem_;
  const PlanAssignment& plan_;
  std::vector<CopyUsers> users_;
  PlanVariableId user_;
  std::vector<bool> is_gone_;
  std::size_t left_ = 0;
};

}  // namespace shardprop::test
