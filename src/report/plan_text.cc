#include <shardprop/report/plan_text.h>

#include "base/quantities.h"
#include "report/module_tree.h"
#include "report/name_folding.h"
#include "report/printable_plan.h"

#include <shardprop/base/hash.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <unordered_map>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

class Printer {
 public:
  explicit Printer(const Plan& plan) : plan_(plan) {}

  std::string print() {
    print_heading();
    if (plan_.has_plan()) {
      print_totals();
      print_values();
    }
    print_remarks();
    if (plan_.has_plan()) print_modules();
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
    line("{} ({} ops) on {} ({} ranks), {}", plan_.graph_name,
         count_text(static_cast<std::int64_t>(plan_.graph_ops)),
         to_string(plan_.mesh), count_text(plan_.mesh.size()),
         plan_.topology.name);
    if (!plan_.has_plan()) return print_no_plan();
    const std::int64_t total = *plan_.objective_nanoseconds;
    if (plan_.status == PlanStatus::kOptimal) {
      line("optimal: {}, no plan costs less{}", time_text(total), as_said());
    } else {
      line("{}: {}, where no plan can take less than {} (gap {:.1f} %){}",
           to_string(plan_.status), time_text(total),
           time_text(plan_.lower_bound_nanoseconds),
           100 * plan_.gap().value_or(0), as_said());
      if (!plan_.space.is_named()) {
        line("searched and bounded: {}; for more there was not the time",
             to_string(plan_.space));
      }
    }
  }

  // Behind what was not proven here.
  std::string_view as_said() const {
    return plan_.is_proof_given ? ", as the file says" : "";
  }

  void print_no_plan() {
    const std::string status(to_string(plan_.status));
    const PlanMemory& memory = plan_.memory;
    if (plan_.status != PlanStatus::kInfeasible) {
      line("{}: {} before there was a plan{}{}", status,
           plan_.ran_out == RanOut::kTime   ? "time ran out"
           : plan_.ran_out == RanOut::kWork ? "the work limit was reached"
           : plan_.ran_out == RanOut::kInterrupted
               ? "the search was interrupted"
               : "the search ended",
           memory.limit_bytes
               ? " within " + bytes_text(*memory.limit_bytes) + " a rank"
               : std::string(),
           memory.peak_bytes > 0
               ? "; the nearest takes " + bytes_text(memory.peak_bytes)
               : std::string());
      return;
    }
    line("{}: these cannot hold together{}", status,
         plan_.clash.irreducible ? "; without any one of them the others can"
                                 : "");
    for (const std::string& pin : plan_.clash.pins) line("  --pin '{}'", pin);
    for (const PlanClash::Step& step : plan_.clash.memory) {
      line("  {} a rank at {}: {} short",
           memory.limit_bytes ? bytes_text(*memory.limit_bytes)
                              : std::string("the memory"),
           step.node.empty() ? std::string("the end") : "`" + step.node + "`",
           bytes_text(step.bytes_short));
    }
    if (memory.peak_bytes > 0) {
      line("with {} a rank there is a plan", bytes_text(memory.peak_bytes));
    }
    // Replicated, they hold more than a definition would let them.
    for (const UnsupportedOp& op : plan_.unsupported) {
      line(
          "`{}` ({}) runs replicated for want of a definition, which may be "
          "why",
          op.op, op.count);
    }
  }

  void print_totals() {
    const PlanSummary& sum = plan_.summary;
    line("");
    if (plan_.optimizer_nanoseconds > 0) {
      line("  compute        {:>12}   of which optimizer {}",
           time_text(sum.compute_nanoseconds),
           time_text(plan_.optimizer_nanoseconds));
    } else {
      line("  compute        {:>12}", time_text(sum.compute_nanoseconds));
    }
    print_kernels();
    line("  communication  {:>12}   of which {} hidden behind compute",
         time_text(sum.communication_nanoseconds),
         time_text(sum.hidden_nanoseconds));
    line("  total          {:>12}   {} without overlap",
         time_text(*plan_.objective_nanoseconds),
         time_text(sum.compute_nanoseconds + sum.communication_nanoseconds));
    const PlanMemory& memory = plan_.memory;
    const std::string limit = memory.limit_bytes
                                  ? "of " + bytes_text(*memory.limit_bytes)
                                  : std::string("no limit");
    line("  memory         {:>12}   {}; at its peak, {}:",
         bytes_text(memory.peak_bytes), limit, node_name(memory.peak_at));
    for (const auto& [title, bytes] :
         {std::pair{"parameters", memory.parameter_bytes},
          std::pair{"gradients", memory.gradient_bytes},
          std::pair{"optimizer", memory.optimizer_bytes},
          std::pair{"activations", memory.activation_bytes},
          std::pair{"gathered copies", memory.gathered_bytes},
          std::pair{"buffers", memory.buffer_bytes}}) {
      if (bytes > 0) line("    {:<24} {:>12}", title, bytes_text(bytes));
    }
    line("  sent           {:>12}   {}", bytes_text(sum.bytes_per_rank),
         collectives_text(sum));
  }

