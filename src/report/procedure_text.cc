#include <shardprop/report/procedure_text.h>

#include "base/printable.h"
#include "base/quantities.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace shardprop {
namespace {

constexpr std::string_view kProcedureHeading = "procedure";
constexpr char kProcedureLine[] =
    "  {:<{}}  {:>8}  {:>10}  {:>9}  {:>8}  {:>12}\n";

std::string gap_text(const Procedure& procedure, CostUnit unit) {
  if (procedure.gap_closed == 0) return "-";
  return unit == CostUnit::kNanoseconds ? time_text(procedure.gap_closed)
                                        : count_text(procedure.gap_closed);
}

// A plan that is read from a file has no clocks.
std::string clock_text(const Procedure& procedure) {
  return procedure.seconds > 0 ? fmt::format("{:.3f} s", procedure.seconds)
                               : std::string("-");
}

std::string work_text(const Procedure& procedure) {
  return procedure.work > 0
             ? fmt::format("{:.3g}", static_cast<double>(procedure.work))
             : std::string("-");
}

}  // namespace

std::string procedures_to_text(std::span<const Procedure> procedures,
                               CostUnit unit) {
  std::size_t width = kProcedureHeading.size();
  for (const Procedure& procedure : procedures) {
    width = std::max(width, procedure.name.size());
  }
  std::string text =
      fmt::format(kProcedureLine, kProcedureHeading, width, "runs", "clock",
                  "work", "improved", "gap closed");
  for (const Procedure& procedure : procedures) {
    const std::string name = printable(procedure.name);
    if (!procedure.enabled) {
      text += fmt::format("  {:<{}}  {:>8}\n", name, width, "off");
    } else if (procedure.runs > 0) {
      text += fmt::format(kProcedureLine, name, width, procedure.runs,
                          clock_text(procedure), work_text(procedure),
                          procedure.improvements, gap_text(procedure, unit));
    }
  }
  return text;
}

}  // namespace shardprop
