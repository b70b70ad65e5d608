// x[mask]: what a mask selects is known by the data alone.

#include "ops/forms/indices.h"

#include <algorithm>
#include <variant>
#include <vector>

#include "base/index.h"

namespace shardprop {
namespace {

const std::vector<TensorArg>* indices_of(const OpCall& call) {
  return std::get_if<std::vector<TensorArg>>(&call.op().arg("indices"));
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
  const std::vector<TensorArg>& list = *indices_of(call);
  const OpSchema& op = call.op();
  if (op.outputs.empty()) {
    call_not_stated("a mask as index has no fixed result shape");
  }
  const TensorMeta& self = call.tensor("self");
  const TensorMeta& result = op.outputs[0];
  std::vector<bool> indexed(self.shape().size(), false);
  std::size_t dim = 0;
  for (const TensorArg& each : list) {
    const TensorMeta* by = each.operand == TensorArg::kNone
                               ? nullptr
                               : &op.inputs[index(each.operand)];
    const bool masks = by != nullptr && is_mask(by->dtype());
    require(by == nullptr || masks || is_index(by->dtype()),
            "an index is neither of integers nor a mask");
    const std::size_t dims = masks ? by->shape().size() : 1;
    require(dims > 0 && dim + dims <= indexed.size(), "more indices than dims");
    for (std::size_t d = 0; masks && d < dims; ++d) {
      require(by->shape()[d] == self.shape()[dim + d],
              "a mask is not of the size of the dims that it takes");
    }
    std::fill_n(indexed.begin() + static_cast<std::ptrdiff_t>(dim), dims,
                by != nullptr);
    dim += dims;
  }
  const auto begin = std::find(indexed.begin(), indexed.end(), true);
  const auto end = std::find(begin, indexed.end(), false);
  const bool one_run = std::find(end, indexed.end(), true) == indexed.end();
  const auto kept = index(std::count(indexed.begin(), indexed.end(), false));
  require(result.shape().size() > kept, "the result has too few dims");
  SpaceBuilder b;
  Operand cut = SpaceBuilder::whole(self.rank());
  Operand selected;
  const auto insert = [&] {
    selected.dims.resize(selected.dims.size() + result.shape().size() - kept);
  };
  if (!one_run) insert();
  for (std::size_t d = 0; d < indexed.size(); ++d) {
    if (one_run && indexed.begin() + static_cast<std::ptrdiff_t>(d) == begin) {
      insert();
    }
    if (indexed[d]) continue;
    cut.dims[d] = b.dim(self.shape()[d]);
    require(
        result.size(static_cast<int>(selected.dims.size())) == self.shape()[d],
        "the result is not of the size of what is selected");
    selected.dims.push_back(cut.dims[d]);
  }
  b.input(std::move(cut));
  for (std::size_t i = 1; i < op.inputs.size(); ++i) {
    b.input(SpaceBuilder::whole(op.inputs[i].rank()));
  }
  b.output(std::move(selected),
           {.shape = result.shape(), .strides = result.strides()});
  return b.bound();
}

}  // namespace shardprop
