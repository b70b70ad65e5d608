#include <shardprop/collective/output_shape.h>

#include "base/index.h"
#include "base/try.h"
#include "base/wrap_dim.h"
#include "collective/dim_of.h"

#include <string>

namespace shardprop {
namespace {

std::string list(const Dims& sizes) {
  std::string out = "[";
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    out += (i == 0 ? "" : ",") + std::to_string(sizes[i]);
  }
  return out + "]";
}

// Returns the sum of one half of the splits, or an error if the half is
// invalid.
Result<std::int64_t> sum_of(const std::vector<std::int64_t>& sizes,
                            std::string_view half, std::int64_t ranks) {
  if (static_cast<std::int64_t>(sizes.size()) != ranks) {
    return fail(ErrorCode::kCollectiveSplits,
                std::to_string(sizes.size()) + " " + std::string(half) +
                    " splits for " + std::to_string(ranks) + " ranks");
  }
  std::int64_t sum = 0;
  for (const std::int64_t size : sizes) {
    if (size < 0) {
      return fail(ErrorCode::kCollectiveSplits, "an " + std::string(half) +
                                                    " split is negative, " +
                                                    std::to_string(size));
    }
    sum += size;
  }
  return sum;
}

}  // namespace

namespace collective {

Result<int> dim_of(const Dims& sizes, int dim) {
  if (const auto at = wrapped_dim(dim, static_cast<int>(sizes.size()))) {
    return *at;
  }
  return fail(ErrorCode::kCollectiveDim,
              "shape " + list(sizes) + " has no dim " + std::to_string(dim));
}

}  // namespace collective

Result<Dims> all_gather_shape(const Dims& sizes, int dim, std::int64_t ranks) {
  SP_ASSIGN(const int at, collective::dim_of(sizes, dim));
  Dims out = sizes;
  out[index(at)] *= ranks;
  return out;
}

Result<Dims> reduce_scatter_shape(const Dims& sizes, int dim,
                                  std::int64_t ranks) {
  SP_ASSIGN(const int at, collective::dim_of(sizes, dim));
  Dims out = sizes;
  std::int64_t& size = out[index(at)];
  if (size % ranks != 0) {
    return fail(ErrorCode::kCollectiveDim,
                std::to_string(ranks) + " ranks do not divide dim " +
                    std::to_string(at) + " of " + list(sizes));
  }
  size /= ranks;
  return out;
}

Result<Dims> all_to_all_single_shape(const Dims& sizes, const Splits& splits,
                                     std::int64_t ranks) {
  SP_CHECK(collective::dim_of(sizes, 0));
  if (splits.input.has_value() != splits.output.has_value()) {
    return fail(ErrorCode::kCollectiveSplits,
                std::string("only the ") + (splits.input ? "input" : "output") +
                    " splits are given",
                "give both or none");
  }
  Dims out = sizes;
  if (!splits.input) {
    if (sizes[0] % ranks != 0) {
      return fail(ErrorCode::kCollectiveSplits,
                  std::to_string(ranks) + " ranks do not divide dim 0 of " +
                      list(sizes),
                  "give split sizes");
    }
    return out;
  }
  SP_ASSIGN(const std::int64_t in, sum_of(*splits.input, "input", ranks));
  SP_ASSIGN(out[0], sum_of(*splits.output, "output", ranks));
  if (in != sizes[0]) {
    return fail(ErrorCode::kCollectiveSplits,
                "input splits sum to " + std::to_string(in) + ", dim 0 of " +
                    list(sizes) + " does not");
  }
  return out;
}

}  // namespace shardprop
