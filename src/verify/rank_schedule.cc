#include "verify/rank_schedule.h"

#include "base/index.h"
#include "base/try.h"

#include <shardprop/collective/group.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace shardprop::verification {
namespace {

struct ScheduledCall {
  TorchCollective what;
  std::vector<std::int64_t> members;
  const Node* node = nullptr;
  std::size_t turn = 0;  // among the calls of its group on this rank
};

// An event starts a call or waits for it.
struct ScheduleEvent {
  bool starts = false;
  std::size_t call = 0;
};

struct RankSchedule {
  std::int64_t rank = 0;
  std::vector<ScheduledCall> calls;
  std::vector<ScheduleEvent> events;
  std::size_t next = 0;
};

std::string words_of(const ScheduledCall& call) {
  std::string out(to_string(call.what.kind));
  const bool reduces = call.what.kind == CollectiveKind::kAllReduce ||
                       call.what.kind == CollectiveKind::kReduceScatter;
  if (reduces) out += "(" + std::string(to_string(call.what.op)) + ")";
  for (const TensorMeta& meta : call.node->op.inputs) {
    out += (&meta == call.node->op.inputs.data() ? " of " : ", ") +
           to_string(meta);
  }
  return out + " over ranks " + to_string(call.members) + " at node `" +
         call.node->name + "`";
}

class ScheduleBuilder {
 public:
  ScheduleBuilder(const RankPrograms& programs, const RankGroups& groups,
                  std::size_t index)
      : program_(*programs.ranks[index]), groups_(groups) {
    out_.rank = programs.mesh.rank_at_index(static_cast<std::int64_t>(index));
  }

  Result<RankSchedule> run() {
    for (const Node& node : program_.graph->nodes()) {
      for (const ValueId id : node.inputs) wait_for(id);
      if (!is_collective(node.op_name()) || is_wait(node.op_name())) continue;
      auto added = start(node);
      if (!added) {
        return fail(Error(added.error()).at(program_.file + ": " + node.name));
      }
    }
    for (std::size_t call = 0; call < out_.calls.size(); ++call) wait(call);
    return std::move(out_);
  }

 private:
  Result<void> start(const Node& node) {
    ScheduledCall call;
    call.node = &node;
    SP_ASSIGN(call.what, torch_collective(node.op));
    SP_ASSIGN(call.members, groups_.members(call.what, out_.rank));
    call.turn = turns_[call.members]++;
    const std::size_t index = out_.calls.size();
    for (const ValueId id : node.outputs) made_.emplace(id.index(), index);
    out_.calls.push_back(std::move(call));
    out_.events.push_back({true, index});
    is_waited_.push_back(false);
    return {};
  }

  void wait_for(ValueId id) {
    const auto found = made_.find(id.index());
    if (found != made_.end()) wait(found->second);
  }

  void wait(std::size_t call) {
    if (is_waited_[call]) return;
    is_waited_[call] = true;
    out_.events.push_back({false, call});
  }

  const RankProgram& program_;
  const RankGroups& groups_;
  RankSchedule out_;
  std::unordered_map<std::size_t, std::size_t> made_;  // value to call
  std::map<std::vector<std::int64_t>, std::size_t> turns_;
  std::vector<bool> is_waited_;
};

// The calls of all members that belong together.
struct Meeting {
  std::vector<std::pair<std::int64_t, const ScheduledCall*>> joined;
};

class ScheduleRun {
 public:
  explicit ScheduleRun(std::vector<RankSchedule>& ranks) : ranks_(ranks) {}

  Result<void> run() {
    bool moves = true;
    while (moves) {
      moves = false;
      for (RankSchedule& rank : ranks_) {
        SP_ASSIGN(const bool moved, advance(rank));
        moves = moves || moved;
      }
    }
    const bool is_done = std::all_of(
        ranks_.begin(), ranks_.end(),
        [](const auto& rank) { return rank.next == rank.events.size(); });
    if (is_done) return {};
    return fail(deadlock());
  }

 private:
  Meeting& meeting(const ScheduledCall& call) {
    return meetings_[{call.members, call.turn}];
  }

  Result<bool> advance(RankSchedule& rank) {
    bool moved = false;
    for (; rank.next < rank.events.size(); ++rank.next) {
      const ScheduleEvent& event = rank.events[rank.next];
      const ScheduledCall& call = rank.calls[event.call];
      Meeting& met = meeting(call);
      if (event.starts) {
        met.joined.emplace_back(rank.rank, &call);
        SP_CHECK(check_alike(met));
      } else if (met.joined.size() < call.members.size()) {
        break;
      }
      moved = true;
    }
    return moved;
  }

  // All-to-alls and gathers may have other sizes on each rank.
  static bool are_alike(const ScheduledCall& a, const ScheduledCall& b) {
    if (a.what.kind != b.what.kind || a.what.op != b.what.op) return false;
    if (a.what.root != b.what.root) return false;
    const auto& x = a.node->op.inputs;
    const auto& y = b.node->op.inputs;
    if (x.size() != y.size()) return false;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (x[i].dtype() != y[i].dtype()) return false;
      const bool sizes = a.what.kind == CollectiveKind::kAllToAll ||
                         x[i].shape() == y[i].shape();
      if (!sizes) return false;
    }
    return true;
  }

  static Result<void> check_alike(const Meeting& met) {
    const auto& [first_rank, first] = met.joined.front();
    const auto& [rank, call] = met.joined.back();
    if (are_alike(*first, *call)) return {};
    return fail(
        Error{ErrorCode::kCollectiveMismatch,
              "ranks of a group call different collectives",
              call->node->name,
              {"rank " + std::to_string(first_rank) + ": " + words_of(*first),
               "rank " + std::to_string(rank) + ": " + words_of(*call)},
              "call the same collectives in the same order on all ranks of a "
              "group"});
  }

  Error deadlock() const {
    Error error{ErrorCode::kTimeout,
                "the ranks wait for each other",
                {},
                {},
                "call the same collectives in the same order on all ranks of a "
                "group"};
    for (const RankSchedule& rank : ranks_) {
      const std::string name = "rank " + std::to_string(rank.rank) + ": ";
      if (rank.next == rank.events.size()) {
        error.notes.push_back(name + "its program has ended");
        continue;
      }
      const ScheduledCall& call = rank.calls[rank.events[rank.next].call];
      if (error.location.empty()) error.location = call.node->name;
      error.notes.push_back(name + "waits for " + words_of(call));
    }
    return error;
  }

  std::vector<RankSchedule>& ranks_;
  std::map<std::pair<std::vector<std::int64_t>, std::size_t>, Meeting>
      meetings_;
};

}  // namespace

Result<CollectiveCounts> check_collectives(const RankPrograms& programs,
                                           const RankGroups& groups) {
  std::vector<RankSchedule> ranks;
  CollectiveCounts most{};
  for (std::size_t i = 0; i < programs.ranks.size(); ++i) {
    SP_ASSIGN(RankSchedule rank, ScheduleBuilder(programs, groups, i).run());
    CollectiveCounts own{};
    for (const ScheduledCall& call : rank.calls) ++own[index(call.what.kind)];
    for (std::size_t k = 0; k < own.size(); ++k) {
      most[k] = std::max(most[k], own[k]);
    }
    ranks.push_back(std::move(rank));
  }
  SP_CHECK(ScheduleRun(ranks).run());
  return most;
}

}  // namespace shardprop::verification
