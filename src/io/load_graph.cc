#include <shardprop/io/load_graph.h>

#include "base/try.h"
#include "io/inflate.h"
#include "io/pt2_archive.h"
#include "io/pt2_import.h"
#include "io/pt2_program.h"

#include <filesystem>
#include <fstream>
#include <ios>
#include <system_error>
#include <utility>

namespace shardprop {
namespace {

Result<Graph> import(std::string_view json, const pt2::StoredTensors& stored,
                     std::string name, const OpLibrary& library) {
  if (json.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return fail(ErrorCode::kNoProgram, "the file is empty");
  }
  SP_ASSIGN(pt2::Program program, pt2::parse_program(json));
  return pt2::to_graph(std::move(program), stored, std::move(name), library);
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

tl::unexpected<Error> unreadable(const std::string& why) {
  return fail(ErrorCode::kFileUnreadable, "the file cannot be read: " + why);
}

Result<Graph> load(const std::string& path, const OpLibrary& library,
                   const LoadOptions& options) {
  std::error_code code;
  const auto status = std::filesystem::status(path, code);
  if (!std::filesystem::exists(status)) return unreadable("there is none");
  if (std::filesystem::is_directory(status)) {
    return unreadable("it is a directory");
  }
  std::ifstream file(path, std::ios::binary);
  std::string start(2, '\0');
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  if (file.bad() || !file.is_open()) return unreadable("it does not open");
  const std::string name = graph_name(path);
  if (pt2::is_zip(start)) {
    SP_ASSIGN(
        const pt2::ArchivedProgram archived,
        pt2::read_archive_file(path, options.program, options.max_input_bytes));
    return import(archived.json, archived.stored, name, library);
  }
  // Neither JSON nor its gzip is ever larger than the limit on the JSON; one
  // byte more than it tells.
  file.clear();
  file.seekg(0);
  std::string bytes;
  std::string block(std::size_t{1} << 16, '\0');
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())),
         file.gcount() > 0) {
    bytes.append(block, 0, static_cast<std::size_t>(file.gcount()));
    if (static_cast<std::int64_t>(bytes.size()) > options.max_input_bytes) {
      return fail(too_large(options.max_input_bytes));
    }
  }
  if (file.bad()) return unreadable("reading stopped");
  return read_graph(bytes, name, library, options);
}

}  // namespace

Result<Graph> read_graph(std::string_view bytes, std::string name,
                         const OpLibrary& library,
                         const LoadOptions& options) {
  if (pt2::is_zip(bytes)) {
    SP_ASSIGN(
        const pt2::ArchivedProgram archived,
        pt2::read_archive(bytes, options.program, options.max_input_bytes));
    return import(archived.json, archived.stored, std::move(name), library);
  }
  if (is_gzip(bytes)) {
    SP_ASSIGN(const std::string json,
              inflate_gzip(bytes, options.max_input_bytes));
    return import(json, {}, std::move(name), library);
  }
  if (static_cast<std::int64_t>(bytes.size()) > options.max_input_bytes) {
    return fail(too_large(options.max_input_bytes));
  }
  return import(bytes, {}, std::move(name), library);
}

Result<Graph> load_graph(const std::string& path, const OpLibrary& library,
                         const LoadOptions& options) {
  auto graph = load(path, library, options);
  if (!graph) return fail(std::move(graph).error().at(path));
  return graph;
}

}  // namespace shardprop
