// `load_graph` reads exported programs: torch.export's .pt2 in both archive
// layouts, the program's bare JSON, and its gzip. The first bytes of a file
// decide its format, not its name.
//
//   const auto library = OpLibrary::standard();
//   Result<Graph> graph = load_graph("llama3_8b_train.json.gz", *library);
//   graph->name();   // "llama3_8b_train"
//
// Weights are not read. Memory use is at most 64 MiB plus ten times the size of
// the JSON.
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

// `LoadOptions` are limits and symbolic sizes for reading a program.
struct LoadOptions {
  // Maximum size of the program's JSON after decompression.
  std::int64_t max_input_bytes = std::int64_t{2} << 30;
  // Name of the program if an archive has several; empty: the only one, or the
  // one named `model`.
  std::string program;
  // Assumed sizes for symbols that depend on data, such as "u0". Without an
  // entry the size is the program's upper bound, or 1024 if it has no bound.
  // The graph's notes list these sizes.
  std::map<std::string, std::int64_t> bounds;
  // Symbolic sizes that replace those of the export: {"s72", 128}. `batch` and
  // `seq` name the symbols of dims 0 and 1 of the user's inputs, if these are
  // symbolic.
  std::map<std::string, std::int64_t> sizes;
  // Time until which a pipe or fifo is read; unlimited if empty.
  std::optional<std::chrono::steady_clock::time_point> deadline;
};

// Errors: kStopped (the deadline passed), kInvalidArgument (a bound or size
// that the program does not have, or that is out of range), SP04xx with a place
// in the file, SP05xx with a node, kTensorMeta.
Result<Graph> load_graph(const std::string& path, const OpLibrary& library,
                         const LoadOptions& options = {});

// Reads a program from memory; `name` becomes the graph's name.
Result<Graph> read_graph(std::string_view bytes, std::string name,
                         const OpLibrary& library,
                         const LoadOptions& options = {});

}  // namespace shardprop
