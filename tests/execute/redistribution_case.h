// Random redistributions and their expected results. The expectation follows
// the plainest definition: lists of indices, chunk after chunk, and terms
// reduced one by one.
#pragma once

#include "execute/elements.h"
#include "support/placement_gen.h"
#include "support/result_checks.h"

#include <shardprop/collective/local_tensor.h>
#include <shardprop/placement/tensor_spec.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace shardprop::testing {

using Random = std::mt19937_64;

inline std::size_t pick(Random& random, std::size_t below) {
  return static_cast<std::size_t>(random() % below);
}

// Returns the indices in the full tensor of the elements on a rank, in local
// order.
inline Indices held_elements(const TensorSpec& spec, const Coordinate& at) {
  const Dims& shape = spec.meta().shape();
  Indices out{0};
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const Indices held = naive_held(spec.layout(), spec.mesh(),
                                    static_cast<int>(d), shape[d], at);
    Indices longer;
    longer.reserve(out.size() * held.size());
    for (const std::int64_t start : out) {
      for (const std::int64_t i : held) longer.push_back(start * shape[d] + i);
    }
    out = std::move(longer);
  }
  return out;
}

inline Dims held_shape(const TensorSpec& spec, const Coordinate& at) {
  Dims out;
  for (std::size_t d = 0; d < spec.meta().shape().size(); ++d) {
    out.push_back(static_cast<std::int64_t>(
        naive_held(spec.layout(), spec.mesh(), static_cast<int>(d),
                   spec.meta().shape()[d], at)
            .size()));
  }
  return out;
}

inline std::vector<std::byte> bytes_of(const LocalTensor& tensor) {
  const auto size = static_cast<std::size_t>(tensor.bytes());
  std::vector<std::byte> out(size);
  if (size > 0) std::memcpy(out.data(), tensor.data(), size);
  return out;
}

// `PartialView` has the mesh dims over which a layout is partial, their
// reduction and the divisor of averages.
struct PartialView {
  DimIndices dims;
  ReduceOp op = ReduceOp::kSum;  // sum where sums and averages mix
  double divisor = 1;            // of the averaged dims
};

inline PartialView partial_of(const TensorSpec& spec) {
  PartialView view;
  for (std::int32_t d = 0; d < spec.mesh().ndim(); ++d) {
    const Placement placement = spec.placement(d);
    if (!placement.is_partial()) continue;
    view.dims.push_back(d);
    view.op = placement.reduce_op();
    if (view.op == ReduceOp::kAvg) {
      view.divisor *= static_cast<double>(spec.mesh().size(d));
    }
  }
  if (view.op == ReduceOp::kAvg) view.op = ReduceOp::kSum;
  return view;
}

class RedistributionCase {
 public:
  // Creates the sources of all ranks of `src`: equal values on replicas, terms
  // on partials.
  RedistributionCase(TensorSpec src, TensorSpec dst, Random& random)
      : src_(std::move(src)), dst_(std::move(dst)) {
    moves_only_ = !src_.layout().has_partial() && !dst_.layout().has_partial();
    const auto count = static_cast<std::size_t>(src_.meta().numel());
    const auto item = static_cast<std::size_t>(item_size(dtype()));
    whole_bytes_.resize(count * item);
    if (moves_only_) {
      for (std::byte& byte : whole_bytes_) byte = std::byte(random() & 0xff);
      if (dtype() == DType::kBool) {
        for (std::byte& byte : whole_bytes_) byte &= std::byte{1};
      }
    } else {
      draw_terms(count, random);
    }
  }

  const TensorSpec& src() const { return src_; }
  const TensorSpec& dst() const { return dst_; }
  DType dtype() const { return src_.meta().dtype(); }
  std::string text() const {
    return to_string(src_) + " on " + to_string(src_.mesh()) + " -> " +
           to_string(dst_) + " on " + to_string(dst_.mesh()) + " from " +
           std::to_string(dst_.mesh().rank_at_index(0));
  }

