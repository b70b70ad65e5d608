#include "plan/problem/build/buffer_class.h"

#include "base/try.h"
#include "plan/problem/transfer_costs.h"

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

// Unit: moves between the layouts of one buffer. They take 40 bytes each while
// they are computed: 1.3 GB.
constexpr std::size_t kMostMoves = std::size_t{1} << 25;

// StatesOfValue maps the layouts of one value to their states.
using StatesOfValue = std::unordered_map<LayoutId, StorageState>;

}  // namespace

Result<std::shared_ptr<const StorageClass>> StorageClasses::of(
    const PlanStorage& storage) {
  auto& entry = classes_[signature(storage)];
  if (!entry) {
    SP_ASSIGN(StorageClass worked_out, work_out(storage));
    entry = std::make_shared<StorageClass>(std::move(worked_out));
  }
  return entry;
}

std::vector<std::uint64_t> StorageClasses::signature(
    const PlanStorage& storage) const {
  std::vector<std::uint64_t> out;
  const PlanVariable& maker = data_.variables[storage.maker.index()];
  out.push_back(address(maker.choices.get()));
  out.push_back(storage.operand << 2U | (storage.persistent ? 1U : 0U) |
                (storage.inside_kernel ? 2U : 0U));
  out.push_back(storage.values.size());
  for (const ValueId value : storage.values) {
    const PlanValue& planned = data_.values[value.index()];
    const ValueId parent = forest_.parent(value);
    out.push_back(parent.valid() ? data_.values[parent.index()].place : 0U);
    out.push_back(address(forest_.view(value)));
    out.push_back(std::uint64_t{planned.tensor} << 1U |
                  (planned.hideable ? 1U : 0U));
    out.push_back(copied_to(value).size());
    for (const LayoutId id : copied_to(value)) out.push_back(id.index());
  }
  for (const StorageUse& use : storage.uses) {
    const PlanVariable& user = data_.variables[use.variable.index()];
    out.push_back(address(user.choices.get()));
    out.push_back(std::uint64_t{use.operand} << 32U | use.value);
  }
  for (const UseSegment& segment : storage.segments) {
    out.push_back(segment.first << 32U | segment.count);
  }
  return out;
}

Result<StorageClass> StorageClasses::work_out(
    const PlanStorage& storage) const {
  StorageClass out;
  SP_CHECK(add_states(storage, out));
  SP_CHECK(set_moves(storage, out));
  return out;
}

Result<void> StorageClasses::add_states(const PlanStorage& storage,
                                        StorageClass& out) const {
  const std::size_t values = storage.values.size();
  out.layouts.resize(values);
  std::vector<StatesOfValue> state_of(values);
  std::size_t states = 0;
  const auto add_state = [&](std::size_t value, LayoutId layout) {
    if (!state_of[value]
             .emplace(layout, static_cast<StorageState>(states))
             .second) {
      return;
    }
    ++states;
    for (auto& layouts : out.layouts) layouts.resize(states);
    out.layouts[value][states - 1] = layout;
  };
  const ChoiceSet& maker = *data_.variables[storage.maker.index()].choices;
  for (const LayoutId id : maker.layouts[storage.operand]) add_state(0, id);
  for (std::size_t v = 0; v < values; ++v) {
    const ValueId value = storage.values[v];
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
    for (const LayoutId id : wanted_[value.index()].layouts()) {
      add_state(v, id);
    }
    for (const LayoutId id : copied_to(value)) add_state(v, id);
  }
  if (states > std::numeric_limits<StorageState>::max() ||
      states * states > kMostMoves) {
    return fail(ErrorCode::kProblemTooLarge,
                "`" + data_.graph.value(storage.values[0]).display_name() +
                    "` can be laid out in " + std::to_string(states) +
                    " ways, more than are planned for",
                "pin it or what takes it, or merge mesh dims");
  }
  for (const LayoutId id : maker.layouts[storage.operand]) {
    out.made.push_back(state_of[0].at(id));
  }
  for (const StorageUse& use : storage.uses) {
    const ChoiceSet& user = *data_.variables[use.variable.index()].choices;
    auto& wanted = out.wanted.emplace_back();
    for (const LayoutId id : user.layouts[use.operand]) {
      wanted.push_back(state_of[use.value].at(id));
    }
  }
  out.bytes.resize(states);
  for (std::size_t v = 0; v < values; ++v) {
    const std::uint32_t tensor = data_.values[storage.values[v].index()].tensor;
    for (std::size_t s = 0; s < states; ++s) {
      const LayoutId id = out.layouts[v][s];
      if (id.valid()) out.bytes[s] = data_.moves.local_bytes(tensor, id);
    }
  }
  return {};
}

Result<void> StorageClasses::set_moves(const PlanStorage& storage,
                                       StorageClass& out) const {
  const std::size_t n = out.num_states();
  out.moves.assign(n * n, {.nanoseconds = kUnreachable});
  // Values with the same layouts have the same moves, so only the first one is
  // priced.
  std::set<std::tuple<std::uint32_t, bool, std::vector<LayoutId>>> seen;
  for (std::size_t v = 0; v < storage.values.size(); ++v) {
    const PlanValue& value = data_.values[storage.values[v].index()];
    const std::vector<LayoutId>& layouts = out.layouts[v];
    if (!seen.emplace(value.tensor, value.hideable, layouts).second) continue;
    for (std::size_t from = 0; from < n; ++from) {
      if (!layouts[from].valid()) continue;
      SP_CHECK(data_.check_stop());
      for (std::size_t to = 0; to < n; ++to) {
        if (!layouts[to].valid()) continue;
        StorageClass::Move& move = out.moves[from * n + to];
        const std::int64_t transfer =
            data_.moves.nanoseconds(value.tensor, layouts[from], layouts[to]);
        if (transfer >= move.transfer()) continue;
        StorageClass::Move found;
        found.hidden = data_.share_that_hides(value, transfer);
        found.nanoseconds = sat_add(
            transfer - found.hidden,
            data_.cut_nanoseconds(storage, value, layouts[from], layouts[to]));
        found.value = static_cast<std::uint32_t>(v);
        if (found.transfer() < move.transfer()) move = found;
      }
    }
  }
  if (data_.moves.refusal()) return {};
  return set_indirect_moves(out);
}

Result<void> StorageClasses::set_indirect_moves(StorageClass& out) const {
  const std::size_t n = out.num_states();
  // Reachable moves do not change. `transfer` has only the direct moves.
  std::vector<StorageClass::Move>& moves = out.moves;
  std::vector<std::int64_t> transfer(n * n);
  std::transform(moves.begin(), moves.end(), transfer.begin(),
                 [](const StorageClass::Move& move) {
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
      const StorageClass::Move& there = moves[from * n + over[i]];
      const StorageClass::Move& on = moves[over[i] * n + far[i]];
      StorageClass::Move& move = moves[from * n + far[i]];
      move.nanoseconds = there.nanoseconds + on.nanoseconds;
      move.hidden = there.hidden + on.hidden;
      move.via = static_cast<std::int32_t>(over[i]);
    }
  }
  return {};
}

}  // namespace shardprop
