// A rank's program as torch.export's JSON (facts of the format: pt2_program.h).
#pragma once

#include "io/emit/rank_emitter.h"

#include <shardprop/program/spmd_program.h>

#include <string>

namespace shardprop::emit {

std::string exported_json(const SpmdProgram& program,
                          const TorchProgram& torch);

}  // namespace shardprop::emit