  // The source is row-major or, if `transposed` is set, the last dim has the
  // largest stride.
  LocalTensor source(std::int64_t rank, bool transposed = false) const {
    const Coordinate at = *src_.mesh().coordinate_of(rank);
    const Dims shape = held_shape(src_, at);
    LocalTensor out = value_of(LocalTensor::empty(shape, dtype()));
    if (transposed) {
      Dims strides = shape;
      std::int64_t step = 1;
      for (std::size_t d = 0; d < shape.size(); ++d) {
        strides[d] = step;
        step *= std::max<std::int64_t>(1, shape[d]);
      }
      out = LocalTensor::wrap(out.data(), shape, strides, dtype(), out.owner());
    }
    const Indices elements = held_elements(src_, at);
    const auto item = static_cast<std::size_t>(item_size(dtype()));
    for (std::size_t i = 0; i < elements.size(); ++i) {
      const ElementBits bits = source_element(at, elements[i]);
      std::memcpy(out.data_as<std::byte>() + offset(out, i) * item, bits.data(),
                  item);
    }
    return out;
  }

  // Returns the bytes that `rank` must have afterwards. The result is empty if
  // they depend on the path of the plan (terms of a partial).
  std::vector<std::byte> wanted(std::int64_t rank) const {
    const Indices elements =
        held_elements(dst_, *dst_.mesh().coordinate_of(rank));
    const auto item = static_cast<std::size_t>(item_size(dtype()));
    std::vector<std::byte> out;
    for (const std::int64_t element : elements) {
      const auto* from =
          whole_bytes_.data() + static_cast<std::size_t>(element) * item;
      out.insert(out.end(), from, from + item);
    }
    return out;
  }

  // Returns an empty text, or a description of the error. `results` is indexed
  // by rank of dst's mesh.
  std::string check(const std::vector<std::vector<std::byte>>& results) const {
    const DeviceMesh& mesh = dst_.mesh();
    const auto item = static_cast<std::size_t>(item_size(dtype()));
    for (std::int64_t i = 0; i < mesh.size(); ++i) {
      const auto& got = results[static_cast<std::size_t>(i)];
      const Coordinate at = mesh.coordinate_at_index(i);
      if (!dst_.layout().has_partial()) {
        if (got != wanted(mesh.rank_at(at))) {
          return "rank " + std::to_string(mesh.rank_at(at)) + " differs";
        }
        continue;
      }
      const Indices elements = held_elements(dst_, at);
      if (got.size() != elements.size() * item) {
        return "rank " + std::to_string(mesh.rank_at(at)) + " has " +
               std::to_string(got.size()) + " bytes";
      }
      for (std::size_t k = 0; k < elements.size(); ++k) {
        const Number whole = combined_over(results, at, k * item);
        const ElementBits bits = encode(dtype(), whole);
        if (std::memcmp(bits.data(),
                        whole_bytes_.data() +
                            static_cast<std::size_t>(elements[k]) * item,
                        item) != 0) {
          return "terms of element " + std::to_string(elements[k]) +
                 " at rank " + std::to_string(mesh.rank_at(at)) +
                 " do not combine to it";
        }
      }
    }
    return "";
  }

 private:
  static std::size_t offset(const LocalTensor& tensor, std::size_t index) {
    std::int64_t offset = 0;
    auto left = static_cast<std::int64_t>(index);
    for (std::size_t d = tensor.sizes().size(); d-- > 0;) {
      offset += left % tensor.sizes()[d] * tensor.strides()[d];
      left /= tensor.sizes()[d];
    }
    return static_cast<std::size_t>(offset);
  }

  // Returns the index of a coordinate among the terms of a partial.
  static std::size_t term_of(const TensorSpec& spec, const PartialView& partial,
                             const Coordinate& at) {
    std::size_t term = 0;
    for (const std::int32_t d : partial.dims) {
      term = term * static_cast<std::size_t>(spec.mesh().size(d)) +
             static_cast<std::size_t>(at[static_cast<std::size_t>(d)]);
    }
    return term;
  }

  ElementBits source_element(const Coordinate& at, std::int64_t element) const {
    const auto e = static_cast<std::size_t>(element);
    if (!moves_only_) {
      return encode(dtype(), terms_[e][term_of(src_, partial_of(src_), at)]);
    }
    ElementBits bits{};
    const auto item = static_cast<std::size_t>(item_size(dtype()));
    std::memcpy(bits.data(), whole_bytes_.data() + e * item, item);
    return bits;
  }

