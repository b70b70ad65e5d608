// These tests use words in rules of other libraries, and check the tables of
// docs/rule_words.md.
#include "ops/rules/word_needs.h"

#include "ops/schema/argument_check.h"

#include "ops/word_calls.h"

#include "support/result_checks.h"
#include "support/standard_library.h"

#include <doctest/doctest.h>
#include <shardprop/ops/op_library.h>
#include <shardprop/ops/rule_text.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;

Result<std::shared_ptr<const OpLibrary>> with(const char* declaration,
                                              const char* rule) {
  return testing::standard_library().with(
      {.declaration = declaration, .definition = value_of(parse_rule(rule))});
}

// Returns the space of a call with these tensors, by name, and other arguments.
std::string space_of(
    const OpLibrary& library,
    const std::vector<std::pair<const char*, const char*>>& tensors,
    const std::vector<GivenArgument>& others) {
  std::vector<GivenArgument> given;
  std::vector<TensorMeta> metas;
  for (const auto& [name, text] : tensors) {
    given.push_back({name, TensorArg{static_cast<std::int32_t>(metas.size())}});
    metas.push_back(value_of(TensorMeta::parse(text)));
  }
  given.insert(given.end(), others.begin(), others.end());
  OpSchema op = value_of(make_op_schema(library.find("mylib.f.default"),
                                        std::move(given), std::move(metas)));
  set_results(op, value_of(library.infer_results(op)));
  return to_string(value_of(library.index_space(op)));
}

TEST_CASE("a rule of another library uses words") {
  const auto gathers =
      value_of(with("mylib::f(Tensor self, int dim, Tensor index) -> Tensor",
                    "gather(dim).typed(first).passes(self).below(index,dim)"));
  CHECK(space_of(*gathers, {{"self", "f32[4,6]"}, {"index", "i64[4,3]"}},
                 {{"dim", std::int64_t{1}}})
            .starts_with("ab,ac->ac"));
  const auto values =
      value_of(with("mylib::f(Tensor x) -> Tensor",
                    "same_shape().typed(first).strided(first)"));
  CHECK(space_of(*values, {{"x", "f32[4,6]"}}, {}) == "ab->ab {a=4,b=6}");
}

TEST_CASE("an operator that lacks what a word reads is an error") {
  const auto message = [](const char* declaration, const char* rule) {
    const auto made = with(declaration, rule);
    REQUIRE_FALSE(made.has_value());
    CHECK(made.error().code == ErrorCode::kInvalidArgument);
    return made.error().message;
  };
  CHECK(message("mylib::f(Tensor self, int axis, Tensor index) -> Tensor",
                "gather(dim)") ==
        "`gather(dim)` needs the argument `int dim`, as in "
        "`aten.gather.default`, which `mylib.f.default` does not declare");
  CHECK(message("mylib::f(Tensor index, int dim, Tensor self) -> Tensor",
                "gather(dim)") ==
        "`gather(dim)` needs `self` as tensor argument 1, as in "
        "`aten.gather.default`, which `mylib.f.default` does not declare");
  const auto undeclared = testing::standard_library().with(
      {.name = "mylib.g", .definition = value_of(parse_rule("gather(dim)"))});
  REQUIRE_FALSE(undeclared.has_value());
  CHECK(undeclared.error().message ==
        "the rule of `mylib.g` uses a word, which needs the declaration of the "
        "operator");
}

// Calls the operator; returns the message of the error, and "" for none.
std::string refusal(const char* declaration, const char* rule,
                    const std::vector<GivenArgument>& given,
                    const std::vector<const char*>& tensors) {
  const auto made = with(declaration, rule);
  if (!made) return made.error().message;
  std::vector<TensorMeta> metas;
  for (const char* text : tensors) {
    metas.push_back(value_of(TensorMeta::parse(text)));
  }
  OpSchema op =
      value_of(make_op_schema((*made)->find("mylib.f.default"), given, metas));
  auto results = (*made)->infer_results(op);
  if (!results) return to_string(results.error());
  set_results(op, *std::move(results));
  const auto space = (*made)->index_space(op);
  if (!space) return to_string(space.error());
  for (const Linearity& linearity : space->linearities) {
    CHECK(linearity.inputs.size() == op.inputs.size());
    CHECK(linearity.outputs.size() == op.outputs.size());
  }
  return {};
}

TEST_CASE("a word that adds linearities covers every operand and result") {
  const GivenArgument self{"self", TensorArg{0}};
  CHECK(refusal("mylib::f(Tensor self) -> (Tensor, Tensor)",
                "pointwise(2).typed(first,first).cast()", {self},
                {"f32[4,6]"}) == "");
  CHECK(refusal("mylib::f(Tensor self, Tensor other) -> (Tensor, Tensor)",
                "pointwise(2).prefers_numbers(max)",
                {self, {"other", TensorArg{1}}}, {"i64[4]", "i64[4]"}) == "");
}

