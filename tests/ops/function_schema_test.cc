#include <doctest/doctest.h>
#include <shardprop/ops/function_schema.h>
#include <shardprop/ops/op_library.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "support/result_checks.h"
#include "support/standard_library.h"

using namespace shardprop;  // NOLINT(google-build-using-namespace)

TEST_CASE("a declaration gives up its parts") {
  const auto schema = FunctionSchema::parse(
      "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> "
      "Tensor");
  REQUIRE(schema);
  CHECK(schema->name() == "aten.add.Tensor");
  CHECK(schema->ns() == "aten");
  CHECK(schema->base_name() == "add");
  CHECK(schema->overload() == "Tensor");
  REQUIRE(schema->arguments().size() == 3);
  CHECK(schema->arguments()[0].is_tensor());
  CHECK_FALSE(schema->arguments()[1].keyword_only);
  CHECK(schema->arguments()[2].keyword_only);
  CHECK(schema->arguments()[2].type == ArgumentType::kScalar);
  CHECK(schema->arguments()[2].default_value == Argument(std::int64_t{1}));
  CHECK(schema->argument_index("other") == 1);
  CHECK_FALSE(schema->argument_index("beta"));
  CHECK(schema->returns().size() == 1);
}

TEST_CASE("types: lists, optionals, aliases, defaults") {
  const auto schema = FunctionSchema::parse(
      "my::op(Tensor(a!)? x, Tensor?[] index, int[2] stride=1, float? eps=1, "
      "str mode=\"a\\\"b\", SymInt[1]? dim=[0], ScalarType? dtype=4, "
      "Tensor(b -> *) y, bool[2] m=[True, False], Tensor[] none=[]) -> "
      "(Tensor(a!), Tensor(b)[] parts, int n)",
      "core,view");
  REQUIRE(schema);
  CHECK(schema->name() == "my.op.default");
  const auto& args = schema->arguments();
  CHECK(args[0].is_optional);
  CHECK(args[0].alias == AliasInfo{"a", true, false});
  CHECK(args[1].is_tensor_list());
  CHECK(args[1].elements_optional);
  CHECK_FALSE(args[1].is_optional);
  CHECK(args[2].list_size == 2);
  CHECK(args[2].default_value == Argument(std::int64_t{1}));
  CHECK(args[3].default_value == Argument(std::int64_t{1}));
  CHECK(args[4].default_value == Argument(std::string("a\"b")));
  CHECK(args[5].is_optional);
  CHECK(args[5].default_value == Argument(std::vector<std::int64_t>{0}));
  CHECK(args[6].default_value == Argument(DType::kI64));
  CHECK(args[7].alias == AliasInfo{"b", false, true});
  CHECK(args[8].default_value == Argument(std::vector<bool>{true, false}));
  CHECK(args[9].default_value == Argument(std::vector<TensorArg>{}));
  CHECK(schema->returns()[1].is_tensor_list());
  CHECK(schema->returns()[1].name == "parts");
  CHECK(schema->returns()[2].type == ArgumentType::kInt);
  CHECK(schema->has_tag("core"));
  CHECK(schema->is_view());
  CHECK(schema->is_inplace());
  CHECK_FALSE(schema->is_out());
}

TEST_CASE("what is no declaration is an error with the place") {
  for (const char* text : {"",
                           "aten::mm",
                           "mm(Tensor a) -> Tensor",
                           "aten::mm(Tensor a)",
                           "aten::mm(Tensor a, Tensor a) -> Tensor",
                           "aten::mm(Tensor) -> Tensor",
                           "aten::mm(Tensor a -> Tensor",
                           "aten::mm(Tensor a) -> (Tensor",
                           "aten::mm(Tensor a) -> Tensor b c",
                           "aten::mm(Tensor(a a) -> Tensor",
                           "aten::mm(int[x] a) -> Tensor",
                           "aten::mm(int a=bad) -> Tensor",
                           "aten::mm(int[] a=[1, 2.]) -> Tensor",
                           "aten::mm(str a=\"x) -> Tensor",
                           "aten::mm(*, *, int a) -> Tensor",
                           "aten::mm(int[][] a) -> Tensor",
                           "::mm(int a) -> Tensor",
                           "aten::(int a) -> Tensor",
                           "aten::mm.(int a) -> Tensor",
                           "aten::mm(Dict(Tensor a) -> "}) {
    CAPTURE(text);
    const auto schema = FunctionSchema::parse(text);
    REQUIRE_FALSE(schema);
    CHECK(schema.error().code == ErrorCode::kSchemaSyntax);
    CHECK_FALSE(schema.error().location.empty());
  }
}

