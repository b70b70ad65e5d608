// This file defines lookups and writes along one dim, by an index or by a mask.

#include "base/index.h"
#include "ops/definitions/families.h"
#include "ops/definitions/words.h"
#include "ops/forms/indices.h"
#include "ops/forms/mapped.h"
#include "ops/forms/space_builder.h"

#include <functional>
#include <string>
#include <string_view>

namespace shardprop {
namespace {

// --- Programs of forms/indexed.cc ---

constexpr std::string_view kGather = R"(
local = index - offset(self, dim)
outside = (local < 0) | (local >= local_size(self, dim))
values = gather(self, dim, masked_fill(local, outside, 0))
return masked_fill(values, outside, 0))";

// If each row of the index has one element and covers self, a comparison finds
// the written elements. Otherwise writes to other ranks' rows go to an
// additional row, which is then removed.
constexpr std::string_view kScatterSource = R"(
single = size(index, dim) == 1
single = single * (numel(index) * size(self, dim) == numel(self)) * (numel(src) == numel(index)) == 1
hit = index == trailing(places(self, dim), rank(self) - 1 - wrap(self, dim)) if single
made = where(hit, src, self) if single
local = index - offset(self, dim) if not single
outside = (local < 0) | (local >= local_size(self, dim)) if not single
wide = cat([self, narrow(self, dim, 0, 1)], dim) if not single
wide = scatter(wide, dim, masked_fill(local, outside, local_size(self, dim)), src) if not single
made = clone(narrow(wide, dim, 0, local_size(self, dim))) if not single
return made)";

constexpr std::string_view kScatterValue = R"(
single = size(index, dim) == 1
single = single * (numel(index) * size(self, dim) == numel(self)) == 1
hit = index == trailing(places(self, dim), rank(self) - 1 - wrap(self, dim)) if single
made = masked_fill(self, hit, value) if single
local = index - offset(self, dim) if not single
outside = (local < 0) | (local >= local_size(self, dim)) if not single
wide = cat([self, narrow(self, dim, 0, 1)], dim) if not single
wide = scatter(wide, dim, masked_fill(local, outside, local_size(self, dim)), value=value) if not single
made = clone(narrow(wide, dim, 0, local_size(self, dim))) if not single
return made)";

// Writes to elements of other ranks add zero.
constexpr std::string_view kScatterAdd = R"(
fits = numel(src) == numel(index)
local = index - offset(self, dim)
outside = (local < 0) | (local >= local_size(self, dim))
added = masked_fill(src, outside, 0) if fits
made = scatter_add(self, dim, masked_fill(local, outside, 0), added) if fits
wide = cat([self, narrow(self, dim, 0, 1)], dim) if not fits
wide = scatter_add(wide, dim, masked_fill(local, outside, local_size(self, dim)), src) if not fits
made = clone(narrow(wide, dim, 0, local_size(self, dim))) if not fits
return made)";

// Returns a program that writes to the rank's part with one additional row.
// Writes to other ranks' rows go to this row, which is then removed.
std::string to_spare_row(std::string_view written) {
  return "local = index - offset(self, dim)\n"
         "outside = (local < 0) | (local >= local_size(self, dim))\n"
         "at = masked_fill(local, outside, local_size(self, dim))\n"
         "wide = cat([self, narrow(self, dim, 0, 1)], dim)\n"
         "wide = " +
         std::string(written) +
         "\nreturn clone(narrow(wide, dim, 0, local_size(self, dim)))";
}

constexpr std::string_view kIndexAdd = R"(
local = index - offset(self, dim)
outside = (local < 0) | (local >= local_size(self, dim))
added = masked_fill(source, trailing(outside, rank(self) - 1 - wrap(self, dim)), 0)
return index_add(self, dim, masked_fill(local, outside, 0), added, alpha=alpha))";

// `owner` is the row of the source that overwrites each row; it is negative if
// no row does.
constexpr std::string_view kIndexCopy = R"(
local = index - offset(self, dim)
outside = (local < 0) | (local >= local_size(self, dim))
none = neg(arange(local_size(self, dim) + 1)) - 1
owner = index_copy(none, 0, masked_fill(local, outside, local_size(self, dim)), arange(numel(index)))
owner = narrow(owner, 0, 0, local_size(self, dim))
kept = owner < 0
rows = index_select(source, dim, masked_fill(owner, kept, 0))
return where(trailing(kept, rank(self) - 1 - wrap(self, dim)), self, rows))";

constexpr std::string_view kIndexFill = R"(
local = remainder(index, size(self, dim)) - offset(self, dim)
outside = (local < 0) | (local >= local_size(self, dim))
none = arange(local_size(self, dim) + 1) < 0
hit = index_fill(none, 0, masked_fill(local, outside, local_size(self, dim)), True)
hit = narrow(hit, 0, 0, local_size(self, dim))
return masked_fill(self, trailing(hit, rank(self) - 1 - wrap(self, dim)), value))";

