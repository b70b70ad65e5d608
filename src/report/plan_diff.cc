#include <shardprop/report/plan_diff.h>

#include "base/index.h"
#include "base/name_folding.h"
#include "base/printable.h"
#include "base/quantities.h"
#include "io/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>

namespace shardprop {
namespace {

class Comparison {
 public:
  Comparison(const Plan& a, const Plan& b) : a_(a), b_(b) {}

  PlanDiff run() && {
    compare_settings();
    compare_figures();
    diff_.inputs = compare_layouts(inputs_of(a_), inputs_of(b_));
    diff_.results = compare_layouts(results_of(a_), results_of(b_));
    if (a_.has_plan() && b_.has_plan()) {
      diff_.nanoseconds = *b_.objective_nanoseconds - *a_.objective_nanoseconds;
    }
    return std::move(diff_);
  }

 private:
  // Names and layouts, in the order of the plan.
  using Layouts = std::vector<std::pair<std::string, Layout>>;

  static Layouts inputs_of(const Plan& plan) {
    Layouts out;
    for (const PlannedValue& value : plan.values) {
      out.emplace_back(value.name, value.tensor.layout);
    }
    return out;
  }
  static Layouts results_of(const Plan& plan) {
    Layouts out;
    for (const PlannedNode& node : plan.nodes) {
      for (const PlannedResult& result : node.outputs) {
        out.emplace_back(result.name, result.tensor.layout);
      }
    }
    return out;
  }

  void text(std::string what, std::string a, std::string b) {
    if (a == b) return;
    diff_.settings.push_back({std::move(what), std::move(a), std::move(b)});
  }

  void compare_settings() {
    text("graph", a_.graph_name + " " + a_.graph_hash,
         b_.graph_name + " " + b_.graph_hash);
    text("mesh", to_string(a_.mesh), to_string(b_.mesh));
    text("topology", a_.topology.name, b_.topology.name);
    text("status", std::string(solver::to_string(a_.status)),
         std::string(solver::to_string(b_.status)));
    // A repeated option, such as a pin, is compared as a list.
    const std::map<std::string, std::string> ours = options_of(a_);
    std::map<std::string, std::string> theirs = options_of(b_);
    for (const auto& [name, value] : ours) {
      text(name, value, std::exchange(theirs[name], {}));
      theirs.erase(name);
    }
    for (const auto& [name, value] : theirs) text(name, {}, value);
  }

  static std::map<std::string, std::string> options_of(const Plan& plan) {
    std::map<std::string, std::string> out;
    for (const auto& [name, value] : plan.options) {
      std::string& all = out[name];
      all += (all.empty() ? "" : " ") + value;
    }
    return out;
  }

  void figure(std::string what, FigureDifference::Unit unit, std::int64_t a,
              std::int64_t b) {
    if (a != b) diff_.figures.push_back({std::move(what), unit, a, b});
  }

  void compare_figures() {
    if (!a_.has_plan() || !b_.has_plan()) return;
    using Unit = FigureDifference::Unit;
    const auto time = [&](const char* what,
                          std::int64_t PlanSummary::* member) {
      figure(what, Unit::kTime, a_.summary.*member, b_.summary.*member);
    };
    const auto memory = [&](const char* what,
                            std::int64_t PlanMemory::* member) {
      figure(what, Unit::kBytes, a_.memory.*member, b_.memory.*member);
    };
    figure("objective", Unit::kTime, *a_.objective_nanoseconds,
           *b_.objective_nanoseconds);
    time("compute", &PlanSummary::compute_nanoseconds);
    time("communication", &PlanSummary::communication_nanoseconds);
    time("hidden", &PlanSummary::overlapped_nanoseconds);
    figure("optimizer", Unit::kTime, a_.optimizer_nanoseconds,
           b_.optimizer_nanoseconds);
    figure("sent", Unit::kBytes, a_.summary.bytes_per_rank,
           b_.summary.bytes_per_rank);
    memory("peak", &PlanMemory::peak_bytes);
    memory("parameters", &PlanMemory::parameter_bytes);
    memory("optimizer_state", &PlanMemory::optimizer_bytes);
    memory("gradients", &PlanMemory::gradient_bytes);
    memory("activations", &PlanMemory::activation_bytes);
    memory("gathered", &PlanMemory::gathered_bytes);
    memory("buffers", &PlanMemory::buffer_bytes);
    for (const CollectiveKind kind : kAllCollectiveKinds) {
      const auto k = index(kind);
      figure(std::string(to_string(kind)), Unit::kCount,
             a_.summary.collectives[k], b_.summary.collectives[k]);
    }
  }

  std::vector<LayoutDifference> compare_layouts(const Layouts& ours,
                                                const Layouts& theirs) {
    std::vector<LayoutDifference> out;
    std::map<std::string_view, const Layout*> by_name;
    for (const auto& [name, layout] : theirs) by_name.emplace(name, &layout);
    for (const auto& [name, layout] : ours) {
      const auto found = by_name.find(name);
      if (found == by_name.end()) {
        diff_.only_in_a.push_back(name);
        continue;
      }
      if (!(layout == *found->second)) {
        out.push_back({name, layout, *found->second});
      }
      by_name.erase(found);
    }
    for (const auto& [name, layout] : theirs) {
      if (by_name.contains(name)) diff_.only_in_b.push_back(name);
    }
    return out;
  }

