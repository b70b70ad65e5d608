#include "cli/made_up_data.h"

#include "base/try.h"

#include <shardprop/base/hash.h>
#include <shardprop/collective/kernel_view.h>
#include <shardprop/kernels/cpu.h>
#include <shardprop/placement/local_region.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace shardprop::cli {
namespace {

constexpr std::int64_t kSeed = 20261120;

std::uint64_t hash_of(std::int64_t element) {
  return hash_mix(kSeed, static_cast<std::uint64_t>(element));
}

// Calls visit(element) for each element of a rank, in its local order.
template <class Visit>
void for_each_held(const TensorSpec& spec, const Coordinate& at,
                   Visit&& visit) {
  const LocalRegion region = local_region(spec, at);
  const Dims& shape = spec.meta().shape();
  const auto walk = [&](const auto& self, std::size_t d,
                        std::int64_t start) -> void {
    if (d == shape.size()) {
      visit(start);
      return;
    }
    for (const Interval& run : region.dims()[d]) {
      for (std::int64_t i = run.begin; i < run.end; ++i) {
        self(self, d + 1, start * shape[d] + i);
      }
    }
  };
  walk(walk, 0, 0);
}

struct Terms {
  ReduceOp op = ReduceOp::kSum;
  DimIndices dims;
  std::int64_t averaged = 1;
};

Terms terms_of(const TensorSpec& spec) {
  Terms terms;
  for (std::int32_t d = 0; d < spec.mesh().ndim(); ++d) {
    const Placement placement = spec.placement(d);
    if (!placement.is_partial()) continue;
    terms.dims.push_back(d);
    terms.op = placement.reduce_op();
    if (terms.op == ReduceOp::kAvg) {
      terms.averaged *= spec.mesh().size(d);
      terms.op = ReduceOp::kSum;
    }
  }
  return terms;
}

bool power_of_two(std::int64_t n) { return (n & (n - 1)) == 0; }

LocalTensor element_view(const void* data, DType dtype) {
  // The kernel only reads through this view.
  return LocalTensor::wrap(const_cast<void*>(data), Dims{1}, dtype);
}

// Returns the real part, since made-up terms are real.
double value_of(const std::byte* from, DType dtype) {
  switch (dtype) {
    case DType::kF16:
    case DType::kBF16:
    case DType::kF8E4M3FN:
    case DType::kF8E5M2: {
      float wide = 0;
      const LocalTensor to = element_view(&wide, DType::kF32);
      const kernels::Status status = kernels::cpu::strided_copy(
          {.in = kernel_view(element_view(from, dtype)),
           .out = mutable_kernel_view(to)});
      if (!status.ok()) throw InternalError(status.message());
      return static_cast<double>(wide);
    }
    case DType::kF32:
    case DType::kC64: {
      float value = 0;
      std::memcpy(&value, from, sizeof(value));
      return static_cast<double>(value);
    }
    case DType::kF64:
    case DType::kC128: {
      double value = 0;
      std::memcpy(&value, from, sizeof(value));
      return value;
    }
    default: {
      const auto size = static_cast<std::size_t>(item_size(dtype));
      std::uint64_t bits = 0;
      std::memcpy(&bits, from, size);
      const bool is_signed = to_string(dtype)[0] == 'i';
      if (is_signed && size < 8 && (bits >> (8 * size - 1) & 1U) != 0) {
        bits |= ~std::uint64_t{0} << (8 * size);
      }
      return static_cast<double>(static_cast<std::int64_t>(bits));
    }
  }
}

double together(ReduceOp op, DType dtype, double a, double b) {
  const auto bits = [](double x) { return static_cast<std::int64_t>(x); };
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kAvg:
      return dtype == DType::kBool ? std::max(a, b) : a + b;
    case ReduceOp::kProduct:
      return a * b;
    case ReduceOp::kMin:
      return std::min(a, b);
    case ReduceOp::kMax:
      return std::max(a, b);
    case ReduceOp::kBand:
      return static_cast<double>(bits(a) & bits(b));
    case ReduceOp::kBor:
      return static_cast<double>(bits(a) | bits(b));
    case ReduceOp::kBxor:
      return static_cast<double>(bits(a) ^ bits(b));
  }
  throw InternalError("a reduce op outside its enumeration");
}

}  // namespace

MadeUpData::MadeUpData(TensorSpec src, TensorSpec dst)
    : src_(std::move(src)),
      dst_(std::move(dst)),
      moves_only_(!src_.layout().has_partial() && !dst_.layout().has_partial()),
      vanishes_(!power_of_two(terms_of(src_).averaged) ||
                !power_of_two(terms_of(dst_).averaged)) {}

// Returns 0 to 7, which f8e5m2 can represent. If an average would not be exact,
// for example over three ranks, it returns 0.
std::int64_t MadeUpData::whole(std::int64_t element) const {
  if (vanishes_) return 0;
  const bool truth = src_.meta().dtype() == DType::kBool;
  return static_cast<std::int64_t>(hash_of(element) % (truth ? 2 : 8));
}

