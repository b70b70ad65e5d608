// The options that all subcommands share that make a plan.
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

// Errors: kInvalidArgument when it is not given, and those of
// DeviceMesh::parse(), at the flag.
Result<DeviceMesh> mesh_option(const Arguments& arguments);

// Where the limit of time ends, reading included; none where a work limit alone
// is given.
Deadline deadline_option(const Arguments& arguments);

// That of --topology, read until the deadline if it comes through a fifo. Errors: those of load_topology(), at the flag or in the
// file.
Result<Topology> topology_option(const Arguments& arguments,
                                 Deadline deadline = std::nullopt);

// Errors: kInvalidArgument, those of Pin::parse().
Result<PlanOptions> plan_options(const Arguments& arguments,
                                 const Topology& topology);

}  // namespace shardprop::cli
