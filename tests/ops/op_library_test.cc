// Rows by name, derived overloads, and operators without a row.
#include <shardprop/ops/op_library.h>
#include <shardprop/ops/rule_text.h>

#include "ops/applied_op.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {
namespace {

using testing::applied;
using testing::library;
using testing::space_of;
using testing::value_of;

std::string row_text(std::string_view op) {
  const OpRow* row = library().row(*library().find(op));
  return row == nullptr ? "none" : row->definition.text();
}

// A call whose outputs are stated, not inferred.
OpSchema stated(std::string_view name, const std::vector<const char*>& inputs,
                const char* output) {
  std::vector<GivenArgument> given;
  std::vector<TensorMeta> metas;
  for (const char* text : inputs) {
    given.push_back({"", TensorArg{static_cast<std::int32_t>(metas.size())}});
    metas.push_back(value_of(TensorMeta::parse(text)));
  }
  OpSchema op = value_of(
      make_op_schema(library().find(name), std::move(given), std::move(metas)));
  op.outputs = {value_of(TensorMeta::parse(output))};
  return op;
}

TEST_CASE("an operator without a row says so") {
  const auto space = library().index_space(stated(
      "aten._saturate_weight_to_fp16.default", {"f32[4,4]"}, "f32[4,4]"));
  CHECK_CODE(space, ErrorCode::kNoStrategy);
  CHECK(space.error().message.find("aten._saturate_weight_to_fp16.default") !=
        std::string::npos);
  CHECK(space.error().help.find("did you mean") == std::string::npos);
}

TEST_CASE("a declared operator is never read as a misspelling of another") {
  int count = 0;
  for (const std::string& name : library().names()) {
    OpSchema op;
    op.function = library().find(name);
    if (library().row(*op.function) != nullptr) continue;
    CAPTURE(name);
    const auto space = library().index_space(op);
    CHECK_CODE(space, ErrorCode::kNoStrategy);
    CHECK(space.error().message.find(name) != std::string::npos);
    CHECK(to_string(space.error()).find("did you mean") == std::string::npos);
    ++count;
  }
  CHECK(count > 500);
}

TEST_CASE("a call whose operands do not fit says which and where") {
  const auto space = library().index_space(
      stated("aten.mm.default", {"f32[3,8]", "f32[6,3]"}, "f32[3,3]"));
  CHECK_CODE(space, ErrorCode::kShapeMismatch);
  CHECK(space.error().location == "aten.mm.default: mat2");
  // Stated outputs are checked as well.
  CHECK_CODE(library().index_space(stated(
                 "aten.mm.default", {"f32[3,8]", "f32[8,3]"}, "f32[4,3]")),
             ErrorCode::kShapeMismatch);
}

TEST_CASE("a row of the overload comes before that of its operator") {
  CHECK(row_text("aten.div.Tensor") ==
        "pointwise().typed(stated(rounding_mode,promoted,floating(promoted)))"
        ".linear_in(self).nonzero(other)");
  CHECK(row_text("aten.div.Tensor_mode") ==
        "pointwise().typed(stated(rounding_mode,promoted,floating(promoted)))"
        ".nonzero(other)");
  CHECK(row_text("aten.sub.Tensor") ==
        "pointwise()"
        ".typed(not_bool(self,not_bool(other,scaled(alpha,promoted))))"
        ".additive(+,-)");
  CHECK(row_text("aten.mm.default") ==
        "mk,kn->mn.typed(widened(out_dtype,alike(self,mat2)))");
}

TEST_CASE("in-place and out overloads derive from the functional one") {
  CHECK(row_text("aten.add_.Tensor") == row_text("aten.add.Tensor"));
  CHECK(row_text("aten.mm.out") == row_text("aten.mm.default"));
  CHECK(row_text("aten.sum.IntList_out") == row_text("aten.sum.dim_IntList"));
  CHECK(row_text("aten.__iand__.Tensor") == row_text("aten.__and__.Tensor"));
  const auto form = library().form(*library().find("aten.add_.Tensor"));
  REQUIRE(form);
  CHECK(form->functional->name() == "aten.add.Tensor");
  CHECK(library().form(*library().find("aten.add.Tensor")) == nullptr);
}

TEST_CASE("what is written in place keeps its layout") {
  const std::string text =
      to_string(space_of(applied("aten.add_.Tensor", {"f32[4,6]", "f32[6]"})));
  CHECK(text.starts_with("ab,b->ab {a=4,b=6}"));
  // P(avg) of other alone would change what self holds.
  CHECK(text.find("| _,avg->avg") == std::string::npos);
  CHECK(text.find("| sum,sum->sum") != std::string::npos);
}

TEST_CASE("what PyTorch refuses to write is refused") {
  const auto refuses = [](const char* self, const char* other) {
    return !library()
                .index_space(stated("aten.add_.Tensor", {self, other}, self))
                .has_value();
  };
  CHECK(refuses("i64[4]", "f32[4]"));
  CHECK(refuses("f32[5]", "f32[3,5]"));
  CHECK_FALSE(refuses("bf16[5]", "f32[5]"));
}

TEST_CASE("an in-place view returns what it makes of its argument") {
  const OpSchema op = applied("aten.unsqueeze_.default", {"f32[2]"},
                              {{"dim", std::int64_t{0}}});
  CHECK(to_string(op.outputs[0]) == "f32[1,2]");
  CHECK(to_string(space_of(op)).starts_with("a->1a {a=2}"));
}

TEST_CASE("every operator that is tagged pointwise has a row") {
  int count = 0;
  for (const std::string& name : library().names()) {
    const auto function = library().find(name);
    // aten.equal returns a truth value, no tensor.
    const bool makes_tensors =
        !function->returns().empty() &&
        function->returns().front().type == ArgumentType::kTensor;
    if (!function->has_tag("pointwise") || !makes_tensors) continue;
    CAPTURE(name);
    CHECK(library().row(*function) != nullptr);
    ++count;
  }
  CHECK(count > 500);
}

// The names in `linear_in(NAME)` of a row's text.
std::vector<std::string> linear_arguments(std::string_view text) {
  constexpr std::string_view kMark = "linear_in(";
  std::vector<std::string> names;
  for (std::size_t at = text.find(kMark); at != std::string_view::npos;
       at = text.find(kMark, at)) {
    at += kMark.size();
    names.emplace_back(text.substr(at, text.find(')', at) - at));
  }
  return names;
}

TEST_CASE("what a row is linear in is an argument of each overload") {
  int count = 0;
  for (const std::string& name : library().names()) {
    const auto function = library().find(name);
    const OpRow* row = library().row(*function);
    if (row == nullptr) continue;
    const std::vector<std::string> linear =
        linear_arguments(row->definition.text());
    if (linear.empty()) continue;
    CAPTURE(name);
    CAPTURE(row->definition.text());
    CHECK(std::any_of(
        linear.begin(), linear.end(), [&](const std::string& argument) {
          const auto& arguments = function->arguments();
          return std::any_of(
              arguments.begin(), arguments.end(),
              [&](const auto& other) { return other.name == argument; });
        }));
    ++count;
  }
  CHECK(count > 200);
}

TEST_CASE("a foreach overload is its plain overload, element by element") {
  const OpSchema add =
      testing::applied_to("aten._foreach_add.List",
                          {{"", std::vector<TensorArg>{{0}, {1}}},
                           {"", std::vector<TensorArg>{{2}, {3}}}},
                          {"f32[4,6]", "f32[8]", "f32[4,6]", "f32[8]"});
  CHECK(add.outputs.size() == 2);
  const std::string text = to_string(space_of(add));
  CHECK(text.starts_with("ab,a1,ab,a1->ab,a1 {a=4,b=6,a1=8}"));
  // Elements alike are sharded alike.
  const OpSchema alike = testing::applied_to(
      "aten._foreach_exp.default", {{"", std::vector<TensorArg>{{0}, {1}}}},
      {"f32[4,6]", "f32[4,6]"});
  CHECK(to_string(space_of(alike)).starts_with("ab,ab->ab,ab {a=4,b=6}"));
  const auto uneven =
      make_op_schema(library().find("aten._foreach_add.List"),
                     {{"", std::vector<TensorArg>{{0}}},
                      {"", std::vector<TensorArg>{{1}, {2}}}},
                     {add.inputs[0], add.inputs[0], add.inputs[0]});
  CHECK_CODE(library().infer_results(testing::value_of(uneven)),
             ErrorCode::kShapeMismatch);
}

TEST_CASE("a row of one's own is a line, and replaces what was there") {
  const auto mine = value_of(library().with(
      {.name = "aten.mm.default", .definition = einsum("m[k],[k]n->mn")}));
  CHECK(mine->row(*mine->find("aten.mm.default"))->definition.text() ==
        "einsum(m[k],[k]n->mn)");
  const OpSchema op = applied("aten.mm.default", {"f32[16,8]", "f32[8,4]"});
  CHECK(to_string(value_of(mine->index_space(op)))
            .starts_with("mk,kn->mn {m=16,k=8 blocked,n=4}"));
  // The library from which it was created is unchanged.
  CHECK(to_string(space_of(op)).starts_with("mk,kn->mn {m=16,k=8,n=4}"));

  const auto custom_op = value_of(library().with(
      {.declaration = "mylib::swiglu(Tensor x, Tensor gate) -> Tensor",
       .definition = pointwise().promoted()}));
  const auto function = custom_op->find("mylib.swiglu.default");
  REQUIRE(function);
  CHECK(custom_op->infers(*function));
}

TEST_CASE("every row is of a declared operator") {
  const OpLibrary& standard = library();
  const std::vector<std::string> names = standard.names();
  for (const OpRow* row : standard.rows()) {
    // PyTorch's tables do not declare the kernels of Hugging Face's library.
    if (row->name.starts_with("transformers.")) continue;
    CAPTURE(row->name);
    // A row has the name of an overload, or of an operator with overloads.
    const bool is_declared =
        std::any_of(names.begin(), names.end(), [&](const std::string& name) {
          return name == row->name ||
                 name.substr(0, name.rfind('.')) == row->name;
        });
    CHECK(is_declared);
  }
}

TEST_CASE("a declared write of a custom operator has a functional form") {
  const auto functional = [](const char* declaration) {
    const auto mine = library().with(
        {.declaration = declaration, .definition = *parse_rule("batch(0)")});
    REQUIRE(mine);
    const std::string_view text = declaration;
    const std::string name(text.substr(0, text.find('(')));
    const auto function = (*mine)->find(name);
    REQUIRE(function);
    const auto form = (*mine)->form(*function);
    return form == nullptr ? std::string() : to_string(*form->functional);
  };
  CHECK(functional("acme::accum(Tensor x, Tensor(a!) y, Tensor index) -> ()") ==
        "acme::accum(Tensor x, Tensor y, Tensor index) -> Tensor y");
  CHECK(functional("acme::two(Tensor x, Tensor(a!) k, Tensor(b!)? v=None, *, "
                   "int n=1) -> Tensor") ==
        "acme::two(Tensor x, Tensor k, Tensor? v=None, *, int n=1) -> "
        "(Tensor, Tensor k, Tensor? v)");
  CHECK(functional("acme::self_(Tensor(a!) self, Tensor x) -> Tensor(a!)") ==
        "acme::self_(Tensor self, Tensor x) -> Tensor self");
  // A functional declaration has no other form. `twice_` finds its functional
  // form by PyTorch's naming.
  CHECK(functional("acme::plain(Tensor x) -> Tensor").empty());
  const auto both =
      library().with({.declaration = "acme::twice(Tensor self) -> Tensor",
                      .definition = pointwise()});
  REQUIRE(both);
  const auto in_place = (*both)->with(
      {.declaration = "acme::twice_(Tensor(a!) self) -> Tensor(a!)"});
  REQUIRE(in_place);
  const auto form =
      (*in_place)->form(*(*in_place)->find("acme.twice_.default"));
  REQUIRE(form);
  CHECK(form->functional->name() == "acme.twice.default");
}

TEST_CASE("a write in place keeps the layout of what it writes") {
  const auto mine = library().with(
      {.declaration = "acme::add_to(Tensor x, Tensor(a!) y) -> ()",
       .definition = *parse_rule("pointwise()")});
  REQUIRE(mine);
  auto op = make_op_schema(
      (*mine)->find("acme.add_to.default"),
      {{"x", TensorArg{0}}, {"y", TensorArg{1}}},
      {*TensorMeta::parse("f32[8,4]"), *TensorMeta::parse("f32[8,4]")});
  REQUIRE(op);
  auto results = (*mine)->infer_results(*op);
  REQUIRE(results);
  CHECK(results->empty());
  set_results(*op, *std::move(results));
  const auto space = (*mine)->index_space(*op);
  REQUIRE_MESSAGE(space.has_value(), to_string(space.error()));
  CHECK(to_string(*space).starts_with("ab,ab->"));
}

}  // namespace
}  // namespace shardprop
