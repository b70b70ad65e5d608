// The kernel of all bounds and searches: one step of min-sum elimination.
#pragma once

#include <cstdint>

namespace shardprop::solver {

// Computes out[d] = min over c < rows of h[c] + table[c * columns + d]. The
// result is bit-identical on every machine, because it uses only additions and
// minima.
void min_plus(const double* h, int rows, const double* table, int columns,
              double* out);

// Returns the min over c, d of h[c] + g[d] + table[c * columns + d].
double min_plus_all(const double* h, int rows, const double* g, int columns,
                    const double* table);

// Computes out[d] = min of ceiling and, over r = row[i] with i < n, of
//   base[r] + table[r * columns + d]
// The sum of two entries must fit the type.
void min_plus_of(const std::int32_t* base, const int* row, int n,
                 const std::int32_t* table, int columns, std::int32_t ceiling,
                 std::int32_t* out);
void min_plus_of(const double* base, const int* row, int n, const double* table,
                 int columns, double ceiling, double* out);

}  // namespace shardprop::solver
