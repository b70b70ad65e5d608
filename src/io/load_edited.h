// Reads an exported program that is changed, or from which more is read, before
// it becomes a graph.
#pragma once

#include <shardprop/io/load_graph.h>

#include "io/pt2_program.h"

#include <functional>
#include <string>

namespace shardprop {

using ProgramEdit = std::function<void(pt2::Program& program)>;

// Reads the file as load_graph() does. `edit` may be empty. Errors: those of
// load_graph().
Result<Graph> load_edited(const std::string& path, const OpLibrary& library,
                          const LoadOptions& options, const ProgramEdit& edit);

}  // namespace shardprop
