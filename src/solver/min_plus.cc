#include "solver/min_plus.h"

#include <limits>

// Wide registers where the machine has them; the thread sanitizer cannot start
// programs that choose functions while loading.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define SHARDPROP_WIDE \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define SHARDPROP_WIDE
#endif

namespace shardprop::solver {

SHARDPROP_WIDE void min_plus(const double* h, int rows, const double* table,
                             int columns, double* out) {
  const double first = h[0];
  for (int d = 0; d < columns; ++d) out[d] = first + table[d];
  for (int c = 1; c < rows; ++c) {
    const double mine = h[c];
    const double* row = table + static_cast<long>(c) * columns;
    for (int d = 0; d < columns; ++d) {
      const double cost = mine + row[d];
      out[d] = cost < out[d] ? cost : out[d];
    }
  }
}

SHARDPROP_WIDE double min_plus_all(const double* h, int rows, const double* g,
                                   int columns, const double* table) {
  double least = std::numeric_limits<double>::infinity();
  for (int c = 0; c < rows; ++c) {
    const double* row = table + static_cast<long>(c) * columns;
    double here = std::numeric_limits<double>::infinity();
    for (int d = 0; d < columns; ++d) {
      const double cost = g[d] + row[d];
      here = cost < here ? cost : here;
    }
    const double cost = h[c] + here;
    least = cost < least ? cost : least;
  }
  return least;
}

}  // namespace shardprop::solver
