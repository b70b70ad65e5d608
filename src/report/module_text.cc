#include "report/module_text.h"

#include "base/name_folding.h"
#include "base/quantities.h"
#include "report/dear_moves.h"
#include "report/once_a_step.h"
#include "report/wrapped_text.h"

#include <shardprop/base/hash.h>
#include <shardprop/report/plan_sentences.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace shardprop {
namespace {

// The most moves and the deepest modules without details.
constexpr std::size_t kMostMoves = 6;
constexpr std::size_t kMostDepth = 2;

}  // namespace

std::string repeats_text(std::size_t repeats) {
  return repeats > 1 ? fmt::format(" (x{})", repeats) : std::string();
}

ModuleText::ModuleText(const Plan& plan, bool detail)
    : plan_(plan), detail_(detail), reasons_(reasons_in_words(plan)) {}

// Returns the lines added so far, and starts again.
std::string ModuleText::text() { return std::exchange(lines_.text, {}); }

std::string ModuleText::expensive_moves() {
  const std::vector<ExpensiveMove> moves = shardprop::expensive_moves(plan_);
  if (moves.empty()) return {};
  lines_.add("\nredistributions, costliest first");
  for (std::size_t i = 0; i < std::min(moves.size(), kMostMoves); ++i) {
    const ExpensiveMove& move = moves[i];
    lines_.add(
        "  {} in {}{}", time_text(move.nanoseconds),
        move.module.empty() ? plan_.graph_name : move.module,
        move.count > 1 ? fmt::format(", {} times", move.count) : std::string());
    add_move(move.first, 1, "    ");
  }
  std::int64_t rest = 0;
  for (std::size_t i = kMostMoves; i < moves.size(); ++i) {
    rest += moves[i].nanoseconds;
  }
  if (moves.size() > kMostMoves) {
    lines_.add("  {} in {}", time_text(rest),
               counted(moves.size() - kMostMoves, "other"));
  }
  is_shortened_ = true;
  return text();
}

std::string ModuleText::modules() {
  lines_.add("\n{:<44} {:>22} {:>24}", "modules", "compute fwd + bwd",
             "communication fwd + bwd");
  const Module root = module_tree(plan_);
  if (detail_) add_moves(root, 1);
  for (const Module& child : root.children) add_module(child, {}, 1);
  return text();
}

void ModuleText::add_module(const Module& module, const std::string& prefix,
                            std::size_t depth) {
  const std::string name =
      prefix.empty() ? module.name : prefix + "." + module.name;
  // A module without nodes is printed on the lines of its children if all of
  // them are numbered or it has one child.
  const bool only_numbers =
      !module.children.empty() &&
      std::all_of(module.children.begin(), module.children.end(),
                  [](const Module& child) {
                    return is_number(
                        child.name.substr(0, child.name.find_first_of(".,")));
                  });
  if (module.repeats == 1 && module.nodes.empty() &&
      (module.moves.empty() || !detail_) &&
      (only_numbers || module.children.size() == 1)) {
    for (const Module& child : module.children) {
      add_module(child, name, depth);
    }
    return;
  }
  const ModuleTimes& times = module.times;
  const std::string title =
      std::string(2 * depth, ' ') + name + repeats_text(module.repeats);
  lines_.add("{:<44} {:>22} {:>24}{}", title,
             time_text(times.compute[0]) + " + " + time_text(times.compute[1]),
             time_text(times.communication[0]) + " + " +
                 time_text(times.communication[1]),
             module.repeats > 1 ? "  each" : "");
  if (!detail_ && depth >= kMostDepth) {
    is_shortened_ = is_shortened_ || !module.children.empty();
    return;
  }
  if (detail_) add_moves(module, depth + 1);
  for (const Module& child : module.children) {
    add_module(child, {}, depth + 1);
  }
}

// Prints redistributions of one module that differ only in names once.
void ModuleText::add_moves(const Module& module, std::size_t depth) {
  const std::string indent(2 * depth, ' ');
  struct Group {
    const ModuleMove* first;
    std::size_t count;
  };
  std::vector<Group> groups;
  std::unordered_multimap<std::size_t, std::size_t> by_hash;
  for (const ModuleMove& move : module.moves) {
    const std::size_t hash = hash_of(move);
    const auto [begin, end] = by_hash.equal_range(hash);
    const auto known = std::find_if(begin, end, [&](const auto& entry) {
      return alike(*groups[entry.second].first, move);
    });
    if (known != end) {
      ++groups[known->second].count;
    } else {
      by_hash.emplace(hash, groups.size());
      groups.push_back({&move, 1});
    }
  }
  for (const Group& group : groups) {
    add_move(*group.first, group.count, indent);
  }
}

// Equal for moves that are printed alike.
std::size_t ModuleText::hash_of(const ModuleMove& move) const {
  std::size_t seed =
      hash_mix(move.inside ? 1 : 0,
               static_cast<std::uint64_t>(plan_.nodes[move.node].phase));
  if (!move.inside) {
    const PlannedCopy& copy = plan_.copies[move.copy];
    seed = hash_combine(hash_combine(seed, copy.src), copy.dst);
  }
  const auto add = [&](const CollectiveStep& step) {
    seed = hash_mix(seed, static_cast<std::uint64_t>(step.nanoseconds));
  };
  if (move.inside) {
    for (const auto& step : plan_.nodes[move.node].inside) add(step);
  } else {
    for (const auto& step : plan_.copies[move.copy].steps) add(step);
  }
  return seed;
}

bool ModuleText::alike(const ModuleMove& a, const ModuleMove& b) const {
  if (a.inside != b.inside ||
      plan_.nodes[a.node].phase != plan_.nodes[b.node].phase) {
    return false;
  }
  if (a.inside) return plan_.nodes[a.node].inside == plan_.nodes[b.node].inside;
  const PlannedCopy& x = plan_.copies[a.copy];
  const PlannedCopy& y = plan_.copies[b.copy];
  return x.src == y.src && x.dst == y.dst && x.steps == y.steps;
}

void ModuleText::add_move(const ModuleMove& move, std::size_t count,
                          const std::string& indent) {
  const PlannedNode& node = plan_.nodes[move.node];
  const std::string_view phase = node.phase == Phase::kForward ? "fwd" : "bwd";
  const std::string times =
      count > 1 ? fmt::format("   and {} more like it", count - 1) : "";
  if (move.inside) {
    lines_.add("{}{} inside {} ({}{}){}", indent, phase, node.name, node.op,
               node.source.empty() ? "" : ", " + node.source, times);
    add_steps(node.inside, indent);
    return;
  }
  const PlannedCopy& copy = plan_.copies[move.copy];
  lines_.add("{}{} {}  {} -> {}{}", indent, phase, copy.from,
             to_string(copy.src), to_string(copy.dst), times);
  add_steps(copy.steps, indent,
            copy.once_a_step ? "   " + once_in(plan_) : std::string());
  lines_.text +=
      wrapped("because " + reasons_[move.copy],
              {.indent = indent.size() + 4, .behind = indent.size() + 6});
}

template <class Steps>
void ModuleText::add_steps(const Steps& steps, const std::string& indent,
                           const std::string& how_often) {
  for (const CollectiveStep& step : steps) {
    std::string dims;
    for (const std::int32_t dim : step.mesh_dims) {
      dims += (dims.empty() ? "" : ",") + plan_.mesh.name(dim);
    }
    lines_.add("{}    {:<14} over {:<8} {:>10} {:>10}{}", indent,
               to_string(step.kind), dims, bytes_text(step.bytes_per_rank),
               time_text(step.nanoseconds), how_often);
  }
}

}  // namespace shardprop
