// This file defines embeddings, which look up rows of a table. If the table is
// sharded, each rank looks up its own rows and returns zeros for others, so the
// result is a plain sum.

#include "base/index.h"
#include "ops/definitions/families.h"
#include "ops/definitions/words.h"
#include "ops/forms/indices.h"
#include "ops/forms/mapped.h"

#include <functional>
#include <string>
#include <string_view>

namespace shardprop {
namespace {

void sum_of_table(const OpCall& call, IndexSpace& space) {
  for (const ReduceOp kind : {ReduceOp::kSum, ReduceOp::kAvg}) {
    add_single_linearity(call, space, 0, kind, kind);
  }
}

BoundForm bind_embedding(const OpCall& call) {
  const TensorMeta& weight = call.tensor("weight");
  const TensorMeta& indices = call.tensor("indices");
  require(weight.rank() == 2, "the table of an embedding has rank 2");
  require(is_index(indices.dtype()), "the indices are not integers");
  SpaceBuilder b;
  const Operand table = b.per_dim(weight.shape());
  const Operand where = b.per_dim(indices.shape());
  look_up_by_program(b.space, table.dims[0]);
  b.input(table);
  b.input(where);
  Operand rows = where;
  rows.dims.push_back(table.dims[1]);
  b.output(std::move(rows));
  b.without(0, table.dims[0], kTermsOfSum);
  return b.bound();
}

constexpr std::string_view kEmbedding = R"(
local = indices - offset(weight, 0)
outside = (local < 0) | (local >= local_size(weight, 0))
rows = embedding(weight, masked_fill(local, outside, 0))
return masked_fill(rows, unsqueeze(outside, -1), 0))";

// The rows that are looked up are scaled in place.
constexpr std::string_view kEmbeddingRenorm = R"(
hit = isin(arange(local_size(self, 0)) + offset(self, 0), indices)
return where(unsqueeze(hit, 1), renorm(self, norm_type, 0, max_norm), self))";

void check_indices(const OpCall& call, const IndexSpace&) {
  require(is_index(call.tensor("indices").dtype()),
          "the indices are not integers");
}

void renormed_by_program(const OpCall&, IndexSpace& space) {
  for (Factor& factor : space.factors) {
    factor.program = ProgramUse::kWhenSharded;
  }
}

BoundForm bind_embedding_backward(const OpCall& call) {
  const TensorMeta& grad = call.first();
  const TensorMeta& indices = call.tensor("indices");
  require(grad.rank() == indices.rank() + 1, "the gradient is not of rows");
  require(is_index(indices.dtype()), "the indices are not integers");
  require(!call.boolean_or("sparse", false), "the gradient is sparse");
  SpaceBuilder b;
  const Operand whole = b.per_dim(grad.shape());
  Operand where = whole;
  where.dims.pop_back();
  for (int dim = 0; dim < indices.rank(); ++dim) {
    require(size_of(grad, dim) == size_of(indices, dim),
            "the gradient does not match the indices");
  }
  b.input(whole);
  b.input(where);
  Operand table;
  table.dims.push_back(b.blocked(call.integer("num_weights"),
                                 "rows are added up where indices say",
                                 FactorKind::kIndexed));
  look_up_by_program(b.space, table.dims[0]);
  table.dims.push_back(whole.dims.back());
  b.output(std::move(table));
  for (const DimFactors& dim : where.dims) b.without(0, dim, kTermsOfSum);
  if (call.boolean("scale_grad_by_freq")) {
    for (const DimFactors& dim : where.dims) {
      b.block(dim, "each row is divided by how often it is looked up");
    }
  }
  return b.bound();
}

// The gradient has one more row than the rank's part. This row collects the
// gradients of padding and of rows on other ranks.
std::string embedding_backward_program(std::string_view gradient) {
  return R"(
local = indices - offset(out, 0)
outside = (local < 0) | (local >= local_size(out, 0)) | (indices == padding_idx)
at = masked_fill(local, outside, local_size(out, 0))
made = embedding_dense_backward()" +
         std::string(gradient) +
         R"(, at, local_size(out, 0) + 1, local_size(out, 0), scale_grad_by_freq)
return narrow(made, 0, 0, local_size(out, 0)))";
}

BoundForm bind_one_hot(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  const std::int64_t classes = call.integer("num_classes");
  require(classes > 0, "the number of classes depends on the data");
  SpaceBuilder b;
  Operand whole = b.per_dim(self.shape());
  b.input(whole);
  whole.dims.push_back(b.blocked(classes, "the classes are compared with all"));
  b.output(std::move(whole));
  return b.bound();
}

constexpr std::string_view kOneHot = R"(
return cast(unsqueeze(self, -1) == places(out, rank(self)), dtype(out)))";

}  // namespace

void words_of_embedding(RuleWords& words) {
  words.check("indices_of_rows()", check_indices);
  words.form(custom("embedding()", bind_embedding));
  words.form(custom("embedding_backward()", bind_embedding_backward));
  words.modifier("renormed_by_program()", renormed_by_program);
  words.modifier("sum_of_table()", sum_of_table);
  words.form(custom("one_hot()", bind_one_hot));
}

void define_embedding(Family f) {
  f.add("embedding", form("embedding()")
                         .refine("sum_of_table()")
                         .below("indices", IndexBound::kRows)
                         .per_rank(kEmbedding));
  f.add("embedding_renorm", mapped("v{e},*->v{e}")
                                .checked("indices_of_rows()")
                                .refine("renormed_by_program()")
                                .like({"self"})
                                .writes_into("self")
                                .per_rank(kEmbeddingRenorm));
  const auto add_gradient = [&](std::string_view name,
                                std::string_view gradient) {
    f.add(name, form("embedding_backward()")
                    .refine("sum_of_table()")
                    .per_rank(embedding_backward_program(gradient))
                    .below("indices", "num_weights"));
  };
  add_gradient("embedding_dense_backward", "grad_output");
  add_gradient("embedding_backward", "grad");
  f.add("one_hot", form("one_hot()")
                       .typed(DType::kI64)
                       .per_rank(kOneHot, FactorKind::kBlocked)
                       .below("self", "num_classes"));
}

}  // namespace shardprop
