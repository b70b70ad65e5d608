#include "ops/op_call.h"

#include "base/index.h"
#include "base/wrap_dim.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

namespace shardprop {

void call_error(std::string message) { throw CallError{std::move(message)}; }

void call_not_stated(std::string message) {
  throw CallError{std::move(message), ErrorCode::kNoShapeInference};
}

void require(bool holds, std::string_view message) {
  if (!holds) call_error(std::string(message));
}

std::int64_t add_sizes(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) call_error("a size is too large");
  return sum;
}

std::int64_t subtract_sizes(std::int64_t a, std::int64_t b) {
  std::int64_t difference = 0;
  if (__builtin_sub_overflow(a, b, &difference)) {
    call_error("a size is too large");
  }
  return difference;
}

std::int64_t multiply_sizes(std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  if (__builtin_mul_overflow(a, b, &out)) call_error("a size is too large");
  return out;
}

std::int64_t product(std::span<const std::int64_t> sizes) {
  std::int64_t out = 1;
  for (const std::int64_t size : sizes) out = multiply_sizes(out, size);
  return out;
}

std::int64_t diagonal_length(std::int64_t rows, std::int64_t columns,
                             std::int64_t offset) {
  constexpr std::int64_t kFar = std::int64_t{1} << 60;
  require(offset > -kFar && offset < kFar, "an offset is out of range");
  const std::int64_t length = offset >= 0 ? std::min(rows, columns - offset)
                                          : std::min(rows + offset, columns);
  return std::max<std::int64_t>(length, 0);
}

std::int64_t size_of(const TensorMeta& meta, int dim) {
  require(dim >= 0 && dim < meta.rank(), [&] {
    return "the rule reads dim " + std::to_string(dim) +
           " of a tensor of rank " + std::to_string(meta.rank());
  });
  return meta.size(dim);
}

int wrap_dim(std::int64_t dim, int rank) {
  const std::optional<int> wrapped = wrapped_dim(dim, std::max(rank, 1));
  if (!wrapped) {
    call_error("dim " + std::to_string(dim) +
               " is out of range for a tensor of rank " + std::to_string(rank));
  }
  return *wrapped;
}

const TensorMeta& OpCall::tensor(std::string_view arg) const {
  const TensorMeta* meta = optional_tensor(arg);
  if (meta == nullptr) {
    call_error("argument `" + std::string(arg) + "` is not a tensor");
  }
  return *meta;
}

const TensorMeta* OpCall::optional_tensor(std::string_view arg) const {
  const auto operand = has(arg) ? op_.tensor_arg(arg) : std::nullopt;
  return operand ? &op_.inputs[*operand] : nullptr;
}

std::vector<TensorMeta> OpCall::tensors(std::string_view arg) const {
  std::vector<TensorMeta> list;
  for (const std::size_t operand : op_.tensor_list_arg(arg)) {
    list.push_back(op_.inputs[operand]);
  }
  return list;
}

std::int64_t OpCall::integer(std::string_view arg) const {
  const auto value = has(arg) ? op_.int_arg(arg) : std::nullopt;
  if (!value) call_error("argument `" + std::string(arg) + "` is not an int");
  return *value;
}

std::int64_t OpCall::integer_or(std::string_view arg,
                                std::int64_t fallback) const {
  return has(arg) ? op_.int_arg(arg).value_or(fallback) : fallback;
}

bool OpCall::boolean(std::string_view arg) const {
  const auto value = has(arg) ? op_.bool_arg(arg) : std::nullopt;
  if (!value) call_error("argument `" + std::string(arg) + "` is not a bool");
  return *value;
}

bool OpCall::boolean_or(std::string_view arg, bool fallback) const {
  return has(arg) ? op_.bool_arg(arg).value_or(fallback) : fallback;
}

std::vector<std::int64_t> OpCall::integers(std::string_view arg) const {
  auto list = has(arg) ? op_.ints_arg(arg) : std::nullopt;
  if (!list) {
    call_error("argument `" + std::string(arg) + "` is not a list of ints");
  }
  return *std::move(list);
}

std::optional<std::vector<std::int64_t>> OpCall::optional_integers(
    std::string_view arg) const {
  return has(arg) ? op_.ints_arg(arg) : std::nullopt;
}

