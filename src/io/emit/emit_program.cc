#include <shardprop/io/emit_program.h>

#include "base/guard.h"
#include "base/try.h"
#include "io/emit/archive_writer.h"
#include "io/emit/exported_program.h"
#include "io/emit/placeholder_weights.h"
#include "io/emit/rank_emitter.h"

#include <utility>

namespace shardprop {
namespace {

Result<emit::TorchProgram> torch_program(const SpmdProgram& program,
                                         const OpLibrary& library,
                                         std::int64_t rank) {
  const auto at = program.mesh.coordinate_of(rank);
  if (!at) {
    return fail(
        ErrorCode::kMeshCoordinate,
        "rank " + std::to_string(rank) + " is not on mesh " +
            to_string(program.mesh),
        "give a rank between 0 and " + std::to_string(program.mesh.size() - 1));
  }
  return emit::RankEmitter(program, library, *at).run();
}

Result<std::string> json_of(const SpmdProgram& program,
                            const OpLibrary& library, std::int64_t rank) {
  SP_ASSIGN(const emit::TorchProgram torch,
            torch_program(program, library, rank));
  return emit::exported_json(program, torch);
}

Result<std::string> file_of(const SpmdProgram& program,
                            const OpLibrary& library, std::int64_t rank,
                            EmitFormat format) {
  SP_ASSIGN(const emit::TorchProgram torch,
            torch_program(program, library, rank));
  std::string json = emit::exported_json(program, torch);
  if (format == EmitFormat::kJsonGz) return emit::gzip(json);
  emit::PlaceholderWeights weights = emit::placeholder_weights(program, torch);
  std::vector<std::pair<std::string, std::string>> records = {
      {"archive_format", "pt2"},
      {"archive_version", "0"},
      {"byteorder", "little"},
      {".data/version", "3\n"},
      {"models/model.json", std::move(json)},
      {"data/weights/model_weights_config.json",
       std::move(weights.weights_config)},
      {"data/constants/model_constants_config.json",
       std::move(weights.constants_config)},
      {"data/sample_inputs/model.pt", ""}};
  for (auto& file : weights.files) records.push_back(std::move(file));
  return emit::zip_archive(records, "archive");
}

}  // namespace

Result<std::string> exported_program_json(const SpmdProgram& program,
                                          const OpLibrary& library,
                                          std::int64_t rank) {
  return guarded([&] { return json_of(program, library, rank); });
}

Result<std::string> emit_program(const SpmdProgram& program,
                                 const OpLibrary& library, std::int64_t rank,
                                 EmitFormat format) {
  return guarded([&] { return file_of(program, library, rank, format); });
}

}  // namespace shardprop
