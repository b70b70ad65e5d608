#include "plan/network/telling_slots.h"

#include "base/index.h"
#include "base/saturating.h"
#include "plan/problem/equal_choices.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <tuple>
#include <utility>

namespace shardprop {
namespace {

// Runs with fewer blocks have no slot that the second and the last but one
// stand for.
constexpr std::size_t kLeastBlocks = 4;

// UsageBySlot sums the usages of one variable, by slot.
class UsageBySlot {
 public:
  explicit UsageBySlot(std::size_t slots) : sum_of_(slots, 0) {}

  // Precondition: `usages` are those of one variable.
  void set(std::span<const MemoryUsage* const> usages) {
    sums_ = {std::vector<std::int64_t>(usages[0]->bytes.size(), 0)};
    struct Change {
      std::int64_t slot;
      const MemoryUsage* usage;
      bool starts;
    };
    std::vector<Change> changes;
    for (const MemoryUsage* usage : usages) {
      if (usage->when.empty()) continue;
      changes.push_back({usage->when.lo, usage, true});
      changes.push_back({usage->when.hi, usage, false});
    }
    std::sort(changes.begin(), changes.end(),
              [](const Change& a, const Change& b) { return a.slot < b.slot; });
    std::map<std::vector<std::int64_t>, std::uint32_t> known{{sums_[0], 0}};
    std::vector<std::int64_t> now = sums_[0];
    std::uint32_t sum = 0;
    std::size_t slot = 0;
    for (std::size_t c = 0; c < changes.size();) {
      const std::size_t here = std::min(index(changes[c].slot), sum_of_.size());
      std::fill(sum_of_.begin() + static_cast<std::ptrdiff_t>(slot),
                sum_of_.begin() + static_cast<std::ptrdiff_t>(here), sum);
      slot = here;
      for (const std::int64_t at = changes[c].slot;
           c < changes.size() && changes[c].slot == at; ++c) {
        for (std::size_t i = 0; i < now.size(); ++i) {
          const std::int64_t bytes = changes[c].usage->bytes[i];
          now[i] += changes[c].starts ? bytes : -bytes;
        }
      }
      const auto [place, is_new] =
          known.try_emplace(now, static_cast<std::uint32_t>(sums_.size()));
      if (is_new) sums_.push_back(now);
      sum = place->second;
    }
    std::fill(sum_of_.begin() + static_cast<std::ptrdiff_t>(slot),
              sum_of_.end(), sum);
  }

  // Sums with the same number are equal.
  std::size_t number(std::int64_t slot) const { return sum_of_[index(slot)]; }
  const std::vector<std::int64_t>& sum(std::size_t number) const {
    return sums_[number];
  }

 private:
  std::vector<std::vector<std::int64_t>> sums_;
  std::vector<std::uint32_t> sum_of_;  // by slot: index into sums_
};

// Returns whether `bytes` are at most the mean of `first` and `last`, weighted
// by the number of blocks from the other end.
bool is_between(const std::vector<std::int64_t>& bytes,
                const std::vector<std::int64_t>& first,
                const std::vector<std::int64_t>& last, std::size_t from_first,
                std::size_t blocks) {
  const auto of_last = static_cast<WideInt>(from_first);
  const auto all = static_cast<WideInt>(blocks);
  for (std::size_t c = 0; c < bytes.size(); ++c) {
    if (all * bytes[c] > (all - of_last) * first[c] + of_last * last[c]) {
      return false;
    }
  }
  return true;
}

// Counterparts are lists of counterpart slots with the same number of blocks. They
// are stored by block, since slots of one block are near each other.
class Counterparts {
 public:
  explicit Counterparts(std::size_t blocks) : slots_(blocks), tells_(blocks) {}

  void add(std::span<const std::int64_t> slots) {
    for (std::size_t b = 0; b < slots.size(); ++b) {
      slots_[b].push_back(slots[b]);
      tells_[b].push_back(false);
    }
  }