DType OpCall::dtype_or(std::string_view arg, DType fallback) const {
  return has(arg) ? op_.dtype_arg(arg).value_or(fallback) : fallback;
}

std::string_view OpCall::memory_format() const {
  if (!has("memory_format")) return {};
  const auto* format = std::get_if<NamedArg>(&op_.arg("memory_format"));
  return format == nullptr ? std::string_view{} : format->name;
}

int OpCall::dim(std::string_view arg, int rank) const {
  return wrap_dim(integer(arg), rank);
}

std::vector<int> OpCall::dims(std::string_view arg, int rank) const {
  std::vector<int> out;
  const auto given = has(arg) ? op_.ints_arg(arg) : std::nullopt;
  if (!given || given->empty()) {
    for (int dim = 0; dim < rank; ++dim) out.push_back(dim);
    return out;
  }
  for (const std::int64_t dim : *given) {
    const int wrapped = wrap_dim(dim, rank);
    require(std::find(out.begin(), out.end(), wrapped) == out.end(), [&] {
      return "a dim appears twice in `" + std::string(arg) + "`";
    });
    out.push_back(wrapped);
  }
  if (rank == 0) out.clear();
  return out;
}

std::vector<bool> OpCall::mask(std::string_view arg, std::size_t length) const {
  const auto* list =
      has(arg) ? std::get_if<std::vector<bool>>(&op_.arg(arg)) : nullptr;
  if (list == nullptr || list->size() != length) {
    call_error("`" + std::string(arg) + "` does not have " +
               std::to_string(length) + " parts");
  }
  return *list;
}

std::size_t OpCall::operand(std::string_view arg) const {
  const auto found = has(arg) ? op_.tensor_arg(arg) : std::nullopt;
  if (!found) call_error("argument `" + std::string(arg) + "` is not a tensor");
  return *found;
}

const TensorMeta& OpCall::first() const {
  require(!op_.inputs.empty(), "no operand is a tensor");
  return op_.inputs.front();
}

const ArgumentSchema& declared(const OpCall& call, std::string_view arg) {
  const FunctionSchema& function = *call.op().function;
  const auto i = function.argument_index(arg);
  require(i.has_value(),
          "the operator has no argument `" + std::string(arg) + "`");
  return function.arguments()[*i];
}

TensorMeta make_meta(Dims shape, DType dtype) {
  auto meta = TensorMeta::contiguous(std::move(shape), dtype);
  if (!meta) call_error(meta.error().message);
  return *std::move(meta);
}

TensorMeta make_meta(Dims shape, Dims strides, DType dtype) {
  auto meta = TensorMeta::create(std::move(shape), std::move(strides), dtype);
  if (!meta) call_error(meta.error().message);
  return *std::move(meta);
}

TensorMeta with_dtype(const TensorMeta& meta, DType dtype) {
  return make_meta(meta.shape(), meta.strides(), dtype);
}

namespace {

// Returns dense strides for dims in memory order; the first dim of `order` is
// the innermost.
Dims strides_in_order(const Dims& shape, std::span<const int> order) {
  Dims strides(shape.size());
  std::int64_t step = 1;
  for (const int dim : order) {
    const auto at = index(dim);
    strides[at] = step;
    step = multiply_sizes(step, std::max<std::int64_t>(shape[at], 1));
  }
  return strides;
}

}  // namespace

Dims channels_last_strides(const Dims& shape) {
  require(shape.size() >= 3, "a tensor of rank 2 or less has no channels");
  std::vector<int> order = {1};
  for (int dim = static_cast<int>(shape.size()) - 1; dim > 1; --dim) {
    order.push_back(dim);
  }
  order.push_back(0);
  return strides_in_order(shape, order);
}

bool is_dense(const TensorMeta& meta) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < meta.shape().size(); ++i) {
    if (meta.shape()[i] != 1) order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return meta.strides()[a] < meta.strides()[b];
  });
  std::int64_t step = 1;
  for (const std::size_t dim : order) {
    if (meta.strides()[dim] != step) return false;
    step *= std::max<std::int64_t>(meta.shape()[dim], 1);
  }
  return true;
}

