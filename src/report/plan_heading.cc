#include "report/plan_heading.h"

#include "base/quantities.h"
#include "report/once_a_step.h"
#include "report/plan_in_words.h"
#include "report/text_lines.h"

#include <shardprop/report/plan_sentences.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

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

// Returns a sentence on what ended the search of the named space before its goal;
// empty if nothing did.
std::string_view why_early(RanOut what) {
  switch (what) {
    case RanOut::kTime:
      return "time ran out in the search";
    case RanOut::kWork:
      return "the work limit ended the search";
    case RanOut::kInterrupted:
      return "the search was interrupted";
    case RanOut::kMemory:
      return "memory ran out in the search";
    default:
      return {};
  }
}

std::string conflict_place(const PlanConflict::Step& step) {
  return step.node.empty() ? std::string("the end") : "`" + step.node + "`";
}

// Steps of a conflict that are listed one by one. A search that ends early leaves
// all that it has not tried.
constexpr std::size_t kMostConflictSteps = 8;

void add_conflict_steps(const Plan& plan, TextLines& lines) {
  const std::string limit = plan.memory.limit_bytes
                                ? bytes_text(*plan.memory.limit_bytes)
                                : std::string("the memory");
  const auto& steps = plan.conflict.memory;
  if (steps.size() > kMostConflictSteps) {
    lines.add("  {} a rank at some of {} operators", limit,
              count_text(static_cast<std::int64_t>(steps.size())));
    return;
  }
  for (const PlanConflict::Step& step : steps) {
    lines.add("  {} a rank at {}{}", limit, conflict_place(step),
              step.bytes_short > 0
                  ? ": at least " + bytes_text(step.bytes_short) + " short"
                  : std::string());
  }
}

void add_conflict(const Plan& plan, TextLines& lines) {
  lines.add("{}: these cannot hold together{}{}", to_string(plan.status),
            plan.conflict.irreducible
                ? "; without any one of them the others can"
                : "; some may be unneeded",
            as_said(plan));
  if (const auto& recipe = plan.conflict.recipe) {
    lines.add("  --recipe {}", to_string(*recipe));
  }
  for (const Pin& pin : plan.conflict.pins)
    lines.add("  --pin '{}'", to_string(pin));
  add_conflict_steps(plan, lines);
}

// Returns two numbers of bytes, in bytes if their short texts are equal.
std::pair<std::string, std::string> distinct_bytes(std::int64_t a,
                                                   std::int64_t b) {
  if (bytes_text(a) != bytes_text(b)) return {bytes_text(a), bytes_text(b)};
  return {count_text(a) + " B", count_text(b) + " B"};
}

// Names what lowers the least memory of a training step.
void add_what_helps(const Plan& plan, TextLines& lines) {
  const bool trains = option_of(plan, "optimizer") != "none";
  if (plan.conflict.memory.empty() || !trains) return;
  bool tried_rules = false;
  for (const PlanNote& note : plan.notes) {
    if (!std::holds_alternative<RecomputeRulesNote>(note)) continue;
    lines.add("{}", note_in_words(note));
    tried_rules = true;
  }
  const bool may_run_again =
      !tried_rules && option_of(plan, "recompute") == "none";
  lines.add(
      "less is needed with {}more ranks or smaller micro-batches (--size "
      "batch=N, --accumulate M)",
      may_run_again ? "--recompute auto, " : "");
}

void add_why_no_plan(const Plan& plan, TextLines& lines) {
  const std::string status(to_string(plan.status));
  const PlanMemory& memory = plan.memory;
  if (plan.status != PlanStatus::kInfeasible) {
    lines.add("{}: {} before there was a plan{}{}", status,
              why_none(plan.ran_out),
              memory.limit_bytes
                  ? " within " + bytes_text(*memory.limit_bytes) + " a rank"
                  : std::string(),
              memory.peak_bytes > 0
                  ? "; the nearest takes " + bytes_text(memory.peak_bytes)
                  : std::string());
    return;
  }
  const bool by_memory_alone =
      plan.conflict.irreducible && !plan.conflict.recipe &&
      plan.conflict.pins.empty() && plan.conflict.memory.size() == 1 &&
      plan.conflict.memory.front().bytes_short > 0 && memory.limit_bytes;
  if (by_memory_alone) {
    const PlanConflict::Step& step = plan.conflict.memory.front();
    const auto [needed, limit] = distinct_bytes(
        *memory.limit_bytes + step.bytes_short, *memory.limit_bytes);
    lines.add("{}: a rank needs at least {} at {}, and the limit is {}{}",
              status, needed, conflict_place(step), limit, as_said(plan));
  } else {
    add_conflict(plan, lines);
  }
  add_what_helps(plan, lines);
  if (memory.peak_bytes > 0) {
    lines.add("a plan that takes {} a rank is known",
              bytes_text(memory.peak_bytes));
  }
  // A replicated operator takes more memory than it would with a definition.
  for (const UnsupportedOp& op : plan.unsupported) {
    lines.add(
        "`{}` ({}) runs replicated because it has no rule, which may be the "
        "cause",
        op.op, op.count);
  }
}

}  // namespace

std::string plan_heading(const Plan& plan) {
  TextLines lines;
  const std::string execution = option_of(plan, "execution");
  lines.add("{} ({}) on {} ({}), {}{}", plan.graph_name,
            counted(plan.graph_ops, "op"), to_string(plan.mesh),
            counted(plan.mesh.size(), "rank"), plan.topology.name,
            execution.empty() ? "" : ", " + execution);
  if (!plan.has_plan()) {
    add_why_no_plan(plan, lines);
    return std::move(lines.text);
  }
  lines.add("{}", verdict(plan));
  if (plan.status == PlanStatus::kOptimal) return std::move(lines.text);
  if (!plan.space.is_named()) {
    lines.add("searched and bounded: {}; {}", space_in_words(plan),
              why_no_more(plan.ran_out));
  } else if (const std::string_view why = why_early(plan.ran_out);
             !why.empty()) {
    lines.add("{}", why);
  }
  return std::move(lines.text);
}

}  // namespace shardprop
