// `PlanDiff` is the set of differences between two plans, with their costs.
//
//   PlanDiff diff = diff_plans(fsdp, best);
//   diff_to_text(diff);
//   // objective   21.4 ms -> 18.2 ms   -3.2 ms (-15.0 %)
//   // layers.0..31.wq.weight (x32)   S(0),R -> R,S(0)
//
// Plans are compared by names. They may be of one graph on one mesh, or of
// different graphs or meshes.
#pragma once

#include <shardprop/plan/plan.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardprop {

// `TextDifference` is a property of both plans whose text differs: `a` and `b`.
struct TextDifference {
  std::string what;
  std::string a;
  std::string b;
};

// `FigureDifference` is a figure of both plans. Times are nanoseconds.
struct FigureDifference {
  enum class Unit : std::uint8_t { kTime, kBytes, kCount };
  std::string what;
  Unit unit = Unit::kCount;
  std::int64_t a = 0;
  std::int64_t b = 0;
};

// `LayoutDifference` is a value that both plans produce in different layouts.
struct LayoutDifference {
  std::string value;
  Layout a;
  Layout b;
};

struct PlanDiff {
  // Differences in graph, mesh, topology, status, and options by name.
  std::vector<TextDifference> settings;
  // Figures that differ: objective, its parts, memory by kind, collectives.
  std::vector<FigureDifference> figures;
  std::vector<LayoutDifference> inputs;   // parameters, buffers, user inputs
  std::vector<LayoutDifference> results;  // of nodes
  std::vector<std::string> only_in_a;     // inputs and results
  std::vector<std::string> only_in_b;
  // Cost of b minus cost of a; empty if one of them has no plan.
  std::optional<std::int64_t> nanoseconds;

  bool is_empty() const {
    return settings.empty() && figures.empty() && inputs.empty() &&
           results.empty() && only_in_a.empty() && only_in_b.empty();
  }
};

// Compares two plans by the names of their values and nodes.
PlanDiff diff_plans(const Plan& a, const Plan& b);

// Prints the differences for users; names that differ only in numbers share a
// line.
std::string diff_to_text(const PlanDiff& diff);

// Prints the differences as JSON:
//
// {"schema": "shardprop.diff/1", "proof": "as the files say", "same": false,
//  "objective_us": -3200.0,
//  "settings": [{"what": "mesh", "a": "dp=8", "b": "dp=4,tp=2"}],
//  "figures": [{"what": "communication_us", "a": 1.0, "b": 2.0}],
//  "inputs": [{"value": "w", "a": ["S(0)"], "b": ["R"]}], "results": [...],
//  "only_in_a": [], "only_in_b": []}
std::string diff_to_json(const PlanDiff& diff);

}  // namespace shardprop
