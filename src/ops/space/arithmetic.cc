// Linearity and monotonicity decide which reductions an operator commutes with.
//
// A partial passes through any operator only if the casts between the dtypes of
// its operands preserve it (cast_keeps).

#include "ops/space/arithmetic.h"

#include "ops/argument_reads.h"
#include "ops/definitions/dtypes.h"
#include "ops/op_call.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

namespace shardprop {
namespace {

bool is_signed_integer(DType dtype) {
  return is_integral(dtype) && dtype != DType::kU8 && dtype != DType::kU16 &&
         dtype != DType::kU32 && dtype != DType::kU64;
}

// Returns whether `to` can represent every integer of `from`.
bool integers_fit(DType from, DType to) {
  if (is_signed_integer(from) && !is_signed_integer(to)) return false;
  if (is_signed_integer(from) == is_signed_integer(to)) {
    return item_size(to) >= item_size(from);
  }
  return item_size(to) > item_size(from);
}

// Returns whether the cast preserves sums, averages and products of reals. The
// cast must not truncate, and integers wrap round in their own width.
bool keeps_values(DType from, DType to) {
  if (is_floating(from)) {
    return is_complex(to) ||
           (is_floating(to) && (to == DType::kF32 || to == DType::kF64) &&
            item_size(to) >= item_size(from));
  }
  return is_complex(from) && is_complex(to) && item_size(to) >= item_size(from);
}

// Returns whether the cast preserves sums and averages of complex numbers: the
// real part of a sum is the sum of the real parts.
bool keeps_real_parts(DType from, DType to) {
  if (!is_complex(from) || !is_floating(to)) return false;
  const DType part = real_dtype(from);
  return part == to || keeps_values(part, to);
}

// Returns whether the cast preserves maximum and minimum, because it is
// nondecreasing.
bool keeps_order(DType from, DType to) {
  if (is_complex(from) || is_complex(to) || to == DType::kBool) return false;
  if (from == DType::kBool || is_floating(to)) return true;
  if (is_floating(from)) return is_signed_integer(to);
  return integers_fit(from, to);
}

}  // namespace

bool cast_keeps(ReduceOp op, DType from, DType to) {
  if (!is_defined(op, from) || !is_defined(op, to)) return false;
  if (from == to) return true;
  switch (op) {
    case ReduceOp::kMax:
    case ReduceOp::kMin:
      return keeps_order(from, to);
    case ReduceOp::kSum:
    case ReduceOp::kAvg:
      return keeps_values(from, to) || keeps_real_parts(from, to);
    case ReduceOp::kProduct:
      return keeps_values(from, to);
    case ReduceOp::kBand:
    case ReduceOp::kBor:
    case ReduceOp::kBxor:
      return is_integral(from) && is_integral(to) && integers_fit(from, to);
  }
  return false;
}

Partials partials(std::size_t count, ReduceOp op) {
  return Partials(count, std::optional<ReduceOp>(op));
}

void add_linearity(const OpCall& call, IndexSpace& space, Partials inputs,
                   Partials outputs) {
  require(inputs.size() == space.inputs.size() &&
              outputs.size() == space.outputs.size(),
          "a linearity of the rule does not fit the number of operands");
  const OpSchema& op = call.op();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i]) continue;
    const DType from = op.inputs[i].dtype();
    if (!is_defined(*inputs[i], from)) return;
    // Floats of 8 bits are scaled to the values that they hold. The terms of a
    // sum may exceed their range.
    const bool is_extremum =
        inputs[i] == ReduceOp::kMax || inputs[i] == ReduceOp::kMin;
    if (is_floating(from) && item_size(from) == 1 && !is_extremum) return;
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      if (outputs[o] && !cast_keeps(*inputs[i], from, op.outputs[o].dtype())) {
        return;
      }
    }
  }
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    if (outputs[o] && !is_defined(*outputs[o], op.outputs[o].dtype())) return;
  }
  Linearity linearity{std::move(inputs), std::move(outputs)};
  if (std::find(space.linearities.begin(), space.linearities.end(),
                linearity) == space.linearities.end()) {
    space.linearities.push_back(std::move(linearity));
  }
}

void add_single_linearity(const OpCall& call, IndexSpace& space,
                          std::size_t input, ReduceOp in, ReduceOp out) {
  Partials inputs(space.inputs.size());
  nth(inputs, input) = in;
  add_linearity(call, space, std::move(inputs),
                partials(space.outputs.size(), out));
}

void nondecreasing_in_each(const OpCall& call, IndexSpace& space) {
  for (std::size_t i = 0; i < space.inputs.size(); ++i) {
    for (const ReduceOp kind : {ReduceOp::kMax, ReduceOp::kMin}) {
      add_single_linearity(call, space, i, kind, kind);
    }
  }
}

