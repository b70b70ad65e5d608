// Options that are common to all subcommands that make a plan.
#pragma once

#include "cli/command.h"

#include <shardprop/mesh/device_mesh.h>
#include <shardprop/mesh/topology.h>
#include <shardprop/request/plan_request.h>

#include <chrono>
#include <optional>
#include <vector>

namespace shardprop::cli {

using Deadline = std::optional<std::chrono::steady_clock::time_point>;

// GRAPH, --mesh, --topology, --memory, --optimizer, --overlap, --pin, the
// limits, --start-from and --strict. The help names the limit of a search for
// which the user gives none.
std::vector<Option> planning_options(SearchLimit limit = SearchLimit::kTime);

// Reads --mesh. Errors: kInvalidArgument if it is not given, and those of
// planned_mesh(), at the flag.
Result<DeviceMesh> mesh_option(const Arguments& arguments);

// Returns the end of the time limit, which includes reading; empty if the time is
// unlimited.
Deadline deadline_option(const Arguments& arguments,
                         SearchLimit limit = SearchLimit::kTime);

// Reads the topology of --topology; the deadline bounds the wait for a fifo.
// Errors: those of load_topology(), at the flag or in the file.
Result<Topology> topology_option(const Arguments& arguments,
                                 Deadline deadline = std::nullopt);

// Reads the options of a plan. Errors: those of shardprop::plan_options(), at the
// flag.
Result<PlanOptions> plan_options(const Arguments& arguments,
                                 const Topology& topology,
                                 SearchLimit limit = SearchLimit::kTime);

}  // namespace shardprop::cli
