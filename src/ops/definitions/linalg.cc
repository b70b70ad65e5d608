// Linear algebra: matrices stay whole, batches of them are cut.

#include "ops/definitions/dtypes.h"
#include "ops/definitions/families.h"
#include "ops/definitions/matrices.h"

#include <algorithm>
#include <string>
#include <string_view>

namespace shardprop {
namespace {

using namespace linear_algebra;  // NOLINT(google-build-using-namespace)

// Rows and columns add up, each rank its part of the diagonal.
constexpr std::string_view kTrace = R"(
rows = trailing(arange(local_size(self, 0)) + offset(self, 0), 1)
columns = arange(local_size(self, 1)) + offset(self, 1)
return sum(masked_fill(self, ne(rows, columns), 0), dtype=dtype(out)))";

void trace_adds_up(const OpCall&, IndexSpace& space) {
  for (std::size_t f = 0; f < space.factors.size(); ++f) {
    space.factors[f].kind = FactorKind::kParallel;
    space.factors[f].program = ProgramUse::kWhenSharded;
    space.outputs_without[0][f] = Without::partial(ReduceOp::kSum);
  }
}

std::string qr_notation(const OpCall& call) {
  const auto mode = call.op().string_arg("mode").value_or("reduced");
  require(mode == "reduced" || mode == "complete" || mode == "r",
          "`mode` is not reduced, complete or r");
  return mode == "r" ? "...[mn]->[z],...[kn]" : "...[mn]->...[mu],...[un]";
}

std::int64_t qr_side(const OpCall& call, char letter) {
  return letter == 'z' ? 0 : side(call, letter);
}

std::string svd_notation(const OpCall& call) {
  return call.boolean_or("compute_uv", true) ? "...[mn]->...[mu],...[k],...[vn]"
                                             : "...[mn]->[z],...[k],[z]";
}

// As numpy once had it: V and not its transpose.
std::string old_svd_notation(const OpCall& call) {
  return call.boolean_or("compute_uv", true)
             ? "...[mn]->...[mu]^,...[k],...[nv]"
             : "...[mn]->...[mu],...[k],...[nv]^";
}
std::int64_t old_svd_side(const OpCall& call, char letter) {
  const std::int64_t rows = from_end(call, 2);
  const std::int64_t columns = from_end(call, 1);
  const bool some =
      call.boolean_or("some", true) && call.boolean_or("compute_uv", true);
  if (!some && letter == 'u') return rows;
  if (!some && letter == 'v') return columns;
  return std::min(rows, columns);
}

// Factors and pivots apart; of what is not asked for, vectors of nothing.
std::string lu_unpack_notation(const OpCall& call) {
  const bool data = call.boolean_or("unpack_data", true);
  const bool pivots = call.boolean_or("unpack_pivots", true);
  return std::string("...[mn],...[p]->") + (pivots ? "...[mm]" : "[z]") +
         (data ? ",...[mk],...[kn]" : ",[z],[z]");
}

std::string eigh_notation(const OpCall& call) {
  return call.boolean_or("compute_v", true) ? "...[nn]->...[n],...[nn]"
                                            : "...[nn]->...[n],[z]";
}

// Without a number of powers there are as many as a rank has elements.
std::string vander_notation(const OpCall& call) {
  return call.op().int_arg("N") ? "...n->...n[c]" : "...[n]->...[n][c]";
}

}  // namespace

