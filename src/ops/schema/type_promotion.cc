#include "ops/argument_reads.h"
#include "ops/op_call.h"

#include <algorithm>
#include <optional>

namespace shardprop {
namespace {

DType to_complex(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return DType::kC32;
    case DType::kF64:
      return DType::kC128;
    default:
      return DType::kC64;
  }
}

bool is_unsigned(DType dtype) {
  return dtype == DType::kU8 || dtype == DType::kU16 || dtype == DType::kU32 ||
         dtype == DType::kU64;
}

DType promote_integers(DType a, DType b) {
  const DType wide = item_size(a) >= item_size(b) ? a : b;
  const DType narrow = item_size(a) >= item_size(b) ? b : a;
  if (is_unsigned(a) == is_unsigned(b)) return wide;
  if (!is_unsigned(wide) && item_size(wide) > item_size(narrow)) return wide;
  // The next signed type represents both.
  switch (item_size(wide)) {
    case 1:
      return DType::kI16;
    case 2:
      return DType::kI32;
    default:
      return DType::kI64;
  }
}

std::optional<DType> promote(std::optional<DType> a, std::optional<DType> b) {
  if (!a) return b;
  if (!b) return a;
  return promote_types(*a, *b);
}

// A lower tier decides only if its kind (complex, float, integer) is higher
// than that of the upper tier.
std::optional<DType> combine_tiers(std::optional<DType> upper,
                                   std::optional<DType> lower) {
  if (!upper || !lower) return upper ? upper : lower;
  if (is_complex(*upper)) return upper;
  if (is_floating(*upper)) {
    return is_complex(*lower) ? to_complex(*upper) : *upper;
  }
  if (*upper == DType::kBool || is_floating(*lower) || is_complex(*lower)) {
    return promote_types(*upper, *lower);
  }
  return upper;
}

std::optional<DType> number_dtype(const Argument& value) {
  if (std::holds_alternative<bool>(value)) return DType::kBool;
  if (std::holds_alternative<std::int64_t>(value)) return DType::kI64;
  if (std::holds_alternative<double>(value)) return DType::kF32;
  if (std::holds_alternative<std::complex<double>>(value)) return DType::kC64;
  return std::nullopt;
}

}  // namespace

DType promote_types(DType a, DType b) {
  if (a == b || b == DType::kBool) return a;
  if (a == DType::kBool) return b;
  if (is_complex(a) || is_complex(b)) {
    const DType left = is_complex(a) ? a : to_complex(a);
    const DType right = is_complex(b) ? b : to_complex(b);
    // An integer does not widen a complex number.
    if (is_integral(a)) return right;
    if (is_integral(b)) return left;
    return item_size(left) >= item_size(right) ? left : right;
  }
  if (is_floating(a) && is_floating(b)) {
    // Neither of two float types of one size represents the other (f16, bf16).
    if (item_size(a) == item_size(b)) return DType::kF32;
    return item_size(a) > item_size(b) ? a : b;
  }
  if (is_floating(a)) return a;
  if (is_floating(b)) return b;
  return promote_integers(a, b);
}

DType to_floating(DType dtype) {
  return is_floating(dtype) || is_complex(dtype) ? dtype : DType::kF32;
}

namespace {

// `Promotion` combines PyTorch's three tiers: tensors with dims, tensors
// without dims, numbers.
class Promotion {
 public:
  void add(const TensorMeta& meta) {
    std::optional<DType>& tier = meta.rank() > 0 ? with_dims_ : without_dims_;
    tier = promote(tier, meta.dtype());
  }
  void add(const Argument& number) {
    numbers_ = promote(numbers_, number_dtype(number));
  }
  DType result() const {
    const auto all =
        combine_tiers(combine_tiers(with_dims_, without_dims_), numbers_);
    if (!all) call_error("no operand has a dtype");
    return *all;
  }

 private:
  std::optional<DType> with_dims_;
  std::optional<DType> without_dims_;
  std::optional<DType> numbers_;
};

}  // namespace

DType result_dtype(const OpCall& op, std::span<const std::string_view> args) {
  Promotion promotion;
  for (const std::string_view arg : args) {
    if (!op.has(arg)) continue;
    if (const TensorMeta* meta = op.optional_tensor(arg)) {
      promotion.add(*meta);
    } else {
      promotion.add(look_at(op.op(), arg, Look::kKind));
    }
  }
  return promotion.result();
}

DType promoted_dtype(const OpCall& op) {
  Promotion promotion;
  for (const TensorMeta& meta : op.op().inputs) promotion.add(meta);
  // These arguments may be numbers in place of operands. Others, such as alpha
  // and eps, do not promote.
  for (const std::string_view arg :
       {"self", "other", "exponent", "end", "min", "max", "weight", "value"}) {
    if (!op.has(arg) || op.optional_tensor(arg) != nullptr) continue;
    promotion.add(look_at(op.op(), arg, Look::kKind));
  }
  return promotion.result();
}

}  // namespace shardprop