  // Notes the slots in which the bytes of one variable are not between those of
  // the second block and the last but one.
  void find_telling(const UsageBySlot& usage) {
    const std::size_t end = last_but_one();
    for (std::size_t b = 2; b < end; ++b) {
      std::array<std::size_t, 3> known{};  // the numbers of the list before
      bool tells = false;
      for (std::size_t l = 0; l < slots_[b].size(); ++l) {
        const std::array numbers{usage.number(slots_[b][l]),
                                 usage.number(slots_[1][l]),
                                 usage.number(slots_[end][l])};
        const auto [here, first, last] = numbers;
        if ((here == first && here == last) || tells_[b][l]) continue;
        if (std::exchange(known, numbers) != numbers) {
          tells = !is_between(usage.sum(here), usage.sum(first),
                              usage.sum(last), b - 1, end - 1);
        }
        tells_[b][l] = tells;
      }
    }
  }

  // Visits the slots that do not tell: visit(slot, in the second block, in the last
  // block but one).
  template <class Visit>
  void visit_others(const Visit& visit) const {
    const std::size_t end = last_but_one();
    for (std::size_t b = 2; b < end; ++b) {
      for (std::size_t l = 0; l < slots_[b].size(); ++l) {
        if (!tells_[b][l]) visit(slots_[b][l], slots_[1][l], slots_[end][l]);
      }
    }
  }

 private:
  std::size_t last_but_one() const { return slots_.size() - 2; }

  // By block, then by list.
  std::vector<std::vector<std::int64_t>> slots_;
  std::vector<std::vector<bool>> tells_;
};

}  // namespace

TellingSlots::TellingSlots(const PlanProblem& problem,
                           std::span<const MemoryUsage> usages) {
  std::map<std::size_t, Counterparts> by_blocks;
  for (const auto& slots : problem.equal_choices().counterpart_slots()) {
    if (slots.size() <= kLeastBlocks) continue;
    by_blocks.try_emplace(slots.size(), slots.size()).first->second.add(slots);
  }
  if (by_blocks.empty()) return;
  std::map<solver::VariableId, std::vector<const MemoryUsage*>> by_variable;
  for (const MemoryUsage& usage : usages) {
    by_variable[usage.variable].push_back(&usage);
  }
  const std::size_t num_slots = problem.graph().nodes().size() + 1;
  UsageBySlot sums(num_slots);
  for (const auto& [variable, of_variable] : by_variable) {
    sums.set(of_variable);
    for (auto& [blocks, counterparts] : by_blocks) {
      counterparts.find_telling(sums);
    }
  }
  std::vector<bool> is_telling(num_slots, true);
  for (const auto& [blocks, counterparts] : by_blocks) {
    counterparts.visit_others(
        [&](std::int64_t slot, std::int64_t first, std::int64_t last) {
          is_telling[index(slot)] = false;
          others_.push_back({slot, first, last});
        });
  }
  moved_.assign(num_slots + 1, static_cast<std::int64_t>(num_slots));
  for (std::size_t t = num_slots; t-- > 0;) {
    moved_[t] = is_telling[t] ? static_cast<std::int64_t>(t) : moved_[t + 1];
  }
}

std::vector<MemoryUsage> TellingSlots::only(
    std::vector<MemoryUsage> usages) const {
  if (others_.empty()) return usages;
  std::map<std::tuple<solver::VariableId, std::int64_t, std::int64_t>,
           std::size_t>
      known;
  std::vector<MemoryUsage> out;
  for (MemoryUsage& usage : usages) {
    usage.when = {moved_[index(usage.when.lo)], moved_[index(usage.when.hi)]};
    if (usage.when.empty()) continue;
    const auto [at, is_new] = known.try_emplace(
        {usage.variable, usage.when.lo, usage.when.hi}, out.size());
    if (is_new) {
      out.push_back(std::move(usage));
      continue;
    }
    std::vector<std::int64_t>& sum = out[at->second].bytes;
    for (std::size_t c = 0; c < sum.size(); ++c) {
      sum[c] = sat_add(sum[c], usage.bytes[c]);
    }
  }
  return out;
}

std::vector<std::int64_t> TellingSlots::reserved(
    std::vector<std::int64_t> bytes) const {
  for (const Ends& ends : others_) {
    const std::int64_t here = std::exchange(bytes[index(ends.slot)], 0);
    for (const std::int64_t end : {ends.first, ends.last}) {
      bytes[index(end)] = std::max(bytes[index(end)], here);
    }
  }
  return bytes;
}

}  // namespace shardprop
