#include "plan/evaluate/buffer_views.h"
#include "plan/evaluate/produced_layouts.h"
#include "plan/network/plan_network.h"

#include <shardprop/base/error.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace shardprop {
namespace {

// BufferDecoder turns the cached layouts of one buffer, live interval by live
// interval, into copies. It adds a copy when a use or another copy first needs
// it.
class BufferDecoder {
 public:
  BufferDecoder(const PlanProblem& problem, PlanBufferId id,
                PlanAssignment& out)
      : problem_(problem), buffer_(problem.buffer(id)), id_(id), out_(out) {}

  void run(BufferLayout produced, std::span<const LiveInterval> live_intervals,
           std::span<const CachedLayouts> cached,
           std::span<const BufferLayout> required) {
    things_.push_back({produced, kNone, 0, buffer_.produced_at, kNone});
    holding_ = {{produced, 0}};
    set_ = {produced, produced};
    std::size_t read = 0;
    for (std::size_t i = 0; i < live_intervals.size(); ++i) {
      const LiveInterval& here = live_intervals[i];
      last_slot_ = here.end - 1;
      enter(cached[i], here.begin);
      for (std::size_t u = 0; u < here.num_uses; ++u) {
        take(here.first_use + u, required[here.first_use + u]);
        ++read;
      }
    }
    last_slot_ = -1;
    if (read < required.size()) take(read, required[read]);
  }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};

  // Thing is the buffer as it was produced, or a copy of it.
  struct Thing {
    BufferLayout state = 0;
    std::size_t source = kNone;  // index into things_
    std::uint32_t value = 0;
    std::int64_t slot = 0;
    std::size_t copy = kNone;  // index into out_.copies, once needed
  };

  std::size_t thing_in(BufferLayout state) const {
    for (const auto& [cached, thing] : holding_) {
      if (cached == state) return thing;
    }
    throw InternalError(
        "a buffer is not cached in the layout that its readers read");
  }

  std::size_t make(BufferLayout to, std::size_t from, std::int64_t slot) {
    const BufferClass::Move& move = buffer_.kind->move(things_[from].state, to);
    if (move.via != BufferClass::Move::kDirect) {
      const auto via = static_cast<BufferLayout>(move.via);
      return make(to, make(via, from, slot), slot);
    }
    things_.push_back(
        {to, from, move.value, problem_.ready_slot(buffer_, slot), kNone});
    return things_.size() - 1;
  }

  void enter(CachedLayouts set, std::int64_t slot) {
    for (const Transfer& making : transition(buffer_, set_, set).transfers) {
      holding_.emplace_back(making.to,
                            make(making.to, thing_in(making.from), slot));
    }
    std::erase_if(holding_,
                  [&](const auto& cached) { return !set.has(cached.first); });
    set_ = set;
  }

  void take(std::size_t use, BufferLayout required) {
    const BufferUse& at = buffer_.uses[use];
    std::size_t thing = 0;
    std::int64_t until = at.until;
    if (set_.has(required)) {
      thing = thing_in(required);
      // A cached copy is kept to the end of its segment.
      until = std::max(until, last_slot_);
    } else {
      thing = make(required, thing_in(fetch(buffer_, set_, required).from),
                   at.slot);
    }
    need(thing, until);
    out_.read[id_.index()][use] =
        thing == 0 ? std::nullopt : std::optional(things_[thing].copy);
  }

  void need(std::size_t thing, std::int64_t until) {
    if (thing == 0) return;  // held_as_made() computes its end
    if (things_[thing].copy == kNone) {
      const Thing produced = things_[thing];
      need(produced.source, produced.slot);
      AssignedCopy copy;
      copy.buffer = id_;
      copy.state = produced.state;
      copy.value = produced.value;
      if (produced.source != 0) copy.source = things_[produced.source].copy;
      copy.produced_at = produced.slot;
      copy.freed_at = produced.slot;
      things_[thing].copy = out_.copies.size();
      out_.copies.push_back(copy);
    }
    std::int64_t& freed_at = out_.copies[things_[thing].copy].freed_at;
    freed_at = std::max(freed_at, until);
  }

  const PlanProblem& problem_;
  const PlanBuffer& buffer_;
  PlanBufferId id_;
  PlanAssignment& out_;
  std::vector<Thing> things_;  // the buffer as produced comes first
  std::vector<std::pair<BufferLayout, std::size_t>> holding_;
  CachedLayouts set_;
  std::int64_t last_slot_ = -1;  // of the present live interval
};

