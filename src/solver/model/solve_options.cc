#include "base/option_bounds.h"
#include "base/option_fields.h"

#include <shardprop/solver/solve.h>

namespace shardprop::solver {
namespace {

const OptionField<SolveOptions> kFields[] = {
    {"time_limit", "S", "seconds, reading included",
     RealField<SolveOptions>{&SolveOptions::time_limit_seconds, 0, kMostSeconds,
                             false}},
    {"work_limit", "N", "table entries to touch; the same answer every time",
     WholeField<SolveOptions>{&SolveOptions::work_limit, 0, kMostWork}},
    {"threads", "N", "threads to search with",
     WholeField<SolveOptions>{&SolveOptions::threads, 1, kMostThreads}},
    {"seed", "N", "of the search",
     WholeField<SolveOptions>{&SolveOptions::seed, 0, kMostSeed}},
};

}  // namespace

std::span<const OptionInfo> solve_option_table() {
  static const std::vector<OptionInfo> kRows =
      option_rows<SolveOptions>(kFields);
  return kRows;
}

Result<void> set_option(SolveOptions& options, std::string_view name,
                        std::string_view text) {
  return set_field<SolveOptions>(kFields, options, name, text);
}

Result<void> validate(const SolveOptions& options) {
  return check_fields<SolveOptions>(kFields, options);
}

}  // namespace shardprop::solver
