#include "reference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>

namespace shardprop::kernels::testing {
namespace {

struct Format {
  int exponent_bits;
  int mantissa_bits;
  bool infinities;
};

Format format_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return {5, 10, true};
    case DType::kBFloat16:
      return {8, 7, true};
    case DType::kFloat8E4M3FN:
      return {4, 3, false};
    case DType::kFloat8E5M2:
      return {5, 2, true};
    default:
      return {8, 23, true};
  }
}

// Returns all finite numbers from zero up, indexed by their bits.
const std::vector<float>& numbers_of(DType dtype) {
  static std::map<DType, std::vector<float>> tables;
  std::vector<float>& table = tables[dtype];
  for (std::uint64_t bits = 0; table.size() == bits; ++bits) {
    const double number = number_of(bits, dtype);
    if (std::isfinite(number)) table.push_back(static_cast<float>(number));
  }
  return table;
}

std::int64_t index_of(const std::vector<std::int64_t>& sizes,
                      const std::vector<std::int64_t>& at) {
  std::int64_t index = 0;
  for (std::size_t d = 0; d < sizes.size(); ++d)
    index = index * sizes[d] + at[d];
  return index;
}

std::vector<std::int64_t> place_of(const std::vector<std::int64_t>& sizes,
                                   std::int64_t index) {
  std::vector<std::int64_t> at(sizes.size());
  for (std::size_t d = sizes.size(); d-- > 0;) {
    at[d] = index % sizes[d];
    index /= sizes[d];
  }
  return at;
}

void zero(Arena& arena, const Tensor& tensor) {
  for (std::int64_t i = 0; i < tensor.count(); ++i) write(arena, tensor, i, 0);
}

template <class T>
T combined(T a, T b, ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return a + b;
    case ReduceOp::kProduct:
      return a * b;
    case ReduceOp::kMin:
      return std::isnan(a) || a < b ? a : b;
    default:
      return std::isnan(a) || a > b ? a : b;
  }
}

std::int64_t signed_value(std::uint64_t bits, DType dtype) {
  switch (dtype) {
    case DType::kInt32:
      return static_cast<std::int32_t>(bits);
    case DType::kInt16:
      return static_cast<std::int16_t>(bits);
    case DType::kInt8:
      return static_cast<std::int8_t>(bits);
    default:
      return static_cast<std::int64_t>(bits);
  }
}

std::uint64_t combined_bits(std::uint64_t a, std::uint64_t b, DType dtype,
                            ReduceOp op) {
  const std::int64_t x = signed_value(a, dtype);
  const std::int64_t y = signed_value(b, dtype);
  const bool logical = dtype == DType::kBool;
  switch (op) {
    case ReduceOp::kSum:
      return logical ? a | b : a + b;
    case ReduceOp::kProduct:
      return logical ? a & b : a * b;
    case ReduceOp::kMin:
      return x < y ? a : b;
    case ReduceOp::kMax:
      return x > y ? a : b;
    case ReduceOp::kBitwiseAnd:
      return a & b;
    case ReduceOp::kBitwiseOr:
      return a | b;
    default:
      return a ^ b;
  }
}

}  // namespace

double number_of(std::uint64_t bits, DType dtype) {
  if (dtype == DType::kFloat64) return std::bit_cast<double>(bits);
  const Format format = format_of(dtype);
  const int width = 1 + format.exponent_bits + format.mantissa_bits;
  const auto mantissa =
      static_cast<double>(bits & ((1ULL << format.mantissa_bits) - 1));
  const int most = (1 << format.exponent_bits) - 1;
  const int exponent = static_cast<int>(bits >> format.mantissa_bits) & most;
  const double sign = (bits >> (width - 1) & 1) != 0 ? -1.0 : 1.0;
  const int bias = most / 2;
  const double unit = std::ldexp(1.0, -format.mantissa_bits);
  if (format.infinities && exponent == most) {
    return mantissa == 0 ? sign * std::numeric_limits<double>::infinity()
                         : std::numeric_limits<double>::quiet_NaN();
  }
  if (!format.infinities && exponent == most && mantissa * unit + unit >= 1.0) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (exponent == 0) return sign * std::ldexp(mantissa * unit, 1 - bias);
  return sign * std::ldexp(1.0 + mantissa * unit, exponent - bias);
}

std::uint64_t nearest(float value, DType dtype) {
  if (dtype == DType::kFloat32) return std::bit_cast<std::uint32_t>(value);
  const Format format = format_of(dtype);
  const int width = 1 + format.exponent_bits + format.mantissa_bits;
  const std::uint64_t sign = std::signbit(value) ? 1ULL << (width - 1) : 0;
  const std::vector<float>& table = numbers_of(dtype);
  if (std::isnan(value)) {  // any NaN
    return (1ULL << (width - 1)) - 1;
  }
  const double magnitude = std::fabs(static_cast<double>(value));
  // Infinity begins at the number that would follow the last finite one.
  const std::uint64_t last = table.size() - 1;
  const double step = static_cast<double>(table[last]) - table[last - 1];
  if (magnitude >= table[last] + step / 2) {
    return sign | (format.infinities ? last + 1 : last);
  }
  const auto above = std::lower_bound(table.begin(), table.end(), magnitude);
  if (above == table.end()) return sign | last;
  auto index = static_cast<std::uint64_t>(above - table.begin());
  if (index > 0 && magnitude != *above) {
    const double middle =
        (static_cast<double>(table[index]) + table[index - 1]) / 2;
    const bool below =
        magnitude < middle || (magnitude == middle && (index - 1) % 2 == 0);
    if (below) --index;
  }
  return sign | index;
}

