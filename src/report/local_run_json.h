// A LocalRun as the JSON of the contract.
#pragma once

#include "io/json_text.h"

#include <shardprop/mesh/device_mesh.h>
#include <shardprop/plan/local_run.h>

#include <cstdint>

namespace shardprop {

// The values of all ranks, in mesh order, of RankValues or a RankArgument.
template <class Values>
void write_rank_values(JsonText& json, const Values& values,
                       const DeviceMesh& mesh) {
  json.open('[');
  for (std::int64_t i = 0; i < mesh.size(); ++i) {
    const auto& row = values.at(mesh.coordinate_at_index(i));
    if (values.is_list()) {
      json.value(row);
    } else {
      json.value(row.front());
    }
  }
  json.close(']');
}

// {"size": [[8, 4], ...]}
void write_local_args(JsonText& json, const LocalRun& run,
                      const DeviceMesh& mesh);

// {"steps": [...], "outputs": [...]}
void write_local_program(JsonText& json, const LocalRunProgram& program,
                         const DeviceMesh& mesh);

}  // namespace shardprop