  // Few terms differ from the neutral one, so that every sum on the way is
  // exact in 8 bits.
  Number draw_term(ReduceOp op, bool special, Random& random) const {
    const bool bits =
        op == ReduceOp::kBand || op == ReduceOp::kBor || op == ReduceOp::kBxor;
    if (dtype() == DType::kBool) return {static_cast<double>(random() % 2), 0};
    if (bits) return {static_cast<double>(random() % 128), 0};
    const bool is_signed = is_floating(dtype()) || is_complex(dtype()) ||
                           to_string(dtype())[0] == 'i';
    if (op == ReduceOp::kProduct) {
      if (!special) return {1, 0};
      return {is_signed && random() % 3 == 0 ? -1.0 : 2.0, 0};
    }
    const auto small = [&](std::uint64_t most) {
      const auto value = static_cast<double>(random() % (most + 1));
      return is_signed && random() % 2 == 0 && value != 0 ? -value : value;
    };
    if (op == ReduceOp::kMin || op == ReduceOp::kMax) return {small(8), 0};
    if (!special) return {0, 0};
    return {small(2), is_complex(dtype()) ? small(2) : 0};
  }

  void draw_terms(std::size_t count, Random& random) {
    const PartialView partial = partial_of(src_);
    std::size_t terms = 1;
    for (const std::int32_t d : partial.dims) {
      terms *= static_cast<std::size_t>(src_.mesh().size(d));
    }
    // Whole values are a source of one term; the target may split them up.
    const ReduceOp op = partial.dims.empty() ? partial_of(dst_).op : partial.op;
    const auto item = static_cast<std::size_t>(item_size(dtype()));
    for (std::size_t e = 0; e < count; ++e) {
      std::vector<bool> special(terms);
      for (int k = 0; k < 3; ++k) special[pick(random, terms)] = true;
      std::vector<Number> drawn;
      for (std::size_t t = 0; t < terms; ++t) {
        drawn.push_back(draw_term(op, special[t], random));
      }
      Number whole = drawn[0];
      for (std::size_t t = 1; t < terms; ++t) {
        whole = combined(op, dtype(), whole, drawn[t]);
      }
      for (double& part : whole) part /= partial.divisor;
      const ElementBits bits = encode(dtype(), whole);
      std::memcpy(whole_bytes_.data() + e * item, bits.data(), item);
      terms_.push_back(std::move(drawn));
    }
  }

  Number combined_over(const std::vector<std::vector<std::byte>>& results,
                       const Coordinate& at, std::size_t offset) const {
    const PartialView partial = partial_of(dst_);
    const RankGroup group = dst_.mesh().group(
        std::span(partial.dims.data(), partial.dims.size()), at);
    Number whole{};
    for (std::int64_t r = 0; r < group.size(); ++r) {
      const auto index =
          static_cast<std::size_t>(*dst_.mesh().index_of(group.rank(r)));
      const Number term = decode(dtype(), results[index].data() + offset);
      whole = r == 0 ? term : combined(partial.op, dtype(), whole, term);
    }
    for (double& part : whole) part /= partial.divisor;
    return whole;
  }

  TensorSpec src_;
  TensorSpec dst_;
  bool moves_only_ = true;
  std::vector<std::byte> whole_bytes_;
  std::vector<std::vector<Number>> terms_;  // by element
};

// ------ drawing ------

struct Draw {
  int most_dims = 4;
  std::int64_t most_ranks = 16;
};

inline DeviceMesh draw_mesh(const Draw& draw, Random& random) {
  const auto ndim = 1 + static_cast<int>(pick(
                            random, static_cast<std::size_t>(draw.most_dims)));
  std::vector<MeshDim> dims;
  std::int64_t left = draw.most_ranks;
  for (int i = 0; i < ndim; ++i) {
    const std::int64_t sizes[] = {1, 2, 2, 2, 3, 4, 5, 8, 16};
    const std::int64_t size = std::min(left, sizes[pick(random, 9)]);
    left /= size;
    dims.push_back({"d" + std::to_string(i), size});
  }
  return DeviceMesh::create(dims).value();
}

inline Dims draw_shape(Random& random) {
  const std::size_t rank = pick(random, 6);
  const std::size_t most = rank <= 1 ? 40 : rank == 2 ? 14 : rank == 3 ? 8 : 5;
  Dims shape;
  for (std::size_t d = 0; d < rank; ++d) {
    const bool empty = random() % 40 == 0;
    shape.push_back(empty ? 0
                          : static_cast<std::int64_t>(1 + pick(random, most)));
  }
  return shape;
}

inline bool power_of_two(std::int64_t n) { return (n & (n - 1)) == 0; }

