#include "plan/problem/build/buffer_class.h"

#include "base/try.h"
#include "plan/problem/transfer_costs.h"
#include "plan/tuning.h"

#include <shardprop/base/error.h>

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace shardprop {
namespace {

std::uint64_t address(const void* pointer) {
  return static_cast<std::uint64_t>(
      reinterpret_cast<std::uintptr_t>(pointer));  // NOLINT: an identity
}

// StatesOfValue maps the layouts of one value to their states.
using StatesOfValue = std::unordered_map<LayoutId, BufferLayout>;

}  // namespace

Result<std::shared_ptr<const BufferClass>> BufferClasses::of(
    const PlanBuffer& buffer) {
  auto& entry = classes_[signature(buffer)];
  if (!entry) {
    SP_ASSIGN(BufferClass worked_out, work_out(buffer));
    entry = std::make_shared<BufferClass>(std::move(worked_out));
  }
  return entry;
}

std::vector<std::uint64_t> BufferClasses::signature(
    const PlanBuffer& buffer) const {
  std::vector<std::uint64_t> out;
  const PlanVariable& producer = data_.variables[buffer.producer.index()];
  out.push_back(address(producer.choices.get()));
  out.push_back(buffer.operand << 2U | (buffer.persistent ? 1U : 0U) |
                (buffer.inside_kernel ? 2U : 0U));
  out.push_back(buffer.values.size());
  for (const ValueId value : buffer.values) {
    const PlanValue& planned = data_.values[value.index()];
    const ValueId parent = forest_.parent(value);
    out.push_back(parent.valid() ? data_.values[parent.index()].place : 0U);
    out.push_back(address(forest_.view(value)));
    out.push_back(std::uint64_t{planned.tensor} << 1U |
                  (planned.overlappable ? 1U : 0U));
    out.push_back(copied_to(value).size());
    for (const LayoutId id : copied_to(value)) out.push_back(id.index());
  }
  for (const BufferUse& use : buffer.uses) {
    const PlanVariable& user = data_.variables[use.variable.index()];
    out.push_back(address(user.choices.get()));
    out.push_back(std::uint64_t{use.operand} << 32U | use.value);
  }
  for (const UseSegment& segment : buffer.segments) {
    out.push_back(segment.first << 32U | segment.count);
  }
  return out;
}

Result<BufferClass> BufferClasses::work_out(const PlanBuffer& buffer) const {
  BufferClass out;
  SP_CHECK(add_states(buffer, out));
  SP_CHECK(set_moves(buffer, out));
  return out;
}

Result<void> BufferClasses::add_states(const PlanBuffer& buffer,
                                       BufferClass& out) const {
  const std::size_t values = buffer.values.size();
  out.layouts.resize(values);
  std::vector<StatesOfValue> state_of(values);
  std::size_t states = 0;
  const auto add_state = [&](std::size_t value, LayoutId layout) {
    if (!state_of[value]
             .emplace(layout, static_cast<BufferLayout>(states))
             .second) {
      return;
    }
    ++states;
    for (auto& layouts : out.layouts) layouts.resize(states);
    out.layouts[value][states - 1] = layout;
  };
  const ChoiceSet& producer = *data_.variables[buffer.producer.index()].choices;
  for (const LayoutId id : producer.layouts[buffer.operand]) add_state(0, id);
  for (std::size_t v = 0; v < values; ++v) {
    const ValueId value = buffer.values[v];
    if (v > 0) {
      const std::size_t parent =
          data_.values[forest_.parent(value).index()].place;
      const ChoiceSet& view = *forest_.view(value);
      for (std::size_t c = 0; c < view.size(); ++c) {
        const auto seen = state_of[parent].find(view.layout(c, 0));
        if (seen == state_of[parent].end()) continue;
        if (state_of[v].emplace(view.layout(c, 1), seen->second).second) {
          out.layouts[v][seen->second] = view.layout(c, 1);
        }
      }
    }
    for (const LayoutId id : required_[value.index()].layouts()) {
      add_state(v, id);
    }
    for (const LayoutId id : copied_to(value)) add_state(v, id);
  }
  if (states > std::numeric_limits<BufferLayout>::max() ||
      states * states > tuning::kMostBufferMoves) {
    return fail(ErrorCode::kProblemTooLarge,
                "`" + data_.graph.value(buffer.values[0]).display_name() +
                    "` can be laid out in " + std::to_string(states) +
                    " ways, more than are planned for",
                "pin it or what takes it, or merge mesh dims");
  }
  for (const LayoutId id : producer.layouts[buffer.operand]) {
    out.produced.push_back(state_of[0].at(id));
  }
  for (const BufferUse& use : buffer.uses) {
    const ChoiceSet& user = *data_.variables[use.variable.index()].choices;
    auto& required = out.required.emplace_back();
    for (const LayoutId id : user.layouts[use.operand]) {
      required.push_back(state_of[use.value].at(id));
    }
  }
  out.bytes.resize(states);
  for (std::size_t v = 0; v < values; ++v) {
    const std::uint32_t tensor = data_.values[buffer.values[v].index()].tensor;
    for (std::size_t s = 0; s < states; ++s) {
      const LayoutId id = out.layouts[v][s];
      if (id.valid()) out.bytes[s] = data_.moves.local_bytes(tensor, id);
    }
  }
  return {};
}

Result<void> BufferClasses::set_moves(const PlanBuffer& buffer,
                                      BufferClass& out) const {
  const std::size_t n = out.num_states();
  out.moves.assign(n * n, {.nanoseconds = kUnreachable});
  // Values with the same layouts have the same moves, so only the first one is
  // priced.
  std::set<std::tuple<std::uint32_t, bool, std::vector<LayoutId>>> seen;
  for (std::size_t v = 0; v < buffer.values.size(); ++v) {
    const PlanValue& value = data_.values[buffer.values[v].index()];
    const std::vector<LayoutId>& layouts = out.layouts[v];
    if (!seen.emplace(value.tensor, value.overlappable, layouts).second)
      continue;
    for (std::size_t from = 0; from < n; ++from) {
      if (!layouts[from].valid()) continue;
      SP_CHECK(data_.check_stop());
      for (std::size_t to = 0; to < n; ++to) {
        if (!layouts[to].valid()) continue;
        BufferClass::Move& move = out.moves[from * n + to];
        const std::int64_t transfer =
            data_.moves.nanoseconds(value.tensor, layouts[from], layouts[to]);
        if (transfer >= move.transfer()) continue;
        BufferClass::Move found;
        found.overlapped = data_.overlappable_share(value, transfer);
        found.nanoseconds = sat_add(
            transfer - found.overlapped,
            data_.cut_nanoseconds(buffer, value, layouts[from], layouts[to]));
        found.value = static_cast<std::uint32_t>(v);
        if (found.transfer() < move.transfer()) move = found;
      }
    }
  }
  if (data_.moves.refusal()) return {};
  return set_indirect_moves(out);
}

Result<void> BufferClasses::set_indirect_moves(BufferClass& out) const {
  const std::size_t n = out.num_states();
  // Reachable moves do not change. `transfer` has only the direct moves.
  std::vector<BufferClass::Move>& moves = out.moves;
  std::vector<std::int64_t> transfer(n * n);
  std::transform(moves.begin(), moves.end(), transfer.begin(),
                 [](const BufferClass::Move& move) {
                   return std::min(move.transfer(), kUnreachable);
                 });
  // The four lists belong to one source state. `near` are the directly
  // reachable states, `far` the others. By far state, `least` is the least
  // transfer in two steps so far, and `over` the state between them.
  std::vector<std::size_t> near;
  std::vector<std::size_t> far;
  std::vector<std::int64_t> least;
  std::vector<std::size_t> over;
  for (std::size_t from = 0; from < n; ++from) {
    SP_CHECK(data_.check_stop());
    near.clear();
    far.clear();
    for (std::size_t to = 0; to < n; ++to) {
      (moves[from * n + to].is_reachable() ? near : far).push_back(to);
    }
    least.assign(far.size(), kUnreachable);
    over.assign(far.size(), 0);
    for (const std::size_t via : near) {
      const std::int64_t there = transfer[from * n + via];
      const std::int64_t* const on = &transfer[via * n];
      for (std::size_t i = 0; i < far.size(); ++i) {
        // Neither term is above kUnreachable.
        if (there + on[far[i]] >= least[i]) continue;
        least[i] = there + on[far[i]];
        over[i] = via;
      }
    }
    for (std::size_t i = 0; i < far.size(); ++i) {
      if (least[i] >= kUnreachable) continue;
      const BufferClass::Move& there = moves[from * n + over[i]];
      const BufferClass::Move& on = moves[over[i] * n + far[i]];
      BufferClass::Move& move = moves[from * n + far[i]];
      move.nanoseconds = there.nanoseconds + on.nanoseconds;
      move.overlapped = there.overlapped + on.overlapped;
      move.via = static_cast<std::int32_t>(over[i]);
    }
  }
  return {};
}

}  // namespace shardprop