Dims broadcast(const Dims& a, const Dims& b) {
  const Dims& longer = a.size() >= b.size() ? a : b;
  const Dims& shorter = a.size() >= b.size() ? b : a;
  Dims out = longer;
  const std::size_t shift = longer.size() - shorter.size();
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    std::int64_t& size = out[i + shift];
    if (size == 1) {
      size = shorter[i];
    } else if (shorter[i] != 1 && shorter[i] != size) {
      call_error("sizes " + std::to_string(size) + " and " +
                 std::to_string(shorter[i]) + " do not broadcast");
    }
  }
  return out;
}

Dims broadcast(std::span<const TensorMeta> operands) {
  Dims shape;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    shape =
        at_operand(i, [&] { return broadcast(shape, operands[i].shape()); });
  }
  return shape;
}

namespace {

// Compares two dims by the strides of the operands, as TensorIterator does. The
// first operand whose strides differ decides. A negative result means that `a`
// is inside `b`.
int compare_dims(std::span<const Dims> strides, const Dims& shape,
                 std::size_t a, std::size_t b) {
  for (const Dims& operand : strides) {
    if (operand[a] == 0 || operand[b] == 0) continue;  // broadcast
    if (operand[a] != operand[b]) return operand[a] < operand[b] ? -1 : 1;
    if (shape[a] > shape[b]) return 1;
  }
  return 0;
}

// Returns the dims from the innermost outwards, as TensorIterator sorts them.
// The relation is not transitive if dims are broadcast or operands disagree.
// PyTorch's answer is the result of its insertion sort, so this is the same
// insertion sort.
std::vector<int> memory_order(std::span<const Dims> strides,
                              const Dims& shape) {
  std::vector<int> order(shape.size());
  std::iota(order.rbegin(), order.rend(), 0);
  for (std::size_t i = 1; i < order.size(); ++i) {
    std::size_t moving = i;
    for (std::size_t j = i; j-- > 0;) {
      const int compared =
          compare_dims(strides, shape, index(order[j]), index(order[moving]));
      if (compared > 0) {
        std::swap(order[j], order[moving]);
        moving = j;
      } else if (compared < 0) {
        break;
      }
    }
  }
  return order;
}

}  // namespace

TensorMeta dense_like(const TensorMeta& like, Dims shape, DType dtype) {
  require(shape.size() == like.shape().size(), "the ranks differ");
  const std::vector<int> order = memory_order({&like.strides(), 1}, shape);
  // The sizes are checked before their strides are multiplied.
  const TensorMeta checked = make_meta(shape, dtype);
  Dims strides = strides_in_order(checked.shape(), order);
  return make_meta(std::move(shape), std::move(strides), dtype);
}

Dims strides_to_write(const TensorMeta& self) {
  bool shared = false;
  for (int dim = 0; dim < self.rank(); ++dim) {
    shared = shared || (self.strides()[index(dim)] == 0 && self.size(dim) > 1);
  }
  return shared && self.numel() > 0
             ? dense_like(self, self.shape(), self.dtype()).strides()
             : self.strides();
}

TensorMeta elementwise(std::span<const TensorMeta> operands, DType dtype) {
  Dims shape;
  for (const TensorMeta& operand : operands) {
    shape = broadcast(shape, operand.shape());
  }
  std::vector<Dims> strides;
  bool contiguous = true;
  for (const TensorMeta& operand : operands) {
    Dims aligned(shape.size(), 0);
    const std::size_t shift = shape.size() - operand.shape().size();
    for (std::size_t i = 0; i < operand.shape().size(); ++i) {
      const bool repeated = operand.shape()[i] == 1 && shape[i + shift] != 1;
      if (!repeated) aligned[i + shift] = operand.strides()[i];
    }
    contiguous =
        contiguous && operand.shape() == shape && operand.is_contiguous();
    strides.push_back(std::move(aligned));
  }
  if (contiguous) return make_meta(std::move(shape), dtype);
  const std::vector<int> order = memory_order(strides, shape);
  const TensorMeta checked = make_meta(shape, dtype);
  return make_meta(shape, strides_in_order(checked.shape(), order), dtype);
}

}  // namespace shardprop
