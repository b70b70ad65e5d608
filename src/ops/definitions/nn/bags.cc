// Bags of embeddings: rows of a table, reduced by bag. The columns of the table
// are sharded. The rows are sharded too if a bag is the sum or mean of its
// rows: each rank adds its own rows.

#include "ops/definitions/families.h"
#include "ops/definitions/words.h"
#include "ops/forms/mapped.h"

#include <string>
#include <string_view>
#include <utility>

namespace shardprop {
namespace {

// `BagMode` has the values of the argument `mode`.
struct BagMode {
  static constexpr std::int64_t kSum = 0;
  static constexpr std::int64_t kMean = 1;
  static constexpr std::int64_t kMax = 2;
};

std::int64_t bags(const OpCall& call) {
  const TensorMeta& offsets = call.tensor("offsets");
  require(offsets.rank() == 1, "the offsets are not a vector");
  const bool closed = call.boolean_or("include_last_offset", false);
  require(!closed || size_of(offsets, 0) > 0, "the last offset is missing");
  return size_of(offsets, 0) - (closed ? 1 : 0);
}

// An optional padding index that is negative counts from the end. One that is always
// given means no padding.
bool is_padded(const OpCall& call) {
  if (!call.has("padding_idx")) return false;
  const auto padding = call.op().int_arg("padding_idx");
  return padding &&
         (*padding >= 0 || declared(call, "padding_idx").is_optional);
}

// Returns whether the kernel sums rows without recording the bag of each row.
bool notes_no_bags(const OpCall& call) {
  const TensorMeta& weight = call.tensor("weight");
  const DType dtype = weight.dtype();
  const bool is_short = dtype == DType::kF32 || dtype == DType::kF16;
  // The kernel requires contiguous rows and contiguous per-sample weights.
  const TensorMeta* counts = call.optional_tensor("per_sample_weights");
  const bool is_dense = nth(weight.strides(), 1) == 1 &&
                        (counts == nullptr || nth(counts->strides(), 0) == 1);
  return call.integer("mode") == BagMode::kSum && is_short && is_dense &&
         !is_padded(call);
}

// `noted` is the word for the number of recorded bag sizes.
std::string bags_notation(std::string_view noted) {
  const std::string n(noted);
  const std::string to = "ve,i,{o},i->{b:bags()}e,{w:noted_rows()},{s:" + n;
  return "if mode is 2: " + to + "()},{b}e | " + to + "()},{m:" + n + "()}";
}

// Returns the number of recorded bag sizes of a kernel without gradient: for sums
// the number of offsets, including the last one.
std::int64_t noted_bags(const OpCall& call, const FactorName&) {
  return call.integer("mode") != BagMode::kSum
             ? bags(call)
             : size_of(call.tensor("offsets"), 0);
}

// PyTorch's fake kernels return the number of bags or the number of offsets, and no
// caller reads it. If the size is stated, it is right. Letter `s` is result 2, and
// `m` result 3.
std::int64_t stated_bags(const OpCall& call, const FactorName& name) {
  const std::int64_t offsets = size_of(call.tensor("offsets"), 0);
  const std::size_t result = name.letter() == 's' ? 2 : 3;
  const OpSchema& op = call.op();
  if (result < op.output_slots.size() &&
      op.output_slots[result] != OpSchema::kNotProduced) {
    const TensorMeta& stated = op.outputs[index(op.output_slots[result])];
    const bool is_either =
        stated.shape() == Dims{bags(call)} || stated.shape() == Dims{offsets};
    if (is_either) return size_of(stated, 0);
  }
  return noted_bags(call, name);
}

std::int64_t noted_rows(const OpCall& call, const FactorName&) {
  return notes_no_bags(call) ? 0 : size_of(call.tensor("indices"), 0);
}

// Returns whether a row counts according to its weight only, on any rank.
bool sums_by_weight(const OpCall& call) {
  return call.integer("mode") != BagMode::kMax &&
         !call.boolean("scale_grad_by_freq");
}

// Any bag may need any row, and another operand determines where a bag ends.
void look_up_rows(const OpCall& call, IndexSpace& space) {
  for (std::size_t f = 0; f < space.factors.size(); ++f) {
    Factor& factor = space.factors[f];
    if (factor.letter == 'i') {
      factor.kind = FactorKind::kBlocked;
      factor.reason = "offsets say which bag has it";
    }
    if (factor.letter != 'v') continue;
    factor.kind = FactorKind::kIndexed;
    factor.reason = "indices name its rows";
    if (!sums_by_weight(call)) continue;
    factor.program = ProgramUse::kWhenSharded;
    factor.least = 1;
    for (std::size_t o = 0; o < space.outputs.size(); ++o) {
      space.outputs_without[o][f] =
          o == 0 ? Without::partial(ReduceOp::kSum) : Without::same();
    }
  }
}

// A row of another rank has weight zero, like padding.
constexpr std::string_view kOwnRows = R"(
outside = (local < 0) | (local >= held)
filler = indices == pad if padded
outside = outside | filler if padded
at = masked_fill(local, outside, 0)
mean = mode == 1
w = ones_like(indices, dtype=dtype(out)) if not per_sample_weights
w = per_sample_weights if per_sample_weights
)";

// The kernels use -1 for no padding.
constexpr std::string_view kPaddingOfKernels = R"(
pad = default(padding_idx, 0 - 1)
padded = pad >= 0)";
constexpr std::string_view kPadding = R"(
pad = default(padding_idx, None)
padded = is_none(pad) == False
pad = place_of(weight, 0, pad) if padded)";

