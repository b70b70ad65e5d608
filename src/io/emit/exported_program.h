// Writes a rank's program as the JSON of torch.export. pt2_program.h lists the
// facts about the format.
#pragma once

#include "io/emit/rank_emitter.h"

#include <shardprop/program/spmd_program.h>

#include <string>

namespace shardprop::emit {

std::string exported_json(const SpmdProgram& program,
                          const TorchProgram& torch);

}  // namespace shardprop::emit
