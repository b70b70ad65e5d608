#include "ops/space/view_algebra.h"

#include "base/index.h"
#include "ops/op_call.h"
#include "ops/space/view_strides.h"

#include <cstdint>
#include <utility>

namespace shardprop {
namespace {

// Returns whether the result is a copy: as many elements, in another memory
// order.
bool is_copy(const OpSchema& op, const TensorMeta& from, const TensorMeta& to,
             const OpLibrary& library) {
  const bool asked = op.has_arg("copy") && op.bool_arg("copy").value_or(false);
  if (!asked && is_reshaped_view(from, to)) return false;
  if (from.numel() != to.numel()) return false;
  // The definition shows whether dims are permuted or the dtype changes.
  if (library.row(*op.function) != nullptr) {
    if (const auto space = library.index_space(op)) return !space->is_free;
  }
  // Elements of another width are at other addresses, except for the parts of
  // complex ones.
  return asked || (item_size(from.dtype()) != item_size(to.dtype()) &&
                   !is_complex(from.dtype()));
}

std::optional<std::size_t> aliased_operand(const OpSchema& op,
                                           const ArgumentSchema& result) {
  if (!result.alias || result.alias->writes) return std::nullopt;
  for (std::size_t i = 0; i < op.args.size(); ++i) {
    const ArgumentSchema& argument = op.function->arguments()[i];
    const auto* tensor = std::get_if<TensorArg>(&op.args[i]);
    if (tensor != nullptr && tensor->operand != TensorArg::kNone &&
        argument.alias && argument.alias->set == result.alias->set) {
      return static_cast<std::size_t>(tensor->operand);
    }
  }
  return std::nullopt;
}

WriteBack scatter(std::string op, std::vector<GivenArgument> rest) {
  std::vector<GivenArgument> arguments = {{"self", TensorArg{0}},
                                          {"src", TensorArg{1}}};
  for (GivenArgument& argument : rest) arguments.push_back(std::move(argument));
  return {std::move(op), std::move(arguments), true};
}

WriteBack slice_scatter(std::int64_t dim, Argument start, Argument end,
                        std::int64_t step) {
  return scatter("aten.slice_scatter.default", {{"dim", dim},
                                                {"start", std::move(start)},
                                                {"end", std::move(end)},
                                                {"step", step}});
}

WriteBack select_scatter(std::int64_t dim, std::int64_t index) {
  return scatter("aten.select_scatter.default",
                 {{"dim", dim}, {"index", index}});
}

// Writes back elements that kept their order: only the shape is restored.
WriteBack reshaped_back(const TensorMeta& base, const TensorMeta& part) {
  if (base.shape() == part.shape()) return {};
  const std::vector<std::int64_t> shape(base.shape().begin(),
                                        base.shape().end());
  return {"aten.reshape.default",
          {{"self", TensorArg{0}}, {"shape", shape}},
          false};
}

// Returns, for every dim of the base, the dim of the part with the same
// factors. Returns nullopt if the part is not the base with permuted dims.
std::optional<std::vector<std::int64_t>> dims_in_part(const Operand& base,
                                                      const Operand& part,
                                                      const OpSchema& view,
                                                      std::size_t output) {
  if (base.dims.size() != part.dims.size()) return std::nullopt;
  std::vector<std::int64_t> order;
  std::vector<bool> taken(part.dims.size(), false);
  for (std::size_t d = 0; d < base.dims.size(); ++d) {
    const std::int64_t size = view.inputs.front().shape()[d];
    // A dim without factors has size 1 or is blocked. A blocked dim could match
    // any other.
    if (base.dims[d].empty() && size != 1) return std::nullopt;
    std::size_t p = 0;
    while (p < part.dims.size() && (taken[p] || part.dims[p] != base.dims[d] ||
                                    view.outputs[output].shape()[p] != size)) {
      ++p;
    }
    if (p == part.dims.size()) return std::nullopt;
    taken[p] = true;
    order.push_back(static_cast<std::int64_t>(p));
  }
  return order;
}

// Returns the factors of all dims, major first.
std::vector<FactorId> factors_of(const Operand& operand) {
  std::vector<FactorId> out;
  for (const DimFactors& dim : operand.dims) {
    out.insert(out.end(), dim.begin(), dim.end());
  }
  return out;
}

bool is_made_of(const TensorMeta& meta, const std::vector<FactorId>& factors,
                const IndexSpace& space) {
  std::int64_t elements = 1;
  for (const FactorId id : factors) elements *= space.factor(id).size;
  return elements == meta.numel();
}

// Writes back all elements of the base, by the factors that the dims of both
// share.
std::optional<WriteBack> rearranged_back(const OpSchema& view,
                                         std::size_t output,
                                         const OpLibrary& library) {
  const auto space = library.index_space(view);
  if (!space) return std::nullopt;
  const TensorMeta& base = view.inputs.front();
  const Operand& from = space->inputs.front();
  const Operand& to = space->outputs[output];
  const std::vector<FactorId> order = factors_of(from);
  if (order == factors_of(to) && is_made_of(base, order, *space)) {
    return reshaped_back(base, view.outputs[output]);
  }
  auto dims = dims_in_part(from, to, view, output);
  if (!dims) return std::nullopt;
  return WriteBack{"aten.permute.default",
                   {{"self", TensorArg{0}}, {"dims", *std::move(dims)}},
                   false};
}

// Writes back one of several pieces that are consecutive along a dim. Their
// sizes along that dim add up to its size.
std::optional<WriteBack> piece_back(const OpSchema& view, std::size_t output) {
  const TensorMeta& base = view.inputs.front();
  for (int dim = 0; dim < base.rank(); ++dim) {
    const std::int64_t size = view.outputs[output].size(dim);
    if (size == base.size(dim)) continue;
    std::int64_t start = 0;
    for (std::size_t i = 0; i < output; ++i) {
      start += view.outputs[i].size(dim);
    }
    return slice_scatter(dim, start, start + size, 1);
  }
  return std::nullopt;
}

// Writes back a range of one dim, given by its start.
std::optional<WriteBack> range_back(const OpSchema& view) {
  if (!view.has_arg("dim") || !view.has_arg("start")) return std::nullopt;
  const TensorMeta& base = view.inputs.front();
  const int dim = wrap_dim(*view.int_arg("dim"), base.rank());
  if (!view.has_arg("length")) {
    return slice_scatter(dim, view.arg("start"), view.arg("end"),
                         *view.int_arg("step"));
  }
  auto start = view.int_arg("start");
  if (!start) return std::nullopt;  // the start is a tensor
  if (*start < 0) *start += base.size(dim);
  return slice_scatter(dim, *start, *start + *view.int_arg("length"), 1);
}

// Writes back one index of a dim, or the diagonal of two dims.
std::optional<WriteBack> place_back(const OpSchema& view, std::size_t output,
                                    bool is_list) {
  if (view.has_arg("dim1") && view.has_arg("dim2")) {
    return scatter("aten.diagonal_scatter.default",
                   {{"offset", *view.int_arg("offset")},
                    {"dim1", *view.int_arg("dim1")},
                    {"dim2", *view.int_arg("dim2")}});
  }
  if (!view.has_arg("dim")) return std::nullopt;
  const std::int64_t dim = *view.int_arg("dim");
  if (is_list) return select_scatter(dim, static_cast<std::int64_t>(output));
  if (!view.has_arg("index")) return std::nullopt;
  return select_scatter(dim, *view.int_arg("index"));
}

// Returns whether the view has the elements of its base, at positions that
// follow from dims alone.
bool keeps_elements(const OpSchema& view, std::size_t output,
                    const OpLibrary& library) {
  const OpRow* row = library.row(*view.function);
  const DType dtype = view.inputs.front().dtype();
  return row != nullptr && view.outputs[output].dtype() == dtype &&
         !(row->definition.is_conjugating() && is_complex(dtype)) &&
         !view.has_arg("storage_offset");
}

// Writes back elements whose bytes the view reads as another dtype.
std::optional<WriteBack> dtype_back(const OpSchema& view) {
  const std::string_view name = view.name();
  if (name == "aten.view.dtype") {
    return WriteBack{
        "aten.view.dtype",
        {{"self", TensorArg{0}}, {"dtype", view.inputs.front().dtype()}},
        false};
  }
  for (const auto& [seen, back] :
       {std::pair{"aten.view_as_real.default", "aten.view_as_complex.default"},
        std::pair{"aten.view_as_complex.default",
                  "aten.view_as_real.default"}}) {
    if (name == seen) return WriteBack{back, {{"self", TensorArg{0}}}, false};
  }
  return std::nullopt;
}

}  // namespace

ViewedOperands viewed_operands(const OpSchema& op, const OpLibrary& library) {
  ViewedOperands viewed(op.outputs.size());
  std::size_t slot = 0;
  for (const ArgumentSchema& result : op.function->returns()) {
    if (result.type != ArgumentType::kTensor) continue;
    // A list of results is the last result or the only one, so it has all
    // remaining slots.
    const std::size_t count =
        result.is_list ? op.output_slots.size() - slot : 1;
    const auto operand = aliased_operand(op, result);
    for (std::size_t i = 0; i < count && slot < op.output_slots.size();
         ++i, ++slot) {
      const std::int32_t output = op.output_slots[slot];
      if (!operand || output == OpSchema::kNotProduced) continue;
      const auto index = static_cast<std::size_t>(output);
      if (!is_copy(op, op.inputs[*operand], op.outputs[index], library)) {
        viewed[index] = operand;
      }
    }
  }
  return viewed;
}

std::optional<WriteBack> write_back(const OpSchema& view, std::size_t output,
                                    const OpLibrary& library) {
  if (auto back = dtype_back(view)) return back;
  if (!keeps_elements(view, output, library)) return std::nullopt;
  const TensorMeta& base = view.inputs.front();
  const TensorMeta& part = view.outputs[output];
  if (is_reshaped_view(base, part)) return reshaped_back(base, part);
  if (base.numel() == part.numel()) {
    if (auto back = rearranged_back(view, output, library)) return back;
  }
  const bool is_list = view.function->returns().front().is_list;
  if (part.rank() == base.rank()) {
    return is_list ? piece_back(view, output) : range_back(view);
  }
  if (part.rank() + 1 == base.rank()) return place_back(view, output, is_list);
  return std::nullopt;
}

}  // namespace shardprop
