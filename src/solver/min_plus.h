// The kernel of every bound and search here: one step of min-sum elimination.
#pragma once

namespace shardprop::solver {

// out[d] = min over c < rows of h[c] + table[c * columns + d]. Bit for bit the
// same on every machine: additions and minima only.
void min_plus(const double* h, int rows, const double* table, int columns,
              double* out);

// min over c, d of h[c] + g[d] + table[c * columns + d].
double min_plus_all(const double* h, int rows, const double* g, int columns,
                    const double* table);

}  // namespace shardprop::solver
