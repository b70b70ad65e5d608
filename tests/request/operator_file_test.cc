// Tests files of operators: their rules, their errors, and how graphs use them.
#include <shardprop/request/operator_file.h>

#include "request/refused.h"
#include "support/result_checks.h"
#include "support/standard_library.h"
#include "support/temporary_file.h"

#include <shardprop/request/plan_request.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

namespace shardprop {
namespace {

using testing::refused;
using testing::value_of;

constexpr const char* kGraphWithSwiglu = "tests/golden/inputs/custom_op.json";

TEST_CASE("an operator file has a declaration and a rule for each operator") {
  const std::vector<GivenText> rules = value_of(operator_texts(
      "# Operators of mylib.\n"
      "\n"
      "mylib::swiglu(Tensor a,\n"
      "    Tensor b, float by=1.0)\n"
      "    -> Tensor\n"
      "  # A comment between the lines.\n"
      "  = pointwise()\n"
      "    .promoted()\r\n"
      "mylib::rms(Tensor x, int n=3) -> Tensor = along(n) .decomposed(\"\n"
      "  s = x * x\n"
      "  return x / s\")\n",
      "mylib.ops"));
  REQUIRE(rules.size() == 2);
  CHECK(rules[0].text ==
        "mylib::swiglu(Tensor a, Tensor b, float by=1.0) -> "
        "Tensor=pointwise().promoted()");
  CHECK(rules[0].place == "mylib.ops:3");
  CHECK(rules[0].is_from_file);
  CHECK(rules[1].text ==
        "mylib::rms(Tensor x, int n=3) -> Tensor=along(n).decomposed(\"s = x "
        "* x; return x / s\")");
  CHECK(rules[1].place == "mylib.ops:9");
  CHECK(value_of(operator_texts("", "empty.ops")).empty());
}

TEST_CASE("an error of an operator file names the line and the column") {
  struct Wrong {
    const char* text;
    const char* place;
    const char* message;
    ErrorCode code = ErrorCode::kInvalidArgument;
  };
  for (const Wrong& wrong : {
           Wrong{"  my::f(Tensor x) -> Tensor = pointwise()", "f.ops:1",
                 "the first operator is indented"},
           {"my::f(Tensor x) -> Tensor\n", "f.ops:1:26",
            "an operator has no rule: expected `=` after its declaration"},
           {"my::f(Tensor x) -> Tensor = pointwise()\n"
            "my::f(Tensor x) -> Tensor = batch(0)",
            "f.ops:2", "`my.f.default` is stated twice"},
           {"\nmy::f(Tensor x) -> Tensor =\n  pointwise()\n    .fast()",
            "f.ops:4:6", "`fast` is not a modifier"},
           {"my::f(Tensor x) -> Tensor = m)->m", "f.ops:1:30",
            "expected a factor, `,` or `->`, found `)`"},
           {"my::f(Tensor x) -> Tensor =", "f.ops:1:28",
            "expected a form, found the end"},
           {"my::f(Tensor x) -> Tensor = pointwise().decomposed(\"\n"
            "  y = exp(x)\n"
            "  return (y\")",
            "f.ops:3:12", "expected an operator or `)`, found the end",
            ErrorCode::kProgramSyntax},
           {"my.f = pointwise()", "f.ops:1:1", "", ErrorCode::kSchemaSyntax},
           {"my::f(Tensor x,\n    int n -> Tensor\n  = pointwise()",
            "f.ops:2:11", "", ErrorCode::kSchemaSyntax},
           {"my::f(Tensor x)\n   - Tensor\n  = pointwise()", "f.ops:2:4", "",
            ErrorCode::kSchemaSyntax},
           {"my::f(Tensor x) -> Tensor\n  = pointwise()\n    .passes(zz)",
            "f.ops:3:13",
            "expected a tensor argument of `my.f`: `x`, found `zz`"},
           {"my::f(Tensor x) -> Tensor\n  = pointwise().decomposed(\"\n"
            "    y = exp(x)\n    return y + z\n  \")",
            "f.ops:4:16",
            "expected an argument of `my.f` (`x`) or an earlier result (`y`), "
            "found `z`",
            ErrorCode::kProgramSyntax},
           {"my::f(Tensor x) -> Tensor\n  = gather(dim)", "f.ops:2:5",
            "`gather(dim)` needs the argument `Tensor self`, as in "
            "`aten.gather.default`, which `my.f.default` does not declare"},
       }) {
    CAPTURE(wrong.text);
    const Error error =
        refused(operator_texts(wrong.text, "f.ops"), wrong.code);
    CHECK(error.location == wrong.place);
    const std::string message = wrong.message;
    CHECK((message.empty() || error.message == message));
    CHECK_FALSE(error.help.empty());
  }
}

TEST_CASE("a graph is read with the operators of a file that it uses") {
  const testing::TemporaryFile file(
      "mylib::swiglu(Tensor a, Tensor b) -> Tensor = pointwise()\n"
      "mylib::other(Tensor a) -> Tensor = batch(0)\n");
  GraphReading reading;
  add_option(reading, "rule", {"@" + file.path(), "--rule @F"});
  const LoadedGraph loaded = value_of(load_graph(kGraphWithSwiglu, reading));
  REQUIRE(loaded.reading.rules.size() == 1);
  CHECK(loaded.reading.rules[0].text ==
        "mylib::swiglu(Tensor a, Tensor b) -> Tensor=pointwise()");
  Plan plan;
  record(loaded.reading, plan);
  CHECK(
      plan.options ==
      std::vector<std::pair<std::string, std::string>>{
          {"rule", "mylib::swiglu(Tensor a, Tensor b) -> Tensor=pointwise()"}});
  // The saved plan suffices, and agrees with the file.
  GraphReading again;
  CHECK(add_reading_of(plan, "p.json", again));
  CHECK(load_graph(kGraphWithSwiglu, again).has_value());
  CHECK(add_reading_of(plan, "p.json", reading));
  CHECK(load_graph(kGraphWithSwiglu, reading).has_value());
  // A rule takes precedence over a file.
  add_option(reading, "rule", {"mylib.swiglu=batch(0)", "--rule"});
  reading.rules.erase(reading.rules.begin() + 1);
  const LoadedGraph own = value_of(load_graph(kGraphWithSwiglu, reading));
  REQUIRE(own.reading.rules.size() == 1);
  CHECK(own.reading.rules[0].text == "mylib.swiglu=batch(0)");
}

TEST_CASE("files of operators that cannot be used") {
  const auto reading = [](const std::string& file, int times) {
    std::vector<GivenText> rules;
    for (int i = 0; i < times; ++i) rules.push_back({"@" + file, "--rule @F"});
    return with_files(std::move(rules));
  };
  CHECK(refused(reading("no_such_file.ops", 1), ErrorCode::kFileUnreadable)
            .location.starts_with("--rule @F"));
  const testing::TemporaryFile file(
      "my::f(Tensor x) -> Tensor = pointwise()\n");
  CHECK(refused(reading(file.path(), 2), ErrorCode::kInvalidArgument).message ==
        "two files state `my.f`");
}

// A call under the operators of a file of the examples.
struct PlacedCall {
  std::string space;  // printed
  std::string result;
  std::vector<std::string> local_arguments;
};

PlacedCall placed(const OpLibrary& library, const char* name,
                  std::vector<GivenArgument> given,
                  const std::vector<const char*>& inputs,
                  const char* result = nullptr) {
  std::vector<TensorMeta> metas;
  for (const char* text : inputs) metas.push_back(*TensorMeta::parse(text));
  auto op = value_of(
      make_op_schema(library.find(name), std::move(given), std::move(metas)));
  if (result != nullptr) {
    set_results(op, {*TensorMeta::parse(result)});
  } else {
    set_results(op, value_of(library.infer_results(op)));
  }
  const IndexSpace space = value_of(library.index_space(op));
  PlacedCall out{to_string(space), to_string(op.outputs.at(0)), {}};
  for (const LocalArgument& local : space.local_arguments) {
    out.local_arguments.push_back(local.name);
  }
  return out;
}

TEST_CASE("operators of torchvision") {
  const auto library = value_of(library_with_file(
      testing::standard_library(), "examples/operators/torchvision.ops"));
  // The number of boxes that remain is known from the graph only.
  CHECK(placed(*library, "torchvision.nms.default",
               {{"", TensorArg{0}}, {"", TensorArg{1}}, {"", 0.5}},
               {"f32[100,4]", "f32[100]"}, "i64[17]")
            .result == "i64[17]");
  const PlacedCall aligned = placed(*library, "torchvision.roi_align.default",
                                    {{"", TensorArg{0}},
                                     {"", TensorArg{1}},
                                     {"", 0.25},
                                     {"", std::int64_t{7}},
                                     {"", std::int64_t{5}},
                                     {"", std::int64_t{2}},
                                     {"", true}},
                                    {"f32[2,256,32,32]", "f32[100,5]"});
  CAPTURE(aligned.space);
  CHECK(aligned.space.starts_with("1c11,r1->rc11 {c=256,r=100}"));
  CHECK(aligned.result == "f32[100,256,7,5]");
  const PlacedCall gradient =
      placed(*library, "torchvision._roi_align_backward.default",
             {{"", TensorArg{0}},
              {"", TensorArg{1}},
              {"", 0.25},
              {"", std::int64_t{7}},
              {"", std::int64_t{5}},
              {"", std::int64_t{2}},
              {"", std::int64_t{256}},
              {"", std::int64_t{32}},
              {"", std::int64_t{32}},
              {"", std::int64_t{2}},
              {"", true}},
             {"f32[100,256,7,5]", "f32[100,5]"});
  CAPTURE(gradient.space);
  CHECK(gradient.result == "f32[2,256,32,32]");
  CHECK(gradient.space.find("r:.,.->sum") != std::string::npos);
  CHECK(gradient.local_arguments == std::vector<std::string>{"channels"});
}

TEST_CASE("operators of mamba_ssm, with and without optional tensors") {
  const auto library = value_of(library_with_file(
      testing::standard_library(), "examples/operators/mamba_ssm.ops"));
  const auto space = [&](std::vector<GivenArgument> given,
                         const std::vector<const char*>& inputs) {
    return placed(*library, "mamba_ssm.selective_scan.default",
                  std::move(given), inputs)
        .space;
  };
  std::vector<GivenArgument> given;
  for (int i = 0; i < 5; ++i) given.push_back({"", TensorArg{i}});
  std::vector<const char*> inputs = {"f32[2,8,64]", "f32[2,8,64]", "f32[8,16]",
                                     "f32[2,16,64]", "f32[2,16,64]"};
  CHECK(space(given, inputs).starts_with("bd1,bd1,d1,b11,b11->bd1 {b=2,d=8}"));
  // `D` is absent and `z` is given: `z` keeps its term.
  given.push_back({"z", TensorArg{5}});
  inputs.push_back("f32[2,8,64]");
  CHECK(space(given, inputs)
            .starts_with("bd1,bd1,d1,b11,b11,bd1->bd1 {b=2,d=8}"));
  inputs[3] = inputs[4] = "f32[2,4,16,64]";
  CHECK(space(given, inputs)
            .starts_with("b(gd)1,b(gd)1,(gd)1,bg11,bg11,b(gd)1->b(gd)1"));
}

TEST_CASE("the operators of docs/add_an_operator.md are those of the example") {
  std::ifstream page("docs/add_an_operator.md");
  REQUIRE(page);
  std::ifstream example("examples/operators/mylib.ops");
  REQUIRE(example);
  const std::string file((std::istreambuf_iterator<char>(example)), {});
  int operators = 0;
  std::string block;
  bool in_block = false;
  for (std::string line; std::getline(page, line);) {
    if (line == "```ops") {
      in_block = true;
      block.clear();
    } else if (in_block && line == "```") {
      in_block = false;
      ++operators;
      CAPTURE(block);
      CHECK(file.find(block) != std::string::npos);
      CHECK(value_of(operator_texts(block, "block")).size() == 1);
    } else if (in_block) {
      block += line + "\n";
    }
  }
  CHECK(operators == 5);
  CHECK(value_of(operator_texts(file, "mylib.ops")).size() == 5);
}

}  // namespace
}  // namespace shardprop