TEST_CASE("an optional argument does not satisfy a need that is not") {
  const GivenArgument none{"self", NoneArg{}};
  const GivenArgument size{"size", std::vector<std::int64_t>{4}};
  CHECK(refusal("mylib::f(Tensor? self, int[] size) -> Tensor",
                "factory(size).typed(f32).cast()", {none, size}, {}) ==
        "`cast()` needs 1 tensor, as in `aten._cast_Byte.default`, which "
        "`mylib.f.default` does not declare");
  CHECK(refusal("mylib::f(Tensor? self, int[] size) -> Tensor",
                "factory(size).typed(f32).linear()", {none, size}, {}) != "");
  CHECK(refusal("mylib::f(Tensor? self, Tensor? mat2) -> Tensor",
                "pointwise(1).by_expert()", {none, {"mat2", NoneArg{}}},
                {}) != "");
}

TEST_CASE("only a rule that states affine_dtypes() checks weight and bias") {
  const char* declaration =
      "mylib::f(Tensor input, int[] normalized_shape, Tensor? weight, "
      "Tensor? bias) -> Tensor";
  const std::vector<GivenArgument> given = {
      {"input", TensorArg{0}},
      {"normalized_shape", std::vector<std::int64_t>{4}},
      {"weight", TensorArg{1}},
      {"bias", TensorArg{2}}};
  const std::vector<const char*> mixed = {"f32[2,4]", "bf16[4]", "bf16[4]"};
  const std::string rule = "normalized(normalized_shape)";
  CHECK(refusal(declaration, rule.c_str(), given, mixed) == "");
  const std::string checked = rule + ".affine_dtypes()";
  CHECK(refusal(declaration, checked.c_str(), given, mixed)
            .find("`weight` is bf16, expected f32, as `input`") !=
        std::string::npos);
  CHECK(refusal(declaration, checked.c_str(), given,
                {"bf16[2,4]", "f32[4]", "f32[4]"}) == "");
  // The operator need not declare a bias.
  CHECK(refusal("mylib::f(Tensor input, int[] normalized_shape, Tensor weight) "
                "-> Tensor",
                checked.c_str(), {given[0], given[1], given[2]},
                {"f32[2,4]", "bf16[4]"})
            .find("`weight` is bf16") != std::string::npos);
}

TEST_CASE("a word refuses dims and lists that the call does not have") {
  const GivenArgument self{"self", TensorArg{0}};
  const GivenArgument dim{"dim", std::int64_t{0}};
  const auto contains = [](const std::string& text, const char* part) {
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
  };
  contains(
      refusal("mylib::f(Tensor[] tensors, Tensor x, int dim) -> Tensor",
              "same_shape().strided(stacked)",
              {{"tensors", std::vector<TensorArg>{}}, {"x", TensorArg{0}}, dim},
              {"f32[4]"}),
      "entry 1 of a list of 0");
  contains(refusal("mylib::f(Tensor self, int dim, int[] sizes) -> Tensor",
                   "pointwise(1).local_sizes()",
                   {self, dim, {"sizes", std::vector<std::int64_t>(5, 1)}},
                   {"f32[4,6]"}),
           "does not have the given sizes as dims");
  contains(refusal("mylib::f(Tensor grad, SymInt[] sizes) -> Tensor",
                   "pointwise(1).diagonal_in_parts()",
                   {{"grad", TensorArg{0}},
                    {"sizes", std::vector<std::int64_t>(2, 4)}},
                   {"f32[4]"}),
           "dim 1 of a tensor of rank 1");
  contains(refusal("mylib::f(Tensor grad, Tensor self, int dim, Tensor index, "
                   "bool sparse_grad) -> Tensor",
                   "*,*,*->.gathered_by_program()",
                   {{"grad", TensorArg{0}},
                    {"self", TensorArg{1}},
                    dim,
                    {"index", TensorArg{2}},
                    {"sparse_grad", false}},
                   {"f32[4,6]", "f32[4,6]", "i64[4,6]"}),
           "does not fit the rank");
  contains(refusal("mylib::f(Tensor self, float p) -> Tensor", "*->{x:pairs()}",
                   {self, {"p", 2.0}}, {"f32[]"}),
           "dim 0 of a tensor of rank 0");
  contains(refusal("mylib::f(Tensor self) -> Tensor", "*->.strided(images)",
                   {self}, {"f32[2,3,4,6]{72,1,18,3}"}),
           "rank 2 or less");
}