  // Of the compute, what operators do that share kernels, and what it comes to
  // when the kernels are counted.
  void print_kernels() {
    const PlannedKernels& kernels = plan_.kernels;
    if (kernels.groups == 0) return;
    const std::int64_t more = kernels.nanoseconds - kernels.priced_nanoseconds;
    line("    {} kernels of several operators {}; counted one by one {}{}",
         count_text(kernels.kernels), time_text(kernels.priced_nanoseconds),
         more < 0 ? "-" : "+", time_text(std::abs(more)));
  }

  std::string node_name(std::int64_t index) const {
    const auto at = static_cast<std::size_t>(index);
    return at < plan_.nodes.size() ? "`" + plan_.nodes[at].name + "`"
                                   : std::string("the end");
  }

  static std::string collectives_text(const PlanSummary& sum) {
    std::string text;
    for (const CollectiveKind kind : kAllCollectiveKinds) {
      const std::int64_t count =
          sum.collectives[static_cast<std::size_t>(kind)];
      if (count == 0) continue;
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ",
                          count_text(count), to_string(kind));
    }
    return text.empty() ? "nothing" : text;
  }

  void print_values() {
    std::vector<std::string> names;
    std::vector<std::string> groups;
    for (const PlannedValue& value : plan_.values) {
      names.push_back(value.name);
      groups.push_back(std::string(to_string(value.role)) + " " +
                       described(value.tensor));
    }
    const std::vector<FoldedName> rows = fold_names(names, groups);
    std::vector<std::string> titles;
    std::size_t width = 0;
    for (const FoldedName& row : rows) {
      titles.push_back(row.text + repeats_text(row.members.size()));
      width = std::max(width, titles.back().size());
    }
    for (const auto& [role, title] :
         {std::pair{ValueRole::kUserInput, "inputs"},
          std::pair{ValueRole::kParameter, "parameters"},
          std::pair{ValueRole::kBuffer, "buffers"},
          std::pair{ValueRole::kConstant, "constants"}}) {
      bool any = false;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const PlannedValue& value = plan_.values[rows[i].members.front()];
        if (value.role != role) continue;
        if (!any) line("\n{}", title);
        any = true;
        line("  {:<{}}  {}", titles[i], width, described(value.tensor));
      }
    }
  }

  static std::string repeats_text(std::size_t repeats) {
    return repeats > 1 ? fmt::format(" (x{})", repeats) : std::string();
  }

  // "bf16[8,2048] S(0),R"
  static std::string described(const PlannedTensor& tensor) {
    return fmt::format("{}[{}] {}", to_string(tensor.dtype),
                       fmt::join(tensor.shape, ","), to_string(tensor.layout));
  }

  void print_remarks() {
    if (!plan_.unsupported.empty()) {
      line("\nrun replicated, having no strategy");
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

  void print_modules() {
    line("\n{:<44} {:>22} {:>24}", "modules", "compute fwd + bwd",
         "communication fwd + bwd");
    const Module root = module_tree(plan_);
    print_moves(root, 1);
    for (const Module& child : root.children) print_module(child, {}, 1);
  }

  void print_module(const Module& module, const std::string& prefix,
                    std::size_t depth) {
    const std::string name =
        prefix.empty() ? module.name : prefix + "." + module.name;
    // A module that only holds others, all numbered or a single one, is said
    // in one line with them.
    const bool only_numbers =
        !module.children.empty() &&
        std::all_of(module.children.begin(), module.children.end(),
                    [](const Module& child) {
                      return is_number(
                          child.name.substr(0, child.name.find_first_of(".,")));
                    });
    if (module.repeats == 1 && module.nodes.empty() && module.moves.empty() &&
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
    print_moves(module, depth + 1);
    for (const Module& child : module.children) {
      print_module(child, {}, depth + 1);
    }
  }

  // Moves of one module that are alike but for the names stand once.
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

  // Equal for moves that are alike.
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
      line("{}{} inside {} ({}){}", indent, phase, node.name, node.op, times);
      print_steps(node.inside, indent);
      return;
    }
    const PlannedCopy& copy = plan_.copies[move.copy];
    line("{}{} {}  {} -> {}{}", indent, phase, copy.from, to_string(copy.src),
         to_string(copy.dst), times);
    print_steps(copy.steps, indent);
    line("{}    because {}", indent, copy.reason);
  }

  template <class Steps>  // of CollectiveStep, or of what derives from it
  void print_steps(const Steps& steps, const std::string& indent) {
    for (const CollectiveStep& step : steps) {
      std::string dims;
      for (const std::int32_t dim : step.mesh_dims) {
        dims += (dims.empty() ? "" : ",") + plan_.mesh.name(dim);
      }
      line("{}    {:<14} over {:<8} {:>10} {:>10}", indent,
           to_string(step.kind), dims, bytes_text(step.bytes_per_rank),
           time_text(step.nanoseconds));
    }
  }

  const Plan& plan_;
  std::string out_;
};

}  // namespace

std::string plan_to_text(const Plan& plan) {
  return Printer(printable(plan)).print();
}

}  // namespace shardprop
