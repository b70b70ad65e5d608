// Rules by name, derived rules, and operators without one.
#include <shardprop/strategy/rule_book.h>

#include "strategy/applied.h"

#include <string>
#include <vector>

namespace shardprop {
namespace {

using testing::applied;
using testing::registry;
using testing::rules;
using testing::Strategies;

TEST_CASE("an operator without a rule says so, and what is near") {
  const OpSchema op = [] {
    OpSchema made = testing::value_of(
        make_op_schema(registry().find("aten.mv.default"),
                       {{"", TensorArg{0}}, {"", TensorArg{1}}},
                       {testing::value_of(TensorMeta::parse("f32[4,6]")),
                        testing::value_of(TensorMeta::parse("f32[6]"))}));
    made.outputs = {testing::value_of(TensorMeta::parse("f32[4]"))};
    return made;
  }();
  const auto map = factor_map(op, rules(), registry());
  CHECK_CODE(map, ErrorCode::kNoStrategy);
  CHECK(map.error().message.find("aten.mv.default") != std::string::npos);
  CHECK(map.error().help.find("aten.mm.default") != std::string::npos);
}

TEST_CASE("a rule whose operands do not fit says which and where") {
  // An unbatched convolution is legal, and has no rule.
  const std::vector<std::int64_t> one{1, 1};
  const std::vector<std::int64_t> none{0, 0};
  OpSchema op = testing::value_of(
      make_op_schema(registry().find("aten.convolution.default"),
                     {{"", TensorArg{0}},
                      {"", TensorArg{1}},
                      {"", NoneArg{}},
                      {"", one},
                      {"", none},
                      {"", one},
                      {"", false},
                      {"", none},
                      {"", std::int64_t{1}}},
                     {testing::value_of(TensorMeta::parse("f32[3,8,8]")),
                      testing::value_of(TensorMeta::parse("f32[6,3,3,3]"))}));
  op.outputs = {testing::value_of(TensorMeta::parse("f32[6,6,6]"))};
  const auto map = factor_map(op, rules(), registry());
  CHECK_CODE(map, ErrorCode::kNoStrategy);
  CHECK(map.error().location == "aten.convolution.default");
}

TEST_CASE("in-place and out overloads derive from the functional one") {
  const auto covers = [](const char* name) {
    return rules().covers(*registry().find(name), registry());
  };
  CHECK(rules().find("aten.add_.Tensor") == nullptr);
  CHECK(covers("aten.add_.Tensor"));
  CHECK(covers("aten.mm.out"));
  CHECK(covers("aten.sum.IntList_out"));
  CHECK_FALSE(covers("aten.mv.out"));
  CHECK_FALSE(covers("aten.cumsum.default"));
}

TEST_CASE("a rule of one's own is a line, and replaces what was there") {
  RuleBook book;
  const OpSchema op = applied("aten.mm.default", {"f32[16,8]", "f32[8,4]"});
  // Rows only, and no partials.
  book.add("mine", "aten.mm.default",
           custom("rows()", [](const OpSchema&) -> Result<FactorMap> {
             FactorMap map;
             const auto row = static_cast<std::int8_t>(map.add_factor(16, 'm'));
             map.inputs = {Operand{{{row}, {}}}, Operand{{{}, {}}}};
             map.outputs = {Operand{{{row}, {}}}};
             return map;
           }));
  CHECK(book.find("aten.mm.default")->family == "mine");
  CHECK(book.find("aten.mm.default")->rule.text() == "rows()");
  CHECK(Strategies(op, "2", {}, book).texts() ==
        std::vector<std::string>{"R,R->R", "S(0),R->S(0)"});
}

TEST_CASE(
    "every rule is of an operator that is declared, and says what it is") {
  CHECK(rules().entries().size() > 80);
  for (const auto& [name, entry] : rules().entries()) {
    CAPTURE(name);
    CHECK(registry().find(name));
    CHECK_FALSE(entry.family.empty());
    CHECK_FALSE(entry.rule.text().empty());
  }
}

TEST_CASE("refinements are read off the text of a rule") {
  CHECK(rules().find("aten.sub.Tensor")->rule.text() ==
        "pointwise().additive(+,-)");
  CHECK(rules().find("aten.mm.default")->rule.text() == "mk,kn->mn");
  CHECK(rules().find("aten.neg.default")->rule.text() ==
        "pointwise().multilinear().nonincreasing()");
}

}  // namespace
}  // namespace shardprop
