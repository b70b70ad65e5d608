#include "plan/evaluate/produced_layouts.h"
#include "plan/network/plan_network.h"
#include "plan/evaluate/buffer_views.h"

#include <shardprop/base/error.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace shardprop {
namespace {

// StorageDecoder turns the cached layouts of one buffer, live interval by live
// interval, into copies. It adds a copy when a use or another copy first needs
// it.
class StorageDecoder {
 public:
  StorageDecoder(const PlanStorage& storage, PlanStorageId id,
                 PlanAssignment& out)
      : storage_(storage), id_(id), out_(out) {}

  void run(StorageState made, std::span<const Stretch> stretches,
           std::span<const HeldSet> held,
           std::span<const StorageState> wanted) {
    things_.push_back({made, kNone, 0, storage_.made_at, kNone});
    holding_ = {{made, 0}};
    set_ = {made, made};
    std::size_t taken = 0;
    for (std::size_t i = 0; i < stretches.size(); ++i) {
      const Stretch& here = stretches[i];
      last_slot_ = here.end - 1;
      enter(held[i], here.begin);
      for (std::size_t u = 0; u < here.num_uses; ++u) {
        take(here.first_use + u, wanted[here.first_use + u]);
        ++taken;
      }
    }
    last_slot_ = -1;
    if (taken < wanted.size()) take(taken, wanted[taken]);
  }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};

  // Thing is the buffer as it was produced, or a copy of it.
  struct Thing {
    StorageState state = 0;
    std::size_t source = kNone;  // index into things_
    std::uint32_t value = 0;
    std::int64_t slot = 0;
    std::size_t copy = kNone;  // index into out_.copies, once needed
  };

  std::size_t thing_in(StorageState state) const {
    for (const auto& [held, thing] : holding_) {
      if (held == state) return thing;
    }
    throw InternalError("a storage is not held as its users were told");
  }

  std::size_t make(StorageState to, std::size_t from, std::int64_t slot) {
    const StorageClass::Move& move =
        storage_.kind->move(things_[from].state, to);
    if (move.via != StorageClass::Move::kDirect) {
      const auto via = static_cast<StorageState>(move.via);
      return make(to, make(via, from, slot), slot);
    }
    things_.push_back({to, from, move.value, slot, kNone});
    return things_.size() - 1;
  }

  void enter(HeldSet set, std::int64_t slot) {
    for (const Making& making : transition(storage_, set_, set).makings) {
      holding_.emplace_back(making.to,
                            make(making.to, thing_in(making.from), slot));
    }
    std::erase_if(holding_,
                  [&](const auto& held) { return !set.has(held.first); });
    set_ = set;
  }

  void take(std::size_t use, StorageState wanted) {
    const StorageUse& at = storage_.uses[use];
    std::size_t thing = 0;
    std::int64_t until = at.until;
    if (set_.has(wanted)) {
      thing = thing_in(wanted);
      // A cached copy is kept to the end of its segment.
      until = std::max(until, last_slot_);
    } else {
      thing =
          make(wanted, thing_in(taking(storage_, set_, wanted).from), at.slot);
    }
    need(thing, until);
    out_.taken[id_.index()][use] =
        thing == 0 ? std::nullopt : std::optional(things_[thing].copy);
  }

  void need(std::size_t thing, std::int64_t until) {
    if (thing == 0) return;  // held_as_made() computes its end
    if (things_[thing].copy == kNone) {
      const Thing made = things_[thing];
      need(made.source, made.slot);
      AssignedCopy copy;
      copy.storage = id_;
      copy.state = made.state;
      copy.value = made.value;
      if (made.source != 0) copy.source = things_[made.source].copy;
      copy.made_at = made.slot;
      copy.freed_at = made.slot;
      things_[thing].copy = out_.copies.size();
      out_.copies.push_back(copy);
    }
    std::int64_t& freed_at = out_.copies[things_[thing].copy].freed_at;
    freed_at = std::max(freed_at, until);
  }

  const PlanStorage& storage_;
  PlanStorageId id_;
  PlanAssignment& out_;
  std::vector<Thing> things_;  // the buffer as produced comes first
  std::vector<std::pair<StorageState, std::size_t>> holding_;
  HeldSet set_;
  std::int64_t last_slot_ = -1;  // of the present live interval
};