// Returns shards in any order, replicas and partials of `op`, with sums and
// averages mixed. A layout may have strided shards (on larger meshes in few
// cases, because plans to them take long to find). A mesh dim that `from`
// shards gets no partial.
inline Layout draw_layout(const DeviceMesh& mesh, int tensor_rank,
                          std::optional<Placement> partial, const Layout* from,
                          Random& random) {
  Placements placements;
  const bool strided = mesh.ndim() <= 2 || random() % 16 == 0;
  for (int i = 0; i < mesh.ndim(); ++i) {
    const std::size_t kind = pick(random, 8);
    const bool may = partial && (from == nullptr || !(*from)[i].is_shard());
    if (kind < 5 && tensor_rank > 0) {
      const auto dim =
          static_cast<int>(pick(random, static_cast<std::size_t>(tensor_rank)));
      const int factors[] = {1, 1, 1, 1, 1, 2, 3, 4};
      placements.push_back(Placement::strided_shard(
          dim, strided ? factors[pick(random, 8)] : 1));
    } else if (kind < 7 && may) {
      Placement term = *partial;
      if (term.reduce_op() == ReduceOp::kAvg &&
          (!power_of_two(mesh.size(i)) || random() % 3 == 0)) {
        term = Placement::partial(ReduceOp::kSum, term.reduce_dtype());
      }
      placements.push_back(term);
    } else {
      placements.push_back(Placement::replicate());
    }
  }
  ShardOrder order(placements.size());
  for (int dim = 0; dim < tensor_rank; ++dim) {
    std::vector<std::size_t> cuts;
    for (std::size_t i = 0; i < placements.size(); ++i) {
      if (placements[i].shards(dim)) cuts.push_back(i);
    }
    std::shuffle(cuts.begin(), cuts.end(), random);
    for (std::size_t i = 0; i < cuts.size(); ++i) {
      order[cuts[i]] = static_cast<std::int8_t>(i);
    }
  }
  return Layout::create(std::move(placements), std::move(order)).value();
}

inline std::optional<Placement> draw_partial(DType dtype, Random& random) {
  const std::vector<ReduceOp> ops = ops_of(dtype);
  if (ops.empty() || random() % 3 == 0) return std::nullopt;
  std::optional<DType> in;
  const bool castable =
      is_floating(dtype) && dtype != DType::kF64 && random() % 5 == 0;
  if (castable) {
    const DType dtypes[] = {DType::kF32, DType::kBF16, DType::kF16};
    in = dtypes[pick(random, 3)];
  }
  return Placement::partial(ops[pick(random, ops.size())], in);
}

inline TensorMeta draw_meta(Random& random) {
  const auto dtypes = all_dtypes();
  return TensorMeta::contiguous(draw_shape(random),
                                dtypes[pick(random, dtypes.size())])
      .value();
}

// On one mesh.
inline RedistributionCase draw_case(const DeviceMesh& mesh, Random& random) {
  const TensorMeta meta = draw_meta(random);
  const Layout from = draw_layout(
      mesh, meta.rank(), draw_partial(meta.dtype(), random), nullptr, random);
  // A source may have sums of up to 16 terms. A target with another op splits
  // them again.
  const Layout to = draw_layout(
      mesh, meta.rank(), draw_partial(meta.dtype(), random), &from, random);
  return {TensorSpec::create(mesh, from, meta).value(),
          TensorSpec::create(mesh, to, meta).value(), random};
}

// Samples a case between meshes of up to `world` ranks, which may overlap.
inline RedistributionCase draw_cross_case(std::int64_t world, Random& random) {
  const auto mesh = [&] {
    const DeviceMesh made =
        draw_mesh(Draw{.most_dims = 3, .most_ranks = world}, random);
    const auto room = static_cast<std::size_t>(world - made.size() + 1);
    return DeviceMesh::create(made.dims(),
                              static_cast<std::int64_t>(pick(random, room)))
        .value();
  };
  const DeviceMesh from_mesh = mesh();
  const DeviceMesh to_mesh = mesh();
  const TensorMeta meta = draw_meta(random);
  const Layout from =
      draw_layout(from_mesh, meta.rank(), draw_partial(meta.dtype(), random),
                  nullptr, random);
  const Layout to = draw_layout(to_mesh, meta.rank(), {}, nullptr, random);
  return {TensorSpec::create(from_mesh, from, meta).value(),
          TensorSpec::create(to_mesh, to, meta).value(), random};
}

}  // namespace shardprop::testing