namespace {

// `SignedSum` is the sum that `self` and `other` form: signed tensors by
// operand, plus a constant if one of the two is a number.
struct SignedSum {
  std::vector<int> factors;  // the sign of each operand
  bool has_constant = false;
  bool scales = false;  // alpha scales a tensor
};

SignedSum signed_sum(const OpSchema& op, const std::vector<int>& signs) {
  SignedSum sum;
  sum.factors.assign(op.inputs.size(), 1);
  const int alpha = op.has_arg("alpha") ? sign_of(op, "alpha").value_or(0) : 1;
  const std::string_view terms[] = {"self", "other"};
  // alpha scales the second term, or the first if the first is subtracted
  // (rsub).
  const std::size_t scaled = !signs.empty() && signs[0] < 0 ? 0 : 1;
  for (std::size_t i = 0; i < std::size(terms); ++i) {
    if (!op.has_arg(terms[i])) continue;
    const int factor =
        (i < signs.size() ? signs[i] : 1) * (i == scaled ? alpha : 1);
    if (const auto operand = op.tensor_arg(terms[i])) {
      sum.factors[*operand] = factor;
      sum.scales |= i == scaled && op.has_arg("alpha");
    } else if (sign_of(op, terms[i]).value_or(1) != 0) {
      sum.has_constant = true;
    }
  }
  return sum;
}

// Returns whether the arithmetic wraps round, which breaks the order. It is
// done in the dtype of the result.
bool wraps(const OpSchema& op) {
  return std::any_of(
      op.outputs.begin(), op.outputs.end(),
      [](const TensorMeta& meta) { return !is_floating(meta.dtype()); });
}

// Returns whether the call computes x + 0, which does not wrap if x does not.
bool copies(const OpSchema& op, const SignedSum& sum) {
  return op.inputs.size() == 1 && sum.factors[0] > 0 && !sum.scales &&
         !sum.has_constant && op.inputs[0].dtype() == op.outputs[0].dtype();
}

void add_signed_sum(const OpCall& call, IndexSpace& space,
                    const std::vector<int>& signs) {
  const std::size_t n = space.inputs.size();
  const std::size_t outputs = space.outputs.size();
  if (n == 0) return;
  const SignedSum sum = signed_sum(call.op(), signs);
  const bool keeps_order = !wraps(call.op()) || copies(call.op(), sum);
  if (!sum.has_constant) {
    add_linearity(call, space, partials(n, ReduceOp::kSum),
                  partials(outputs, ReduceOp::kSum));
  }
  if (n > 1) {
    add_linearity(call, space, partials(n, ReduceOp::kAvg),
                  partials(outputs, ReduceOp::kAvg));
  }
  for (std::size_t i = 0; i < n; ++i) {
    add_single_linearity(call, space, i, ReduceOp::kAvg, ReduceOp::kAvg);
    const int factor = sum.factors[i];
    if (factor == 0 || !keeps_order) continue;
    for (const ReduceOp kept : {ReduceOp::kMax, ReduceOp::kMin}) {
      add_single_linearity(call, space, i, kept,
                           factor > 0 ? kept : opposite(kept));
    }
  }
}

std::string sign_text(const std::vector<int>& signs) {
  std::string text;
  for (const int sign : signs) {
    if (!text.empty()) text += ',';
    text += sign < 0 ? '-' : '+';
  }
  return text;
}

// Adds the extrema of `self`, which is multiplied with or divided by a number.
void add_scaled_extrema(const OpCall& call, IndexSpace& space) {
  const OpSchema& op = call.op();
  if (space.inputs.size() != 1 || !op.has_arg("other") || wraps(op)) return;
  if (op.tensor_arg("other") || !op.tensor_arg("self")) return;
  const int sign = sign_of(op, "other").value_or(0);
  if (sign == 0) return;
  for (const ReduceOp kind : {ReduceOp::kMax, ReduceOp::kMin}) {
    add_single_linearity(call, space, 0, kind,
                         sign > 0 ? kind : opposite(kind));
  }
}

// Returns which operands the named arguments are. Returns nullopt if one of
// them is a number, because every rank would add its own copy of it.
std::optional<std::vector<bool>> operands_named(
    const OpSchema& op, const std::vector<std::string>& arguments) {
  std::vector<bool> takes(op.inputs.size(), arguments.empty());
  for (const std::string& argument : arguments) {
    if (!op.has_arg(argument)) return std::nullopt;
    if (const auto input = op.tensor_arg(argument)) {
      takes[*input] = true;
      continue;
    }
    const std::vector<std::size_t> list = op.tensor_list_arg(argument);
    if (list.empty()) return std::nullopt;
    for (const std::size_t i : list) takes[i] = true;
  }
  return takes;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    text += (text.empty() ? "" : ",") + name;
  }
  return text;
}

}  // namespace

