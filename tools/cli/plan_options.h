// Options that are common to all subcommands that make a plan.
#pragma once

#include "cli/command.h"
#include "io/input_file.h"

#include <shardprop/mesh/device_mesh.h>
#include <shardprop/mesh/topology.h>
#include <shardprop/plan/plan_options.h>

#include <vector>

namespace shardprop::cli {

// GRAPH, --mesh, --topology, --memory, --optimizer, --overlap, --pin, the
// limits and --strict.
std::vector<Option> planning_options();

// Reads --mesh. Errors: kInvalidArgument if it is not given, and those of
// DeviceMesh::parse(), at the flag.
Result<DeviceMesh> mesh_option(const Arguments& arguments);

// Returns the end of the time limit, which includes reading. There is none if
// only a work limit is given.
Deadline deadline_option(const Arguments& arguments);

// Reads the topology of --topology; the deadline bounds the wait for a fifo.
// Errors: those of load_topology(), at the flag or in the file.
Result<Topology> topology_option(const Arguments& arguments,
                                 Deadline deadline = std::nullopt);

// Reads the options of a plan. Errors: kInvalidArgument, those of Pin::parse().
Result<PlanOptions> plan_options(const Arguments& arguments,
                                 const Topology& topology);

}  // namespace shardprop::cli
