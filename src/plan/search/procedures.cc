#include "plan/search/procedures.h"

#include <shardprop/solver/pass.h>

#include <algorithm>
#include <iterator>

namespace shardprop {
namespace {

bool is_on(std::string_view name, const PlanOptions& options) {
  return std::find(options.switched_off.begin(), options.switched_off.end(),
                   name) == options.switched_off.end();
}

}  // namespace

bool is_on(PlanProcedure procedure, const PlanOptions& options) {
  return is_on(kPlanProcedures[index(procedure)].name, options);
}

std::vector<std::string_view> procedures_with_switch() {
  std::vector<std::string_view> out;
  for (const PlanProcedureRow& row : kPlanProcedures) {
    if (row.can_be_off) out.push_back(row.name);
  }
  for (std::size_t p = 0; p < solver::kNumPasses; ++p) {
    out.push_back(solver::pass_name(static_cast<solver::Pass>(p)));
  }
  return out;
}

std::vector<Procedure> no_runs(const PlanOptions& options) {
  std::vector<Procedure> out;
  for (const PlanProcedureRow& row : kPlanProcedures) {
    Procedure& record = out.emplace_back();
    record.name = row.name;
    record.enabled = is_on(row.name, options);
  }
  return out;
}

}  // namespace shardprop
