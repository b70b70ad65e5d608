// PlanDiff: what differs between two plans, and what it costs or saves.
//
//   PlanDiff diff = diff_plans(fsdp, best);
//   diff_to_text(diff);
//   // objective   21.4 ms -> 18.2 ms   -3.2 ms (-15.0 %)
//   // layers.0..31.wq.weight (x32)   S(0),R -> R,S(0)
//
// Plans are compared as they stand, by names: of one graph on one mesh or of
// others.
#pragma once

#include <shardprop/plan/plan.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardprop {

// Of what both have: "a" and "b" say it.
struct TextDifference {
  std::string what;
  std::string a;
  std::string b;
};

// A figure of both plans. Times are nanoseconds.
struct FigureDifference {
  enum class Unit : std::uint8_t { kTime, kBytes, kCount };
  std::string what;
  Unit unit = Unit::kCount;
  std::int64_t a = 0;
  std::int64_t b = 0;
};

// A value that both make, laid out otherwise.
struct LayoutDifference {
  std::string value;
  Layout a;
  Layout b;
};

struct PlanDiff {
  // Graph, mesh, topology, status, and options by name.
  std::vector<TextDifference> settings;
  // Objective, its parts, memory by kind, collectives: those that differ.
  std::vector<FigureDifference> figures;
  std::vector<LayoutDifference> inputs;   // parameters, buffers, user inputs
  std::vector<LayoutDifference> results;  // of nodes
  std::vector<std::string> only_in_a;     // inputs and results
  std::vector<std::string> only_in_b;
  // What b costs more than a; empty where one is no plan.
  std::optional<std::int64_t> nanoseconds;

  bool is_empty() const {
    return settings.empty() && figures.empty() && inputs.empty() &&
           results.empty() && only_in_a.empty() && only_in_b.empty();
  }
};

PlanDiff diff_plans(const Plan& a, const Plan& b);

// For people; names that differ in numbers only are said once.
std::string diff_to_text(const PlanDiff& diff);

// {"schema": "shardprop.diff/1", "proof": "as the files say", "same": false,
//  "objective_us": -3200.0,
//  "settings": [{"what": "mesh", "a": "dp=8", "b": "dp=4,tp=2"}],
//  "figures": [{"what": "communication_us", "a": 1.0, "b": 2.0}],
//  "inputs": [{"value": "w", "a": ["S(0)"], "b": ["R"]}], "results": [...],
//  "only_in_a": [], "only_in_b": []}
std::string diff_to_json(const PlanDiff& diff);

}  // namespace shardprop
