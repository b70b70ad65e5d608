#include <shardprop/io/load_graph.h>

#include "base/guard.h"
#include "base/try.h"
#include "io/inflate.h"
#include "io/input_file.h"
#include "io/load_edited.h"
#include "io/pt2_archive.h"
#include "io/pt2_import.h"
#include "io/pt2_program.h"

#include <filesystem>
#include <utility>

namespace shardprop {
namespace {

Result<Graph> import(std::string_view json, const pt2::StoredTensors& stored,
                     std::string name, const OpLibrary& library,
                     const LoadOptions& options, const ProgramEdit& edit) {
  if (json.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return fail(ErrorCode::kNoProgram, "the file is empty",
                "give a program that torch.export.save() wrote");
  }
  SP_ASSIGN(pt2::Program program, pt2::parse_program(json));
  if (edit) edit(program);
  return pt2::to_graph(std::move(program), stored, std::move(name), library,
                       {options.bounds, options.sizes});
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