TEST_CASE("a declaration may have types that are not interpreted") {
  for (const char* type :
       {"t", "t1", "t2?", "tVal", "t[]", "Await(t)", "AnyClassType"}) {
    CAPTURE(type);
    CHECK(FunctionSchema::parse("my::a(Tensor x, " + std::string(type) +
                                " z) -> Tensor"));
  }
}

TEST_CASE("a default may have blanks around its `=`, as in PyTorch") {
  const auto schema = FunctionSchema::parse(
      "my::f(Tensor x, int n = 5, float[2] r =1, bool? b= None, int[] l=[ 1 , "
      "2 ], Tensor t=None, Layout? y=0, Device d='cpu') -> Tensor");
  REQUIRE(schema);
  CHECK(schema->arguments()[1].default_value == Argument(std::int64_t{5}));
  CHECK(schema->arguments()[4].default_value ==
        Argument(std::vector<std::int64_t>{1, 2}));
}

TEST_CASE("an error of a declaration is at the fault") {
  struct Wrong {
    const char* text;
    int column;
    const char* message;
  };
  for (const Wrong& wrong : {
           Wrong{"my::f(Tensr x) -> Tensor", 7,
                 "expected a type, found `Tensr`"},
           {"my::f(Tensor x) -> Tensro", 20, "expected a type, found `Tensro`"},
           {"my::f(Tensor x, integer n) -> Tensor", 17,
            "expected a type, found `integer`"},
           {"my::f(Tensor x, int n=99999999999999999999) -> Tensor", 23,
            "expected an integer of 64 bits, found `99999999999999999999`"},
           {"my::f(Tensor x, int n=1.5) -> Tensor", 23,
            "expected an integer of 64 bits, found `1.5`"},
           {"my::f(Tensor x, int[99999999999999999999] n) -> Tensor", 21,
            "no list size"},
           {"my::f(Tensor x, int[] n=[1.5]) -> Tensor", 25,
            "expected a default of the type `int[]`, found `[1.5]`"},
           {"my::f(Tensor x, int[] n = 3) -> Tensor", 27,
            "expected a default of the type `int[]`, found `3`"},
           {"my::f(Tensor x, int n=None) -> Tensor", 23,
            "expected a default of the type `int`, found `None`"},
           {"my::f(Tensor x, int n=True) -> Tensor", 23,
            "expected a default of the type `int`, found `True`"},
           {"my::f(Tensor x, int n='a') -> Tensor", 23,
            "expected a default of the type `int`, found `'a'`"},
           {"my::f(Tensor x, bool f=7) -> Tensor", 24,
            "expected a default of the type `bool`, found `7`"},
           {"my::f(Tensor x, bool[2] f=[1, 0]) -> Tensor", 27,
            "expected a default of the type `bool[2]`, found `[1, 0]`"},
           {"my::f(Tensor x, float f='1') -> Tensor", 25,
            "expected a default of the type `float`, found `'1'`"},
           {"my::f(Tensor x, str s=5) -> Tensor", 23,
            "expected a default of the type `str`, found `5`"},
           {"my::f(Tensor x, Scalar s=[1]) -> Tensor", 26,
            "expected a default of the type `Scalar`, found `[1]`"},
           {"my::f(Tensor x, Tensor t=3) -> Tensor", 26,
            "expected a default of the type `Tensor`, found `3`"},
           {"my::f(Tensor x, Tensor[] t=[1]) -> Tensor", 28,
            "expected a default of the type `Tensor[]`, found `[1]`"},
           {"my::f(Tensor x, ScalarType d='f32') -> Tensor", 30,
            "expected a default of the type `ScalarType`, found `'f32'`"},
           {"my::f(Tensor x, Generator g=3) -> Tensor", 29,
            "expected a default of the type `Generator`, found `3`"},
           {"my::f(Tensor x -> Tensor", 16, "`,` or `)` expected"},
           {"my::f(Tensor x) - Tensor", 17, "`->` and the results are missing"},
       }) {
    CAPTURE(wrong.text);
    const auto schema = FunctionSchema::parse(wrong.text);
    REQUIRE_FALSE(schema);
    CHECK(schema.error().code == ErrorCode::kSchemaSyntax);
    CHECK(schema.error().message ==
          "a declaration is malformed: " + std::string(wrong.message));
    CHECK(schema.error().location == "column " + std::to_string(wrong.column));
    CHECK_FALSE(schema.error().help.empty());
  }
  for (const char* type : {"Any?", "__torch__.torch.classes.my.Box", "Stream",
                           "SymInt[2]", "Dict(str, Tensor)"}) {
    CAPTURE(type);
    CHECK(FunctionSchema::parse("my::f(" + std::string(type) + " x) -> Tensor")
              .has_value());
  }
}

