// Matrix products.

#include "ops/definitions/families.h"

namespace shardprop {
namespace {

void same_dtypes(const OpCall& call, std::string_view a, std::string_view b) {
  require(call.tensor(a).dtype() == call.tensor(b).dtype(),
          "the factors are of two dtypes");
}

// The dtype of factor `a`, which `b` shares, unless the call asks for another.
OpDefinition::TypeOf product_of(std::string_view a, std::string_view b) {
  return [a = std::string(a), b = std::string(b)](const OpCall& call,
                                                  std::size_t) {
    same_dtypes(call, a, b);
    return call.dtype_or("out_dtype", call.tensor(a).dtype());
  };
}

// numpy's rules: a vector is a row on the left and a column on the right, and
// loses that dim again; leading dims broadcast.
std::string matmul_notation(const OpCall& call) {
  const int a = call.tensor("self").rank();
  const int b = call.tensor("other").rank();
  require(a > 0 && b > 0, "a factor is a scalar");
  const std::string left = a == 1 ? "k" : "...mk";
  const std::string right = b == 1 ? "k" : "...kn";
  const bool leads = a > 1 || b > 1;
  return left + "," + right + "->" + (leads ? "..." : "") +
         (a > 1 ? "m" : "") + (b > 1 ? "n" : "");
}

std::string linear_notation(const OpCall& call) {
  return call.tensor("weight").rank() == 1 ? "...k,k,+->..."
                                           : "...k,nk,+n->...n";
}

}  // namespace

void define_matmul(Family f) {
  f.add("mm", einsum("mk,kn->mn").typed(product_of("self", "mat2")));
  f.add("bmm", einsum("bmk,bkn->bmn").typed(product_of("self", "mat2")));
  f.add("mv", einsum("mk,k->m").typed(product_of("self", "vec")));
  f.add("dot", einsum("k,k->").typed(product_of("self", "tensor")));
  f.add("vdot", einsum("k,k->").typed(product_of("self", "other")));
  f.add({"outer", "ger"}, einsum("m,n->mn").promoted());
  f.add("addmm", einsum("+mn,mk,kn->mn").typed(product_of("mat1", "mat2")));
  // Without rows or columns it does not broadcast what is added.
  f.add("addmv",
        einsum("+m,mk,k->m").typed(product_of("mat", "vec")).nonempty());
  f.add("addr", einsum("+mn,m,n->mn").promoted());
  f.add("addbmm", einsum("+mn,bmk,bkn->mn").typed(product_of("batch1", "batch2")));
  f.add("baddbmm",
        einsum("+bmn,bmk,bkn->bmn").typed(product_of("batch1", "batch2")));
  f.add("matmul",
        einsum("matmul()", matmul_notation).typed(product_of("self", "other")));
  f.add("linear", einsum("...k,nk,+n->...n", linear_notation)
                      .typed(product_of("input", "weight")));
  f.add("bilinear", einsum("...a,...b,nab,+n->...n").typed(product_of("input1", "weight")));
  f.add("_int_mm", einsum("mk,kn->mn").typed(DType::kI32));
}

}  // namespace shardprop