// A view is computed when its node runs, even if its users read it later. If
// only later copies have a layout in which the view exists, ViewsInTime makes
// one of them earlier.
class ViewsInTime {
 public:
  ViewsInTime(const PlanProblem& problem, PlanAssignment& plan)
      : problem_(problem), plan_(plan), copies_of_(problem.storages().size()) {
    for (std::size_t c = 0; c < plan.copies.size(); ++c) {
      copies_of_[plan.copies[c].storage.index()].push_back(c);
    }
  }

  void run() {
    for (std::size_t s = 0; s < copies_of_.size(); ++s) {
      if (copies_of_[s].empty()) continue;
      const PlanStorage& storage = problem_.storages()[s];
      for (std::size_t v = 1; v < storage.values.size(); ++v) {
        make_in_time(storage, PlanStorageId(s), v);
      }
    }
  }

 private:
  void make_in_time(const PlanStorage& storage, PlanStorageId id,
                    std::size_t place) {
    const Graph& graph = problem_.graph();
    const auto slot = static_cast<std::int64_t>(
        graph.value(storage.values[place]).producer.index());
    const StorageState made =
        problem_.state_made(storage, plan_.choices[storage.maker.index()]);
    const auto shows = [&](StorageState state) {
      return StorageViews::shows(problem_, storage, place, state);
    };
    if (shows(made)) return;
    std::optional<std::size_t> first;
    for (const std::size_t c : copies_of_[id.index()]) {
      const AssignedCopy& copy = plan_.copies[c];
      if (!shows(copy.state)) continue;
      if (copy.made_at <= slot && slot <= copy.freed_at) return;
      if (!first) first = c;
    }
    if (!first) return;
    std::int64_t& freed_at = plan_.copies[*first].freed_at;
    freed_at = std::max(freed_at, slot);
    for (auto c = first; c && plan_.copies[*c].made_at > slot;
         c = plan_.copies[*c].source) {
      plan_.copies[*c].made_at = slot;
    }
  }

  const PlanProblem& problem_;
  PlanAssignment& plan_;
  std::vector<std::vector<std::size_t>> copies_of_;  // by buffer
};

// Sorts the copies by the slot in which they are made.
void sort_copies(PlanAssignment& plan) {
  std::vector<std::size_t> order(plan.copies.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) {
                     return plan.copies[a].made_at < plan.copies[b].made_at;
                   });
  std::vector<std::size_t> place(order.size());
  std::vector<AssignedCopy> sorted;
  sorted.reserve(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    place[order[i]] = i;
    sorted.push_back(plan.copies[order[i]]);
  }
  for (AssignedCopy& copy : sorted) {
    if (copy.source) copy.source = place[*copy.source];
  }
  plan.copies = std::move(sorted);
  for (auto& of_storage : plan.taken) {
    for (auto& copy : of_storage) {
      if (copy) copy = place[*copy];
    }
  }
}

}  // namespace

PlanAssignment PlanNetwork::decode(const NetworkAssignment& decoded) const {
  const solver::Assignment& assignment = choices(decoded);
  PlanAssignment out;
  out.choices.reserve(variable_.size());
  for (const solver::VariableId variable : variable_) {
    out.choices.push_back(assignment[variable.index()]);
  }
  out.taken.resize(problem_.storages().size());
  for (std::size_t s = 0; s < problem_.storages().size(); ++s) {
    const PlanStorage& storage = problem_.storages()[s];
    std::vector<StorageState> wanted;
    wanted.reserve(storage.uses.size());
    for (std::size_t u = 0; u < storage.uses.size(); ++u) {
      wanted.push_back(problem_.state_wanted(
          storage, u, out.choices[storage.uses[u].variable.index()]));
    }
    std::vector<HeldSet> held;
    held.reserve(stretches_[s].size());
    for (const Stretch& stretch : stretches_[s]) {
      held.push_back((*stretch.sets)[assignment[stretch.variable.index()]]);
    }
    out.taken[s].resize(storage.uses.size());
    StorageDecoder decoder(storage, PlanStorageId(s), out);
    decoder.run(
        problem_.state_made(storage, out.choices[storage.maker.index()]),
        stretches_[s], held, wanted);
  }
  sort_copies(out);
  ViewsInTime(problem_, out).run();
  sort_copies(out);
  out.freed_at = held_as_made(problem_, out);
  return out;
}

}  // namespace shardprop
