// Evaluates x[i, :, j], writes to it, and writes under a mask.

#include "reference/tensors/indexing.h"
#include "reference/kernels.h"

#include <algorithm>
#include <optional>
#include <variant>

namespace shardprop::reference {
namespace {

// The row-major element of `self` at every position of x[indices], and the
// shape of x[indices]. If the indexed dims are neighbours, the dims of the
// indices replace them; else they come first.
struct Places {
  std::vector<std::int64_t> offsets;
  Dims shape;
};

// A mask is converted to the positions of its true elements, one index tensor
// per dim.
std::vector<std::optional<Tensor>> index_tensors(const Call& call) {
  std::vector<std::optional<Tensor>> out;
  const auto* list =
      std::get_if<std::vector<TensorArg>>(&call.op().arg("indices"));
  if (list == nullptr) call_error("the indices are not tensors");
  for (const TensorArg& arg : *list) {
    if (arg.operand == TensorArg::kNone) {
      out.emplace_back();
      continue;
    }
    const Tensor& tensor = call.inputs()[index(arg.operand)];
    if (is_integral(tensor.dtype()) && tensor.dtype() != DType::kU8) {
      out.emplace_back(tensor);
      continue;
    }
    std::vector<std::vector<std::int64_t>> where(tensor.shape().size());
    const std::vector<std::int64_t> holds = values<std::int64_t>(tensor);
    const Dims steps = contiguous_strides(tensor.shape());
    for (std::size_t p = 0; p < holds.size(); ++p) {
      if (holds[p] == 0) continue;
      for (std::size_t d = 0; d < where.size(); ++d) {
        where[d].push_back(static_cast<std::int64_t>(p) / steps[d] %
                           tensor.shape()[d]);
      }
    }
    for (const auto& column : where) {
      out.emplace_back(tensor_of(Dims{static_cast<std::int64_t>(column.size())},
                                 DType::kI64, column));
    }
  }
  return out;
}

Places places_of(const Call& call, const Dims& self) {
  const std::vector<std::optional<Tensor>> indices = index_tensors(call);
  require(indices.size() <= self.size(), "more indices than dims");
  Dims looked;
  std::vector<std::size_t> dims;
  for (std::size_t d = 0; d < indices.size(); ++d) {
    if (!indices[d]) continue;
    looked = broadcast(looked, indices[d]->shape());
    dims.push_back(d);
  }
  require(!dims.empty(), "no index is given");
  const bool one_run = dims.back() - dims.front() + 1 == dims.size();
  const Dims steps = contiguous_strides(self);
  // First the offsets of the indices alone, at every position of their common
  // shape.
  std::vector<std::int64_t> chosen;
  {
    Dims none(looked.size(), 0);
    for_each_offset(looked, none, [&](std::int64_t) { chosen.push_back(0); });
  }
  for (const std::size_t d : dims) {
    const auto at = values<std::int64_t>(broadcast_to(*indices[d], looked));
    for (std::size_t p = 0; p < chosen.size(); ++p) {
      chosen[p] += checked_index(at[p], self[d], true) * steps[d];
    }
  }
  // Then the offsets with the dims that are not indexed, with `looked` as one
  // axis among them.
  Places out;
  Dims axis_sizes;
  Dims axis_steps;
  std::size_t axis = 0;
  const auto insert = [&] {
    for (const std::int64_t size : looked) out.shape.push_back(size);
    axis = axis_sizes.size();
    axis_sizes.push_back(static_cast<std::int64_t>(chosen.size()));
    axis_steps.push_back(0);
  };
  if (!one_run) insert();
  for (std::size_t d = 0; d < self.size(); ++d) {
    if (one_run && d == dims.front()) insert();
    if (std::find(dims.begin(), dims.end(), d) != dims.end()) continue;
    out.shape.push_back(self[d]);
    axis_sizes.push_back(self[d]);
    axis_steps.push_back(steps[d]);
  }
  std::int64_t after = 1;
  for (std::size_t a = axis + 1; a < axis_sizes.size(); ++a) {
    after *= axis_sizes[a];
  }
  std::int64_t n = 0;
  for_each_offset(axis_sizes, axis_steps, [&](std::int64_t offset) {
    const std::size_t place = index(n++ / after) % chosen.size();
    out.offsets.push_back(offset + chosen[place]);
  });
  return out;
}

std::vector<Tensor> take_indexed(const Call& call) {
  const Tensor& self = call.value("self");
  const Places places = places_of(call, self.shape());
  if (index(call.out().numel()) != places.offsets.size()) {
    throw NoKernel{"how many elements a mask selects depends on the data"};
  }
  return in_domain(self.dtype(), [&]<class T>(T) -> std::vector<Tensor> {
    const std::vector<T> from = values<T>(self);
    std::vector<T> out;
    for (const std::int64_t offset : places.offsets) {
      out.push_back(from[index(offset)]);
    }
    return {call.made(out)};
  });
}

std::vector<Tensor> put_indexed(const Call& call) {
  const Tensor& self = call.value("self");
  const Tensor& given = call.value("values");
  const Places places = places_of(call, self.shape());
  const Combine how =
      call.boolean_or("accumulate", false) ? Combine::kAdd : Combine::kReplace;
  return in_domain(self.dtype(), [&]<class T>(T) -> std::vector<Tensor> {
    std::vector<T> out = values<T>(self);
    const std::vector<T> written = values<T>(broadcast_to(given, places.shape));
    for (std::size_t n = 0; n < places.offsets.size(); ++n) {
      T& to = out[index(places.offsets[n])];
      to = combined(how, to, written[n]);
    }
    return {call.made(out)};
  });
}

std::vector<Tensor> masked_scatter(const Call& call) {
  const Dims& shape = call.out().shape();
  const Tensor& self = call.value("self");
  const Tensor& mask = call.value("mask");
  return in_domain(self.dtype(), [&]<class T>(T) -> std::vector<Tensor> {
    std::vector<T> out = values<T>(broadcast_to(self, shape));
    const std::vector<T> source = values<T>(call.value("source"));
    const std::vector<std::int64_t> holds =
        values<std::int64_t>(broadcast_to(mask, shape));
    std::size_t next = 0;
    for (std::size_t p = 0; p < out.size(); ++p) {
      if (holds[p] == 0) continue;
      require(next < source.size(), "the source is too short");
      out[p] = source[next++];
    }
    return {call.made(out)};
  });
}

}  // namespace

void add_indexing(Kernels& k) {
  k.add({"index.Tensor", "_unsafe_index.Tensor"}, take_indexed);
  k.add({"index_put", "_unsafe_index_put"}, put_indexed);
  k.add({"masked_scatter"}, masked_scatter);
}

}  // namespace shardprop::reference
