#include <doctest/doctest.h>

#include "io/pt2_metadata.h"

using namespace shardprop;       // NOLINT(google-build-using-namespace)
using namespace shardprop::pt2;  // NOLINT(google-build-using-namespace)

TEST_CASE("the innermost module of a stack") {
  const ModulePlace place = innermost_module(
      "L__self__,,M;L__self___layers_0,layers.0,a.Block;"
      "L__self___layers_0_attn,layers.0.attn,a.Attention");
  CHECK(place.path == "layers.0.attn");
  CHECK(place.class_name == "a.Attention");
  const ModulePlace brackets =
      innermost_module("getattr(L['self'], 'a,b;c'),blocks[1],m.f(x, y).C");
  CHECK(brackets.path == "blocks[1]");
  CHECK(brackets.class_name == "m.f(x, y).C");
  CHECK(innermost_module("k,fc@2,torch.nn.Linear").path == "fc");
  CHECK(innermost_module("L__self__,,M").path.empty());
  CHECK(innermost_module("").path.empty());
  CHECK(innermost_module("just text").path.empty());
  CHECK(innermost_module(
            "_empty_nn_module_stack_from_metadata_hook,_empty_nn_module_stack_"
            "from_metadata_hook,_empty_nn_module_stack_from_metadata_hook")
            .path.empty());
}

TEST_CASE("the innermost line of a traceback") {
  const SourceLocation source = innermost_source(
      "  File \"a.py\", line 3, in outer\n    f(x)\n"
      "  File \"dir/b.py\", line 17, in forward\n    return g(x)\n");
  CHECK(source.file == "dir/b.py");
  CHECK(source.line == 17);
  CHECK(source.function == "forward");
  CHECK(source.text == "return g(x)");
  CHECK(innermost_source("File \"c.py\", line 2, in f").text.empty());
  for (const char* text :
       {"", "no frame", "File \"c.py\"", "File \"c.py\", line x, in f",
        "File \"c.py\", line -1, in f",
        "File \"c.py\", line 99999999999, in f"}) {
    CAPTURE(text);
    CHECK(innermost_source(text).empty());
  }
}

TEST_CASE("custom metadata that is not ours is nobody's error") {
  CHECK(
      read_custom(R"({"forward_node": "mm", "other": [1, {}]})").forward_node ==
      "mm");
  CHECK(read_custom(R"({"checkpoint": "3"})").checkpoint.region == "3");
  CHECK(read_custom(R"({"checkpoint": 3})").checkpoint.region.empty());
  const auto is_saved = [](const std::string& policy) {
    return read_custom(R"({"checkpoint": "3", "checkpoint_policy": ")" +
                       policy + "\"}")
        .checkpoint.is_saved;
  };
  CHECK(is_saved("MUST_SAVE"));
  CHECK(is_saved("PREFER_SAVE"));
  CHECK_FALSE(is_saved("PREFER_RECOMPUTE"));
  CHECK_FALSE(read_custom(R"({"checkpoint": "3"})").checkpoint.is_saved);
  for (const char* text : {"", "text", "[1]", "{", R"({"forward_node": 3})",
                           R"({"forward_node": "mm")"}) {
    CAPTURE(text);
    CHECK(read_custom(text).forward_node.empty());
  }
}
