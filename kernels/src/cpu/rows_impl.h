// Each rows_<isa>.cc includes this file once, after it has defined Simd in
// SHARDPROP_ROWS_NAMESPACE. Everything but the table has internal linkage, and
// no inline function of another header is called. The linker could otherwise
// keep a copy that was compiled for another instruction set.

#include <cstdint>
#include <cstring>
#include <utility>

namespace shardprop::kernels::cpu::SHARDPROP_ROWS_NAMESPACE {
namespace {

constexpr std::int64_t kLine = 64;
constexpr std::int64_t kPage = 4096;
constexpr std::int64_t kStreamed = 2 * kLine;  // bytes; shorter rows are cached

// The order in which a cast reads memory that exceeds the caches.
struct Reading {
  std::int64_t pages;  // at once, a line of each in turn
  std::int64_t ahead;  // bytes that are fetched ahead
};

// A conversion keeps fewer loads in flight than a copy does. On Intel, each
// page has its own hardware prefetcher, so reading several pages at once
// compensates for this (a quarter faster than one page). On other processors,
// one page at a time with a longer prefetch distance is best. A distance above
// 2 KiB gains on an idle memory bus and loses on a busy one.
Reading reading_of_casts() {
#if defined(__x86_64__)
  if (__builtin_cpu_is("intel")) return {8, 256};
#endif
  return {1, 2048};
}

std::int64_t bytes_to_line(const std::byte* address) {
  return -reinterpret_cast<std::intptr_t>(address) & (kLine - 1);
}

// Prefetches into all caches, though the data is read once. The non-temporal
// hint gains 3 to 5 % on AMD but halves the rate on Intel, because it stops the
// hardware prefetchers from running ahead.
void fetch(const std::byte* address) { __builtin_prefetch(address, 0, 3); }

// Prefetches as many bytes from `ahead`, unless it is null, while it streams.
void copy_row(std::byte* dst, const std::byte* src, std::int64_t width,
              bool stream, const std::byte* ahead) {
  if (!stream || width < kStreamed) {
    std::memcpy(dst, src, static_cast<std::size_t>(width));
    return;
  }
  // Most rows are entire cache lines, and an empty call of memcpy takes as long
  // as a line.
  const std::int64_t head = bytes_to_line(dst);
  if (head > 0) std::memcpy(dst, src, static_cast<std::size_t>(head));
  std::int64_t i = head;
  if (ahead == nullptr) {
    for (; i + kLine <= width; i += kLine) Simd::copy_line(dst + i, src + i);
  } else {
    for (; i + kLine <= width; i += kLine) {
      fetch(ahead + i);
      Simd::copy_line(dst + i, src + i);
    }
  }
  const std::int64_t tail = width - i;
  if (tail > 0) std::memcpy(dst + i, src + i, static_cast<std::size_t>(tail));
}

// Copies rows of kBytes to 2 * kBytes bytes by two moves that may overlap. A
// call of memcpy would take longer than the copy itself.
template <std::int64_t kBytes>
void copy_short_rows(const Panel& panel) {
  const std::int64_t last = panel.width - kBytes;
  for (std::int64_t r = 0; r < panel.rows; ++r) {
    std::byte* dst = panel.dst + r * panel.dst_stride;
    const std::byte* src = panel.src + r * panel.src_stride;
    std::memcpy(dst, src, kBytes);
    std::memcpy(dst + last, src + last, kBytes);
  }
}

void copy(const Panel& panel, bool stream) {
  if (panel.width < kStreamed) {
    if (panel.width >= 64) return copy_short_rows<64>(panel);
    if (panel.width >= 32) return copy_short_rows<32>(panel);
    if (panel.width >= 16) return copy_short_rows<16>(panel);
    if (panel.width >= 8) return copy_short_rows<8>(panel);
    if (panel.width >= 4) return copy_short_rows<4>(panel);
    if (panel.width >= 2) return copy_short_rows<2>(panel);
    if (panel.width == 1) return copy_short_rows<1>(panel);
    return;
  }
  for (std::int64_t r = 0; r < panel.rows; ++r) {
    copy_row(panel.dst + r * panel.dst_stride, panel.src + r * panel.src_stride,
             panel.width, stream,
             panel.ahead == nullptr ? nullptr : panel.ahead + r * panel.width);
  }
}

void fill_row(std::byte* dst, const Pattern& pattern, std::int64_t width,
              bool stream) {
  std::int64_t i = 0;
  const std::byte* line = pattern.bytes;
  Pattern turned;
  if (stream && width >= kStreamed) {
    const std::int64_t head = bytes_to_line(dst);
    std::memcpy(dst, pattern.bytes, static_cast<std::size_t>(head));
    // The rest of the row begins in the middle of the pattern.
    for (std::int64_t b = 0; b < kLine; ++b) {
      turned.bytes[b] = pattern.bytes[(b + head) % kLine];
    }
    line = turned.bytes;
    for (i = head; i + kLine <= width; i += kLine) {
      Simd::copy_line(dst + i, line);
    }
  } else {
    for (; i + kLine <= width; i += kLine) std::memcpy(dst + i, line, kLine);
  }
  std::memcpy(dst + i, line, static_cast<std::size_t>(width - i));
}

void fill(const Panel& panel, const Pattern& pattern, bool stream) {
  for (std::int64_t r = 0; r < panel.rows; ++r) {
    fill_row(panel.dst + r * panel.dst_stride, pattern, panel.width, stream);
  }
}

template <class From, bool kScale>
typename Simd::Floats load_scaled(const std::byte* src, float scale) {
  typename Simd::Floats value = Simd::template load<From>(src);
  if constexpr (kScale) value = Simd::multiply(value, scale);
  return value;
}

template <class From, class To, bool kScale>
void cast_vector(std::byte* dst, const std::byte* src, float scale) {
  Simd::template store<To>(dst, load_scaled<From, kScale>(src, scale));
}

// Fewer elements than a vector holds.
template <class From, class To, bool kScale>
void cast_some(std::byte* dst, const std::byte* src, std::int64_t count,
               float scale) {
  std::byte from[Simd::kWidth * sizeof(From)] = {};
  std::byte to[Simd::kWidth * sizeof(To)];
  std::memcpy(from, src, static_cast<std::size_t>(count) * sizeof(From));
  cast_vector<From, To, kScale>(to, from, scale);
  std::memcpy(dst, to, static_cast<std::size_t>(count) * sizeof(To));
}

// Converts elements and streams them as one line of results.
template <class From, class To, bool kScale>
void cast_line(std::byte* dst, const std::byte* src, float scale,
               std::int64_t ahead) {
  constexpr std::int64_t kFrom = sizeof(From);
  constexpr std::int64_t kVectors = kLine / sizeof(To) / Simd::kWidth;
  constexpr std::int64_t kRead = kLine / sizeof(To) * kFrom;
  for (std::int64_t b = 0; b < kRead; b += kLine) fetch(src + ahead + b);
  typename Simd::Floats line[kVectors];
  for (std::int64_t j = 0; j < kVectors; ++j) {
    line[j] = load_scaled<From, kScale>(src + j * Simd::kWidth * kFrom, scale);
  }
  Simd::template stream_line<To>(dst, line);
}

// Streams entire lines, from the start of one on. Returns the number of
// elements done.
template <class From, class To, bool kScale>
std::int64_t cast_lines(std::byte* dst, const std::byte* src,
                        std::int64_t width, float scale) {
  constexpr std::int64_t kFrom = sizeof(From);
  constexpr std::int64_t kTo = sizeof(To);
  constexpr std::int64_t kPerLine = kLine / kTo;
  // Elements of a page on the side with the larger elements.
  constexpr std::int64_t kPerPage = kPage / (kFrom > kTo ? kFrom : kTo);
  const Reading reading = reading_of_casts();
  std::int64_t i = 0;
  while (i + kPerPage <= width) {
    const std::int64_t left = (width - i) / kPerPage;
    const std::int64_t pages = left < reading.pages ? left : reading.pages;
    if (pages == 1) {
      // No load is in flight while an address is translated, so a line of the
      // next page is fetched early, on both sides.
      fetch(src + i * kFrom + kPage);
      fetch(dst + i * kTo + kPage);
    }
    const std::int64_t end = i + kPerPage;
    for (; i < end; i += kPerLine) {
      for (std::int64_t e = i; e < i + pages * kPerPage; e += kPerPage) {
        cast_line<From, To, kScale>(dst + e * kTo, src + e * kFrom, scale,
                                    reading.ahead);
      }
    }
    i += (pages - 1) * kPerPage;
  }
  for (; i + kPerLine <= width; i += kPerLine) {
    cast_line<From, To, kScale>(dst + i * kTo, src + i * kFrom, scale,
                                reading.ahead);
  }
  return i;
}

template <class From, class To, bool kScale>
void cast_row(std::byte* dst, const std::byte* src, std::int64_t width,
              float scale, bool stream) {
  constexpr std::int64_t kStep = Simd::kWidth;
  constexpr std::int64_t kFrom = sizeof(From);
  constexpr std::int64_t kTo = sizeof(To);
  std::int64_t i = 0;
  // Elements that straddle lines cannot be streamed.
  stream = stream && width >= kStreamed / kTo &&
           reinterpret_cast<std::intptr_t>(dst) % kTo == 0;
  if (stream) {
    std::int64_t head = bytes_to_line(dst) / kTo;
    for (; head >= kStep; head -= kStep, i += kStep) {
      cast_vector<From, To, kScale>(dst + i * kTo, src + i * kFrom, scale);
    }
    cast_some<From, To, kScale>(dst + i * kTo, src + i * kFrom, head, scale);
    i += head;
    i += cast_lines<From, To, kScale>(dst + i * kTo, src + i * kFrom, width - i,
                                      scale);
  }
  for (; i + kStep <= width; i += kStep) {
    cast_vector<From, To, kScale>(dst + i * kTo, src + i * kFrom, scale);
  }
  if (i >= width) return;
  if (!stream && width >= kStep) {
    // Converts some elements again, with the same result.
    i = width - kStep;
    cast_vector<From, To, kScale>(dst + i * kTo, src + i * kFrom, scale);
  } else {
    cast_some<From, To, kScale>(dst + i * kTo, src + i * kFrom, width - i,
                                scale);
  }
}

template <class From, class To>
void cast(const Panel& panel, float scale, bool stream) {
  for (std::int64_t r = 0; r < panel.rows; ++r) {
    std::byte* dst = panel.dst + r * panel.dst_stride;
    const std::byte* src = panel.src + r * panel.src_stride;
    // A factor of one is not neutral: it flushes subnormals if the caller has
    // set the processor to do so.
    if (scale == 1.0F) {
      cast_row<From, To, false>(dst, src, panel.width, scale, stream);
    } else {
      cast_row<From, To, true>(dst, src, panel.width, scale, stream);
    }
  }
}

void scale_f64(const Panel& panel, double scale) {
  for (std::int64_t r = 0; r < panel.rows; ++r) {
    std::byte* dst = panel.dst + r * panel.dst_stride;
    const std::byte* src = panel.src + r * panel.src_stride;
    for (std::int64_t i = 0; i < panel.width; ++i) {
      double value;
      std::memcpy(&value, src + i * 8, 8);
      value *= scale;
      std::memcpy(dst + i * 8, &value, 8);
    }
  }
}

// Returns a[kFirst], b[kFirst], a[kFirst + 1], b[kFirst + 1] and so on.
template <int kFirst, class Vector, int... kIndex>
Vector interleave(Vector a, Vector b, std::integer_sequence<int, kIndex...>) {
  constexpr int kSide = sizeof...(kIndex);
  return __builtin_shufflevector(a, b,
                                 (kFirst + kIndex / 2 + kIndex % 2 * kSide)...);
}

// Transposes a square of kSide x kSide elements; kSide elements fill a vector
// of 16 bytes. Each step interleaves the first half of the vectors with the
// second. The number of steps is the logarithm of kSide.
template <class T>
void transpose_square(std::byte* dst, std::int64_t dst_stride,
                      const std::byte* src, std::int64_t src_stride) {
  constexpr int kSide = 16 / sizeof(T);
  typedef T Vector __attribute__((vector_size(16)));
  // A vector at any address. GCC 12 assumes that a memcpy to or from Vector is
  // aligned.
  typedef T Loose __attribute__((vector_size(16), aligned(1), may_alias));
  Vector rows[kSide];
  Vector next[kSide];
  for (int i = 0; i < kSide; ++i) {
    rows[i] = *reinterpret_cast<const Loose*>(src + i * src_stride);
  }
  constexpr std::make_integer_sequence<int, kSide> kAll;
  for (int step = 1; step < kSide; step *= 2) {
    for (int i = 0; i < kSide / 2; ++i) {
      next[2 * i] = interleave<0>(rows[i], rows[i + kSide / 2], kAll);
      next[2 * i + 1] =
          interleave<kSide / 2>(rows[i], rows[i + kSide / 2], kAll);
    }
    for (int i = 0; i < kSide; ++i) rows[i] = next[i];
  }
  for (int i = 0; i < kSide; ++i) {
    *reinterpret_cast<Loose*>(dst + i * dst_stride) = rows[i];
  }
}

template <class T>
void transpose(const Panel& panel) {
  constexpr std::int64_t kSide = 16 / sizeof(T);
  constexpr std::int64_t kSize = sizeof(T);
  const std::int64_t rows = panel.rows / kSide * kSide;
  const std::int64_t columns = panel.width / kSide * kSide;
  for (std::int64_t r = 0; r < rows; r += kSide) {
    for (std::int64_t c = 0; c < columns; c += kSide) {
      transpose_square<T>(
          panel.dst + c * panel.dst_stride + r * kSize, panel.dst_stride,
          panel.src + r * panel.src_stride + c * kSize, panel.src_stride);
    }
  }
  for (std::int64_t r = 0; r < panel.rows; ++r) {
    for (std::int64_t c = r < rows ? columns : 0; c < panel.width; ++c) {
      std::memcpy(panel.dst + c * panel.dst_stride + r * kSize,
                  panel.src + r * panel.src_stride + c * kSize, kSize);
    }
  }
}

struct Sum {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(a + b);
  }
};
struct Product {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(a * b);
  }
};
// If either operand is NaN, the result is NaN; of two zeros it is the second.
// The device version of convert.h in the CUDA kernels does the same.
struct Min {
  template <class T>
  static T apply(T a, T b) {
    return (a < b) | (a != a) ? a : b;
  }
};
struct Max {
  template <class T>
  static T apply(T a, T b) {
    return (a > b) | (a != a) ? a : b;
  }
};
struct And {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct Or {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct Xor {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};

constexpr std::int64_t kBlock = 64;

template <class Op, class T>
void accumulate_some(T* accumulator, const T* values, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    accumulator[i] = Op::apply(accumulator[i], values[i]);
  }
}

template <class Op, class T>
void accumulate_same(void* accumulator, const void* src, std::int64_t count) {
  T* sums = static_cast<T*>(accumulator);
  const std::byte* from = static_cast<const std::byte*>(src);
  T values[kBlock];
  for (; count >= kBlock; count -= kBlock) {
    std::memcpy(values, from, sizeof values);
    accumulate_some<Op>(sums, values, kBlock);
    sums += kBlock;
    from += sizeof values;
  }
  std::memcpy(values, from, static_cast<std::size_t>(count) * sizeof(T));
  accumulate_some<Op>(sums, values, count);
}

template <class Op, class From>
void accumulate_float(void* accumulator, const void* src, std::int64_t count) {
  float* sums = static_cast<float*>(accumulator);
  const std::byte* from = static_cast<const std::byte*>(src);
  float values[kBlock];
  std::byte* const to = reinterpret_cast<std::byte*>(values);
  for (; count >= kBlock; count -= kBlock) {
    for (std::int64_t i = 0; i < kBlock; i += Simd::kWidth) {
      cast_vector<From, float, false>(
          to + i * 4, from + i * static_cast<std::int64_t>(sizeof(From)), 1.0F);
    }
    accumulate_some<Op>(sums, values, kBlock);
    sums += kBlock;
    from += kBlock * sizeof(From);
  }
  cast_row<From, float, false>(to, from, count, 1.0F, false);
  accumulate_some<Op>(sums, values, count);
}

template <class From>
constexpr void add_casts(RowKernels& table, int from) {
  RowKernels::Cast* row = table.cast[from];
  row[static_cast<int>(DType::kFloat32)] = &cast<From, float>;
  row[static_cast<int>(DType::kFloat16)] = &cast<From, F16>;
  row[static_cast<int>(DType::kBFloat16)] = &cast<From, BF16>;
  row[static_cast<int>(DType::kFloat8E4M3FN)] = &cast<From, F8E4M3FN>;
  row[static_cast<int>(DType::kFloat8E5M2)] = &cast<From, F8E5M2>;
}

// The entries of one op over all types that have it. Wrapping around is
// defined for unsigned integers only, and the same for signed ones.
template <class Signed, class Wrapping, class Bool>
constexpr void add_arithmetic(RowKernels& table, ReduceOp op) {
  RowKernels::Accumulate* row = table.accumulate[static_cast<int>(op)];
  row[static_cast<int>(DType::kFloat32)] = &accumulate_float<Signed, float>;
  row[static_cast<int>(DType::kFloat16)] = &accumulate_float<Signed, F16>;
  row[static_cast<int>(DType::kBFloat16)] = &accumulate_float<Signed, BF16>;
  row[static_cast<int>(DType::kFloat8E4M3FN)] =
      &accumulate_float<Signed, F8E4M3FN>;
  row[static_cast<int>(DType::kFloat8E5M2)] = &accumulate_float<Signed, F8E5M2>;
  row[static_cast<int>(DType::kFloat64)] = &accumulate_same<Signed, double>;
  row[static_cast<int>(DType::kUInt8)] = &accumulate_same<Signed, std::uint8_t>;
  row[static_cast<int>(DType::kBool)] = &accumulate_same<Bool, std::uint8_t>;
  if constexpr (__is_same(Wrapping, void)) {
    row[static_cast<int>(DType::kInt64)] =
        &accumulate_same<Signed, std::int64_t>;
    row[static_cast<int>(DType::kInt32)] =
        &accumulate_same<Signed, std::int32_t>;
    row[static_cast<int>(DType::kInt16)] =
        &accumulate_same<Signed, std::int16_t>;
    row[static_cast<int>(DType::kInt8)] = &accumulate_same<Signed, std::int8_t>;
  } else {
    row[static_cast<int>(DType::kInt64)] =
        &accumulate_same<Wrapping, std::uint64_t>;
    row[static_cast<int>(DType::kInt32)] =
        &accumulate_same<Wrapping, std::uint32_t>;
    row[static_cast<int>(DType::kInt16)] =
        &accumulate_same<Wrapping, std::uint16_t>;
    row[static_cast<int>(DType::kInt8)] =
        &accumulate_same<Wrapping, std::uint8_t>;
  }
}

template <class Op>
constexpr void add_bitwise(RowKernels& table, ReduceOp op) {
  RowKernels::Accumulate* row = table.accumulate[static_cast<int>(op)];
  row[static_cast<int>(DType::kInt64)] = &accumulate_same<Op, std::uint64_t>;
  row[static_cast<int>(DType::kInt32)] = &accumulate_same<Op, std::uint32_t>;
  row[static_cast<int>(DType::kInt16)] = &accumulate_same<Op, std::uint16_t>;
  row[static_cast<int>(DType::kInt8)] = &accumulate_same<Op, std::uint8_t>;
  row[static_cast<int>(DType::kUInt8)] = &accumulate_same<Op, std::uint8_t>;
  row[static_cast<int>(DType::kBool)] = &accumulate_same<Op, std::uint8_t>;
}

constexpr RowKernels make_table() {
  RowKernels table{};
  table.name = Simd::kName;
  table.copy = &copy;
  table.fill = &fill;
  add_casts<float>(table, static_cast<int>(DType::kFloat32));
  add_casts<F16>(table, static_cast<int>(DType::kFloat16));
  add_casts<BF16>(table, static_cast<int>(DType::kBFloat16));
  add_casts<F8E4M3FN>(table, static_cast<int>(DType::kFloat8E4M3FN));
  add_casts<F8E5M2>(table, static_cast<int>(DType::kFloat8E5M2));
  table.scale_f64 = &scale_f64;
  table.transpose[0] = &transpose<std::uint8_t>;
  table.transpose[1] = &transpose<std::uint16_t>;
  table.transpose[2] = &transpose<std::uint32_t>;
  table.transpose[3] = &transpose<std::uint64_t>;
  add_arithmetic<Sum, Sum, Or>(table, ReduceOp::kSum);
  add_arithmetic<Product, Product, And>(table, ReduceOp::kProduct);
  add_arithmetic<Min, void, And>(table, ReduceOp::kMin);
  add_arithmetic<Max, void, Or>(table, ReduceOp::kMax);
  add_bitwise<And>(table, ReduceOp::kBitwiseAnd);
  add_bitwise<Or>(table, ReduceOp::kBitwiseOr);
  add_bitwise<Xor>(table, ReduceOp::kBitwiseXor);
  return table;
}

}  // namespace

extern const RowKernels kRowKernels;
constexpr RowKernels kRowKernels = make_table();

}  // namespace shardprop::kernels::cpu::SHARDPROP_ROWS_NAMESPACE