  const Plan& a_;
  const Plan& b_;
  PlanDiff diff_;
};

// --- text ---

// Returns a time that is not zero without rounding it to zero: "20 ns".
std::string exact_time_text(std::int64_t nanoseconds) {
  constexpr std::int64_t kRoundedToZero = 50;
  if (nanoseconds == 0 || nanoseconds >= kRoundedToZero) {
    return time_text(nanoseconds);
  }
  return std::to_string(nanoseconds) + " ns";
}

// Returns " (+25.0 %)"; empty if the share would be printed as zero.
std::string share_text(std::int64_t more, std::int64_t of) {
  if (of == 0) return {};
  const double percent =
      100.0 * static_cast<double>(more) / static_cast<double>(of);
  return std::abs(percent) < 0.05 ? std::string()
                                  : fmt::format(" ({:+.1f} %)", percent);
}

std::string amount(const FigureDifference& one, std::int64_t value) {
  const std::string sign = value < 0 ? "-" : "";
  const std::int64_t size = value < 0 ? -value : value;
  switch (one.unit) {
    case FigureDifference::Unit::kTime:
      return sign + exact_time_text(size);
    case FigureDifference::Unit::kBytes:
      return sign + bytes_text(size);
    case FigureDifference::Unit::kCount:
      break;
  }
  return std::to_string(value);
}

std::string figure_line(const FigureDifference& one) {
  const std::int64_t more = one.b - one.a;
  std::string line = fmt::format("  {:<16} {:>12} -> {:<12} {}{}", one.what,
                                 amount(one, one.a), amount(one, one.b),
                                 more > 0 ? "+" : "", amount(one, more));
  return line + share_text(more, one.a) + "\n";
}

constexpr std::size_t kMostLines = 40;

std::string layout_lines(const char* title,
                         const std::vector<LayoutDifference>& all) {
  if (all.empty()) return {};
  std::vector<std::string> names;
  std::vector<std::string> groups;
  for (const LayoutDifference& one : all) {
    names.push_back(one.value);
    groups.push_back(to_string(one.a) + " -> " + to_string(one.b));
  }
  std::string out =
      fmt::format("{} with another layout: {}\n", title, all.size());
  const std::vector<FoldedName> folded = fold_names(names, groups);
  for (std::size_t i = 0; i < std::min(folded.size(), kMostLines); ++i) {
    out += fmt::format("  {}   {}\n", printable(folded[i].text),
                       groups[folded[i].members.front()]);
  }
  if (folded.size() > kMostLines) {
    out += fmt::format("  and {} more: --format json has all\n",
                       counted(folded.size() - kMostLines, "line"));
  }
  return out;
}

std::string only_line(const char* which,
                      const std::vector<std::string>& names) {
  if (names.empty()) return {};
  return fmt::format(
      "only in the {} plan: {}{}\n", which, printable(names.front()),
      names.size() > 1 ? fmt::format(" and {} more", names.size() - 1) : "");
}

// --- JSON ---

JsonText& figure_member(JsonText& json, std::string_view name,
                        const FigureDifference& one, std::int64_t value) {
  if (one.unit != FigureDifference::Unit::kTime) {
    return json.member(name, value);
  }
  return json.member(name, static_cast<double>(value) / 1000);
}

std::string key_of(const FigureDifference& one) {
  switch (one.unit) {
    case FigureDifference::Unit::kTime:
      return one.what + "_us";
    case FigureDifference::Unit::kBytes:
      return one.what + "_bytes";
    case FigureDifference::Unit::kCount:
      break;
  }
  return one.what;
}

void layouts_member(JsonText& json, std::string_view name,
                    const std::vector<LayoutDifference>& all) {
  json.key(name).list(all, [&](const LayoutDifference& one) {
    json.open('{').member("value", one.value).member("a", to_strings(one.a));
    json.member("b", to_strings(one.b)).close('}');
  });
}

}  // namespace

PlanDiff diff_plans(const Plan& a, const Plan& b) {
  return Comparison(a, b).run();
}

std::string diff_to_text(const PlanDiff& diff) {
  if (diff.is_empty()) return "no difference\n";
  std::string out;
  if (diff.nanoseconds) {
    const std::int64_t more = *diff.nanoseconds;
    out += more == 0 ? "both cost the same\n"
                     : fmt::format("the second plan costs {} {}\n",
                                   exact_time_text(more < 0 ? -more : more),
                                   more < 0 ? "less" : "more");
  }
  for (const TextDifference& one : diff.settings) {
    const auto or_none = [](const std::string& text) {
      return text.empty() ? std::string("(none)") : printable(text);
    };
    out += fmt::format("  {:<16} {} -> {}\n", printable(one.what),
                       or_none(one.a), or_none(one.b));
  }
  for (const FigureDifference& one : diff.figures) out += figure_line(one);
  out += layout_lines("inputs", diff.inputs);
  out += layout_lines("results", diff.results);
  out += only_line("first", diff.only_in_a);
  out += only_line("second", diff.only_in_b);
  return out + "all of it as the files say; explain --plan judges one\n";
}

std::string diff_to_json(const PlanDiff& diff) {
  JsonText json(JsonText::Form::kIndented);
  json.open('{').member("schema", "shardprop.diff/1");
  json.member("proof", "as the files say");
  json.member("same", diff.is_empty()).key("objective_us");
  if (diff.nanoseconds) {
    json.real(static_cast<double>(*diff.nanoseconds) / 1000);
  } else {
    json.null();
  }
  json.key("settings").list(diff.settings, [&](const TextDifference& one) {
    json.open('{').member("what", one.what).member("a", one.a);
    json.member("b", one.b).close('}');
  });
  json.key("figures").list(diff.figures, [&](const FigureDifference& one) {
    json.open('{').member("what", key_of(one));
    figure_member(json, "a", one, one.a);
    figure_member(json, "b", one, one.b).close('}');
  });
  layouts_member(json, "inputs", diff.inputs);
  layouts_member(json, "results", diff.results);
  json.member("only_in_a", diff.only_in_a);
  json.member("only_in_b", diff.only_in_b).close('}');
  return json.take() + "\n";
}

}  // namespace shardprop