// A view is computed when its node runs, even if its users read it later. If
// only later copies have a layout in which the view exists, ViewsInTime makes
// one of them earlier. The program waits for that copy, and its memory exists
// at least as early as if it were in flight.
class ViewsInTime {
 public:
  ViewsInTime(const PlanProblem& problem, PlanAssignment& plan)
      : problem_(problem), plan_(plan), copies_of_(problem.buffers().size()) {
    for (std::size_t c = 0; c < plan.copies.size(); ++c) {
      copies_of_[plan.copies[c].buffer.index()].push_back(c);
    }
  }

  void run() {
    for (std::size_t s = 0; s < copies_of_.size(); ++s) {
      if (copies_of_[s].empty()) continue;
      const PlanBuffer& buffer = problem_.buffers()[s];
      for (std::size_t v = 1; v < buffer.values.size(); ++v) {
        make_in_time(buffer, PlanBufferId(s), v);
      }
    }
  }

 private:
  void make_in_time(const PlanBuffer& buffer, PlanBufferId id,
                    std::size_t place) {
    const Graph& graph = problem_.graph();
    const auto slot = static_cast<std::int64_t>(
        graph.value(buffer.values[place]).producer.index());
    const BufferLayout produced = problem_.layout_produced(
        buffer, plan_.choices[buffer.producer.index()]);
    const auto shares = [&](BufferLayout state) {
      return BufferViews::shares_elements(problem_, buffer, place, state);
    };
    if (shares(produced)) return;
    std::optional<std::size_t> first;
    for (const std::size_t c : copies_of_[id.index()]) {
      const AssignedCopy& copy = plan_.copies[c];
      if (!shares(copy.state)) continue;
      if (copy.produced_at <= slot && slot <= copy.freed_at) return;
      if (!first) first = c;
    }
    if (!first) return;
    std::int64_t& freed_at = plan_.copies[*first].freed_at;
    freed_at = std::max(freed_at, slot);
    std::int64_t by = slot;
    for (auto c = first; c && plan_.copies[*c].produced_at > by;
         c = plan_.copies[*c].source) {
      std::int64_t& at = plan_.copies[*c].produced_at;
      at = by = early(buffer, std::min(by, problem_.issue_slot(buffer, at)));
    }
  }

  // Returns a slot up to `slot` in which no move of the buffer overlaps.
  std::int64_t early(const PlanBuffer& buffer, std::int64_t slot) const {
    const Windows& windows = problem_.windows();
    while (slot > buffer.produced_at && problem_.overlap_window(buffer, slot)) {
      slot = std::max(buffer.produced_at,
                      windows.first_slot(windows.at(slot)) - 1);
    }
    return slot;
  }

  const PlanProblem& problem_;
  PlanAssignment& plan_;
  std::vector<std::vector<std::size_t>> copies_of_;  // by buffer
};

// Sorts the copies by the slot in which they are made.
void sort_copies(PlanAssignment& plan) {
  std::vector<std::size_t> order(plan.copies.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(
      order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return plan.copies[a].produced_at < plan.copies[b].produced_at;
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
  for (auto& of_buffer : plan.read) {
    for (auto& copy : of_buffer) {
      if (copy) copy = place[*copy];
    }
  }
}

}  // namespace

PlanAssignment PlanNetwork::decode(const NetworkAssignment& decoded) const {
  const solver::Assignment& assignment = choices(decoded);
  PlanAssignment out;
  out.choices.reserve(structure_.variable.size());
  for (const solver::VariableId variable : structure_.variable) {
    out.choices.push_back(assignment[variable.index()]);
  }
  out.read.resize(problem_.buffers().size());
  for (std::size_t s = 0; s < problem_.buffers().size(); ++s) {
    const PlanBuffer& buffer = problem_.buffers()[s];
    std::vector<BufferLayout> required;
    required.reserve(buffer.uses.size());
    for (std::size_t u = 0; u < buffer.uses.size(); ++u) {
      required.push_back(problem_.layout_required(
          buffer, u, out.choices[buffer.uses[u].variable.index()]));
    }
    std::vector<CachedLayouts> cached;
    cached.reserve(live_intervals(PlanBufferId(s)).size());
    for (const LiveInterval& live_interval : live_intervals(PlanBufferId(s))) {
      cached.push_back(
          (*live_interval.sets)[assignment[live_interval.variable.index()]]);
    }
    out.read[s].resize(buffer.uses.size());
    BufferDecoder decoder(problem_, PlanBufferId(s), out);
    decoder.run(
        problem_.layout_produced(buffer, out.choices[buffer.producer.index()]),
        live_intervals(PlanBufferId(s)), cached, required);
  }
  sort_copies(out);
  ViewsInTime(problem_, out).run();
  sort_copies(out);
  out.freed_at = read_as_produced(problem_, out);
  return out;
}

}  // namespace shardprop
