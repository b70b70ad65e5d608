// Writes the layouts of a program's inputs and outputs, and its groups, as
// JSON.
#include "base/index.h"
#include "io/emit/moves.h"
#include "io/emit/rank_emitter.h"
#include "io/emit/signature_order.h"
#include "io/json_reader.h"
#include "io/json_text.h"
#include "io/read_shardings.h"

#include "base/guard.h"
#include "base/try.h"

#include <shardprop/io/emit_program.h>
#include <shardprop/placement/local_region.h>
#include <shardprop/program/rank_program.h>

#include <algorithm>
#include <map>

namespace shardprop {
namespace {

class Shardings {
 public:
  Shardings(const SpmdProgram& program, const emit::TorchProgram& torch)
      : program_(program), torch_(torch) {}

  std::string run(const std::vector<std::string>& files) {
    json_.open('{').key("schema").text(kShardingsSchema);
    json_.key("graph").open('{').key("name").text(program_.graph_name);
    json_.key("hash").text(program_.graph_hash).close('}');
    mesh();
    groups();
    json_.key("inputs").open('[');
    for (const std::size_t i : emit::input_order(program_)) {
      const ProgramInput& input = program_.inputs[i];
      open(program_.value(input.value).name, to_string(input.kind),
           torch_.inputs[i]);
      if (!input.parameter.empty()) {
        json_.key("parameter").text(input.parameter);
      }
      layout(input.value);
      json_.close('}');
    }
    json_.close(']').key("outputs").open('[');
    for (const std::size_t o : emit::output_order(program_)) {
      const ProgramOutput& output = program_.outputs[o];
      open(name_of(output), to_string(output.kind), torch_.outputs[o]);
      if (output.target) {
        json_.key("target").text(
            program_.value(program_.inputs[*output.target].value).name);
      }
      layout(output.value);
      json_.close('}');
    }
    json_.close(']');
    if (!files.empty()) {
      json_.key("files").open('[');
      for (const std::string& file : files) json_.text(file);
      json_.close(']');
    }
    json_.close('}');
    return json_.take() + "\n";
  }

 private:
  void mesh() {
    const DeviceMesh& mesh = program_.mesh;
    json_.key("mesh").open('{').key("dims").open('[');
    for (const MeshDim& dim : mesh.dims()) {
      json_.open('{').key("name").text(dim.name);
      json_.key("size").number(dim.size).close('}');
    }
    json_.close(']').key("ranks").open('[');
    for (std::int64_t i = 0; i < mesh.size(); ++i) {
      json_.number(mesh.rank_at_index(i));
    }
    json_.close(']').close('}');
  }

  void groups() {
    std::map<std::string, DimIndices> named;
    for (const ProgramStep& step : program_.steps) {
      const auto* moved = std::get_if<ProgramCollective>(&step.action);
      if (moved == nullptr || moved->step.kind == CollectiveKind::kSlice) {
        continue;
      }
      named.emplace(emit::group_name(program_.mesh, moved->step.mesh_dims),
                    moved->step.mesh_dims);
    }
    json_.key("groups").open('[');
    for (const auto& [name, dims] : named) {
      json_.open('{').key("name").text(name);
      mesh_dims("mesh_dims", dims);
      json_.key("ranks").open('[');
      ranks_of(dims);
      json_.close(']').close('}');
    }
    json_.close(']');
  }

  // Writes every group over these mesh dims, in the order of the rank of its
  // origin.
  void ranks_of(const DimIndices& dims) {
    const DeviceMesh& mesh = program_.mesh;
    for (std::int64_t i = 0; i < mesh.size(); ++i) {
      const Coordinate at = mesh.coordinate_at_index(i);
      const bool origin =
          std::all_of(dims.begin(), dims.end(),
                      [&](std::int32_t dim) { return at[index(dim)] == 0; });
      if (!origin) continue;
      const RankGroup group =
          mesh.group(std::span(dims.data(), dims.size()), at);
      json_.open('[');
      for (std::int64_t r = 0; r < group.size(); ++r) {
        json_.number(group.rank(r));
      }
      json_.close(']');
    }
  }

  void mesh_dims(std::string_view key, const DimIndices& dims) {
    json_.key(key).open('[');
    for (const std::int32_t dim : dims) json_.text(program_.mesh.name(dim));
    json_.close(']');
  }

  // Returns the name of the output in the graph, whichever copy of it the
  // program returns.
  const std::string& name_of(const ProgramOutput& output) const {
    for (const ProgramCopy& copy : program_.copies) {
      if (copy.value == output.value) return copy.from;
    }
    return program_.value(output.value).name;
  }

  void open(const std::string& name, std::string_view kind,
            emit::TorchId argument) {
    json_.open('{').key("name").text(name);
    json_.key("kind").text(kind);
    json_.key("argument").text(torch_.graph[argument].name);
  }

  void layout(ProgramValueId id) {
    const ProgramValue& value = program_.value(id);
    json_.key("dtype").text(to_string(value.meta.dtype()));
    json_.key("shape");
    shape(value.meta.shape());
    DimIndices all;
    for (int d = 0; d < program_.mesh.ndim(); ++d) all.push_back(d);
    mesh_dims("mesh_dims", all);
    json_.key("placements").open('[');
    for (const Placement placement : value.layout.placements()) {
      json_.text(to_string(placement));
    }
    json_.close(']').key("shard_order").open('{');
    for (int d = 0; d < value.meta.rank(); ++d) {
      const DimIndices cuts = value.layout.cuts(d);
      if (!cuts.empty()) mesh_dims(std::to_string(d), cuts);
    }
    json_.close('}').key("local_shapes").open('[');
    const bool alike = is_even(value.layout, program_.mesh, value.meta.shape());
    const std::int64_t ranks = alike ? 1 : program_.mesh.size();
    for (std::int64_t i = 0; i < ranks; ++i) {
      shape(local_shape(program_, id, program_.mesh.coordinate_at_index(i)));
    }
    json_.close(']');
  }

  void shape(const Dims& sizes) {
    json_.open('[');
    for (const std::int64_t size : sizes) json_.number(size);
    json_.close(']');
  }

  const SpmdProgram& program_;
  const emit::TorchProgram& torch_;
  JsonText json_;
};

}  // namespace

Result<std::string> shardings_json(const SpmdProgram& program,
                                   const OpLibrary& library,
                                   const std::vector<std::string>& files) {
  return guarded([&]() -> Result<std::string> {
    emit::RankEmitter emitter(program, library,
                              program.mesh.coordinate_at_index(0));
    SP_ASSIGN(const emit::TorchProgram torch, emitter.run());
    return Shardings(program, torch).run(files);
  });
}

std::vector<std::string> emitted_files(std::string_view shardings) {
  StringArena arena;
  JsonReader json(shardings, arena);
  std::string schema;
  std::vector<std::string> files;
  json.object([&](std::string_view key) {
    if (key == "schema") {
      schema = json.string();
    } else if (key == "files") {
      json.array([&] { files.emplace_back(json.string()); });
    } else {
      json.skip();
    }
  });
  json.end();
  if (!json.ok() || schema != kShardingsSchema) files.clear();
  return files;
}

}  // namespace shardprop