void define_linalg(Family f) {
  f.add({"linalg_cholesky_ex", "linalg_inv_ex"},
        matrices("...[nn]->...[nn],...", "si"));
  f.add({"linalg_cholesky", "cholesky", "linalg_inv", "inverse"},
        matrices("...[nn]->...[nn]", "s"));
  f.add("cholesky_inverse", matrices("...[nn]->...[nn]", "s"));
  f.add("linalg_lu", rows_first("...[mn]->...[mm],...[mk],...[kn]", "s"));
  f.add({"linalg_matrix_power", "matrix_power"},
        counted("...[nn]->...[nn]", side)
            .strided([](const OpCall& call, const Dims& shape, DType dtype) {
              return call.integer("n") == -1
                         ? column_major(call, shape, dtype)
                         : make_meta(shape, dtype).strides();
            }));
  f.add("trace", einsum("[mn]->")
                     .typed(of_sum)
                     .linear_in("self")
                     .refine("", trace_adds_up)
                     .per_rank(kTrace));
  f.add({"linalg_matrix_exp", "matrix_exp"},
        rows_first("...[nn]->...[nn]", "s"));
  f.add({"linalg_pinv", "pinverse"}, counted("...[mn],...,...->...[nm]"));
  f.add("linalg_matrix_rank",
        counted("...[mn],...,...->...").typed(DType::kI64));
  f.add("nuclear_norm.default",
        counted(
            "nuclear_norm()",
            [](const OpCall& call) -> std::string {
              return call.boolean("keepdim") ? "...[mn]->...[__]"
                                             : "...[mn]->...";
            },
            [](const OpCall&, char) { return std::int64_t{1}; })
            .typed(types("r")));
  f.add("linalg_cond", rows_first("...[mn]->...", "r"));
  f.add({"linalg_vander", "vander"},
        counted("vander()", vander_notation, [](const OpCall& call, char) {
          return call.op().int_arg("N").value_or(from_end(call, 1));
        }));
  f.add("_linalg_det", matrices("...[nn]->...,...[nn],...[n]", "ssi"));
  f.add({"linalg_det", "det", "logdet"}, rows_first("...[nn]->...", "s"));
  f.add("_linalg_slogdet", matrices("...[nn]->...,...,...[nn],...[n]", "srsi"));
  f.add({"linalg_slogdet", "slogdet"}, rows_first("...[nn]->...,...", "sr"));
  f.add("_linalg_eigh", counted("eigh()", eigh_notation, qr_side)
                            .typed(types("rs"))
                            .strided(column_major));
  f.add("linalg_eigh", matrices("...[nn]->...[n],...[nn]", "rs"));
  f.add("linalg_eigvalsh", rows_first("...[nn]->...[n]", "r"));
  f.add("linalg_eig", matrices("...[nn]->...[n],...[nn]", "cc"));
  f.add("linalg_eigvals", rows_first("...[nn]->...[n]", "c"));
  f.add("_linalg_svd", counted("svd()", svd_notation, qr_side)
                           .typed(types("srs"))
                           .strided(column_major));
  f.add("linalg_svd", counted("svd()", svd_notation, qr_side)
                          .typed(types("srs"))
                          .strided(column_major));
  f.add("linalg_svdvals", rows_first("...[mn]->...[k]", "r"));
  f.add("linalg_qr", counted("qr()", qr_notation, qr_side)
                         .typed(types("ss"))
                         .strided(column_major));
  f.add("geqrf", matrices("...[mn]->...[mn],...[k]", "ss"));
  f.add({"linalg_lu_factor_ex", "_lu_with_info"},
        matrices("...[mn]->...[mn],...[k],...", "sii"));
  f.add("linalg_lu_factor", matrices("...[mn]->...[mn],...[k]", "si"));
  f.add(
      "lu_unpack",
      counted("lu_unpack()", lu_unpack_notation, qr_side).typed(types("sss")));
  f.add("svd",
        counted("svd()", old_svd_notation, old_svd_side).typed(types("srs")));
  f.add("qr",
        counted("...[mn]->...[mu]^,...[un]^", old_svd_side).typed(types("ss")));
  f.add("linalg_ldl_factor", matrices("...[nn]->...[nn],...[n]", "si"));
  f.add("linalg_ldl_factor_ex", matrices("...[nn]->...[nn],...[n],...", "sii"));
}

}  // namespace shardprop