constexpr std::string_view kIndexSelect = R"(
local = index - offset(self, dim)
outside = (local < 0) | (local >= local_size(self, dim))
rows = index_select(self, dim, masked_fill(local, outside, 0))
return masked_fill(rows, trailing(outside, rank(self) - 1 - wrap(self, dim)), 0))";

// --- By a mask, in order ---

// Blocks all factors.
std::function<void(const OpCall&, IndexSpace&)> whole(std::string_view reason) {
  return [reason = std::string(reason)](const OpCall&, IndexSpace& space) {
    for (Factor& factor : space.factors) {
      factor.kind = FactorKind::kBlocked;
      factor.reason = reason;
    }
  };
}

// The source is read in the order of the elements. A rank with a shard of the
// first dim starts after the elements that the ranks before it read.
constexpr std::string_view kMaskedScatter = R"(
m = bitwise_or(mask, zeros_like(self, dtype=dtype(mask)))
taken = all_gather_unordered(unsqueeze(sum(m), 0))
starts = all_gather_unordered(full([1], offset(self, 0)))
before = sum(masked_fill(taken, starts >= offset(self, 0), 0))
own = remainder(arange(numel(source)) + before, numel(source))
return masked_scatter(self, m, index_select(reshape(source, [-1]), 0, own)))";

void check_mask_and_source(const OpCall& call, const IndexSpace&) {
  require(call.tensor("mask").dtype() == DType::kBool,
          "the mask is not of truth values");
  require(call.tensor("source").dtype() == call.first().dtype(),
          "the source is of another dtype");
}

void taken_in_order(const OpCall& call, IndexSpace& space) {
  whole("the source is taken in order")(call, space);
  const TensorMeta& self = call.first();
  const bool broadcasts = call.op().outputs.empty() ||
                          self.shape() != nth(call.op().outputs, 0).shape();
  if (self.rank() == 0 || broadcasts) return;
  for (const FactorId id : dim_of(space.inputs, 0, 0)) {
    space.factor(id).program = ProgramUse::kWhenSharded;
  }
}

// The gradient of the source has the selected elements in order, then zeros.
Notation mask_selected_in_order(const OpCall& call) {
  require(call.tensor("mask").dtype() == DType::kBool,
          "the mask is not of truth values");
  Term selected;
  for (std::size_t d = 0; d < call.integers("sizes").size(); ++d) {
    selected.add(FactorName::of_dim(static_cast<int>(d)), DimUse::kFull);
  }
  return {{Term::replicated(), Term::replicated()}, {selected}, {}, {}};
}

std::int64_t size_in_order(const OpCall& call, const FactorName& name) {
  return call.integers("sizes")[index(name.dim())];
}

}  // namespace

void words_of_scatter(RuleWords& words) {
  words.check("mask_and_source()", check_mask_and_source);
  words.modifier("taken_in_order()", taken_in_order);
  words.form(mapped("selected(sizes)", mask_selected_in_order, size_in_order));
}

void define_scatter(Family f) {
  f.add("gather", gathered().per_rank(kGather));
  f.add({"scatter", "scatter.src"}, scattered()
                                        .passes({"self", "src"})
                                        .writes_into("self")
                                        .per_rank(kScatterSource));
  f.add("scatter.value",
        scattered().selects({"self"}).writes_into("self").per_rank(
            kScatterValue));
  f.add("scatter_add",
        scattered("add").writes_into("self").per_rank(kScatterAdd));
  f.add("scatter.reduce",
        scattered("arithmetic")
            .writes_into("self")
            .per_rank(
                to_spare_row("scatter(wide, dim, at, src, reduce=reduce)")));
  f.add("scatter.value_reduce",
        scattered("arithmetic")
            .writes_into("self")
            .per_rank(to_spare_row(
                "scatter(wide, dim, at, value=value, reduce=reduce)")));
  f.add("scatter_reduce",
        scattered("reduction")
            .writes_into("self")
            .per_rank(to_spare_row("scatter_reduce(wide, dim, at, src, reduce, "
                                   "include_self=include_self)")));
  f.add("index_select", selected_along().per_rank(kIndexSelect));
  f.add("index_add",
        written_along("add").writes_into("self").per_rank(kIndexAdd));
  f.add("index_copy", written_along().writes_into("self").per_rank(kIndexCopy));
  f.add("index_reduce", written_along("reduction")
                            .writes_into("self")
                            .per_rank(to_spare_row(
                                "index_reduce(wide, dim, at, source, reduce, "
                                "include_self=include_self)")));
  f.add(
      "index_fill",
      written_along().like({"self"}).writes_into("self").per_rank(kIndexFill));
  f.add("masked_scatter", mapped("...,...,*->...")
                              .checked("mask_and_source()")
                              .refine("taken_in_order()")
                              .per_rank(kMaskedScatter));
  f.add("masked_scatter_backward",
        form("selected(sizes)").linear_in("grad_output"),
        "replicated: what a mask selects lies in the order of all elements");
}

}  // namespace shardprop
