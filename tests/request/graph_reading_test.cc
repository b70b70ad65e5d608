#include <shardprop/request/graph_reading.h>

#include "request/refused.h"
#include "support/result_checks.h"

#include <shardprop/request/plan_request.h>

#include <set>
#include <string>
#include <vector>

namespace shardprop {
namespace {

using testing::refused;
using testing::value_of;

constexpr const char* kCustom = "tests/golden/inputs/custom_op.json";
constexpr const char* kDynamic = "examples/graphs/tiny/mlp_dynamic.json.gz";

GraphReading reading_with(
    const std::vector<std::pair<std::string, std::string>>& options) {
  GraphReading reading;
  for (const auto& [name, text] : options) {
    CHECK(add_option(reading, name, {text, "--" + name + " " + text}));
  }
  return reading;
}

std::vector<std::string> texts_of(const std::vector<GivenText>& given) {
  std::vector<std::string> texts;
  for (const GivenText& one : given) texts.push_back(one.text);
  return texts;
}

TEST_CASE("options are added by name, several sizes at once") {
  GraphReading reading = reading_with({{"rule", "my.op=batch(0)"},
                                       {"size", "s0=8,s1=4"},
                                       {"size", "seq=2"},
                                       {"bound", "u0=1"},
                                       {"other_size", "b.json"},
                                       {"blocks", "8"},
                                       {"program", "second"}});
  CHECK(reading.blocks.text == "8");
  CHECK(reading.other_sizes[0].file.path == "b.json");
  CHECK(texts_of(reading.rules) == std::vector<std::string>{"my.op=batch(0)"});
  CHECK(texts_of(reading.sizes) ==
        std::vector<std::string>{"s0=8", "s1=4", "seq=2"});
  CHECK(reading.sizes[1].place == "--size s0=8,s1=4");
  CHECK(reading.bounds[0].text == "u0=1");
  CHECK(reading.program.text == "second");
  CHECK_FALSE(add_option(reading, "memory", {"1GiB", {}}));
}

TEST_CASE("a graph is read with as many blocks as are asked for") {
  const LoadedGraph deep =
      value_of(load_graph("examples/graphs/tiny/llama3_train.json.gz",
                          reading_with({{"blocks", "5"}})));
  std::set<std::string> layers;
  for (const GraphInput& input : deep.graph->inputs()) {
    const std::string& name = deep.graph->value(input.value).qualified_name;
    if (name.find(".mlp.up_proj.weight") != std::string::npos) {
      layers.insert(name);
    }
  }
  CHECK(layers.size() == 5);
  CHECK(layers.contains("model.layers.4.mlp.up_proj.weight"));
  Plan plan;
  record(deep.reading, plan);
  GraphReading again;
  CHECK(add_reading_of(plan, "--plan p.json", again).has_value());
  CHECK(again.blocks.text == "5");
  for (const char* text : {"0", "x", "5,"}) {
    CAPTURE(text);
    const Error error =
        refused(load_graph("examples/graphs/tiny/llama3_train.json.gz",
                           reading_with({{"blocks", text}})),
                ErrorCode::kInvalidArgument);
    CHECK(error.location == std::string("--blocks ") + text);
  }
  // It has one row of blocks.
  refused(load_graph("examples/graphs/tiny/llama3_train.json.gz",
                     reading_with({{"blocks", "4,4"}})),
          ErrorCode::kInvalidArgument);
}

TEST_CASE("blocks are complete where more equal operators lie outside") {
  // The norm after the last layer has the gradient of a weight, too.
  const LoadedGraph deep =
      value_of(load_graph("examples/graphs/tiny/gpt2_train.json.gz",
                          reading_with({{"blocks", "5"}})));
  for (const char* name :
       {"transformer.h.3.ln_1.weight", "transformer.h.4.ln_2.weight"}) {
    CAPTURE(name);
    const auto weight = deep.graph->find_value(name);
    REQUIRE(weight.has_value());
    CHECK(deep.graph->gradient_of(*weight).has_value());
  }
}

TEST_CASE("a graph is read with its rules and sizes") {
  const LoadedGraph custom = value_of(load_graph(
      kCustom, reading_with({{"rule", "mylib.swiglu=pointwise()"}})));
  for (const Node& node : custom.graph->nodes()) {
    CHECK(custom.library->index_space(node.op).has_value());
  }
  const LoadedGraph small =
      value_of(load_graph(kDynamic, reading_with({{"size", "batch=8"}})));
  CHECK(small.graph->hash() !=
        value_of(load_graph(kDynamic, GraphReading())).graph->hash());
}

TEST_CASE("an error about a reading has the place of its text") {
  const std::pair<std::vector<std::pair<std::string, std::string>>, std::string>
      wrong[] = {{{{"rule", "mylib.swiglu"}}, "--rule mylib.swiglu"},
                 {{{"rule", "mylib.swiglu=pointwise()"},
                   {"rule", "torch.ops.mylib::swiglu=batch(0)"}},
                  "--rule torch.ops.mylib::swiglu=batch(0)"},
                 {{{"rule", "mylib.other=pointwise()"}},
                  "--rule mylib.other=pointwise()"},
                 {{{"bound", "u0"}}, "--bound u0"},
                 {{{"bound", "u9=4"}}, "--bound u9=4"},
                 {{{"size", "s77=-1"}}, "--size s77=-1"},
                 {{{"size", "s77=8"}, {"size", "s77=9"}}, "--size s77=9"},
                 {{{"size", "s99=8"}}, "--size s99=8"}};
  for (const auto& [options, place] : wrong) {
    CAPTURE(place);
    CHECK(refused(load_graph(kCustom, reading_with(options)),
                  ErrorCode::kInvalidArgument)
              .location == place);
  }
}

TEST_CASE("an error of a rule has the column in the text of the user") {
  const std::pair<const char*, int> wrong[] = {
      {"mylib.swiglu=pointwise().fast()", 26},
      {"mylib.swiglu=pointwise().passes(zz)", 33},
      {"mylib::swiglu(Tensor a, Tensor b) -> Tensor=pointwise().of(c)", 60},
      {"mylib::swiglu(Tensor a, Tensor b - Tensor=pointwise()", 34},
      {"aten.relu=pointwise().linear_in(x)", 33}};
  for (const auto& [text, column] : wrong) {
    CAPTURE(text);
    const auto loaded = load_graph(kCustom, reading_with({{"rule", text}}));
    REQUIRE_FALSE(loaded.has_value());
    CHECK(loaded.error().location ==
          "--rule " + std::string(text) + ": column " + std::to_string(column));
  }
}

TEST_CASE("a declaration is given when the graph is read") {
  const std::vector<GivenText> rules = {
      {"mylib::swiglu(Tensor a, Tensor b) -> Tensor=pointwise()", "rules"}};
  const LoadedGraph plain = value_of(load_graph(kCustom, GraphReading()));
  CHECK(refused(check_rules(rules, *plain.graph), ErrorCode::kInvalidArgument)
            .location == "rules");
  CHECK(check_rules({{"mylib.swiglu", "rules"}}, *plain.graph));
  CHECK(refused(check_rules({{"mylib.swiglu=pointwise().of(c)", "rules"}},
                            *plain.graph),
                ErrorCode::kInvalidArgument)
            .location == "rules: column 29");
  GraphReading reading;
  reading.rules = rules;
  CHECK(check_rules(rules, *value_of(load_graph(kCustom, reading)).graph));
}

TEST_CASE("a rule replaces one of the same operator") {
  GraphReading reading =
      reading_with({{"rule", "my.op=batch(0)"}, {"rule", "my.other=batch(1)"}});
  replace_rules(reading, {{"torch.ops.my::op=pointwise()", "again"}});
  CHECK(texts_of(reading.rules) ==
        std::vector<std::string>{"my.other=batch(1)",
                                 "torch.ops.my::op=pointwise()"});
}

TEST_CASE("a plan brings its reading along") {
  const GraphReading made = reading_with({{"bound", "u0=1"},
                                          {"other_size", "b.json"},
                                          {"size", "s0=8,s1=4"},
                                          {"rule", "my.op=batch(0)"},
                                          {"program", "second"}});
  Plan plan;
  record(made, plan);
  GraphReading reading;
  CHECK(add_reading_of(plan, "a.json", reading));
  CHECK(texts_of(reading.bounds) == texts_of(made.bounds));
  CHECK(texts_of(reading.sizes) == texts_of(made.sizes));
  CHECK(texts_of(reading.rules) == texts_of(made.rules));
  CHECK(reading.program.text == "second");
  REQUIRE(reading.other_sizes.size() == 1);
  CHECK(reading.other_sizes[0].file.path == "b.json");
  CHECK(reading.bounds[0].place == "a.json $.options.bound");
  // An equal value does not contradict the reading, but another value does.
  CHECK(add_reading_of(plan, "a.json", reading));
  CHECK(texts_of(reading.sizes) == texts_of(made.sizes));
  CHECK(reading.other_sizes.size() == 1);
  GraphReading moved = reading_with({{"other_size", "c.json"}});
  CHECK(add_reading_of(plan, "a.json", moved));
  REQUIRE(moved.other_sizes.size() == 1);
  CHECK(moved.other_sizes[0].file.path == "c.json");
  for (const auto& [name, text] :
       std::vector<std::pair<std::string, std::string>>{
           {"size", "s1=5"},
           {"rule", "my.op=batch(1)"},
           {"program", "first"}}) {
    GraphReading other = reading_with({{name, text}});
    CHECK(refused(add_reading_of(plan, "a.json", other),
                  ErrorCode::kInvalidArgument)
              .location == "--" + name + " " + text);
  }
}

}  // namespace
}  // namespace shardprop
