#include <shardprop/report/plan_text.h>

#include "base/name_folding.h"
#include "base/quantities.h"
#include "report/demanded_shardings.h"
#include "report/module_text.h"
#include "report/once_a_step.h"
#include "report/plan_heading.h"
#include "report/plan_in_words.h"
#include "report/plan_totals.h"
#include "report/printable_plan.h"
#include "report/text_lines.h"
#include "report/wrapped_text.h"

#include <shardprop/report/plan_sentences.h>
#include <shardprop/report/procedure_text.h>

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

class Printer {
 public:
  Printer(const Plan& plan, const TextOptions& options)
      : plan_(plan), options_(options) {}

  std::string print() {
    out_.text += plan_heading(plan_);
    if (plan_.has_plan()) {
      print_words();
      out_.text += "\n" + plan_totals(plan_);
      print_recipes();
      print_values();
    }
    print_remarks();
    if (plan_.has_plan()) {
      ModuleText modules(plan_, options_.detail);
      if (!options_.detail) out_.text += modules.expensive_moves();
      out_.text += modules.modules();
      left_out_ = left_out_ || modules.is_shortened();
    }
    if (left_out_) line("\n--detail shows the rest");
    if (options_.statistics) print_procedures();
    return std::move(out_.text);
  }

 private:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    out_.add(format, std::forward<Args>(args)...);
  }

  // The sentences are wrapped to the width of a terminal.
  void print_words() {
    const std::vector<std::string> sentences = plan_in_words(plan_);
    if (!sentences.empty()) line("");
    for (const std::string& sentence : sentences) {
      out_.text += wrapped(sentence);
    }
    for (const PlanNote& note : plan_.notes)
      out_.text += wrapped("note: " + note_in_words(note));
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
    for (const PlannedValue& value : plan_.values)
      all += full_bytes(value.tensor);
    double own = 0;
    for (const std::size_t member : row.members) {
      const PlannedValue& value = plan_.values[member];
      if (is_updated(value.name)) own += full_bytes(value.tensor);
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

  // "bf16[8,2048] S(0),R"
  static std::string described(const PlannedTensor& tensor) {
    return fmt::format("{}[{}] {}", to_string(tensor.dtype),
                       fmt::join(tensor.shape, ","), to_string(tensor.layout));
  }

  void print_procedures() {
    line("\nsearch procedures; each includes those that it calls");
    out_.text += procedures_to_text(plan_.procedures, CostUnit::kNanoseconds);
    if (plan_.demanded_shardings.empty()) return;
    out_.text += "\n" + demanded_shardings_text(plan_.demanded_shardings);
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
               ? fmt::format(" of {} that it matches; its placements do not "
                             "fit the others",
                             count_text(pin.matched))
               : std::string());
    }
  }

  // Without details.
  static constexpr std::size_t kMostRows = 16;

  const Plan& plan_;
  const TextOptions& options_;
  TextLines out_;
  bool left_out_ = false;
};

}  // namespace

std::string plan_to_text(const Plan& plan, const TextOptions& options) {
  return Printer(printable(plan), options).print();
}

}  // namespace shardprop
