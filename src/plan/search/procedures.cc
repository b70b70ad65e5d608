#include "plan/search/procedures.h"

#include <shardprop/solver/pass.h>

#include <algorithm>
#include <iterator>

namespace shardprop {
namespace {

bool is_on(std::string_view name, const PlanDebugging& debugging) {
  return std::find(debugging.switched_off.begin(), debugging.switched_off.end(),
                   name) == debugging.switched_off.end();
}

}  // namespace

bool is_on(PlanProcedure procedure, const PlanDebugging& debugging) {
  return is_on(kPlanProcedures[index(procedure)].name, debugging);
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

std::vector<Procedure> no_runs(const PlanDebugging& debugging) {
  std::vector<Procedure> out;
  for (const PlanProcedureRow& row : kPlanProcedures) {
    Procedure& record = out.emplace_back();
    record.name = row.name;
    record.enabled = is_on(row.name, debugging);
  }
  return out;
}

}  // namespace shardprop
