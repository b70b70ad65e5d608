// Lookups and writes along one dim, by an index.

#include "ops/forms/forms.h"
#include "ops/forms/indices.h"
#include "ops/forms/shared_form.h"
#include "ops/rules/rule_words.h"
#include "ops/space/arithmetic.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

// --- gather and scatter: other dims than `dim` share a factor if sizes agree
// ---

struct Dimwise {
  int dim = 0;
  Operand self;   // includes `dim`
  Operand index;  // excludes `dim`
};

Dimwise dimwise(SpaceBuilder& b, const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  const TensorMeta& looked = call.tensor("index");
  // PyTorch does not check the dtype of an index without elements.
  require(is_index(looked.dtype()) || looked.numel() == 0,
          "the index is not of integers");
  require(std::max(self.rank(), 1) == std::max(looked.rank(), 1) ||
              looked.numel() == 0,
          "the index has another rank");
  Dimwise out;
  out.dim = call.dim("dim", self.rank());
  out.self = SpaceBuilder::whole(self.rank());
  out.index = SpaceBuilder::whole(looked.rank());
  if (looked.rank() != self.rank()) {
    for (int d = 0; d < self.rank(); ++d) {
      out.self.dims[index(d)] =
          b.blocked(self.size(d), "the index has no such dim");
    }
    return out;
  }
  for (int d = 0; d < self.rank(); ++d) {
    if (d == out.dim) {
      out.self.dims[index(d)] = b.dim(self.size(d));
    } else if (self.size(d) == looked.size(d)) {
      out.self.dims[index(d)] = b.dim(self.size(d));
      out.index.dims[index(d)] = out.self.dims[index(d)];
    } else {
      require(looked.size(d) <= self.size(d), "the index is larger than self");
      out.self.dims[index(d)] =
          b.blocked(self.size(d), "the index covers a part of it");
    }
  }
  return out;
}

BoundForm bind_gather(const OpCall& call) {
  const TensorMeta& looked = call.tensor("index");
  require(call.overload() != "dimname", "named dims are not supported");
  SpaceBuilder b;
  Dimwise shared = dimwise(b, call);
  const bool scalar = shared.self.dims.empty();
  if (!scalar && looked.rank() > 0 &&
      looked.rank() == call.tensor("self").rank()) {
    shared.index.dims[index(shared.dim)] = b.dim(looked.size(shared.dim));
  }
  b.input(shared.self);
  b.input(shared.index);
  b.output(shared.index, {.shape = looked.shape()});
  if (!scalar) {
    const DimFactors& over = shared.self.dims[index(shared.dim)];
    if (is_index(looked.dtype())) look_up_by_program(b.space, over);
    b.without(0, over, kTermsOfSum);
  }
  return b.bound();
}

constexpr std::string_view kAdd = "add";
constexpr std::string_view kArithmetic = "arithmetic";
constexpr std::string_view kReduction = "reduction";

Write write_named(std::string_view word) {
  if (word == "add" || word == "sum") return Write::kAdd;
  if (word == "multiply" || word == "prod") return Write::kMultiply;
  if (word == "amax") return Write::kMax;
  return word == "amin" ? Write::kMin : Write::kMean;
}

// Returns what is written, for the argument `how` of a form.
Write write_of(const OpCall& call, std::string_view how, bool has_sum) {
  if (how.empty()) return Write::kReplace;
  if (how == kAdd) return Write::kAdd;
  const std::string_view word = call.op().string_arg("reduce").value_or("");
  const auto is_one_of = [&](std::initializer_list<std::string_view> words) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  if (how == kArithmetic) {
    require(is_one_of({"add", "multiply"}), "`reduce` is not add or multiply");
  } else if (!has_sum) {
    require(is_one_of({"prod", "mean", "amax", "amin"}),
            "`reduce` is not prod, mean, amax or amin");
  } else {
    require(is_one_of({"sum", "prod", "mean", "amax", "amin"}),
            "`reduce` is not sum, prod, mean, amax or amin");
  }
  return write_named(word);
}

// Ranks that each write some of the rows hold terms of the result. `self` is
// one more term of a sum or a product; for an extremum, every rank may include
// it.
void share_out_rows(SpaceBuilder& b, const OpCall& call, Write write,
                    const DimFactors& rows) {
  const auto combines_by = [&](ReduceOp op, bool self_is_term) {
    b.without(0, rows, Without::partial(op));
    for (const FactorId id : rows) {
      b.space.inputs_without[0][index(id)] =
          self_is_term ? Without::partial(op) : Without::same();
    }
  };
  const bool includes_self = call.boolean_or("include_self", true);
  if (write == Write::kReplace) {
    b.block(rows, "later indices overwrite earlier ones");
  } else if (write == Write::kMean || !includes_self) {
    b.block(rows, "each row is reduced once");
  } else if (write == Write::kAdd) {
    combines_by(ReduceOp::kSum, true);
  } else if (write == Write::kMultiply) {
    combines_by(ReduceOp::kProduct, true);
  } else {
    combines_by(write == Write::kMax ? ReduceOp::kMax : ReduceOp::kMin, false);
  }
}

