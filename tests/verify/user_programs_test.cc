// Operators that are defined by a program in the text of a rule: every strategy gives
// the values of the program on full tensors.

#include "verify/user_operators.h"

#include <string>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

using namespace testing;

// Returns the reason why a factor of the call is blocked; empty if none is.
std::string blocked_reason(const UserOperator& one) {
  const DeclaredCall call = declared(one);
  for (const Factor& factor :
       value_of(call.library->index_space(call.op)).factors) {
    if (factor.kind == FactorKind::kBlocked) return factor.reason;
  }
  return "";
}

using Texts = std::vector<std::string>;

TEST_CASE("a program may call an operator that has a program of its own") {
  const UserOperator softmax{
      "mylib::f(Tensor x, int dim=1) -> Tensor",
      "along(dim).decomposed(\"return softmax(x, dim) * 2\")",
      {"f32[4,6]"}};
  CHECK(verified(softmax, "2") == Texts{"S(0)->S(0)", "S(1)->S(1)"});
  CHECK(verified(softmax, "2,2").size() == 8);
  const UserOperator norm{
      "mylib::f(Tensor x, Tensor w) -> Tensor",
      "mapped(b[n],[n]->b[n]).decomposed(\"h = layer_norm(x, [size(x, 1)], "
      "w); return h + log_softmax(h, 1)\")",
      {"f32[4,6]", "f32[6]"}};
  CHECK(verified(norm, "2") == Texts{"S(0),R->S(0)", "S(1),S(0)->S(1)"});
}

TEST_CASE("a dim that a step needs in full is not sharded") {
  const char* const kDeclared = "mylib::f(Tensor x, int dim=1) -> Tensor";
  const std::vector<std::pair<const char*, const char*>> steps = {
      {"return flip(x, [dim])", "flip"},
      {"return roll(x, [1], [dim])", "roll"},
      {"return x * full([size(x, 0), size(x, 1)], 2.0)", "mul"},
      {"return x + arange(6)", "add"},
      {"return sort(x, 1)", "sort"},
      {"v, i = max(x, 1, True); return x - v", "max"},
      {"return narrow(cat([x, x], 1), 1, 3, 6)", "cat"}};
  for (const auto& [program, step] : steps) {
    CAPTURE(std::string(program));
    const std::string rule =
        std::string("along(dim).decomposed(\"") + program + "\")";
    const UserOperator one{kDeclared, rule, {"f32[4,6]"}};
    CHECK(verified(one, "2") == Texts{"S(0)->S(0)"});
    CHECK(blocked_reason(one) == "its program calls `" + std::string(step) +
                                     "`, which needs all of it");
  }
}

TEST_CASE("a dim that the program flips is not sharded with its program") {
  // The rule is right about dim 0: two flips cancel out.
  const UserOperator one{
      "mylib::f(Tensor x, int dim=1) -> Tensor",
      "along(dim).decomposed(\"h = flip(flip(x, [0]), [0]); e = exp(h); "
      "return e / sum(e, [dim], True)\")",
      {"f32[4,6]"}};
  CHECK(verified(one, "2") == Texts{"S(0)->S(0)", "S(1)->S(1)"});
  CHECK(verified(one, "2,2") ==
        Texts{"[R,S(0)]->[R,S(0)]", "[R,S(1)]->[R,S(1)]", "[S(0),R]->[S(0),R]",
              "[S(0),S(0)]->[S(0),S(0)]", "[S(1),R]->[S(1),R]",
              "[S(1),S(1)]->[S(1),S(1)]"});
}

TEST_CASE("sizes in the arguments of a step are those of the rank's part") {
  const UserOperator viewed{
      "mylib::f(Tensor x) -> Tensor",
      "mapped(ab[c]->ab[c]).decomposed(\"h = view(x, [size(x, 0) * "
      "size(x, 1), size(x, 2)]); e = exp(h); return view(e / sum(e, [1], "
      "True), [size(x, 0), size(x, 1), size(x, 2)])\")",
      {"f32[4,6,6]"}};
  CHECK(verified(viewed, "2") ==
        Texts{"S(0)->S(0)", "S(1)->S(1)", "S(2)->S(2)"});
  CHECK(verified(viewed, "2,3").size() > 8);
  const UserOperator expanded{
      "mylib::f(Tensor x, Tensor w) -> Tensor",
      "mapped(b[n],[n]->b[n]).decomposed(\"s = sum(x, [1], True); return "
      "expand(s, [size(x, 0), size(x, 1)]) * expand(w, [size(x, 0), size(x, "
      "1)])\")",
      {"f32[5,6]", "f32[6]"}};
  CHECK(!verified(expanded, "2").empty());
  CHECK(!verified(expanded, "2,3").empty());
}

TEST_CASE("a program may use the second result of a step") {
  const UserOperator one{
      "mylib::f(Tensor x) -> Tensor",
      "mapped(b[n]->b[n]).decomposed(\"v, i = sort(x, 1); return v + i\")",
      {"f32[4,6]"}};
  CHECK(verified(one, "2") == Texts{"S(0)->S(0)"});
  const UserOperator rows{
      "mylib::f(Tensor x) -> Tensor",
      "mapped(b[n]->b[n]).decomposed(\"v, m = var_mean(x, [1], keepdim=True); "
      "e = exp(x); return e / sum(e, [1], True) * m\")",
      {"f32[4,6]"}};
  CHECK(verified(rows, "2") == Texts{"S(0)->S(0)", "S(1)->S(1)"});
}

TEST_CASE("positions along a sharded dim are those of the full tensor") {
  for (const char* of : {"x", "out"}) {
    CAPTURE(of);
    const std::string rule =
        "mapped(b[n]->b[n]).decomposed(\"e = exp(x) * places(" +
        std::string(of) + ", 1); return e / sum(e, [1], True)\")";
    const UserOperator one{"mylib::f(Tensor x) -> Tensor", rule, {"f32[4,6]"}};
    CHECK(verified(one, "2") == Texts{"S(0)->S(0)", "S(1)->S(1)"});
  }
}

TEST_CASE("a program on full tensors calls no function of a rank") {
  for (const auto& [function, expression] :
       {std::pair{"offset", "x + offset(x, 1)"},
        std::pair{"local_size", "x + local_size(x, 1)"},
        std::pair{"local_indices", "index(x, local_indices(x, [as_index(x)]))"},
        std::pair{"outside", "x * outside(x, [as_index(x)])"},
        std::pair{"cut_dim", "x * cut_dim(x)"},
        std::pair{"by_program", "x * by_program(x, 0)"},
        std::pair{"if_cut", "x * if_cut(x, 0, 1, 2)"},
        std::pair{"all_reduce_sum", "all_reduce_sum(x)"}}) {
    CAPTURE(function);
    const UserOperator one{"mylib::f(Tensor x) -> Tensor",
                           "mapped(b[n]->b[n]).decomposed(\"return " +
                               std::string(expression) + "\")",
                           {"f32[4,6]"}};
    const auto call = try_declared(one);
    REQUIRE_FALSE(call.has_value());
    CHECK(call.error().code == ErrorCode::kProgramSyntax);
    CHECK(call.error().message ==
          std::string(function) + "() depends on the rank");
    CHECK(call.error().help ==
          "a program on full tensors calls size() and places(), or is a "
          "per_rank program");
  }
}

}  // namespace
}  // namespace shardprop
