// Writes a LocalRun as the JSON that the schema describes.
#pragma once

#include "io/json_text.h"

#include <shardprop/mesh/device_mesh.h>
#include <shardprop/plan/local_run.h>
#include <shardprop/report/plan_json.h>

#include <cstdint>

namespace shardprop {

// Writes the values of all ranks of RankValues or a RankArgument, in mesh
// order. They are on one line, because there may be many.
//
//   [[8,4],[8,4],[7,4],[7,4]]
template <class Values>
void write_rank_values(JsonText& json, const Values& values,
                       const DeviceMesh& mesh) {
  JsonText line;
  line.open('[');
  for (std::int64_t i = 0; i < mesh.size(); ++i) {
    const auto& row = values.at(mesh.coordinate_at_index(i));
    if (values.is_list()) {
      line.value(row);
    } else {
      line.value(row.front());
    }
  }
  json.raw(line.close(']').take());
}

// {"size": [[8,4],[8,4], ...]}
void write_local_args(JsonText& json, const LocalRun& run,
                      const DeviceMesh& mesh,
                      RankForm form = RankForm::kEachRank);

// {"steps": [...], "outputs": [...]}
void write_local_program(JsonText& json, const LocalRunProgram& program,
                         const DeviceMesh& mesh,
                         RankForm form = RankForm::kEachRank);

}  // namespace shardprop