TEST_CASE("every declaration of the table parses and prints as it was") {
  std::ifstream table("src/ops/aten_schemas.txt");
  REQUIRE(table);
  std::string line;
  std::string previous;
  int count = 0;
  while (std::getline(table, line)) {
    if (line.front() == '#') continue;
    const std::string text = line.substr(0, line.find('\t'));
    const std::string name = text.substr(0, text.find('('));
    CHECK_MESSAGE(previous < name, name, " is out of order");
    previous = name;
    const auto schema = FunctionSchema::parse(text);
    REQUIRE_MESSAGE(schema, text);
    CHECK(to_string(*schema) == text);
    ++count;
  }
  CHECK(count > 3000);
}

TEST_CASE("the library finds an operator by any of its names") {
  const OpLibrary& library = testing::standard_library();
  const auto mm = library.find("aten.mm.default");
  REQUIRE(mm);
  CHECK(mm->arguments().size() == 2);
  CHECK(library.find("torch.ops.aten.mm.default") == mm);
  CHECK(library.find("aten::mm") == mm);
  const auto add = library.find("aten.add_.Tensor");
  REQUIRE(add);
  CHECK(add->is_inplace());
  CHECK(library.find("aten::add_.Tensor") == add);
  CHECK(library.find("aten.add.out")->is_out());
  CHECK(library.find("aten.view.default")->is_view());
  CHECK(library.find("aten.native_dropout.default")->is_random());
  CHECK(library.find("aten.linear.default")->has_tag("composite"));
  for (const char* unknown : {"", ".", "aten", "aten.", "aten.add", "aten.mm.x",
                              "torch.ops.", "::", "aten::"}) {
    CAPTURE(unknown);
    CHECK(library.find(unknown) == nullptr);
  }
  CHECK(torch_release() == "2.13.0");
}

TEST_CASE("names lists all, and every one is found") {
  const auto mine = testing::value_of(testing::standard_library().with(
      {.declaration = "my::op(Tensor x) -> Tensor"}));
  const OpLibrary& library = *mine;
  const auto names = library.names();
  CHECK(names.size() > 3000);
  CHECK(std::is_sorted(names.begin(), names.end()));
  CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
  for (const std::string& name : names) {
    const auto schema = library.find(name);
    REQUIRE_MESSAGE(schema, name);
    CHECK(schema->name() == name);
  }
}

TEST_CASE("users add operators, under names that are free") {
  const OpLibrary& library = testing::standard_library();
  const auto declare = [&](const char* declaration) {
    return library.with({.declaration = declaration, .tags = "core"});
  };
  const auto mine = testing::value_of(declare("my::op.v2(Tensor x) -> Tensor"));
  REQUIRE(mine->find("my.op.v2"));
  CHECK(mine->find("my.op.v2")->has_tag("core"));
  CHECK(library.find("my.op.v2") == nullptr);
  CHECK(mine->with({.declaration = "my::op.v2(Tensor x) -> Tensor"})
            .error()
            .code == ErrorCode::kOpRegistered);
  CHECK(declare("aten::mm(Tensor x) -> Tensor").error().code ==
        ErrorCode::kOpRegistered);
  CHECK(declare("aten::mm").error().code == ErrorCode::kSchemaSyntax);
  CHECK(library.with({.name = "aten.no_such", .definition = pointwise()})
            .error()
            .code == ErrorCode::kUnknownOperator);
}

TEST_CASE("an unknown name is answered with the nearest") {
  const OpLibrary& library = testing::standard_library();
  CHECK(library.suggest("aten.sofmax.int") ==
        "did you mean `aten.softmax.int`?");
  CHECK(library.suggest("aten.frobnicate.default") ==
        "`shardprop ops` lists operators");
  CHECK(library.suggest("mm") == "did you mean `aten.mm.default`?");
  CHECK(library.suggest("aten.relo") == "did you mean `aten.relu.default`?");
  CHECK(library.suggest("aten.mm.Tensor") ==
        "its overloads are `aten.mm.default`, `aten.mm.dtype`, "
        "`aten.mm.dtype_out`, `aten.mm.out`");
}
