// This header takes a saved plan instead of making one: it reads the file, checks
// that the plan belongs to the graph and the mesh, and computes its figures again.
//
//   Plan saved = load_plan("plan.json", "--plan plan.json").value();
//   GraphReading reading;
//   Result<void> added = add_reading_of(saved, "--plan plan.json", reading);
//   LoadedGraph loaded = load_graph("model.pt2", reading).value();
//   Result<JudgedPlan> taken = take_plan(saved, {.place = "--plan plan.json"},
//                                        *loaded.graph, *loaded.library);
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/graph/graph.h>
#include <shardprop/mesh/device_mesh.h>
#include <shardprop/ops/op_library.h>
#include <shardprop/plan/judge_plan.h>
#include <shardprop/plan/plan.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace shardprop {

// Reads a plan of report/plan_json.h, gzipped or not. `place` names the file in
// errors. At most `max_input_bytes` are read after decompression, and a fifo is
// read until the deadline. Errors: kPlanFile, kPlanSchemaVersion, kStopped.
Result<Plan> load_plan(
    const std::string& path, const std::string& place,
    std::int64_t max_input_bytes = std::int64_t{2} << 30,
    std::optional<std::chrono::steady_clock::time_point> deadline = {});

// `SavedPlanUse` states how a command uses a saved plan.
struct SavedPlanUse {
  std::string place;  // of errors: "--plan a.json"
  // The mesh that the plan must be for; any mesh if empty.
  std::optional<DeviceMesh> mesh;
  // If true, the figures of the file are computed again (judge_plan()). If false,
  // they stay as written.
  bool is_judged = true;
  // If true, an operator without a strategy is an error.
  bool strict = false;
};

// Returns the plan for use with this graph. The operators without a strategy are
// found in the graph; the list of the file is not trusted. Errors: kPlanOtherGraph
// (another graph or mesh), kNoStrategy (strict), those of judge_plan().
Result<JudgedPlan> take_plan(Plan saved, const SavedPlanUse& use,
                             const Graph& graph, const OpLibrary& library);

}  // namespace shardprop