OpDefinition OpDefinition::additive(std::vector<int> signs) && {
  const std::string name = "additive(" + sign_text(signs) + ")";
  return std::move(*this).refine(
      name, [signs = std::move(signs)](const OpCall& call, IndexSpace& space) {
        add_signed_sum(call, space, signs);
      });
}

OpDefinition OpDefinition::linear_in(std::string_view argument) && {
  const std::string name(argument);
  return std::move(*this).refine(
      "linear_in(" + name + ")", [name](const OpCall& call, IndexSpace& space) {
        if (!call.has(name)) return;
        const auto input = call.op().tensor_arg(name);
        if (!input) return;
        for (const ReduceOp kind : {ReduceOp::kSum, ReduceOp::kAvg}) {
          add_single_linearity(call, space, *input, kind, kind);
        }
        add_scaled_extrema(call, space);
      });
}

OpDefinition OpDefinition::multilinear() && {
  return std::move(*this).refine(
      "multilinear()", [](const OpCall& call, IndexSpace& space) {
        for (std::size_t i = 0; i < space.inputs.size(); ++i) {
          for (const ReduceOp kind : {ReduceOp::kSum, ReduceOp::kAvg}) {
            add_single_linearity(call, space, i, kind, kind);
          }
        }
        add_scaled_extrema(call, space);
      });
}

OpDefinition OpDefinition::nondecreasing() && {
  return std::move(*this).refine(
      "nondecreasing()", [](const OpCall& call, IndexSpace& space) {
        if (space.inputs.empty()) return;
        for (const ReduceOp kind : {ReduceOp::kMax, ReduceOp::kMin}) {
          add_single_linearity(call, space, 0, kind, kind);
        }
      });
}

OpDefinition OpDefinition::nondecreasing_in_each() && {
  return std::move(*this).refine("nondecreasing_in_each()",
                                 shardprop::nondecreasing_in_each);
}

OpDefinition OpDefinition::nonincreasing() && {
  return std::move(*this).refine(
      "nonincreasing()", [](const OpCall& call, IndexSpace& space) {
        if (space.inputs.empty() || wraps(call.op())) return;
        for (const ReduceOp kind : {ReduceOp::kMax, ReduceOp::kMin}) {
          add_single_linearity(call, space, 0, kind, opposite(kind));
        }
      });
}

OpDefinition OpDefinition::lattice(ReduceOp own) && {
  return std::move(*this).refine(
      "lattice(" + std::string(to_string(own)) + ")",
      [own](const OpCall& call, IndexSpace& space) {
        const std::size_t n = space.inputs.size();
        for (const ReduceOp kind : {ReduceOp::kMax, ReduceOp::kMin}) {
          for (std::size_t i = 0; i < n; ++i) {
            add_single_linearity(call, space, i, kind, kind);
          }
        }
        add_linearity(call, space, partials(n, own),
                      partials(space.outputs.size(), own));
      });
}

void OpDefinition::add_selected(const std::vector<std::string>& arguments) {
  std::optional<std::vector<std::string>>& selected = traits_.selected;
  if (!selected || arguments.empty()) {
    selected = arguments;
  } else if (!selected->empty()) {
    selected->insert(selected->end(), arguments.begin(), arguments.end());
  }
}

OpDefinition OpDefinition::passes(std::vector<std::string> arguments) && {
  const std::string name = "passes(" + joined(arguments) + ")";
  add_selected(arguments);
  return std::move(*this).refine(
      name, [arguments = std::move(arguments)](const OpCall& call,
                                               IndexSpace& space) {
        const auto takes = operands_named(call.op(), arguments);
        if (!takes) return;
        space.carries = space.inputs.size() == 1 && (*takes)[0];
        for (const ReduceOp kind : kAllReduceOps) {
          Partials inputs(space.inputs.size());
          for (std::size_t i = 0; i < inputs.size(); ++i) {
            if ((*takes)[i]) inputs[i] = kind;
          }
          add_linearity(call, space, std::move(inputs),
                        partials(space.outputs.size(), kind));
        }
      });
}

OpDefinition OpDefinition::selects(std::vector<std::string> arguments) && {
  const std::string name = "selects(" + joined(arguments) + ")";
  add_selected(arguments);
  return std::move(*this).say(name);
}

OpDefinition OpDefinition::ignores_values(
    std::vector<std::string> arguments) && {
  const std::string name = "ignores_values(" + joined(arguments) + ")";
  return std::move(*this).refine(
      name, [arguments = std::move(arguments)](const OpCall& call,
                                               IndexSpace& space) {
        const auto ignored = operands_named(call.op(), arguments);
        if (!ignored) return;
        for (const ReduceOp kind : kAllReduceOps) {
          Partials inputs(space.inputs.size());
          for (std::size_t i = 0; i < inputs.size(); ++i) {
            if ((*ignored)[i]) inputs[i] = kind;
          }
          add_linearity(call, space, std::move(inputs),
                        Partials(space.outputs.size()));
        }
      });
}

}  // namespace shardprop
