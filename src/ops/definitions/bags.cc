// Bags of embeddings: rows of a table, reduced by bag. The columns of the table
// are cut; a bag may hold any of its rows.

#include "ops/definitions/families.h"
#include "ops/forms/mapped.h"

namespace shardprop {
namespace {

enum BagMode : std::int64_t { kSum, kMean, kMax };

std::int64_t bags(const OpCall& call) {
  const TensorMeta& offsets = call.tensor("offsets");
  require(offsets.rank() == 1, "the offsets are no vector");
  const bool closed = call.boolean_or("include_last_offset", false);
  require(!closed || offsets.size(0) > 0, "there is no last offset");
  return offsets.size(0) - (closed ? 1 : 0);
}

// Whether the kernel sums rows without noting which bag they go to.
bool notes_no_bags(const OpCall& call) {
  const TensorMeta& weight = call.tensor("weight");
  const DType dtype = weight.dtype();
  const bool is_short = dtype == DType::kF32 || dtype == DType::kF16;
  // embedding_bag counts from the end; the kernels do not.
  const auto padding =
      call.has("padding_idx") ? call.op().int_arg("padding_idx") : std::nullopt;
  const bool is_padded =
      padding && (*padding >= 0 || call.base_name() == "embedding_bag");
  return call.integer("mode") == kSum && is_short && weight.strides()[1] == 1 &&
         !is_padded;
}

std::string bag_notation(const OpCall& call) {
  require(
      call.tensor("weight").rank() == 2 && call.tensor("indices").rank() == 1,
      "the table is no matrix, or the indices are no vector");
  return std::string("[v]e,[i],[o],[i]->[b]e,[w],[s],") +
         (call.integer("mode") == kMax ? "[b]e" : "[s]");
}

std::int64_t bag_size(const OpCall& call, char letter) {
  // Sums alone are not told how many rows a bag has.
  const bool counts =
      call.base_name() == "_embedding_bag" || call.integer("mode") != kSum;
  if (letter == 's' && !counts) return call.tensor("offsets").size(0);
  if (letter != 'w') return bags(call);
  return notes_no_bags(call) ? 0 : call.tensor("indices").size(0);
}

DType of_bag(const OpCall& call, std::size_t result) {
  return result == 0 ? call.tensor("weight").dtype()
                     : call.tensor("offsets").dtype();
}

void sums_of_rows(const OpCall& call, IndexSpace& space) {
  if (call.integer("mode") == kMax) return;
  for (const ReduceOp kind : {ReduceOp::kSum, ReduceOp::kAvg}) {
    std::vector<std::optional<ReduceOp>> inputs(space.inputs.size());
    std::vector<std::optional<ReduceOp>> outputs(space.outputs.size());
    inputs[0] = kind;
    outputs[0] = kind;
    add_linearity(call, space, std::move(inputs), std::move(outputs));
  }
}

std::int64_t table_rows(const OpCall& call, char) {
  return call.integer("num_weights");
}

// Where the greatest element of each bag lies matters for maxima alone.
std::string bag_gradient_notation(const OpCall& call) {
  const std::string places =
      call.integer("mode") == kMax ? "[b]e" : std::string("[_]");
  const std::string offsets =
      call.base_name() == "_embedding_bag_backward" ? "[_]," : "";
  return "[b]e,[i]," + offsets + "[_],[_]," + places + ",[i]->[v]e";
}

// The gradient of a weight is the product of a row with its bag's gradient.
void product_of_rows(const OpCall& call, IndexSpace& space) {
  space.linearities.clear();
  add_single_linearity(call, space, 0, ReduceOp::kSum, ReduceOp::kSum);
  add_single_linearity(call, space, 1, ReduceOp::kSum, ReduceOp::kSum);
}

}  // namespace

void define_bags(Family f) {
  f.add({"_embedding_bag", "_embedding_bag_forward_only", "embedding_bag"},
        mapped("embedding_bag()", bag_notation, bag_size)
            .typed(of_bag)
            .refine("", sums_of_rows));
  f.add({"_embedding_bag_backward", "_embedding_bag_dense_backward"},
        mapped("embedding_bag_backward()", bag_gradient_notation, table_rows)
            .linear_in("grad"));
  f.add("_embedding_bag_per_sample_weights_backward",
        einsum("[b]e,[v]e,[i],[o],[w]->[i]").refine("", product_of_rows));
}

}  // namespace shardprop
