#include "plan/explain/copy_list.h"

#include "plan/evaluate/buckets.h"
#include "plan/explain/reasons.h"
#include "plan/transfer_time.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace shardprop {
namespace {

constexpr std::size_t kNone = ~std::size_t{0};

// Sets the dtype and the bytes that the program sends. Reductions of gradients in
// mixed precision are in f32. Other steps move the value in its own dtype, which
// the price of a step in f32 bounds from above.
void send_in(DType own, RedistributeStep& step) {
  if (step.reduce_op || step.dtype == own) return;
  const std::int64_t priced = item_size(step.dtype);
  step.message_bytes = step.message_bytes / priced * item_size(own);
  step.bytes_per_rank = step.bytes_per_rank / priced * item_size(own);
  step.dtype = own;
}

}  // namespace

CopyList::CopyList(const PlanProblem& problem, const PlanAssignment& plan,
                   const BufferViews& views, std::int64_t end,
                   std::int64_t lower_bound)
    : problem_(problem), plan_(plan), views_(views), end_(end) {
  const std::vector<CopyUsers> users = users_of_copies(problem, plan);
  const AlternativeCosts alternatives(problem, plan, lower_bound);
  once_a_step_ = copies_once_a_step(problem, plan);
  times_ = copy_times(problem, plan);
  for (std::size_t c = 0; c < plan.copies.size(); ++c) {
    entries_[{value_of(c), c}] = c;
    copies_.push_back(assigned(c, users, alternatives));
    copied_.push_back(c);
    windows_.push_back(times_[c].window);
  }
  for (const Bucket& bucket : buckets_of(problem, plan)) {
    for (const std::size_t c : bucket.copies) {
      copies_[c].bucket = bucket.copies.front();
      if (!copies_[c].in_flight) copies_[c].produced_at = bucket.filled_at;
    }
  }
}

const std::string& CopyList::name(ValueId value) const {
  return problem_.graph().value(value).display_name();
}

ValueId CopyList::value_of(std::size_t copy) const {
  const AssignedCopy& of = plan_.copies[copy];
  return problem_.buffer(of.buffer).values[of.value];
}

std::int64_t CopyList::freed_at(std::size_t copy) const {
  const auto nodes = static_cast<std::int64_t>(problem_.graph().nodes().size());
  const std::int64_t slot = plan_.copies[copy].freed_at;
  return slot == nodes ? end_ : slot;
}

// Returns the value that a view of a buffer views. For the produced value it
// returns the value itself.
ValueId CopyList::viewed_by(ValueId value) const {
  if (problem_.value(value).place == 0) return value;
  const Graph& graph = problem_.graph();
  return graph.node(graph.value(value).producer).inputs[0];
}

// Walks up from `from` and from `to` to their first common value. The views
// above `from` are undone, and those above `to` are applied.
void CopyList::lead(ValueId from, ValueId to, PlannedCopy& copy) const {
  const Graph& graph = problem_.graph();
  const auto node_of = [&](ValueId value) -> const std::string& {
    return graph.node(graph.value(value).producer).name;
  };
  while (from != to) {
    // A view comes after the value that it views.
    if (problem_.value(from).place > problem_.value(to).place) {
      copy.undone.push_back(node_of(from));
      from = viewed_by(from);
    } else {
      copy.views.push_back(node_of(to));
      to = viewed_by(to);
    }
  }
  std::reverse(copy.views.begin(), copy.views.end());
}

PlannedCopy CopyList::assigned(std::size_t c,
                               const std::vector<CopyUsers>& users,
                               const AlternativeCosts& alternatives) const {
  const AssignedCopy& assigned = plan_.copies[c];
  const ValueId value = value_of(c);
  PlannedCopy copy = moved(value, views_.layout(value, assigned.source),
                           views_.layout(value, c));
  const ValueId of = assigned.source
                         ? value_of(*assigned.source)
                         : problem_.buffer(assigned.buffer).values[0];
  if (once_a_step_[c]) share(copy);
  if (!times_[c].window) copy.overlapped_nanoseconds = 0;
  copy.in_flight = in_flight(c, copy.overlapped_nanoseconds);
  const PlanBuffer& buffer = problem_.buffer(assigned.buffer);
  copy.cut_nanoseconds = problem_.cut_nanoseconds(
      buffer, value, views_.layout(value, assigned.source),
      views_.layout(value, c));
  copy.source = assigned.source;
  copy.of = name(of);
  lead(of, value, copy);
  copy.produced_at = assigned.produced_at;
  copy.freed_at = freed_at(c);
  copy.reason = reason_of(problem_, plan_, c, users, alternatives);
  return copy;
}

// A copy is in flight if it overlaps or is made from a copy that is still in
// flight. The optimizer's steps read complete gradients.
std::optional<PlannedFlight> CopyList::in_flight(
    std::size_t c, std::int64_t overlapped_nanoseconds) const {
  const auto window = times_[c].window;
  if (!window) return std::nullopt;
  const Windows& windows = problem_.windows();
  const auto nodes = static_cast<std::int64_t>(problem_.graph().nodes().size());
  const PlannedFlight flight{windows.first_slot(*window),
                             std::min(times_[c].complete_from, nodes)};
  const auto& source = plan_.copies[c].source;
  const bool is_chained = source && copies_[*source].in_flight == flight;
  if (overlapped_nanoseconds == 0 && !is_chained) return std::nullopt;
  return flight;
}

