#include <shardprop/report/plan_text.h>

#include "base/name_folding.h"
#include "base/quantities.h"
#include "report/dear_moves.h"
#include "report/module_tree.h"
#include "report/once_a_step.h"
#include "report/plan_in_words.h"
#include "report/plan_totals.h"
#include "report/printable_plan.h"
#include "report/wrapped_text.h"

#include <shardprop/base/hash.h>
#include <shardprop/report/plan_sentences.h>
#include <shardprop/report/procedure_text.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

std::string_view why_no_more(RanOut what) {
  switch (what) {
    case RanOut::kMemory:
      return "memory ran out in a larger space";
    case RanOut::kSize:
      return "a larger space has more layouts than can be listed";
    case RanOut::kWork:
      return "the work limit was reached in a larger space";
    case RanOut::kInterrupted:
      return "the search was interrupted";
    case RanOut::kAttempts:
      return "the search has made all of its attempts";
    case RanOut::kGap:
      return "the plan is within the gap that was asked for";
    case RanOut::kNothing:
    case RanOut::kTime:
      return "time ran out in a larger space";
  }
  return {};
}

class Printer {
 public:
  Printer(const Plan& plan, const TextOptions& options)
      : plan_(plan), options_(options), reasons_(reasons_in_words(plan)) {}

  std::string print() {
    print_heading();
    if (plan_.has_plan()) {
      print_words();
      out_ += "\n" + plan_totals(plan_);
      print_recipes();
      print_values();
    }
    print_remarks();
    if (plan_.has_plan()) {
      if (!options_.detail) print_expensive_moves();
      print_modules();
    }
    if (left_out_) line("\n--detail shows the rest");
    if (options_.statistics) print_procedures();
    return std::move(out_);
  }

