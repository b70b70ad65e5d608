#include <shardprop/io/load_rank_programs.h>

#include "base/guard.h"
#include "base/parse_int.h"
#include "base/try.h"
#include "io/input_file.h"
#include "io/load_edited.h"
#include "io/pt2_metadata.h"
#include "io/read_shardings.h"
#include "program/torch_collectives.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <string_view>
#include <utility>

namespace shardprop {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffixes[] = {".pt2", ".json.gz", ".json"};
constexpr std::int64_t kMostShardingsBytes = std::int64_t{1} << 31;

// Returns the file of a program; empty if there is none.
std::string program_file(const fs::path& folder, const std::string& stem) {
  for (const std::string_view suffix : kSuffixes) {
    const fs::path path = folder / (stem + std::string(suffix));
    std::error_code missing;
    if (fs::exists(path, missing)) return path.string();
  }
  return {};
}

// Returns N of "rankN.pt2"; empty for other names.
std::optional<std::int64_t> rank_of_file(std::string_view name) {
  const std::size_t dot = std::min(name.find('.'), name.size());
  const bool is_program = std::find(std::begin(kSuffixes), std::end(kSuffixes),
                                    name.substr(dot)) != std::end(kSuffixes);
  if (!is_program || !name.starts_with("rank")) return std::nullopt;
  return parse_int(name.substr(4, dot - 4));
}

std::set<std::int64_t> ranks_with_files(const fs::path& folder) {
  std::set<std::int64_t> out;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(folder, failed)) {
    if (const auto rank = rank_of_file(entry.path().filename().string())) {
      out.insert(*rank);
    }
  }
  return out;
}

// Returns the file of each rank. Programs of all ranks may be one file.
Result<std::vector<std::string>> program_files(const std::string& folder,
                                               const DeviceMesh& mesh) {
  const std::set<std::int64_t> found = ranks_with_files(folder);
  const std::string shared = program_file(folder, "program");
  if (found.empty() && shared.empty()) {
    return fail(Error{ErrorCode::kFileUnreadable,
                      "the folder has no program",
                      folder,
                      {},
                      "give a folder with program.pt2, or with rank0.pt2, "
                      "rank1.pt2 and so on"});
  }
  if (!found.empty() && !shared.empty()) {
    return fail(Error{ErrorCode::kInvalidArgument,
                      "the folder has a program for all ranks, and programs "
                      "for single ranks",
                      folder,
                      {"for all ranks: " + shared,
                       "for single ranks: " + std::to_string(found.size())},
                      "remove one of them"});
  }
  if (!shared.empty()) {
    return std::vector<std::string>(static_cast<std::size_t>(mesh.size()),
                                    shared);
  }
  std::vector<std::string> files;
  for (std::int64_t i = 0; i < mesh.size(); ++i) {
    files.push_back(
        program_file(folder, "rank" + std::to_string(mesh.rank_at_index(i))));
  }
  const bool is_complete =
      std::none_of(files.begin(), files.end(),
                   [](const std::string& file) { return file.empty(); });
  if (is_complete && static_cast<std::int64_t>(found.size()) == mesh.size()) {
    return files;
  }
  return fail(Error{ErrorCode::kInvalidArgument,
                    "the number of programs is not the number of ranks",
                    folder,
                    {"programs: " + std::to_string(found.size()),
                     "ranks of the mesh " + to_string(mesh) + ": " +
                         std::to_string(mesh.size())},
                    "give one program for each rank of the mesh"});
}

Result<void> check_groups(const std::vector<NamedGroups>& groups,
                          const DeviceMesh& mesh) {
  const auto wrong = [&](const NamedGroups& group, std::int64_t rank,
                         const std::string& what) {
    return fail(Error{ErrorCode::kGroup,
                      "the group `" + group.name + "` has rank " +
                          std::to_string(rank) + what,
                      "$.groups",
                      {"mesh: " + to_string(mesh)},
                      "list each rank of the mesh at most once"});
  };
  for (const NamedGroups& group : groups) {
    std::set<std::int64_t> seen;
    for (const auto& ranks : group.ranks) {
      for (const std::int64_t rank : ranks) {
        if (!mesh.contains(rank)) {
          return wrong(group, rank, ", which is not on the mesh");
        }
        if (!seen.insert(rank).second) {
          return wrong(group, rank, " twice");
        }
      }
    }
  }
  return {};
}