// A mean is a sum divided by the number of rows in its bag. A call on a table
// of one row counts them. With padding, the table has two rows: one that counts
// and one that does not.
std::string bag_program(std::string_view op) {
  const std::string call(op);
  const bool is_kernel = op != "embedding_bag";
  return "local = indices - offset(weight, 0)\nheld = local_size(weight, 0)" +
         std::string(is_kernel ? kPaddingOfKernels : kPadding) +
         std::string(kOwnRows) + "w = masked_fill(w, outside, 0)\n" +
         "sum, o, n, m = " + call +
         "(weight, at, offsets, scale_grad_by_freq, 0, sparse, w, "
         "include_last_offset)\n"
         "one = slice(weight, 0, 0, 1)\n"
         "row, o, n, m = " +
         call +
         "(one, zeros_like(at), offsets, scale_grad_by_freq, mode, sparse, "
         "None, include_last_offset) if mean\n"
         "row, o, n, m = " +
         call +
         "(cat([one, one]), cast(filler, dtype(indices)), offsets, "
         "scale_grad_by_freq, mode, sparse, None, include_last_offset, "
         "padding_idx=1) if padded\n"
         "sum = sum / unsqueeze(clamp(n, 1), 1) if mean\n"
         "return cast(sum, dtype(out)), o, n, m";
}

// Adds a factor for the rows of the result, which the rule does not shard.
void write_rows(const OpCall& call, IndexSpace& space) {
  const bool sparse = call.has("sparse") && call.boolean("sparse");
  const std::int64_t rows = call.integer("num_weights");
  if (rows <= 1 || !sums_by_weight(call) || sparse) return;
  require(!space.outputs.empty() && !nth(space.outputs, 0).dims.empty(),
          "the gradient has no rows");
  const int added = space.add_factor(rows, 'v');
  nth(space.outputs, 0).dims[0] = {static_cast<FactorId>(added)};
  space.factor(added).kind = FactorKind::kIndexed;
  space.factor(added).reason = "indices name its rows";
  space.factor(added).program = ProgramUse::kWhenSharded;
  space.factor(added).least = 1;
  space.seal();
}

