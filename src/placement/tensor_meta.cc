#include <shardprop/placement/tensor_meta.h>

#include "base/parse_int.h"
#include "base/quantities.h"
#include "base/try.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace shardprop {
namespace {

// This limit is far from overflow, even after padding and for byte counts of
// groups.
constexpr std::int64_t kMaxBytes = std::int64_t{1} << 56;

std::optional<Dims> parse_list(std::string_view text) {
  Dims out;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const auto value = parse_int(text.substr(0, comma));
    if (!value) return std::nullopt;
    out.push_back(*value);
    if (comma == std::string_view::npos) return out;
    text = text.substr(comma + 1);
    if (text.empty()) return std::nullopt;
  }
  return out;
}

std::string join(const Dims& dims) {
  std::string out;
  for (const std::int64_t value : dims) {
    if (!out.empty()) out += ',';
    out += std::to_string(value);
  }
  return out;
}

bool has_no_elements(const Dims& shape) {
  return std::find(shape.begin(), shape.end(), 0) != shape.end();
}

// strides_reach() is true if the last element is at most `limit` elements after
// the first.
bool strides_reach(const Dims& shape, const Dims& strides, std::int64_t limit) {
  if (has_no_elements(shape)) return true;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    if (strides[i] > limit / (shape[i] - 1)) return false;
    limit -= strides[i] * (shape[i] - 1);
  }
  return true;
}

}  // namespace

Dims contiguous_strides(std::span<const std::int64_t> shape) {
  Dims strides(shape.size());
  std::int64_t step = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = step;
    step *= shape[i] > 0 ? shape[i] : 1;
  }
  return strides;
}

TensorMeta::TensorMeta() = default;

TensorMeta::TensorMeta(Dims shape, Dims strides, DType dtype)
    : shape_(std::move(shape)), strides_(std::move(strides)), dtype_(dtype) {}

Result<TensorMeta> TensorMeta::create(Dims shape, Dims strides, DType dtype) {
  if (shape.size() > kMaxTensorRank) {
    return fail(ErrorCode::kTensorMeta,
                "a tensor of rank " + std::to_string(shape.size()) +
                    " is more than the " + std::to_string(kMaxTensorRank) +
                    " supported",
                "fold dims that are never sharded apart into one");
  }
  if (shape.size() != strides.size()) {
    return fail(ErrorCode::kTensorMeta,
                "a tensor of " + counted(shape.size(), "size") + " has " +
                    counted(strides.size(), "stride"),
                "give a stride for every dim, or none at all");
  }
  std::int64_t elements = kMaxBytes / item_size(dtype);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] < 0 || strides[i] < 0) {
      return fail(ErrorCode::kTensorMeta,
                  "dim " + std::to_string(i) + " has size " +
                      std::to_string(shape[i]) + " and stride " +
                      std::to_string(strides[i]),
                  "sizes and strides are not negative");
    }
    // Dims of size 0 do not count in the product. Otherwise an empty tensor
    // could hide sizes whose strides overflow.
    if (shape[i] > elements) {
      return fail(ErrorCode::kTensorMeta,
                  "a tensor of shape [" + join(shape) + "] is too large",
                  "a tensor holds at most 2^56 bytes");
    }
    if (shape[i] > 0) elements /= shape[i];
  }
  if (!strides_reach(shape, strides, kMaxBytes / item_size(dtype))) {
    return fail(ErrorCode::kTensorMeta,
                "strides [" + join(strides) + "] of shape [" + join(shape) +
                    "] reach beyond any memory",
                "leave the strides out for a tensor that lies in one piece");
  }
  return TensorMeta(std::move(shape), std::move(strides), dtype);
}

Result<TensorMeta> TensorMeta::contiguous(Dims shape, DType dtype) {
  // Zero strides are checked first, because the product of unchecked sizes
  // could overflow.
  SP_ASSIGN(TensorMeta meta, create(shape, Dims(shape.size()), dtype));
  meta.strides_ = contiguous_strides(shape);
  return meta;
}

Result<TensorMeta> TensorMeta::parse(std::string_view text) {
  const auto wrong = [&] {
    return fail(ErrorCode::kTensorMeta,
                "`" + std::string(text) + "` is not a tensor",
                "write it as bf16[8,2048,4096]");
  };
  const std::size_t open = text.find('[');
  const std::size_t close = text.find(']');
  if (open == std::string_view::npos || close == std::string_view::npos ||
      close < open) {
    return wrong();
  }
  SP_ASSIGN(const DType dtype, parse_dtype(text.substr(0, open)));
  auto shape = parse_list(text.substr(open + 1, close - open - 1));
  if (!shape) return wrong();
  const std::string_view rest = text.substr(close + 1);
  if (rest.empty()) return contiguous(*std::move(shape), dtype);
  if (rest.size() < 2 || rest.front() != '{' || rest.back() != '}') {
    return wrong();
  }
  auto strides = parse_list(rest.substr(1, rest.size() - 2));
  if (!strides) return wrong();
  return create(*std::move(shape), *std::move(strides), dtype);
}

std::int64_t TensorMeta::numel() const {
  std::int64_t count = 1;
  for (const std::int64_t size : shape_) count *= size;
  return count;
}

bool TensorMeta::is_contiguous() const {
  if (has_no_elements(shape_)) return true;
  const Dims wanted = contiguous_strides(shape_);
  for (std::size_t i = 0; i < shape_.size(); ++i) {
    if (shape_[i] != 1 && strides_[i] != wanted[i]) return false;
  }
  return true;
}

std::string to_string(const TensorMeta& meta) {
  std::string out(to_string(meta.dtype()));
  out += '[' + join(meta.shape()) + ']';
  // The strides of dims of size 1 are printed too, so that the text parses
  // back.
  if (meta.strides() != contiguous_strides(meta.shape())) {
    out += '{' + join(meta.strides()) + '}';
  }
  return out;
}

}  // namespace shardprop
