#include "base/name_folding.h"
#include "base/quantities.h"
#include "report/module_tree.h"

#include <doctest/doctest.h>

namespace shardprop {
namespace {

TEST_CASE("numbers print as runs") {
  CHECK(runs_text({}).empty());
  CHECK(runs_text({4}) == "4");
  CHECK(runs_text({0, 1}) == "0,1");
  CHECK(runs_text({0, 1, 2, 5, 7, 8, 9}) == "0..2,5,7..9");
}

TEST_CASE("names fold where they are all combinations of their numbers") {
  const std::vector<std::string> names = {"emb",   "l.0.w", "l.0.b",
                                          "l.1.w", "l.1.b", "l.2.w"};
  const std::vector<std::string> groups(names.size());
  const auto folded = fold_names(names, groups);
  REQUIRE(folded.size() == 3);
  CHECK(folded[0].text == "emb");
  CHECK(folded[1].text == "l.0..2.w");
  CHECK(folded[1].members == std::vector<std::size_t>{1, 3, 5});
  CHECK(folded[2].text == "l.0,1.b");
}

TEST_CASE("names of different groups stay apart") {
  const auto folded = fold_names({"l.0.w", "l.1.w"}, {"S(0)", "R"});
  REQUIRE(folded.size() == 2);
  CHECK(folded[1].text == "l.1.w");
}

TEST_CASE("two numbers fold when every pair is there, else not at all") {
  const std::vector<std::string> full = {"l.0.e.0", "l.0.e.1", "l.1.e.0",
                                         "l.1.e.1"};
  CHECK(fold_names(full, std::vector<std::string>(4)).at(0).text ==
        "l.0,1.e.0,1");
  const std::vector<std::string> holes = {"l.0.e.0", "l.0.e.1", "l.1.e.0"};
  CHECK(fold_names(holes, std::vector<std::string>(3)).size() == 3);
}

TEST_CASE("quantities are said in the unit that suits them") {
  CHECK(time_text(0) == "0 us");
  CHECK(time_text(12'340) == "12.3 us");
  CHECK(time_text(1'250'000) == "1.25 ms");
  CHECK(time_text(61'000'000'000) == "61.00 s");
  CHECK(bytes_text(512) == "512 B");
  CHECK(bytes_text(16 << 20) == "16.0 MiB");
  CHECK(count_text(0) == "0");
  CHECK(count_text(7415) == "7,415");
  CHECK(count_text(1234567) == "1,234,567");
}

// A layer with a mm and a copy of its weight.
void add_layer(Plan& plan, int index, const char* layout) {
  const Layout out = Layout::parse(layout).value();
  const std::string name = std::to_string(index);
  PlannedCopy copy;
  copy.from = "w" + name;
  copy.of = copy.from;
  copy.src = Layout::parse("S(0)").value();
  copy.dst = Layout::parse("R").value();
  copy.produced_at = copy.freed_at =
      static_cast<std::int64_t>(plan.nodes.size());
  copy.reason.cause = CopyCause::kOnlyLayout;
  copy.reason.user = {CopyUser::Kind::kNode, "mm" + name};
  copy.reason.operand = 0;
  copy.reason.wanted = copy.dst;
  RedistributeStep gather;
  gather.kind = CollectiveKind::kAllGather;
  gather.mesh_dims = {0};
  gather.bytes_per_rank = 64;
  gather.nanoseconds = 5000;
  gather.src = copy.src;
  gather.dst = copy.dst;
  copy.steps = {gather};
  PlannedNode node;
  node.name = "mm" + name;
  node.op = "aten.mm.default";
  node.module_path = "net.layers." + name + ".proj";
  node.compute_nanoseconds = 7000;
  node.inputs = {{copy.from, copy.dst, plan.copies.size()}};
  node.outputs = {{node.name, {{4, 4}, DType::kF32, out}}};
  plan.copies.push_back(std::move(copy));
  plan.nodes.push_back(std::move(node));
}

TEST_CASE("neighbours that are planned alike stand once") {
  Plan plan;
  for (int i = 0; i < 4; ++i) add_layer(plan, i, i == 3 ? "R" : "S(0)");
  const Module root = module_tree(plan);
  REQUIRE(root.children.size() == 1);
  const Module& layers = root.children[0].children.at(0);
  REQUIRE(layers.children.size() == 2);
  CHECK(layers.children[0].name == "0..2");
  CHECK(layers.children[0].repeats == 3);
  CHECK(layers.children[1].name == "3");
  // Times: of one repeat below, of all above.
  CHECK(layers.children[0].times.compute[0] == 7000);
  CHECK(layers.children[0].times.communication[0] == 5000);
  CHECK(root.times.compute[0] == 4 * 7000);
  CHECK(root.times.communication[0] == 4 * 5000);
  REQUIRE(layers.children[0].children.size() == 1);
  CHECK(layers.children[0].children[0].moves.size() == 1);
}

TEST_CASE("modules deeper than any stack") {
  Plan plan;
  add_layer(plan, 0, "R");
  std::string& path = plan.nodes[0].module_path;
  path = "a";
  for (int i = 1; i < 200'000; ++i) path += ".a";
  const Module root = module_tree(plan);
  const Module* at = &root;
  int depth = 0;
  for (; !at->children.empty(); ++depth) {
    REQUIRE(at->children.size() == 1);
    at = &at->children[0];
  }
  CHECK(depth == 100);
  CHECK(at->name.size() == 2 * (200'000 - 99) - 1);
  CHECK(at->nodes.size() == 1);
  CHECK(root.times.compute[0] == 7000);
}

TEST_CASE("a module path is split at its numbered layers") {
  CHECK(layer_path("model.layers.3.mlp.up_proj") == "model.layers.3");
  CHECK(layer_path("blocks.2.experts.7.w1") == "blocks.2");
  CHECK(layer_path("model.norm").empty());
  CHECK(path_in_layer("model.layers.3.mlp.up_proj") == "mlp.up_proj");
  CHECK(path_in_layer("blocks.2.experts.7.w1") == "w1");
  CHECK(path_in_layer("model.norm") == "model.norm");
  CHECK(path_in_layer("model.layers.3") == "model.layers.3");
}

}  // namespace
}  // namespace shardprop