std::string bag_gradient_program(std::string_view op) {
  const bool has_offsets = op == "_embedding_bag_backward";
  return "local = indices - offset(out, 0)\nheld = local_size(out, 0)" +
         std::string(kPaddingOfKernels) + std::string(kOwnRows) +
         "rows = cast(clamp(bag_size, 1), dtype(out))\n"
         "w = index_select(reciprocal(rows), 0, offset2bag) if mean\n"
         "w = masked_fill(w, outside, 0)\nreturn " +
         std::string(op) + "(grad, at, " + (has_offsets ? "offsets, " : "") +
         "offset2bag, bag_size, maximum_indices, held, scale_grad_by_freq, "
         "0, " +
         (has_offsets ? "sparse, " : "") + "w)";
}

void sums_of_rows(const OpCall& call, IndexSpace& space) {
  if (call.integer("mode") == BagMode::kMax) return;
  for (const ReduceOp kind : {ReduceOp::kSum, ReduceOp::kAvg}) {
    std::vector<std::optional<ReduceOp>> inputs(space.inputs.size());
    std::vector<std::optional<ReduceOp>> outputs(space.outputs.size());
    nth(inputs, 0) = kind;
    nth(outputs, 0) = kind;
    add_linearity(call, space, std::move(inputs), std::move(outputs));
  }
}

// Only the mode max uses the positions of the largest elements of each bag.
constexpr std::string_view kBagGradient =
    "if mode is 2: {b}e,{i},_,_,_,{b}e,{i}->{v:num_weights}e | "
    "{b}e,{i},_,_,_,_,{i}->{v:num_weights}e";
constexpr std::string_view kDenseBagGradient =
    "if mode is 2: {b}e,{i},_,_,{b}e,{i}->{v:num_weights}e | "
    "{b}e,{i},_,_,_,{i}->{v:num_weights}e";

// The gradient of a per-sample weight is the product of a row with its bag's
// gradient.
void product_of_rows(const OpCall& call, IndexSpace& space) {
  for (std::size_t f = 0; f < space.factors.size(); ++f) {
    Factor& factor = space.factors[f];
    if (factor.letter == 'e') {
      nth(space.outputs_without, 0)[f] = Without::partial(ReduceOp::kSum);
    } else {
      factor.kind =
          factor.letter == 'v' ? FactorKind::kIndexed : FactorKind::kBlocked;
      factor.reason = "each index has a row and a bag of its own";
    }
  }
  add_single_linearity(call, space, 0, ReduceOp::kSum, ReduceOp::kSum);
  add_single_linearity(call, space, 1, ReduceOp::kSum, ReduceOp::kSum);
}

}  // namespace

void words_of_bags(RuleWords& words) {
  words.size("bags",
             [](const OpCall& call, const FactorName&) { return bags(call); });
  words.size("noted_rows", noted_rows);
  words.size("noted_bags", noted_bags);
  words.size("stated_bags", stated_bags);
  words.modifier("sums_of_rows()", sums_of_rows);
  words.modifier("look_up_rows()", look_up_rows);
  words.modifier("write_rows()", write_rows);
  words.modifier("product_of_rows()", product_of_rows);
}

void define_bags(Family f) {
  constexpr std::pair<const char*, const char*> kKernels[] = {
      {"_embedding_bag", "bags"},
      {"_embedding_bag_forward_only", "noted_bags"},
      {"embedding_bag", "stated_bags"}};
  for (const auto& [name, noted] : kKernels) {
    f.add(name, in_order(mapped(bags_notation(noted))
                             .typed("weight,offsets")
                             .refine("sums_of_rows()")
                             .below("indices", IndexBound::kRows)
                             .refine("look_up_rows()")
                             .same_without("e")
                             .per_rank(bag_program(name))));
  }
  for (const char* name :
       {"_embedding_bag_backward", "_embedding_bag_dense_backward"}) {
    const bool is_dense = std::string_view(name).ends_with("dense_backward");
    f.add(name, mapped(is_dense ? kDenseBagGradient : kBagGradient)
                    .linear_in("grad")
                    .refine("write_rows()")
                    .per_rank(bag_gradient_program(name)));
  }
  f.add("_embedding_bag_per_sample_weights_backward",
        mapped("{b}e,ve,i,{o},{w}->i").refine("product_of_rows()"));
}

}  // namespace shardprop
