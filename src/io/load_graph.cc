#include <shardprop/io/load_graph.h>

#include "base/guard.h"
#include "base/try.h"
#include "io/inflate.h"
#include "io/input_file.h"
#include "io/load_edited.h"
#include "io/pt2_archive.h"
#include "io/pt2_import.h"
#include "io/pt2_program.h"
#include "io/pt2_rebind.h"

#include <deque>
#include <filesystem>
#include <set>
#include <utility>
#include <variant>
#include <vector>

namespace shardprop {
namespace {

// Returns the JSON of the bytes of a file.
Result<std::string> json_in(std::string bytes, const LoadOptions& options) {
  if (pt2::is_zip(bytes)) {
    SP_ASSIGN(
        pt2::ArchivedProgram archived,
        pt2::read_archive(bytes, options.program, options.max_input_bytes));
    return std::move(archived.json);
  }
  if (is_gzip(bytes)) return inflate_gzip(bytes, options.max_input_bytes);
  return bytes;
}

Result<std::string> json_of(const OtherExport& other,
                            const LoadOptions& options) {
  if (other.bytes != nullptr) return json_in(*other.bytes, options);
  SP_ASSIGN(InputFile file, InputFile::open(other.path, options.deadline));
  if (file.is_plain()) {
    std::string start(2, '\0');
    SP_ASSIGN(const std::size_t got, file.read(start.data(), start.size()));
    if (pt2::is_zip(std::string_view(start).substr(0, got))) {
      SP_ASSIGN(pt2::ArchivedProgram archived,
                pt2::read_archive_file(other.path, options.program,
                                       options.max_input_bytes));
      return std::move(archived.json);
    }
    SP_ASSIGN(file, InputFile::open(other.path));
  }
  SP_ASSIGN(std::string bytes, file.read_all(options.max_input_bytes));
  return json_in(std::move(bytes), options);
}

Result<pt2::Program> parsed(std::string_view json) {
  if (json.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return fail(ErrorCode::kNoProgram, "the file is empty",
                "give a program that torch.export.save() wrote");
  }
  return pt2::parse_program(json);
}

// `Rebound` is the program at other sizes, and the texts to which it refers.
struct Rebound {
  std::vector<std::string> texts;
  std::deque<pt2::Program> others;  // a vector would copy them as it grows
  pt2::Program program;
  pt2::GivenSizes given;  // without the sizes that are set
};

Result<void> read_others(const LoadOptions& options, Rebound& rebound) {
  rebound.texts.reserve(options.other_exports.size());
  for (const OtherExport& other : options.other_exports) {
    const auto at_other = [&](Error error) {
      if (error.location == other.path) return error;
      return std::move(error).at(other.path);
    };
    auto json = json_of(other, options);
    if (!json) return fail(at_other(std::move(json).error()));
    rebound.texts.push_back(*std::move(json));
    auto program = parsed(rebound.texts.back());
    if (!program) return fail(at_other(std::move(program).error()));
    rebound.others.push_back(*std::move(program));
  }
  return {};
}

// Returns the nodes whose results the graph has as the file writes them.
std::set<std::string> as_written(const Graph& graph) {
  std::set<std::string> nodes;
  for (const ReadingNote& note : graph.notes()) {
    const auto* written = std::get_if<AsWrittenNote>(&note);
    if (written != nullptr) nodes.insert(written->node);
  }
  return nodes;
}

std::string sizes_text(const LoadOptions& options) {
  std::string text;
  for (const auto& [name, size] : options.sizes) {
    text += (text.empty() ? "" : ",") + name + '=' + std::to_string(size);
  }
  return text;
}

Error not_at_these_sizes(Error why, const LoadOptions& options) {
  why.code = ErrorCode::kInvalidArgument;
  why.message = "the program does not hold at " + sizes_text(options) + ": " +
                why.message;
  why.help = options.other_exports.empty()
                 ? "give an export at other sizes too: --other-size GRAPH2"
                 : "export the program at these sizes";
  return why;
}

// Operators of the graph at the exported sizes follow their rules. At the wanted
// sizes the same operators must.
Result<void> check_followed(const Graph& exported, const Graph& graph,
                            const LoadOptions& options) {
  const std::set<std::string> before = as_written(exported);
  for (const ReadingNote& note : graph.notes()) {
    const auto* written = std::get_if<AsWrittenNote>(&note);
    if (written == nullptr || before.contains(written->node)) continue;
    return fail(not_at_these_sizes({ErrorCode::kInvalidArgument,
                                    written->findings.front(),
                                    "node `" + written->node + '`',
                                    {},
                                    {}},
                                   options));
  }
  return {};
}

Result<Graph> import(std::string_view json, const pt2::StoredTensors& stored,
                     std::string name, const OpLibrary& library,
                     const LoadOptions& options, const ProgramEdit& edit) {
  SP_ASSIGN(pt2::Program program, parsed(json));
  if (edit) edit(program);
  const pt2::GivenSizes given{options.bounds, options.sizes};
  if ((options.sizes.empty() && options.other_exports.empty()) ||
      pt2::has_symbolic_inputs(program)) {
    if (!options.other_exports.empty()) {
      return fail(Error{ErrorCode::kInvalidArgument,
                        "the program has symbolic sizes",
                        "other size " + options.other_exports[0].path,
                        {},
                        "leave the other export out"});
    }
    return pt2::to_graph(std::move(program), stored, std::move(name), library,
                         given);
  }
  if (options.sizes.empty()) {
    return fail(Error{ErrorCode::kInvalidArgument,
                      "another export has no use without a size",
                      "other size " + options.other_exports[0].path,
                      {},
                      "set a size, as in --size batch=64"});
  }
  Rebound rebound{{}, {}, std::move(program), given};
  SP_CHECK(read_others(options, rebound));
  std::vector<const pt2::Program*> others;
  for (const pt2::Program& other : rebound.others) others.push_back(&other);
  SP_CHECK(
      pt2::rebind_sizes(rebound.program, others, library, rebound.given.sizes));
  rebound.others.clear();
  SP_ASSIGN(program, parsed(json));
  if (edit) edit(program);
  SP_ASSIGN(const Graph exported, pt2::to_graph(std::move(program), stored,
                                                name, library, rebound.given));
  auto graph = pt2::to_graph(std::move(rebound.program), stored,
                             std::move(name), library, rebound.given);
  if (!graph) {
    return fail(not_at_these_sizes(std::move(graph).error(), options));
  }
  SP_CHECK(check_followed(exported, *graph, options));
  return graph;
}

// "llama3_8b_train" of "graphs/llama3_8b_train.json.gz".
std::string graph_name(const std::string& path) {
  std::string name = std::filesystem::path(path).filename().string();
  for (const char* ending : {".gz", ".json", ".pt2"}) {
    if (name.size() > std::string_view(ending).size() &&
        name.ends_with(ending)) {
      name.resize(name.size() - std::string_view(ending).size());
    }
  }
  return name;
}

Result<Graph> read(std::string_view bytes, std::string name,
                   const OpLibrary& library, const LoadOptions& options,
                   const ProgramEdit& edit) {
  if (pt2::is_zip(bytes)) {
    SP_ASSIGN(
        const pt2::ArchivedProgram archived,
        pt2::read_archive(bytes, options.program, options.max_input_bytes));
    return import(archived.json, archived.stored, std::move(name), library,
                  options, edit);
  }
  if (!options.program.empty()) {
    return fail(
        ErrorCode::kNoProgram,
        "the file is not an archive: it holds one program, without a name",
        "leave out the name `" + options.program + "`");
  }
  if (is_gzip(bytes)) {
    SP_ASSIGN(const std::string json,
              inflate_gzip(bytes, options.max_input_bytes));
    return import(json, {}, std::move(name), library, options, edit);
  }
  if (static_cast<std::int64_t>(bytes.size()) > options.max_input_bytes) {
    return fail(too_large(options.max_input_bytes));
  }
  return import(bytes, {}, std::move(name), library, options, edit);
}

Result<Graph> load(const std::string& path, const OpLibrary& library,
                   const LoadOptions& options, const ProgramEdit& edit) {
  SP_ASSIGN(InputFile file, InputFile::open(path, options.deadline));
  const std::string name = graph_name(path);
  // If the file is a zip archive, only its program is read, so the archive is
  // opened again by path. A pipe cannot be opened again.
  if (file.is_plain()) {
    std::string start(2, '\0');
    SP_ASSIGN(const std::size_t got, file.read(start.data(), start.size()));
    if (pt2::is_zip(std::string_view(start).substr(0, got))) {
      SP_ASSIGN(const pt2::ArchivedProgram archived,
                pt2::read_archive_file(path, options.program,
                                       options.max_input_bytes));
      return import(archived.json, archived.stored, name, library, options,
                    edit);
    }
    SP_ASSIGN(file, InputFile::open(path));
  }
  // JSON and gzipped JSON are never larger than the limit on the JSON.
  SP_ASSIGN(const std::string bytes, file.read_all(options.max_input_bytes));
  return read(bytes, name, library, options, edit);
}

}  // namespace

Result<Graph> read_graph(std::string_view bytes, std::string name,
                         const OpLibrary& library, const LoadOptions& options) {
  return guarded(
      [&] { return read(bytes, std::move(name), library, options, {}); });
}

Result<Graph> load_graph(const std::string& path, const OpLibrary& library,
                         const LoadOptions& options) {
  return load_edited(path, library, options, {});
}

Result<Graph> load_edited(const std::string& path, const OpLibrary& library,
                          const LoadOptions& options, const ProgramEdit& edit) {
  auto graph = guarded([&] { return load(path, library, options, edit); });
  if (graph) return graph;
  // An error of the reader has a location already.
  Error error = std::move(graph).error();
  if (error.help.empty()) {
    error.help = "write it again: torch.export.save, or tools/export_model.py";
  }
  if (error.location == path) return fail(std::move(error));
  return fail(std::move(error).at(path));
}

}  // namespace shardprop
