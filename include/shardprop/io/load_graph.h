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
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {

// `OtherExport` is a further export of a program, at other sizes.
struct OtherExport {
  std::string path;  // of its file, or a name for errors
  // The content of the file. If it is null, the file at `path` is read.
  std::shared_ptr<const std::string> bytes;
};

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
  // Sizes that replace those of the export: {"s72", 128} for a symbol, {"batch",
  // 64} for dim 0 of the user's inputs, {"seq", 8192} for dim 1, {"image.2", 224}
  // for dim 2 of the input `image`. If these dims have fixed sizes, the numbers
  // of the program follow them as `other_exports` show. Without other exports,
  // a size may divide no number that belongs to the model.
  std::map<std::string, std::int64_t> sizes;
  // The same program, exported at other sizes.
  std::vector<OtherExport> other_exports;
  // Time until which a pipe or fifo is read; unlimited if empty.
  std::optional<std::chrono::steady_clock::time_point> deadline;
};

// Errors: kStopped (the deadline passed), kInvalidArgument (a bound or size
// that the program does not have, or that is out of range or violates a condition
// of the program; a number that follows the sizes in an unknown way; another
// export that is another program), SP04xx with a place in the file, SP05xx with
// a node, kTensorMeta.
Result<Graph> load_graph(const std::string& path, const OpLibrary& library,
                         const LoadOptions& options = {});

// Reads a program from memory; `name` becomes the graph's name.
Result<Graph> read_graph(std::string_view bytes, std::string name,
                         const OpLibrary& library,
                         const LoadOptions& options = {});

}  // namespace shardprop
