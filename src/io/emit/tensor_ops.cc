#include "io/emit/tensor_ops.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/index.h"

namespace shardprop::emit {
namespace {

Argument ints(const Dims& dims) {
  return std::vector<std::int64_t>(dims.begin(), dims.end());
}

TensorMeta permuted(const TensorMeta& meta,
                    const std::vector<std::int64_t>& order) {
  Dims shape;
  Dims strides;
  for (const std::int64_t dim : order) {
    shape.push_back(meta.shape()[index(dim)]);
    strides.push_back(meta.strides()[index(dim)]);
  }
  return *TensorMeta::create(std::move(shape), std::move(strides),
                             meta.dtype());
}

}  // namespace

TorchId slice(TorchGraph& graph, TorchId x, int dim, std::int64_t start,
              std::int64_t end) {
  const TensorMeta& meta = graph.meta(x);
  Dims shape = meta.shape();
  if (start == 0 && end == shape[index(dim)]) return x;
  shape[index(dim)] = end - start;
  return graph.op(
      "aten.slice.Tensor",
      {{"self", x},
       {"dim", integer(dim)},
       {"start", integer(start)},
       {"end", integer(end)}},
      *TensorMeta::create(std::move(shape), meta.strides(), meta.dtype()));
}

TorchId cat(TorchGraph& graph, std::vector<TorchId> parts, int dim) {
  Dims shape = graph.shape(parts[0]);
  const DType dtype = graph.dtype(parts[0]);
  std::int64_t& size = shape[index(dim)];
  size = 0;
  for (const TorchId part : parts) {
    size += graph.shape(part)[index(dim)];
  }
  return graph.op("aten.cat.default",
                  {{"tensors", std::move(parts)}, {"dim", integer(dim)}},
                  dense(std::move(shape), dtype));
}

TorchId reshape(TorchGraph& graph, TorchId x, Dims shape) {
  if (graph.shape(x) == shape) return x;
  const TorchArguments args = {{"self", x}, {"shape", ints(shape)}};
  // If the result can be a view, shape inference gives the strides of the view.
  if (auto made = graph.op("aten.reshape.default", args)) return *made;
  return graph.op("aten.reshape.default", args, dense(shape, graph.dtype(x)));
}

TorchId permute(TorchGraph& graph, TorchId x,
                const std::vector<std::int64_t>& order) {
  if (std::is_sorted(order.begin(), order.end())) return x;
  return graph.op("aten.permute.default",
                  {{"self", x}, {"dims", Argument(order)}},
                  permuted(graph.meta(x), order));
}

TorchId contiguous(TorchGraph& graph, TorchId x) {
  return graph.op("aten.contiguous.default", {{"self", x}},
                  dense(graph.shape(x), graph.dtype(x)));
}

TorchId in_order_of(TorchGraph& graph, TorchId x, const TensorMeta& whole) {
  std::vector<std::int64_t> order(whole.shape().size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(
      order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
        return whole.strides()[index(a)] > whole.strides()[index(b)];
      });
  if (permuted(graph.meta(x), order).is_contiguous()) return x;
  std::vector<std::int64_t> back(order.size());
  for (std::size_t place = 0; place < order.size(); ++place) {
    back[index(order[place])] = static_cast<std::int64_t>(place);
  }
  return permute(graph, contiguous(graph, permute(graph, x, order)), back);
}

TorchId cast(TorchGraph& graph, TorchId x, DType dtype) {
  if (graph.dtype(x) == dtype) return x;
  return graph.op("aten._to_copy.default",
                  {{"self", x}, {"dtype", Argument(dtype)}},
                  dense(graph.shape(x), dtype));
}

TorchId as_bytes(TorchGraph& graph, TorchId x) {
  const DType dtype = graph.dtype(x);
  Dims shape = graph.shape(x);
  shape.push_back(1);
  x = graph.op("aten.unsqueeze.default", {{"self", x}, {"dim", integer(-1)}},
               dense(shape, dtype));
  shape.back() = item_size(dtype);
  return graph.op("aten.view.dtype",
                  {{"self", x}, {"dtype", Argument(DType::kU8)}},
                  dense(std::move(shape), DType::kU8));
}

TorchId from_bytes(TorchGraph& graph, TorchId x, DType dtype) {
  Dims shape = graph.shape(x);
  shape.back() = 1;
  x = graph.op("aten.view.dtype", {{"self", x}, {"dtype", Argument(dtype)}},
               dense(shape, dtype));
  shape.pop_back();
  return graph.op("aten.squeeze.dim", {{"self", x}, {"dim", integer(-1)}},
                  dense(std::move(shape), dtype));
}

TorchId scaled(TorchGraph& graph, TorchId x, double factor) {
  if (factor == 1) return x;
  return graph.op("aten.mul.Scalar", {{"self", x}, {"other", Argument(factor)}},
                  dense(graph.shape(x), graph.dtype(x)));
}

TorchId padded(TorchGraph& graph, TorchId x, int dim, std::int64_t size) {
  Dims shape = graph.shape(x);
  const auto d = index(dim);
  const std::int64_t missing = size - shape[d];
  if (missing == 0) return x;
  // `pad` lists pairs, from the last dim to the first.
  std::vector<std::int64_t> pad(2 * (shape.size() - d), 0);
  pad.back() = missing;
  shape[d] = size;
  return graph.op("aten.constant_pad_nd.default",
                  {{"self", x}, {"pad", Argument(std::move(pad))}},
                  dense(std::move(shape), graph.dtype(x)));
}

TorchId filled(TorchGraph& graph, const Dims& shape, DType dtype,
               std::int64_t value, const Argument& device) {
  return graph.op("aten.full.default",
                  {{"size", ints(shape)},
                   {"fill_value", integer(value)},
                   {"dtype", Argument(dtype)},
                   {"device", device}},
                  dense(shape, dtype));
}

TorchId windows(TorchGraph& graph, TorchId x, int dim, std::int64_t count,
                std::int64_t size, std::int64_t step) {
  const auto d = index(dim);
  const TensorMeta& meta = graph.meta(x);
  Dims shape = meta.shape();
  shape.insert(shape.begin() + dim, count);
  shape[d + 1] = size;
  if (step == size) return reshape(graph, x, std::move(shape));
  Dims strides = meta.strides();
  if (step == 0) {
    // A window that repeats: a dim of size 1, expanded to `count`.
    Dims one = shape;
    one[d] = 1;
    strides.insert(strides.begin() + dim, 0);
    return graph.op(
        "aten.expand.default",
        {{"self", reshape(graph, x, std::move(one))}, {"size", ints(shape)}},
        *TensorMeta::create(shape, std::move(strides), meta.dtype()));
  }
  // `unfold` appends the elements of a window as the last dim.
  Dims behind = meta.shape();
  behind[d] = count;
  behind.push_back(size);
  strides.push_back(strides[d]);
  strides[d] *= step;
  const DType dtype = meta.dtype();
  x = graph.op(
      "aten.unfold.default",
      {{"self", x},
       {"dimension", integer(dim)},
       {"size", integer(size)},
       {"step", integer(step)}},
      *TensorMeta::create(std::move(behind), std::move(strides), dtype));
  std::vector<std::int64_t> order;
  for (std::size_t at = 0; at + 1 < shape.size(); ++at) {
    order.push_back(static_cast<std::int64_t>(at));
    if (at == d) order.push_back(static_cast<std::int64_t>(shape.size()) - 1);
  }
  return permute(graph, x, order);
}

}  // namespace shardprop::emit