BoundForm bind_scatter(const OpCall& call, Write write) {
  const TensorMeta& self = call.tensor("self");
  const TensorMeta& looked = call.tensor("index");
  const TensorMeta* src =
      call.has("src") ? call.optional_tensor("src") : nullptr;
  require(src == nullptr || src->dtype() == self.dtype(),
          "self and the source are of two dtypes");
  SpaceBuilder b;
  Dimwise shared = dimwise(b, call);
  const bool has_dims = self.rank() > 0 && looked.rank() == self.rank();
  DimFactors rows;
  if (has_dims) {
    rows = b.dim(looked.size(shared.dim));
    shared.index.dims[index(shared.dim)] = rows;
  }
  Operand source = shared.index;
  if (src != nullptr) {
    require(src->rank() == looked.rank() || looked.numel() == 0,
            "the source has another rank");
    source.dims.resize(index(src->rank()));
    for (int d = 0; d < src->rank() && src->rank() == looked.rank(); ++d) {
      require(src->size(d) >= looked.size(d),
              "the source is smaller than the index");
      if (src->size(d) == looked.size(d)) continue;
      // Only the first elements of a longer source are used. Its chunks would
      // not match those of the index.
      b.block(shared.index.dims[index(d)],
              "the source is longer than the index");
      source.dims[index(d)].clear();
    }
  }
  const auto arguments = call.op().function->arguments();
  for (const ArgumentSchema& argument : arguments) {
    if (!argument.is_tensor() || !call.has(argument.name)) continue;
    if (!call.op().tensor_arg(argument.name)) continue;
    b.input(argument.name == "self"    ? shared.self
            : argument.name == "index" ? shared.index
                                       : source);
  }
  b.output(shared.self, {.shape = self.shape()});
  if (!has_dims) return b.bound();
  const DimFactors& over = shared.self.dims[index(shared.dim)];
  if (is_index(looked.dtype())) {
    look_up_by_program(b.space, over);
  } else {
    b.block(over, "the index is not of integers");
  }
  share_out_rows(b, call, write, rows);
  return b.bound();
}

// --- One dim by a vector of indices ---

BoundForm bind_index_select(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  const TensorMeta& chosen = call.tensor("index");
  require(call.overload() == "default" && chosen.rank() <= 1 &&
              is_index(chosen.dtype()),
          "the index is not a vector of integers");
  SpaceBuilder b;
  Operand whole = b.per_dim(self.shape());
  const int dim = call.dim("dim", self.rank());
  b.input(whole);
  b.input(b.per_dim(chosen.shape()));
  if (self.rank() == 0) {
    b.output(std::move(whole));
    return b.bound();
  }
  const DimFactors over = whole.dims[index(dim)];
  look_up_by_program(b.space, over);
  whole.dims[index(dim)] =
      chosen.rank() == 1 ? b.space.inputs[1].dims[0] : DimFactors{};
  b.output(std::move(whole));
  b.without(0, over, kTermsOfSum);
  return b.bound();
}

// Checks that the source that is written along `dim`, if any, fits.
void check_source(const OpCall& call, int dim) {
  const TensorMeta& self = call.tensor("self");
  const TensorMeta& chosen = call.tensor("index");
  if (const TensorMeta* value =
          call.has("value") ? call.optional_tensor("value") : nullptr) {
    require(value->rank() == 0, "`value` is not a scalar");
  }
  const TensorMeta* source =
      call.has("source") ? call.optional_tensor("source") : nullptr;
  if (source == nullptr) return;
  require(source->dtype() == self.dtype(),
          "self and the source are of two dtypes");
  const bool scalar = source->rank() == 0;
  require(scalar ? self.rank() <= 1 : source->rank() == self.rank(),
          "the source has another rank");
  for (int d = 0; d < source->rank(); ++d) {
    require(source->size(d) == (d == dim ? chosen.numel() : self.size(d)),
            "the source does not have the shape of what is written");
  }
  require(!scalar || chosen.numel() == 1, "there is one row to write");
}

// Binds the operators that change self along `dim` at a vector of indices.
BoundForm bind_index_written(const OpCall& call, Write write) {
  const TensorMeta& self = call.tensor("self");
  const TensorMeta& chosen = call.tensor("index");
  require(chosen.rank() <= 1 && is_index(chosen.dtype()),
          "the index is not a vector of integers");
  const int dim = call.dim("dim", self.rank());
  check_source(call, dim);
  SpaceBuilder b;
  const Operand whole = b.per_dim(self.shape());
  const Operand where = b.per_dim(chosen.shape());
  const DimFactors rows = chosen.rank() == 1 ? where.dims[0] : DimFactors{};
  Operand source = whole;
  if (self.rank() > 0) {
    const DimFactors over = whole.dims[index(dim)];
    if (chosen.rank() == 1 && chosen.numel() > 0) {
      look_up_by_program(b.space, over);
    } else {
      b.block(over, "it is written where indices say", FactorKind::kIndexed);
    }
    source.dims[index(dim)] = rows;
  }
  const TensorMeta* written =
      call.has("source") ? call.optional_tensor("source") : nullptr;
  for (const TensorMeta& meta : call.op().inputs) {
    b.input(&meta == &self     ? whole
            : &meta == &chosen ? where
            : &meta == written && meta.rank() == self.rank()
                ? source
                : SpaceBuilder::whole(meta.rank()));
  }
  b.output(whole);
  share_out_rows(b, call, write, rows);
  return b.bound();
}

