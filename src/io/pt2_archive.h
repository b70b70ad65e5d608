// Reads the zip archive that contains an exported program.
//
// There are two layouts. PyTorch 2.8 and later write models/<name>.json and
// data/weights/<name>_weights_config.json below one root folder. Earlier
// releases write serialized_exported_program.json at the top level.
#pragma once

#include <shardprop/base/result.h>

#include "io/pt2_import.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace shardprop::pt2 {

struct ArchivedProgram {
  std::string json;
  StoredTensors stored;
};

bool is_zip(std::string_view bytes);

// Errors: kArchiveDamaged, kNoProgram, kSeveralPrograms, kInputTooLarge, and
// the JSON errors of the list of weights.
Result<ArchivedProgram> read_archive_file(const std::string& path,
                                          const std::string& program,
                                          std::int64_t limit);
Result<ArchivedProgram> read_archive(std::string_view bytes,
                                     const std::string& program,
                                     std::int64_t limit);

}  // namespace shardprop::pt2