 private:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format,
                   std::forward<Args>(args)...);
    out_ += '\n';
  }

  void print_heading() {
    line("{} ({}) on {} ({}), {}", plan_.graph_name,
         counted(plan_.graph_ops, "op"), to_string(plan_.mesh),
         counted(plan_.mesh.size(), "rank"), plan_.topology.name);
    if (!plan_.has_plan()) return print_no_plan();
    line("{}", verdict(plan_));
    if (plan_.status == PlanStatus::kOptimal) return;
    if (!plan_.space.is_named()) {
      line("searched and bounded: {}; {}", space_in_words(plan_),
           why_no_more(plan_.ran_out));
    } else if (plan_.ran_out == RanOut::kMemory) {
      line("memory ran out in the search");
    }
  }

  // The sentences are wrapped to the width of a terminal.
  void print_words() {
    const std::vector<std::string> sentences = plan_in_words(plan_);
    if (!sentences.empty()) line("");
    for (const std::string& sentence : sentences) out_ += wrapped(sentence);
    for (const PlanNote& note : plan_.notes)
      out_ += wrapped("note: " + note_in_words(note));
  }

  void print_no_plan() {
    const std::string status(to_string(plan_.status));
    const PlanMemory& memory = plan_.memory;
    if (plan_.status != PlanStatus::kInfeasible) {
      line("{}: {} before there was a plan{}{}", status,
           why_none(plan_.ran_out),
           memory.limit_bytes
               ? " within " + bytes_text(*memory.limit_bytes) + " a rank"
               : std::string(),
           memory.peak_bytes > 0
               ? "; the nearest takes " + bytes_text(memory.peak_bytes)
               : std::string());
      return;
    }
    const bool by_memory_alone = plan_.conflict.irreducible &&
                                 !plan_.conflict.recipe &&
                                 plan_.conflict.pins.empty() &&
                                 plan_.conflict.memory.size() == 1 &&
                                 memory.limit_bytes;
    if (by_memory_alone) {
      const PlanConflict::Step& step = plan_.conflict.memory.front();
      line("{}: a rank needs at least {} at {}, and the limit is {}{}", status,
           bytes_text(*memory.limit_bytes + step.bytes_short), place_of(step),
           bytes_text(*memory.limit_bytes), as_said(plan_));
    } else {
      print_conflict();
    }
    if (memory.peak_bytes > 0) {
      line("a plan that takes {} a rank is known",
           bytes_text(memory.peak_bytes));
    }
    // A replicated operator takes more memory than it would with a definition.
    for (const UnsupportedOp& op : plan_.unsupported) {
      line(
          "`{}` ({}) runs replicated because it has no rule, which may be the "
          "cause",
          op.op, op.count);
    }
  }

  static std::string place_of(const PlanConflict::Step& step) {
    return step.node.empty() ? std::string("the end") : "`" + step.node + "`";
  }

  void print_conflict() {
    const PlanMemory& memory = plan_.memory;
    line("{}: these cannot hold together{}{}", to_string(plan_.status),
         plan_.conflict.irreducible ? "; without any one of them the others can"
                                    : "",
         as_said(plan_));
    if (const auto& recipe = plan_.conflict.recipe) {
      line("  --recipe {}", to_string(*recipe));
    }
    for (const Pin& pin : plan_.conflict.pins)
      line("  --pin '{}'", to_string(pin));
    for (const PlanConflict::Step& step : plan_.conflict.memory) {
      line("  {} a rank at {}: at least {} short",
           memory.limit_bytes ? bytes_text(*memory.limit_bytes)
                              : std::string("the memory"),
           place_of(step), bytes_text(step.bytes_short));
    }
  }

  void print_values() {
    std::vector<std::string> names;
    std::vector<std::string> groups;
    for (const PlannedValue& value : plan_.values) {
      names.push_back(value.name);
      groups.push_back(
          std::string(to_string(value.kind)) + " " + described(value.tensor) +
          (value.state_layout ? " " + to_string(*value.state_layout) : ""));
    }
    const std::vector<FoldedName> rows = fold_names(names, groups);
    std::vector<std::string> titles;
    std::size_t width = 0;
    for (const FoldedName& row : rows) {
      titles.push_back(row.text + repeats_text(row.members.size()));
      width = std::max(width, titles.back().size());
    }
    for (const auto& [kind, title] :
         {std::pair{InputKind::kUser, "inputs"},
          std::pair{InputKind::kParameter, "parameters"},
          std::pair{InputKind::kBuffer, "buffers"},
          std::pair{InputKind::kConstant, "constants"}}) {
      std::vector<std::size_t> of_kind;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        if (plan_.values[rows[i].members.front()].kind == kind) {
          of_kind.push_back(i);
        }
      }
      if (of_kind.empty()) continue;
      // Readers rarely look for buffers and constants. A cache that the program
      // writes is an exception.
      if (kind == InputKind::kConstant && !options_.detail) continue;
      if (kind == InputKind::kBuffer && !options_.detail) {
        std::erase_if(of_kind,
                      [&](std::size_t i) { return !is_cache(rows[i]); });
        if (of_kind.empty()) continue;
        line("\nbuffers that are written");
      } else {
        line("\n{}", title);
      }
      const std::size_t shown = options_.detail
                                    ? of_kind.size()
                                    : std::min(of_kind.size(), kMostRows);
      for (std::size_t k = 0; k < shown; ++k) {
        const std::size_t i = of_kind[k];
        const PlannedValue& value = plan_.values[rows[i].members.front()];
        line("  {:<{}}  {}{}", titles[i], width, described(value.tensor),
             value.state_layout
                 ? "   optimizer " + to_string(*value.state_layout)
                 : std::string());
      }
      if (shown < of_kind.size()) {
        line("  and {} more", of_kind.size() - shown);
        left_out_ = true;
      }
    }
  }

  // True for buffers that the program updates and that take a significant part
  // of the memory. Statistics of batch norm do not.
  bool is_cache(const FoldedName& row) const {
    constexpr double kLeastShare = 0.01;
    double all = 0;
    for (const PlannedValue& value : plan_.values) all += full_bytes(value);
    double own = 0;
    for (const std::size_t member : row.members) {
      const PlannedValue& value = plan_.values[member];
      if (is_updated(value.name)) own += full_bytes(value);
    }
    return own > 0 && own >= kLeastShare * all;
  }

  bool is_updated(const std::string& name) const {
    return std::any_of(plan_.outputs.begin(), plan_.outputs.end(),
                       [&](const PlannedOutput& output) {
                         return output.kind == OutputKind::kUpdate &&
                                output.target == name;
                       });
  }

  static double full_bytes(const PlannedValue& value) {
    auto bytes = static_cast<double>(item_size(value.tensor.dtype));
    for (const std::int64_t size : value.tensor.shape) {
      bytes *= static_cast<double>(size);
    }
    return bytes;
  }

  static std::string repeats_text(std::size_t repeats) {
    return repeats > 1 ? fmt::format(" (x{})", repeats) : std::string();
  }

  // "bf16[8,2048] S(0),R"
  static std::string described(const PlannedTensor& tensor) {
    return fmt::format("{}[{}] {}", to_string(tensor.dtype),
                       fmt::join(tensor.shape, ","), to_string(tensor.layout));
  }

  void print_procedures() {
    line("\nsearch procedures; each includes those that it calls");
    out_ += procedures_to_text(plan_.procedures, CostUnit::kNanoseconds);
  }

  void print_recipes() {
    if (plan_.recipes.empty()) return;
    std::size_t width = 0;
    for (const PlanRecipe& recipe : plan_.recipes) {
      width = std::max(width, recipe.name.size());
    }
    line("\nrecipes");
    for (const PlanRecipe& recipe : plan_.recipes) {
      if (!recipe.objective_nanoseconds) {
        line("  {:<{}}  {}{}", recipe.name, width, to_string(recipe.status),
             why_no_plan(recipe));
        continue;
      }
      line("  {:<{}}  {:>10}  {:>8}  {:>9}", recipe.name, width,
           time_text(*recipe.objective_nanoseconds),
           compared(*recipe.objective_nanoseconds),
           bytes_text(recipe.peak_bytes));
    }
  }

  // Returns ": the nearest plan takes 81.5 GiB" or ": time ran out".
  std::string why_no_plan(const PlanRecipe& recipe) const {
    if (recipe.status == PlanStatus::kInfeasible) {
      if (recipe.peak_bytes == 0) return "";
      return ": the nearest plan takes " + bytes_text(recipe.peak_bytes);
    }
    if (plan_.ran_out == RanOut::kInterrupted) {
      return ": " + std::string(why_none(plan_.ran_out));
    }
    const std::string work = option_of(plan_, "work_limit");
    const bool by_work = !work.empty() && work != "none";
    return ": " +
           std::string(why_none(by_work ? RanOut::kWork : RanOut::kTime));
  }

  // Returns "+3.4 %", relative to the time of the plan.
  std::string compared(std::int64_t nanoseconds) const {
    if (!plan_.has_plan() || *plan_.objective_nanoseconds == 0) return "";
    const auto own = static_cast<double>(*plan_.objective_nanoseconds);
    return fmt::format("{:+.1f} %",
                       100 * (static_cast<double>(nanoseconds) - own) / own);
  }

  void print_remarks() {
    print_pins();
    if (!plan_.unsupported.empty()) {
      line("\nrun replicated, because they have no strategy");
      for (const UnsupportedOp& op : plan_.unsupported) {
        line("  {}{}   {}", op.op,
             repeats_text(static_cast<std::size_t>(op.count)), op.reason);
      }
    }
    if (!plan_.guards.empty()) {
      line("\nholds while");
      for (const Guard& guard : plan_.guards) {
        line("  {}   ({})", guard.condition, guard.origin);
      }
    }
  }

  void print_pins() {
    if (plan_.pins.empty()) return;
    line("\npinned");
    for (const PlanPin& pin : plan_.pins) {
      line("  {}   {}{}", to_string(pin.pin), counted(pin.pinned, "value"),
           pin.matched > pin.pinned
               ? fmt::format(
                     " of {} that it matches; its placements do not fit the others",
                     count_text(pin.matched))
               : std::string());
    }
  }

  void print_expensive_moves() {
    const std::vector<ExpensiveMove> moves = expensive_moves(plan_);
    if (moves.empty()) return;
    line("\nredistributions, costliest first");
    for (std::size_t i = 0; i < std::min(moves.size(), kMostMoves); ++i) {
      const ExpensiveMove& move = moves[i];
      line("  {} in {}{}", time_text(move.nanoseconds),
           move.module.empty() ? plan_.graph_name : move.module,
           move.count > 1 ? fmt::format(", {} times", move.count)
                          : std::string());
      print_move(move.first, 1, "    ");
    }
    std::int64_t rest = 0;
    for (std::size_t i = kMostMoves; i < moves.size(); ++i) {
      rest += moves[i].nanoseconds;
    }
    if (moves.size() > kMostMoves) {
      line("  {} in {}", time_text(rest),
           counted(moves.size() - kMostMoves, "other"));
    }
    left_out_ = true;
  }

  void print_modules() {
    line("\n{:<44} {:>22} {:>24}", "modules", "compute fwd + bwd",
         "communication fwd + bwd");
    const Module root = module_tree(plan_);
    if (options_.detail) print_moves(root, 1);
    for (const Module& child : root.children) print_module(child, {}, 1);
  }

  void print_module(const Module& module, const std::string& prefix,
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
        (module.moves.empty() || !options_.detail) &&
        (only_numbers || module.children.size() == 1)) {
      for (const Module& child : module.children) {
        print_module(child, name, depth);
      }
      return;
    }
    const ModuleTimes& times = module.times;
    const std::string title =
        std::string(2 * depth, ' ') + name + repeats_text(module.repeats);
    line("{:<44} {:>22} {:>24}{}", title,
         time_text(times.compute[0]) + " + " + time_text(times.compute[1]),
         time_text(times.communication[0]) + " + " +
             time_text(times.communication[1]),
         module.repeats > 1 ? "  each" : "");
    if (!options_.detail && depth >= kMostDepth) {
      left_out_ = left_out_ || !module.children.empty();
      return;
    }
    if (options_.detail) print_moves(module, depth + 1);
    for (const Module& child : module.children) {
      print_module(child, {}, depth + 1);
    }
  }

  // Prints redistributions of one module that differ only in names once.
  void print_moves(const Module& module, std::size_t depth) {
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
      print_move(*group.first, group.count, indent);
    }
  }

  // Equal for moves that are printed alike.
  std::size_t hash_of(const ModuleMove& move) const {
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

  bool alike(const ModuleMove& a, const ModuleMove& b) const {
    if (a.inside != b.inside ||
        plan_.nodes[a.node].phase != plan_.nodes[b.node].phase) {
      return false;
    }
    if (a.inside)
      return plan_.nodes[a.node].inside == plan_.nodes[b.node].inside;
    const PlannedCopy& x = plan_.copies[a.copy];
    const PlannedCopy& y = plan_.copies[b.copy];
    return x.src == y.src && x.dst == y.dst && x.steps == y.steps;
  }

  void print_move(const ModuleMove& move, std::size_t count,
                  const std::string& indent) {
    const PlannedNode& node = plan_.nodes[move.node];
    const std::string_view phase =
        node.phase == Phase::kForward ? "fwd" : "bwd";
    const std::string times =
        count > 1 ? fmt::format("   and {} more like it", count - 1) : "";
    if (move.inside) {
      line("{}{} inside {} ({}{}){}", indent, phase, node.name, node.op,
           node.source.empty() ? "" : ", " + node.source, times);
      print_steps(node.inside, indent);
      return;
    }
    const PlannedCopy& copy = plan_.copies[move.copy];
    line("{}{} {}  {} -> {}{}", indent, phase, copy.from, to_string(copy.src),
         to_string(copy.dst), times);
    print_steps(copy.steps, indent,
                copy.once_a_step ? "   " + once_in(plan_) : std::string());
    out_ += wrapped("because " + reasons_[move.copy],
                    {.indent = indent.size() + 4, .behind = indent.size() + 6});
  }

  template <class Steps>  // of CollectiveStep, or of what derives from it
  void print_steps(const Steps& steps, const std::string& indent,
                   const std::string& how_often = {}) {
    for (const CollectiveStep& step : steps) {
      std::string dims;
      for (const std::int32_t dim : step.mesh_dims) {
        dims += (dims.empty() ? "" : ",") + plan_.mesh.name(dim);
      }
      line("{}    {:<14} over {:<8} {:>10} {:>10}{}", indent,
           to_string(step.kind), dims, bytes_text(step.bytes_per_rank),
           time_text(step.nanoseconds), how_often);
    }
  }

  // Without details.
  static constexpr std::size_t kMostRows = 16;
  static constexpr std::size_t kMostMoves = 6;
  static constexpr std::size_t kMostDepth = 2;

  const Plan& plan_;
  const TextOptions& options_;
  std::vector<std::string> reasons_;  // by copy
  std::string out_;
  bool left_out_ = false;
};

}  // namespace

std::string plan_to_text(const Plan& plan, const TextOptions& options) {
  return Printer(printable(plan), options).print();
}

}  // namespace shardprop