std::uint64_t converted(std::uint64_t bits, DType from, DType to,
                        double scale) {
  if (from == to && scale == 1.0) return bits;
  if (from == DType::kFloat64) {
    return std::bit_cast<std::uint64_t>(number_of(bits, from) * scale);
  }
  const float value =
      static_cast<float>(number_of(bits, from)) * static_cast<float>(scale);
  return nearest(value, to);
}

std::uint64_t read(const Arena& arena, const Tensor& tensor,
                   std::int64_t index) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, arena.bytes.data() + tensor.at(index),
              static_cast<std::size_t>(size_of(tensor.dtype)));
  return bits;
}

void write(Arena& arena, const Tensor& tensor, std::int64_t index,
           std::uint64_t bits) {
  std::memcpy(arena.bytes.data() + tensor.at(index), &bits,
              static_cast<std::size_t>(size_of(tensor.dtype)));
}

bool same(std::uint64_t a, std::uint64_t b, DType dtype) {
  if (a == b) return true;
  if (!is_castable(dtype) && dtype != DType::kFloat64) return false;
  return std::isnan(number_of(a, dtype)) && std::isnan(number_of(b, dtype));
}

void chunk_cat(Arena& arena, const std::vector<Tensor>& tensors,
               std::int64_t dim, std::int64_t num_chunks, const Tensor& out,
               double scale) {
  zero(arena, out);
  const auto cut = static_cast<std::size_t>(dim);
  std::int64_t column = 0;
  for (const Tensor& tensor : tensors) {
    const std::int64_t chunk =
        (tensor.sizes[cut] + num_chunks - 1) / num_chunks;
    std::int64_t trailing = 1;
    for (std::size_t d = cut + 1; d < tensor.sizes.size(); ++d) {
      trailing *= tensor.sizes[d];
    }
    for (std::int64_t i = 0; i < tensor.count(); ++i) {
      const auto at = place_of(tensor.sizes, i);
      std::vector<std::int64_t> to(at.begin(), at.begin() + dim);
      to.push_back(at[cut] / chunk);
      to.push_back(column + at[cut] % chunk * trailing + i % trailing);
      write(arena, out, index_of(out.sizes, to),
            converted(read(arena, tensor, i), tensor.dtype, out.dtype, scale));
    }
    column += chunk * trailing;
  }
}

void sharded(Arena& arena, const std::vector<Tensor>& tensors,
             const std::vector<std::int64_t>& shard_dims, const Tensor& packed,
             double scale, bool unpack) {
  if (!unpack) zero(arena, packed);
  const std::int64_t num_chunks = packed.sizes[0];
  std::int64_t column = 0;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const Tensor& tensor = tensors[t];
    const auto cut = static_cast<std::size_t>(shard_dims[t]);
    std::vector<std::int64_t> shard = tensor.sizes;
    shard[cut] = (tensor.sizes[cut] + num_chunks - 1) / num_chunks;
    std::int64_t width = 1;
    for (const std::int64_t size : shard) width *= size;
    for (std::int64_t i = 0; i < tensor.count(); ++i) {
      auto at = place_of(tensor.sizes, i);
      const std::int64_t k = at[cut] / shard[cut];
      at[cut] %= shard[cut];
      const std::int64_t there =
          k * packed.sizes[1] + column + index_of(shard, at);
      if (unpack) {
        write(arena, tensor, i,
              converted(read(arena, packed, there), packed.dtype, tensor.dtype,
                        scale));
      } else {
        write(arena, packed, there,
              converted(read(arena, tensor, i), tensor.dtype, packed.dtype,
                        scale));
      }
    }
    column += width;
  }
}

void split(Arena& arena, const Tensor& in, std::int64_t dim,
           const std::vector<Tensor>& outs, double scale) {
  std::int64_t offset = 0;
  for (const Tensor& out : outs) {
    for (std::int64_t i = 0; i < out.count(); ++i) {
      auto at = place_of(out.sizes, i);
      at[static_cast<std::size_t>(dim)] += offset;
      write(arena, out, i,
            converted(read(arena, in, index_of(in.sizes, at)), in.dtype,
                      out.dtype, scale));
    }
    offset += out.sizes[static_cast<std::size_t>(dim)];
  }
}

void strided_copy(Arena& arena, const Tensor& in, const Tensor& out,
                  double scale) {
  for (std::int64_t i = 0; i < out.count(); ++i) {
    write(arena, out, i,
          converted(read(arena, in, i), in.dtype, out.dtype, scale));
  }
}

void reduce_into(Arena& arena, ReduceOp op, const std::vector<Tensor>& inputs,
                 const Tensor& out, double scale) {
  const DType dtype = inputs[0].dtype;
  for (std::int64_t i = 0; i < out.count(); ++i) {
    std::uint64_t bits = read(arena, inputs[0], i);
    if (is_castable(dtype)) {
      auto sum = static_cast<float>(number_of(bits, dtype));
      for (std::size_t t = 1; t < inputs.size(); ++t) {
        sum = combined(
            sum,
            static_cast<float>(number_of(read(arena, inputs[t], i), dtype)),
            op);
      }
      bits = nearest(sum * static_cast<float>(scale), out.dtype);
    } else if (dtype == DType::kFloat64) {
      double sum = number_of(bits, dtype);
      for (std::size_t t = 1; t < inputs.size(); ++t) {
        sum = combined(sum, number_of(read(arena, inputs[t], i), dtype), op);
      }
      bits = std::bit_cast<std::uint64_t>(sum * scale);
    } else {
      for (std::size_t t = 1; t < inputs.size(); ++t) {
        bits = combined_bits(bits, read(arena, inputs[t], i), dtype, op);
      }
    }
    write(arena, out, i, bits);
  }
}

}  // namespace shardprop::kernels::testing