PlannedCopy CopyList::moved(ValueId value, LayoutId src, LayoutId dst) const {
  PlannedCopy copy;
  copy.from = name(value);
  copy.src = problem_.layouts()[src];
  copy.dst = problem_.layouts()[dst];
  RedistributePlan moves = problem_.redistribution(value, src, dst);
  copy.steps = std::move(moves.steps);
  const DType own = problem_.graph().value(value).meta.dtype();
  for (RedistributeStep& step : copy.steps) send_in(own, step);
  copy.overlapped_nanoseconds =
      problem_.overlappable_nanoseconds(value, src, dst);
  return copy;
}

void CopyList::share(PlannedCopy& copy) const {
  if (problem_.options().accumulate == 1) return;
  copy.once_a_step = true;
  const std::int64_t whole = copy.nanoseconds();
  const TransferTime share = share_of_step(
      problem_.options(),
      {whole - copy.overlapped_nanoseconds, copy.overlapped_nanoseconds});
  std::int64_t left = share.waited + share.overlappable;
  copy.overlapped_nanoseconds = share.overlappable;
  RedistributeStep* last = nullptr;
  for (RedistributeStep& step : copy.steps) {
    if (step.nanoseconds == 0) continue;
    step.nanoseconds /= problem_.options().accumulate;
    left -= step.nanoseconds;
    last = &step;
  }
  if (last != nullptr) last->nanoseconds += left;
}

std::size_t CopyList::add(PlannedCopy copy, std::optional<std::size_t> window) {
  if (!window) copy.overlapped_nanoseconds = 0;
  copies_.push_back(std::move(copy));
  copied_.push_back(kNone);
  windows_.push_back(window);
  return copies_.size() - 1;
}

// Returns the entry of the copy for the value as which it is read. This is the
// copy itself, or an entry that views its data as another value.
std::size_t CopyList::entry(ValueId value, std::size_t copy, Reader reader) {
  const auto [known, fresh] =
      entries_.try_emplace({value, copy}, copies_.size());
  if (!fresh) return known->second;
  PlannedCopy seen;
  seen.from = name(value);
  seen.src = seen.dst = problem_.layouts()[views_.layout(value, copy)];
  seen.source = copy;
  seen.of = name(value_of(copy));
  lead(value_of(copy), value, seen);
  seen.produced_at = copies_[copy].produced_at;
  // A view of a copy in flight is made when the copy is complete.
  if (const auto& flight = copies_[copy].in_flight) {
    seen.produced_at = std::max(seen.produced_at, flight->waited_at);
  }
  seen.freed_at = freed_at(copy);
  seen.reason.cause = CopyCause::kView;
  seen.reason.user = std::move(reader.user);
  seen.reason.operand = reader.operand;
  seen.reason.wanted = seen.dst;
  copies_.push_back(std::move(seen));
  copied_.push_back(copy);
  windows_.emplace_back();
  return known->second;
}

PlannedInput CopyList::read(ValueId value,
                            const std::optional<std::size_t>& copy,
                            Reader reader) {
  PlannedInput input{
      name(value), problem_.layouts()[views_.layout(value, copy)], {}};
  if (copy && copy != views_.copy_behind(value)) {
    input.copy = entry(value, *copy, std::move(reader));
  }
  return input;
}

std::vector<std::optional<std::size_t>> CopyList::number(Plan& plan) {
  std::vector<std::size_t> order(copies_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  // Views of a copy come directly after it.
  const auto key = [&](std::size_t c) {
    return std::tuple(copies_[c].produced_at, copied_[c], c);
  };
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  std::vector<std::size_t> place(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  // By bucket: its first copy in the plan.
  std::map<std::size_t, std::size_t> first_of;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto& bucket = copies_[order[i]].bucket;
    if (bucket) first_of.try_emplace(*bucket, i);
  }
  std::vector<std::optional<std::size_t>> windows;
  for (const std::size_t c : order) {
    windows.push_back(windows_[c]);
    plan.copies.push_back(std::move(copies_[c]));
    auto& source = plan.copies.back().source;
    if (source) source = place[*source];
    auto& bucket = plan.copies.back().bucket;
    if (bucket) bucket = first_of.at(*bucket);
  }
  const auto renumber = [&](PlannedInput& input) {
    if (input.copy) input.copy = place[*input.copy];
  };
  for (PlannedNode& node : plan.nodes) {
    for (PlannedInput& input : node.inputs) renumber(input);
  }
  for (PlannedUpdate& update : plan.updates) {
    if (update.gradient) renumber(*update.gradient);
    renumber(update.value);
  }
  for (PlannedOutput& output : plan.outputs) renumber(output.value);
  return windows;
}

}  // namespace shardprop