// For each element one rank holds the value, and this rank differs from element
// to element. The other ranks hold terms that do not change the value; two of
// them hold opposite terms.
std::int64_t MadeUpData::term(std::int64_t element,
                              const Coordinate& at) const {
  const Terms terms = terms_of(src_);
  std::int64_t place = 0;
  std::int64_t ranks = 1;
  for (const std::int32_t d : terms.dims) {
    place = place * src_.mesh().size(d) + at[static_cast<std::size_t>(d)];
    ranks *= src_.mesh().size(d);
  }
  const auto holder = static_cast<std::int64_t>(
      (hash_of(element) >> 8) % static_cast<std::uint64_t>(ranks));
  const std::int64_t value = whole(element);
  const bool holds = place == holder;
  switch (terms.op) {
    case ReduceOp::kProduct:
      return holds ? value : 1;
    case ReduceOp::kMin:
    case ReduceOp::kBand:
      return holds ? value : src_.meta().dtype() == DType::kBool ? 1 : 7;
    case ReduceOp::kMax:
    case ReduceOp::kBor:
    case ReduceOp::kBxor:
      return holds ? value : 0;
    default:
      break;
  }
  // Sums. An average is as many times the larger on its holder.
  if (vanishes_ && ranks > 1) {
    return holds ? 1 : place == (holder + 1) % ranks ? -1 : 0;
  }
  return holds ? value * terms.averaged : 0;
}

void MadeUpData::put(std::int64_t element, std::int64_t value,
                     std::byte* to) const {
  const DType dtype = src_.meta().dtype();
  const auto size = static_cast<std::size_t>(item_size(dtype));
  std::memset(to, 0, size);
  if (moves_only_) {
    std::uint64_t bits[2] = {hash_of(element), hash_of(~element)};
    if (dtype == DType::kBool) bits[0] &= 1;
    std::memcpy(to, bits, size);
    return;
  }
  switch (dtype) {
    case DType::kF16:
    case DType::kBF16:
    case DType::kF8E4M3FN:
    case DType::kF8E5M2: {
      const auto wide = static_cast<float>(value);
      const kernels::Status status = kernels::cpu::strided_copy(
          {.in = kernel_view(element_view(&wide, DType::kF32)),
           .out = mutable_kernel_view(element_view(to, dtype))});
      if (!status.ok()) throw InternalError(status.message());
      return;
    }
    case DType::kF32:
    case DType::kC64: {
      const auto wide = static_cast<float>(value);
      std::memcpy(to, &wide, sizeof(wide));
      return;
    }
    case DType::kF64:
    case DType::kC128: {
      const auto wide = static_cast<double>(value);
      std::memcpy(to, &wide, sizeof(wide));
      return;
    }
    default:
      std::memcpy(to, &value, std::min(size, sizeof(value)));
      return;
  }
}

Result<LocalTensor> MadeUpData::source(std::int64_t rank) const {
  const Coordinate at = *src_.mesh().coordinate_of(rank);
  SP_ASSIGN(LocalTensor out, LocalTensor::empty(local_region(src_, at).shape(),
                                                src_.meta().dtype()));
  auto* to = out.data_as<std::byte>();
  const std::int64_t item = item_size(src_.meta().dtype());
  for_each_held(src_, at, [&](std::int64_t element) {
    put(element, moves_only_ ? 0 : term(element, at), to);
    to += item;
  });
  return out;
}

std::string MadeUpData::check(
    const std::vector<std::vector<std::byte>>& results) const {
  const DeviceMesh& mesh = dst_.mesh();
  const DType dtype = dst_.meta().dtype();
  const auto item = static_cast<std::size_t>(item_size(dtype));
  const Terms terms = terms_of(dst_);
  std::string wrong;
  for (std::int64_t i = 0; i < mesh.size() && wrong.empty(); ++i) {
    const Coordinate at = mesh.coordinate_at_index(i);
    const RankGroup group =
        mesh.group(std::span(terms.dims.data(), terms.dims.size()), at);
    const std::vector<std::byte>& own = results[static_cast<std::size_t>(i)];
    std::size_t place = 0;
    for_each_held(dst_, at, [&](std::int64_t element) {
      const std::size_t offset = place++ * item;
      if (!wrong.empty() || offset + item > own.size()) return;
      std::byte wanted[16];
      put(element, moves_only_ ? 0 : whole(element), wanted);
      bool right = std::memcmp(wanted, own.data() + offset, item) == 0;
      if (!terms.dims.empty()) {
        double value = 0;
        for (std::int64_t r = 0; r < group.size(); ++r) {
          const auto index =
              static_cast<std::size_t>(*mesh.index_of(group.rank(r)));
          const double next = value_of(results[index].data() + offset, dtype);
          value = r == 0 ? next : together(terms.op, dtype, value, next);
        }
        right = value / static_cast<double>(terms.averaged) ==
                static_cast<double>(whole(element));
      }
      if (!right) {
        wrong = "element " + std::to_string(element) + " on rank " +
                std::to_string(mesh.rank_at(at));
      }
    });
    if (wrong.empty() && place * item != own.size()) {
      wrong = "rank " + std::to_string(mesh.rank_at(at)) + " holds " +
              std::to_string(own.size()) + " bytes instead of " +
              std::to_string(place * item);
    }
  }
  return wrong;
}

}  // namespace shardprop::cli
