#include "solver/presolve/min_plus.h"

#include <limits>

// Uses wide registers if the machine has them. The thread sanitizer cannot
// start programs that choose functions at load time.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define SHARDPROP_WIDE \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define SHARDPROP_WIDE
#endif

namespace shardprop::solver {
namespace {

template <class Vector>
__attribute__((always_inline)) inline void take_less(Vector& least,
                                                     Vector cost) {
  least = cost < least ? cost : least;
}

template <class T, int kBytes>
struct VectorOf {
  // A vector of any alignment, over memory that holds a T.
  typedef T Type
      __attribute__((vector_size(kBytes), aligned(alignof(T)), may_alias));
  static constexpr int kSize = kBytes / static_cast<int>(sizeof(T));
};

// Computes the columns from `d` on, as many as the vectors hold.
template <class T>
__attribute__((always_inline)) inline void four_vectors(const T* base,
                                                        const int* row, int n,
                                                        const T* table,
                                                        long columns, T ceiling,
                                                        T* out) {
  using Vector = typename VectorOf<T, 64>::Type;
  constexpr int kSize = VectorOf<T, 64>::kSize;
  const Vector most = Vector{} + ceiling;
  // Separate variables, not an array, stay in registers over all rows.
  Vector a = most;
  Vector b = most;
  Vector c = most;
  Vector d = most;
  for (int i = 0; i < n; ++i) {
    const T mine = base[row[i]];
    const T* from = table + row[i] * columns;
    take_less(a, mine + *reinterpret_cast<const Vector*>(from));
    take_less(b, mine + *reinterpret_cast<const Vector*>(from + kSize));
    take_less(c, mine + *reinterpret_cast<const Vector*>(from + 2 * kSize));
    take_less(d, mine + *reinterpret_cast<const Vector*>(from + 3 * kSize));
  }
  *reinterpret_cast<Vector*>(out) = a;
  *reinterpret_cast<Vector*>(out + kSize) = b;
  *reinterpret_cast<Vector*>(out + 2 * kSize) = c;
  *reinterpret_cast<Vector*>(out + 3 * kSize) = d;
}

template <class T, int kBytes>
__attribute__((always_inline)) inline void one_vector(const T* base,
                                                      const int* row, int n,
                                                      const T* table,
                                                      long columns, T ceiling,
                                                      T* out) {
  using Vector = typename VectorOf<T, kBytes>::Type;
  Vector least = Vector{} + ceiling;
  for (int i = 0; i < n; ++i) {
    take_less(least, base[row[i]] + *reinterpret_cast<const Vector*>(
                                        table + row[i] * columns));
  }
  *reinterpret_cast<Vector*>(out) = least;
}

template <class T>
__attribute__((always_inline)) inline void min_plus_rows(const T* base,
                                                         const int* row, int n,
                                                         const T* table,
                                                         int columns, T ceiling,
                                                         T* out) {
  constexpr int kWide = VectorOf<T, 64>::kSize;
  constexpr int kNarrow = VectorOf<T, 16>::kSize;
  int d = 0;
  for (; d + 4 * kWide <= columns; d += 4 * kWide) {
    four_vectors(base, row, n, table + d, columns, ceiling, out + d);
  }
  for (; d + kWide <= columns; d += kWide) {
    one_vector<T, 64>(base, row, n, table + d, columns, ceiling, out + d);
  }
  for (; d + kNarrow <= columns; d += kNarrow) {
    one_vector<T, 16>(base, row, n, table + d, columns, ceiling, out + d);
  }
  if (d == columns) return;
  if (columns >= kNarrow) {
    // The last vector computes some columns twice.
    d = columns - kNarrow;
    one_vector<T, 16>(base, row, n, table + d, columns, ceiling, out + d);
    return;
  }
  for (; d < columns; ++d) {
    T least = ceiling;
    for (int i = 0; i < n; ++i) {
      const T cost =
          base[row[i]] + table[static_cast<long>(row[i]) * columns + d];
      least = cost < least ? cost : least;
    }
    out[d] = least;
  }
}

}  // namespace

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

SHARDPROP_WIDE void min_plus_of(const std::int32_t* base, const int* row, int n,
                                const std::int32_t* table, int columns,
                                std::int32_t ceiling, std::int32_t* out) {
  min_plus_rows(base, row, n, table, columns, ceiling, out);
}

SHARDPROP_WIDE void min_plus_of(const double* base, const int* row, int n,
                                const double* table, int columns,
                                double ceiling, double* out) {
  min_plus_rows(base, row, n, table, columns, ceiling, out);
}

}  // namespace shardprop::solver
