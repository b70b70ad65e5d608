// x[mask] and x[mask] = values: only the data determine how many elements a
// mask selects.

#include "ops/forms/indices.h"

#include <algorithm>
#include <optional>
#include <variant>
#include <vector>

#include "base/index.h"

namespace shardprop {
namespace {

const std::vector<TensorArg>* indices_of(const OpCall& call) {
  return std::get_if<std::vector<TensorArg>>(&call.op().arg("indices"));
}

// `Selection` describes the dims of self that masks and indices replace. The
// result has one dim for a mask, or as many as integer indices broadcast to.
// These dims have the position of the first replaced dim if the replaced dims
// are adjacent. Otherwise they come first.
struct Selection {
  std::vector<bool> is_taken;  // by dim of self
  std::size_t place = 0;       // of the selection, among the kept dims
  std::size_t kept = 0;
  std::optional<std::size_t> lone_mask;  // operand; the only index
};

Selection selection_of(const OpCall& call) {
  const std::vector<TensorArg>& list = *indices_of(call);
  const OpSchema& op = call.op();
  const TensorMeta& self = call.tensor("self");
  Selection out;
  out.is_taken.resize(self.shape().size(), false);
  std::size_t dim = 0;
  std::size_t given = 0;
  for (const TensorArg& each : list) {
    const TensorMeta* by = each.operand == TensorArg::kNone
                               ? nullptr
                               : &op.inputs[index(each.operand)];
    const bool masks = by != nullptr && is_mask(by->dtype());
    require(by == nullptr || masks || is_index(by->dtype()),
            "an index is neither of integers nor a mask");
    const std::size_t dims = masks ? by->shape().size() : 1;
    require(dims > 0 && dim + dims <= out.is_taken.size(),
            "more indices than dims");
    for (std::size_t d = 0; masks && d < dims; ++d) {
      require(by->shape()[d] == self.shape()[dim + d],
              "a mask is not of the size of the dims that it takes");
    }
    std::fill_n(out.is_taken.begin() + static_cast<std::ptrdiff_t>(dim), dims,
                by != nullptr);
    if (masks) out.lone_mask = index(each.operand);
    given += by != nullptr ? 1 : 0;
    dim += dims;
  }
  if (given > 1) out.lone_mask = std::nullopt;
  const auto begin = std::find(out.is_taken.begin(), out.is_taken.end(), true);
  const auto end = std::find(begin, out.is_taken.end(), false);
  const bool is_one_run =
      std::find(end, out.is_taken.end(), true) == out.is_taken.end();
  out.place = is_one_run ? index(begin - out.is_taken.begin()) : 0;
  out.kept = index(std::count(out.is_taken.begin(), out.is_taken.end(), false));
  return out;
}

// Returns the operand self, sharded along the dims that are kept.
Operand kept_dims(SpaceBuilder& b, const OpCall& call,
                  const Selection& selection) {
  const TensorMeta& self = call.tensor("self");
  Operand cut = SpaceBuilder::whole(self.rank());
  for (std::size_t d = 0; d < selection.is_taken.size(); ++d) {
    if (!selection.is_taken[d]) cut.dims[d] = b.dim(self.shape()[d]);
  }
  return cut;
}

// Returns the dims of the selected elements, with `taken` dims in place of the
// replaced ones. Each entry is a dim of self, or nullopt for a dim of the
// selection.
std::vector<std::optional<std::size_t>> selected_dims(
    const Selection& selection, std::size_t taken) {
  std::vector<std::optional<std::size_t>> dims;
  for (std::size_t d = 0; d < selection.is_taken.size(); ++d) {
    if (!selection.is_taken[d]) dims.emplace_back(d);
  }
  dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(selection.place),
              taken, std::nullopt);
  return dims;
}

}  // namespace

bool is_indexed_by_mask(const OpCall& call) {
  const std::vector<TensorArg>* list = indices_of(call);
  return list != nullptr &&
         std::any_of(list->begin(), list->end(), [&](const TensorArg& each) {
           return each.operand != TensorArg::kNone &&
                  is_mask(call.op().inputs[index(each.operand)].dtype());
         });
}

BoundForm bind_index_by_mask(const OpCall& call) {
  const OpSchema& op = call.op();
  if (op.outputs.empty()) {
    call_not_stated("a mask as index has no fixed result shape");
  }
  const Selection selection = selection_of(call);
  const TensorMeta& self = call.tensor("self");
  const TensorMeta& result = op.outputs[0];
  require(result.shape().size() > selection.kept,
          "the result has too few dims");
  SpaceBuilder b;
  Operand cut = kept_dims(b, call, selection);
  Operand selected = SpaceBuilder::whole(result.rank());
  const auto dims =
      selected_dims(selection, result.shape().size() - selection.kept);
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (!dims[d]) continue;
    require(result.shape()[d] == self.shape()[*dims[d]],
            "the result is not of the size of what is selected");
    selected.dims[d] = cut.dims[*dims[d]];
  }
  b.input(std::move(cut));
  for (std::size_t i = 1; i < op.inputs.size(); ++i) {
    b.input(SpaceBuilder::whole(op.inputs[i].rank()));
  }
  b.output(std::move(selected),
           {.shape = result.shape(), .strides = result.strides()});
  return b.bound();
}

// The mask may be sharded if it is the only index and all selected elements get
// the same value. Each rank then applies its part of the mask.
BoundForm bind_put_by_mask(const OpCall& call, BoundResult result) {
  const OpSchema& op = call.op();
  const Selection selection = selection_of(call);
  const TensorMeta& self = call.tensor("self");
  const TensorMeta& values = call.tensor("values");
  SpaceBuilder b;
  Operand cut = kept_dims(b, call, selection);
  const auto dims = selected_dims(selection, 1);
  require(values.shape().size() <= dims.size(),
          "the values have more dims than what is selected");
  Operand given = SpaceBuilder::whole(values.rank());
  bool are_alike = true;
  for (std::size_t v = 0; v < values.shape().size(); ++v) {
    const std::int64_t size = values.shape()[v];
    const auto& dim = dims[dims.size() - values.shape().size() + v];
    if (size == 1) continue;
    if (!dim) {
      are_alike = false;
      continue;
    }
    require(size == self.shape()[*dim],
            "the values do not broadcast to what is written");
    given.dims[v] = cut.dims[*dim];
  }
  Operand mask;
  for (std::size_t d = 0; d < selection.is_taken.size(); ++d) {
    if (!selection.is_taken[d]) continue;
    if (selection.lone_mask && are_alike) {
      cut.dims[d] = b.dim(self.shape()[d]);
    }
    mask.dims.push_back(cut.dims[d]);
  }
  const std::size_t gives = call.operand("values");
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    b.input(i == 0       ? cut
            : i == gives ? given
            : i == selection.lone_mask
                ? mask
                : SpaceBuilder::whole(op.inputs[i].rank()));
  }
  result.shape = self.shape();
  b.output(std::move(cut), std::move(result));
  return b.bound();
}

}  // namespace shardprop
