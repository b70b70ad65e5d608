// Reads exported programs: torch.export's .pt2 in both archive layouts, the
// program's bare JSON, and its gzip. Which of them a file is, its first bytes
// say, not its name.
//
//   const auto library = OpLibrary::standard();
//   Result<Graph> graph = load_graph("llama3_8b_train.json.gz", *library);
//   graph->name();   // "llama3_8b_train"
//
// Weights are not read. Memory stays below 64 MiB plus ten times the JSON.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/graph/graph.h>
#include <shardprop/ops/op_library.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace shardprop {

struct LoadOptions {
  // Of the program's JSON, after decompression.
  std::int64_t max_input_bytes = std::int64_t{2} << 30;
  // Which program of an archive that holds several; empty: the only one, or
  // the one named `model`.
  std::string program;
  // How large sizes that depend on data are taken to be ("u0"). One that is not
  // named is as large as the program says it can get, else 1024; the graph's
  // notes say which.
  std::map<std::string, std::int64_t> bounds;
  // Symbolic sizes that replace those of the export: {"s72", 128}. `batch` and
  // `seq` name the symbol of dims 0 and 1 of the user's inputs, if it is one.
  std::map<std::string, std::int64_t> sizes;
  // How long a pipe or fifo is waited for; without end where there is none.
  std::optional<std::chrono::steady_clock::time_point> deadline;
};

// Errors: kStopped (the deadline came first), kInvalidArgument (a bound or size
// that the program does not have, or that is out of its range),
// SP04xx with a place in the file, SP05xx with a node, kTensorMeta.
Result<Graph> load_graph(const std::string& path, const OpLibrary& library,
                         const LoadOptions& options = {});

// The same from memory; `name` becomes the graph's.
Result<Graph> read_graph(std::string_view bytes, std::string name,
                         const OpLibrary& library,
                         const LoadOptions& options = {});

}  // namespace shardprop