Result<void> check_layouts(const std::vector<ShardedTensor>& tensors,
                           const DeviceMesh& mesh) {
  for (const ShardedTensor& tensor : tensors) {
    if (!tensor.layout || tensor.layout->mesh_ndim() == mesh.ndim()) continue;
    return fail(Error{
        ErrorCode::kPlacementCount,
        "`" + tensor.name + "` has " +
            std::to_string(tensor.layout->mesh_ndim()) +
            " placements, and the mesh has " + std::to_string(mesh.ndim()) +
            " dims",
        {},
        {"layout: " + to_string(*tensor.layout), "mesh: " + to_string(mesh)},
        "give one placement for each mesh dim"});
  }
  return {};
}

Result<DeviceMesh> mesh_of(const std::optional<DeviceMesh>& given,
                           const std::optional<DeviceMesh>& written) {
  if (!given && !written) {
    return fail(ErrorCode::kInvalidArgument, "the mesh is not known",
                "give --mesh, or `mesh` in shardings.json");
  }
  if (given && written && !(*given == *written)) {
    return fail(Error{
        ErrorCode::kInvalidArgument,
        "the programs are for another mesh",
        {},
        {"programs: " + to_string(*written), "given: " + to_string(*given)},
        "give the mesh of the programs"});
  }
  return given ? *given : *written;
}

// Notes the planned node of each value, and makes every result a plain one: a
// gradient may have finer shards than its parameter.
void edit_rank_program(pt2::Program& program,
                       std::unordered_map<std::string, std::string>& planned) {
  for (pt2::OutputSpec& output : program.output_specs) {
    if (output.role != pt2::OutputRole::kNoTensor) {
      output.role = pt2::OutputRole::kUser;
    }
  }
  for (const pt2::Node& node : program.nodes) {
    const std::string name = pt2::read_custom(node.custom).planned_node;
    if (name.empty()) continue;
    for (const pt2::Argument& output : node.outputs) {
      if (const auto* one = std::get_if<pt2::TensorName>(&output)) {
        planned.emplace(one->name, name);
      } else if (const auto* list = std::get_if<pt2::TensorNames>(&output)) {
        for (const std::string_view element : *list) {
          planned.emplace(element, name);
        }
      }
    }
  }
}

Result<std::shared_ptr<const RankProgram>> load_rank_program(
    const std::string& file, const OpLibrary& library,
    const LoadOptions& options) {
  auto out = std::make_shared<RankProgram>();
  out->file = file;
  SP_ASSIGN(Graph graph,
            load_edited(file, library, options, [&](pt2::Program& program) {
              edit_rank_program(program, out->planned_nodes);
            }));
  out->graph = std::make_shared<const Graph>(std::move(graph));
  return std::shared_ptr<const RankProgram>(std::move(out));
}

Result<RankPrograms> load_folder(
    const std::string& folder, const std::optional<DeviceMesh>& mesh,
    const std::shared_ptr<const OpLibrary>& library,
    const LoadOptions& options) {
  const std::string path = (fs::path(folder) / "shardings.json").string();
  SP_ASSIGN(const std::string text, read_file(path, kMostShardingsBytes));
  RankPrograms out;
  const auto taken = [&]() -> Result<void> {
    SP_ASSIGN(ShardingsFile shardings, read_shardings(text));
    SP_ASSIGN(out.mesh, mesh_of(mesh, shardings.mesh));
    SP_CHECK(check_simulated(out.mesh));
    SP_CHECK(check_groups(shardings.groups, out.mesh));
    SP_CHECK(check_layouts(shardings.inputs, out.mesh));
    SP_CHECK(check_layouts(shardings.outputs, out.mesh));
    out.groups = std::move(shardings.groups);
    out.inputs = std::move(shardings.inputs);
    out.outputs = std::move(shardings.outputs);
    return {};
  }();
  if (!taken) return fail(Error(taken.error()).at(path));
  SP_ASSIGN(const std::vector<std::string> files,
            program_files(folder, out.mesh));
  SP_ASSIGN(out.library, with_collectives(library));
  std::unordered_map<std::string, std::shared_ptr<const RankProgram>> loaded;
  for (const std::string& file : files) {
    auto& program = loaded[file];
    if (program == nullptr) {
      SP_ASSIGN(program, load_rank_program(file, *out.library, options));
    }
    out.ranks.push_back(program);
  }
  return out;
}

}  // namespace

Result<RankPrograms> load_rank_programs(
    const std::string& folder, const std::optional<DeviceMesh>& mesh,
    const std::shared_ptr<const OpLibrary>& library,
    const LoadOptions& options) {
  auto loaded =
      guarded([&] { return load_folder(folder, mesh, library, options); });
  if (loaded || !loaded.error().help.empty()) return loaded;
  return fail(std::move(loaded).error().with_help(
      "give a folder that `shardprop emit` wrote, or one like it"));
}

}  // namespace shardprop
