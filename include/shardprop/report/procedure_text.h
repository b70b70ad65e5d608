// `procedures_to_text` writes the search procedures of a plan or of a solver's
// solution as a table, one line each:
//
//   procedure            runs     clock       work  improved  gap closed
//   free-network            1    0.41 s    2.1e+07         1           -
//   layer-mix               3    0.12 s    8.4e+06         2     1.25 ms
#pragma once

#include <shardprop/base/procedure.h>

#include <cstdint>
#include <span>
#include <string>

namespace shardprop {

// `CostUnit` is the unit of Procedure::gap_closed.
enum class CostUnit : std::uint8_t { kNanoseconds, kNone };

// Returns the lines of all procedures that ran or are switched off. Each line
// ends in a newline. The form may change.
std::string procedures_to_text(std::span<const Procedure> procedures,
                               CostUnit unit);

}  // namespace shardprop
