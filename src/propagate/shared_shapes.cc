#include "propagate/shared_shapes.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "base/index.h"

namespace shardprop {
namespace {

// Names of arguments that name dims; their values do not depend on sizes.
constexpr std::string_view kDimNames[] = {"dim", "dims", "dim0", "dim1"};

bool may_be_a_size(const ArgumentSchema& declared) {
  return declared.type == ArgumentType::kInt &&
         std::find(std::begin(kDimNames), std::end(kDimNames), declared.name) ==
             std::end(kDimNames);
}

bool looks_at_no_size(const BoundOp& call) {
  const auto& declared = call.op->function->arguments();
  for (std::size_t i = 0; i < declared.size(); ++i) {
    if (call.looks[i] == Look::kValue && may_be_a_size(declared[i])) {
      return false;
    }
  }
  return true;
}

// Returns whether each dim has exactly one factor; a dim of size 1 may have
// none.
bool is_plain(const IndexSpace& space, const Operand& operand,
              const TensorMeta& meta) {
  for (std::size_t d = 0; d < operand.dims.size(); ++d) {
    const DimFactors& dim = operand.dims[d];
    const std::int64_t size = meta.size(static_cast<int>(d));
    if (dim.empty() ? size != 1
                    : dim.size() != 1 || space.factor(dim[0]).size != size) {
      return false;
    }
  }
  return operand.dims.size() == meta.shape().size();
}

bool is_plain(const IndexSpace& space) {
  return space.program == nullptr && space.local_arguments.empty() &&
         std::all_of(space.factors.begin(), space.factors.end(),
                     [](const Factor& factor) {
                       return factor.kind == FactorKind::kParallel;
                     });
}

bool in_an_input(const IndexSpace& space, int factor) {
  return std::any_of(
      space.inputs.begin(), space.inputs.end(),
      [&](const Operand& operand) { return operand.holds(factor); });
}

bool is_plain(const Layout& layout) {
  return !layout.has_strided() && layout.has_default_order();
}

// Returns whether the tensor is row-major without gaps, including the strides
// of dims of size 1.
bool is_row_major(const TensorMeta& meta) {
  std::int64_t stride = 1;
  for (int d = meta.rank(); d-- > 0;) {
    if (meta.strides()[index(d)] != stride) return false;
    stride *= meta.size(d);
  }
  return true;
}

}  // namespace

bool write_family(KeyBuffer& key, SizeClasses& sizes, const OpSchema& op,
                  const LayoutsView& layouts, std::span<const Look> looks) {
  constexpr std::uint64_t kFamily = 0x66616d696c79ULL;
  if (!op.outputs.empty() || !op.output_slots.empty()) return false;
  key.push(kFamily);
  write_function(key, op);
  write_arguments(key, op, looks);
  key.push(op.inputs.size());
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    const TensorMeta& meta = op.inputs[i];
    if (meta.rank() > 12 || !is_row_major(meta) || !is_plain(layouts[i])) {
      return false;
    }
    std::uint64_t word = static_cast<std::uint64_t>(meta.dtype()) << 8 |
                         static_cast<std::uint64_t>(meta.rank());
    for (const std::int64_t size : meta.shape()) {
      const std::uint8_t size_class =
          size == 0 ? SizeClasses::kTooMany : sizes.add(size);
      if (size_class == SizeClasses::kTooMany) return false;
      word = word << 4 | size_class;
    }
    key.push(word);
    write_layout(key, layouts[i]);
  }
  return true;
}

std::shared_ptr<const SharedShapes> shared_shapes(const BoundOp& call,
                                                  const OutputSharding& answer,
                                                  const DeviceMesh& mesh,
                                                  const SizeClasses& sizes) {
  const IndexSpace& space = *call.space;
  const OpSchema& op = *call.op;
  if (!answer.moves.empty() || !answer.rank_arguments.empty() ||
      !answer.inside.empty() || answer.assignments.size() != 1 ||
      !is_plain(space) || !call.writes.empty() || !looks_at_no_size(call)) {
    return nullptr;
  }
  auto out = std::make_shared<SharedShapes>();
  out->divisors.fill(1);
  SizeClasses known = sizes;
  for (std::size_t i = 0; i < space.inputs.size(); ++i) {
    if (!is_plain(space, space.inputs[i], op.inputs[i])) return nullptr;
  }
  for (std::size_t o = 0; o < space.outputs.size(); ++o) {
    const TensorMeta& meta = op.outputs[o];
    if (!is_plain(space, space.outputs[o], meta) || !is_row_major(meta) ||
        !is_plain(answer.outputs[o].layout())) {
      return nullptr;
    }
    SharedShapes::Classes classes;
    for (const DimFactors& dim : space.outputs[o].dims) {
      if (!dim.empty() && !in_an_input(space, dim[0])) return nullptr;
      classes.push_back(dim.empty() ? SizeClasses::kOne
                                    : known.add(space.factor(dim[0]).size));
    }
    out->outputs.push_back(std::move(classes));
  }
  if (known.count() != sizes.count()) return nullptr;
  for (std::size_t f = 0; f < space.factors.size(); ++f) {
    std::int64_t parts = 1;
    const Assignment& given = answer.assignments[0];
    for (std::size_t m = 0; m < given.size(); ++m) {
      if (given[m] == static_cast<std::int16_t>(f)) {
        parts *= mesh.size(static_cast<int>(m));
      }
    }
    const std::int64_t size = space.factors[f].size;
    if (size % parts != 0) return nullptr;
    if (parts == 1) continue;
    const std::uint8_t size_class = known.add(size);
    if (size_class > sizes.count()) return nullptr;
    std::int64_t& divisor = out->divisors[size_class - 1U];
    divisor = std::max(divisor, parts);
    if (divisor % parts != 0) return nullptr;
  }
  return out;
}

bool serves(const SharedShapes& shapes, const SizeClasses& sizes) {
  for (std::size_t i = 0; i < sizes.count(); ++i) {
    if (sizes[static_cast<std::uint8_t>(i + 1)] % shapes.divisors[i] != 0) {
      return false;
    }
  }
  return true;
}

bool fill_in(const SharedShapes& shapes, const SizeClasses& sizes,
             const OpSchema& op, OutputSharding& out) {
  // Consecutive calls of one operator differ in few inputs, so most specs stay
  // as they are.
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    TensorSpec& spec = out.inputs[i];
    if (!(spec.meta() == op.inputs[i])) spec.resize(op.inputs[i]);
  }
  for (std::size_t o = 0; o < shapes.outputs.size(); ++o) {
    TensorSpec& spec = out.outputs[o];
    Dims shape;
    for (const std::uint8_t size_class : shapes.outputs[o]) {
      shape.push_back(sizes[size_class]);
    }
    auto meta = TensorMeta::contiguous(std::move(shape), spec.meta().dtype());
    if (!meta) return false;
    spec.resize(*std::move(meta));
  }
  return true;
}

}  // namespace shardprop
