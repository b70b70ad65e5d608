// This file defines operators that PyTorch has under a second name, and copies
// of views.

#include "ops/definitions/families.h"

#include <algorithm>

namespace shardprop {
namespace {

struct Synonym {
  std::string_view name;
  std::string_view of;
};

constexpr Synonym kSynonyms[] = {
    {"absolute", "abs"},
    {"arccos", "acos"},
    {"arccosh", "acosh"},
    {"arcsin", "asin"},
    {"arcsinh", "asinh"},
    {"arctan", "atan"},
    {"arctanh", "atanh"},
    {"arctan2", "atan2"},
    {"fix", "trunc"},
    {"greater", "gt"},
    {"greater_equal", "ge"},
    {"less", "lt"},
    {"less_equal", "le"},
    {"not_equal", "ne"},
    {"special_digamma", "digamma"},
    {"special_psi", "digamma"},
    {"special_erf", "erf"},
    {"special_erfc", "erfc"},
    {"special_erfinv", "erfinv"},
    {"special_exp2", "exp2"},
    {"special_expm1", "expm1"},
    {"special_gammaln", "lgamma"},
    {"special_gammainc", "igamma"},
    {"special_gammaincc", "igammac"},
    {"special_i0", "i0"},
    {"special_log1p", "log1p"},
    {"special_logit", "logit"},
    {"special_round", "round"},
    {"special_sinc", "sinc"},
    {"special_xlogy", "xlogy"},
    {"special_softmax", "softmax"},
    {"special_log_softmax", "log_softmax"},
    {"special_logsumexp", "logsumexp"},
    {"special_multigammaln", "mvlgamma"},
    {"linalg_matmul", "matmul"},
    {"matrix_H", "mH"},
    {"resolve_conj", "conj"},
    {"resolve_neg", "conj"},
    {"_logcumsumexp", "logcumsumexp"},
    {"_linalg_eigvals", "linalg_eigvals"},
};

// Each view has a copy: `expand_copy` computes the result of `expand` in its
// own memory. `view_copy` has a row of its own, as it accepts all strides.
constexpr std::string_view kCopied[] = {
    "expand", "diagonal",   "permute",      "transpose",       "t",
    "select", "slice",      "unfold",       "squeeze",         "unsqueeze",
    "unbind", "as_strided", "alias",        "narrow.default",  "view.dtype",
    "detach", "_conj",      "view_as_real", "view_as_complex", "split"};

// Returns "narrow_copy" for "narrow.default", "view_copy.dtype" for
// "view.dtype".
std::string copy_of(std::string_view view) {
  const std::size_t dot = std::min(view.find('.'), view.size());
  const std::string_view overload = view.substr(dot);
  return std::string(view.substr(0, dot)) + "_copy" +
         std::string(overload == ".default" ? "" : overload);
}

}  // namespace

void define_synonyms(std::vector<OpRow>& rows) {
  const auto named = [&](std::string_view name) {
    const std::string full = "aten." + std::string(name);
    const auto row =
        std::find_if(rows.begin(), rows.end(),
                     [&](const OpRow& each) { return each.name == full; });
    if (row == rows.end()) throw InternalError("no row is called " + full);
    return *row;
  };
  for (const Synonym& synonym : kSynonyms) {
    const OpRow row = named(synonym.of);
    Family(rows, row.family).add(synonym.name, row.definition, row.note);
  }
  for (const std::string_view view : kCopied) {
    const OpRow row = named(view);
    Family(rows, row.family)
        .add(copy_of(view), OpDefinition(row.definition).filling(), row.note);
  }
}

}  // namespace shardprop
