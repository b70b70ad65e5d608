#include <shardprop/base/procedure.h>

#include "base/saturating.h"

#include <algorithm>

namespace shardprop {

void add_runs(std::vector<Procedure>& to, std::span<const Procedure> more) {
  for (const Procedure& from : more) {
    const auto known =
        std::find_if(to.begin(), to.end(),
                     [&](const Procedure& p) { return p.name == from.name; });
    if (known == to.end()) {
      to.push_back(from);
      continue;
    }
    known->enabled = known->enabled && from.enabled;
    known->runs += from.runs;
    known->seconds += from.seconds;
    known->work += from.work;
    known->improvements += from.improvements;
    known->gap_closed = sat_add(known->gap_closed, from.gap_closed);
  }
}

}  // namespace shardprop