// Returns an operator with the needs of the word and its tensors: tensor `i` is
// kMetas[first + i * step].
Foreign foreign_of(const WordNeeds& needs, std::size_t first,
                   std::size_t step) {
  Foreign out;
  std::string declared;
  const auto declare = [&](const std::string& type, const std::string& name) {
    declared += (declared.empty() ? "" : ", ") + type + " " + name;
  };
  const auto add_tensor = [&](const std::string& name, bool is_list) {
    const TensorArg last{static_cast<std::int32_t>(out.tensors.size())};
    out.given.push_back({name, is_list ? Argument(std::vector<TensorArg>{last})
                                       : Argument(last)});
    const std::size_t at = first + out.tensors.size() * step;
    out.tensors.push_back(
        value_of(TensorMeta::parse(kMetas[at % std::size(kMetas)])));
  };
  // Adds tensors with any names up to this place.
  const auto fill_to = [&](std::size_t place) {
    while (out.tensors.size() < place) {
      const std::string name = "x" + std::to_string(out.tensors.size());
      declare("Tensor", name);
      add_tensor(name, false);
    }
  };
  for (const NeededArgument& needed : needs.arguments) {
    const ArgumentSchema& argument = needed.argument;
    const bool has_tensors = argument.is_tensor() || argument.is_tensor_list();
    if (needed.place != NeededArgument::kAnyPlace) fill_to(needed.place);
    declare(describe_type(argument), argument.name);
    if (has_tensors) {
      add_tensor(argument.name, argument.is_list);
    } else {
      out.given.push_back({argument.name, value_for(argument)});
    }
  }
  fill_to(std::max<std::size_t>(needs.tensors, 1));
  std::string results = "Tensor";
  for (std::size_t i = 1; i < needs.results; ++i) results += ", Tensor";
  out.declaration = "mylib::f(" + declared + ") -> (" + results + ")";
  out.rule = rule_with(needs, out.tensors.size());
  return out;
}

// `Answers` counts the spaces and errors of the calls of an operator.
struct Answers {
  int spaces = 0;
  int errors = 0;
};

template <class T>
T or_throw(Result<T> result) {
  if (!result) throw std::runtime_error(to_string(result.error()));
  return *std::move(result);
}

// Calls the operator. An exception of the word passes.
Answers call(const Foreign& one) {
  auto rule = or_throw(parse_definition(one.rule));
  const auto made = or_throw(testing::standard_library().with(
      {.declaration = one.declaration, .definition = std::move(rule)}));
  OpSchema op = or_throw(
      make_op_schema(made->find("mylib.f.default"), one.given, one.tensors));
  auto results = made->infer_results(op);
  if (!results) return {.errors = 1};
  set_results(op, *std::move(results));
  if (!made->index_space(op)) return {.errors = 1};
  return {.spaces = 1};
}

// A word that rejects a call gives an error, never an exception.
TEST_CASE("every word answers calls of an operator that declares its needs") {
  int spaces = 0;
  int errors = 0;
  for (const WordNeeds& needs : word_needs()) {
    // Tensors of one shape, and of several.
    for (std::size_t i = 0; i < 2 * std::size(kMetas); ++i) {
      const bool is_alike = i < std::size(kMetas);
      const Foreign one = foreign_of(needs, i, is_alike ? 0 : 5);
      CAPTURE(one.declaration);
      CAPTURE(one.rule);
      CAPTURE(i);
      try {
        const Answers answers = call(one);
        spaces += answers.spaces;
        errors += answers.errors;
      } catch (const std::exception& error) {
        FAIL_CHECK(error.what());
      }
    }
  }
  MESSAGE(word_needs().size(), " words; ", spaces, " calls with a space, ",
          errors, " refused");
  CHECK(spaces > 500);
}

// Returns "1 tensor", "2 tensors".
std::string counted(std::size_t count, const char* noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

// Returns the table of words as docs/rule_words.md has it.
std::string table() {
  std::ostringstream out;
  for (const std::string_view kind :
       {"form", "modifier", "check", "dtype", "strides", "size"}) {
    out << "\n## " << kind << "\n\n| word | needs | operators, such as |\n"
        << "|---|---|---|\n";
    for (const WordNeeds& needs : word_needs()) {
      if (needs.kind != kind) continue;
      std::string arguments;
      for (const NeededArgument& needed : needs.arguments) {
        arguments += (arguments.empty() ? "`" : ", `") +
                     describe_type(needed.argument) + " " +
                     needed.argument.name + '`';
      }
      const auto named = static_cast<std::size_t>(
          std::count_if(needs.arguments.begin(), needs.arguments.end(),
                        [](const NeededArgument& needed) {
                          return needed.argument.type == ArgumentType::kTensor;
                        }));
      if (needs.tensors > named) {
        arguments +=
            (arguments.empty() ? "" : ", ") + counted(needs.tensors, "tensor");
      }
      if (needs.results > 1) {
        arguments +=
            (arguments.empty() ? "" : ", ") + counted(needs.results, "result");
      }
      out << "| `" << needs.word << "` | " << arguments << " | "
          << needs.operators.size() << ": `" << needs.operators.front()
          << "` |\n";
    }
  }
  return out.str();
}

// SHARDPROP_WRITE_WORDS=1 writes the table anew.
TEST_CASE("docs/rule_words.md has every word") {
  constexpr const char* kPath = "docs/rule_words.md";
  std::ifstream file(kPath);
  REQUIRE(file);
  const std::string page((std::istreambuf_iterator<char>(file)), {});
  const std::size_t begin = page.find("\n## form");
  REQUIRE(begin != std::string::npos);
  if (std::getenv("SHARDPROP_WRITE_WORDS") != nullptr) {
    std::ofstream(kPath) << page.substr(0, begin) << table();
    return;
  }
  CHECK(page.substr(begin) == table());
}

}  // namespace
}  // namespace shardprop