std::optional<std::size_t> values_operand(const OpCall& call) {
  for (const char* name : {"source", "src", "value"}) {
    if (!call.has(name) || call.optional_tensor(name) == nullptr) continue;
    return call.operand(name);
  }
  return std::nullopt;
}

using BindWrite = BoundForm (*)(const OpCall&, Write);

OpDefinition write_form(std::string text, std::string_view how, bool has_sum,
                        BindWrite bind) {
  return with_implied(shared_form(std::move(text),
                                  [=](const OpCall& call) {
                                    return bind(call,
                                                write_of(call, how, has_sum));
                                  }),
                      [=](const OpCall& call, IndexSpace& space) {
                        pass_writes(call, space, write_of(call, how, has_sum),
                                    values_operand(call));
                      });
}

// Returns "scatter(dim)" or "scatter(dim,add)".
std::string write_text(std::string_view name, std::string_view how) {
  return std::string(name) + "(dim" + (how.empty() ? "" : ",") +
         std::string(how) + ")";
}

// Returns whether a partial stays a term per rank after the number is written.
bool stays_a_term(const OpCall& call, ReduceOp op) {
  // A plain number is used because GCC 12 warns that the optional may be read
  // uninitialized.
  const double value =
      call.has("value") ? call.op().float_arg("value").value_or(NAN) : NAN;
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kBxor:
      return value == 0;
    case ReduceOp::kProduct:
      return value == 1 || value == 0;
    default:
      return true;
  }
}

}  // namespace

void pass_writes(const OpCall& call, IndexSpace& space, Write write,
                 std::optional<std::size_t> values) {
  // A replicated operand is also an average or an extremum of equal terms. So a
  // linearity with both operands partial covers one partial operand too.
  const auto pass = [&](ReduceOp op, bool in_values) {
    if (in_values && !values) return;
    std::vector<std::optional<ReduceOp>> inputs(space.inputs.size());
    nth(inputs, 0) = op;
    if (in_values) nth(inputs, *values) = op;
    add_linearity(call, space, std::move(inputs),
                  partials(space.outputs.size(), op));
  };
  const bool is_float = is_floating(call.first().dtype());
  switch (write) {
    case Write::kReplace:
      for (const ReduceOp op : kAllReduceOps) {
        if (values || stays_a_term(call, op)) pass(op, values.has_value());
      }
      break;
    case Write::kAdd:
    case Write::kMean:
      if (write == Write::kMean && !is_float) break;
      pass(ReduceOp::kSum, true);
      pass(ReduceOp::kAvg, values.has_value());
      // Adding the same number keeps the order, unless the sum wraps round.
      if (!is_float) break;
      pass(ReduceOp::kMax, false);
      pass(ReduceOp::kMin, false);
      break;
    case Write::kMultiply:
      pass(ReduceOp::kProduct, true);
      if (!call.boolean_or("include_self", true)) break;
      pass(ReduceOp::kSum, false);
      pass(ReduceOp::kAvg, false);
      break;
    case Write::kMax:
      pass(ReduceOp::kMax, values.has_value());
      break;
    case Write::kMin:
      pass(ReduceOp::kMin, values.has_value());
      break;
  }
}

OpDefinition gathered() {
  return form("gather(dim)").passes({"self"}).below("index", IndexBound::kDim);
}
OpDefinition scattered(std::string_view how) {
  return form(write_text("scatter", how)).below("index", IndexBound::kDim);
}
OpDefinition selected_along() {
  return form("index_select(dim)")
      .passes({"self"})
      .below("index", IndexBound::kDim);
}
OpDefinition written_along(std::string_view how) {
  return form(write_text("index_written", how))
      .below("index", IndexBound::kDim);
}

void words_of_indexed(RuleWords& words) {
  words.form(shared_form("gather(dim)", bind_gather));
  words.form(shared_form("index_select(dim)", bind_index_select));
  for (const std::string_view how :
       {std::string_view(), kAdd, kArithmetic, kReduction}) {
    words.form(write_form(write_text("scatter", how), how, true, bind_scatter));
    if (how == kArithmetic) continue;
    words.form(write_form(write_text("index_written", how), how, false,
                          bind_index_written));
  }
}

}  // namespace shardprop
