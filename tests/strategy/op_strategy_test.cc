// Tests the composition of strategies over the mesh.
#include <shardprop/strategy/op_strategy.h>

#include "strategy/applied.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

using testing::applied;
using testing::applied_to;
using testing::Strategies;

using Texts = std::vector<std::string>;
using Ints = std::vector<std::int64_t>;

OpSchema mm() { return applied("aten.mm.default", {"f32[16,8]", "f32[8,4]"}); }

TEST_CASE("the strategies of mm on one mesh dim") {
  CHECK(Strategies(mm(), "2").texts() ==
        Texts{"R,R->R", "S(0),R->S(0)", "S(1),S(0)->P(sum)", "R,S(1)->S(1)",
              "P(sum),R->P(sum)", "R,P(sum)->P(sum)", "P(avg),R->P(avg)",
              "R,P(avg)->P(avg)"});
}

TEST_CASE("mesh dims of one rank stay unassigned") {
  CHECK(Strategies(mm(), "1").texts() == Texts{"R,R->R"});
}

// Returns the placement of every operand on one mesh dim, from a 1-D strategy.
std::vector<std::string> operand_texts(const std::string& strategy) {
  std::vector<std::string> operands;
  std::string text = strategy;
  text.replace(text.find("->"), 2, ",");
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    operands.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return operands;
}

TEST_CASE("strategies on two mesh dims are all pairs without mixed partials") {
  // Sizes that divide, so that every pair of cuts is exact.
  const Texts line = Strategies(mm(), "2").texts();
  std::set<std::string> expected;
  for (const std::string& outer : line) {
    for (const std::string& inner : line) {
      const Texts a = operand_texts(outer);
      const Texts b = operand_texts(inner);
      bool mixed = false;
      Texts layouts;
      for (std::size_t i = 0; i < a.size(); ++i) {
        const std::string text = a[i] + "," + b[i];
        mixed = mixed || !Layout::parse(text);
        layouts.push_back("[" + text + "]");
      }
      if (!mixed) {
        expected.insert(layouts[0] + "," + layouts[1] + "->" + layouts[2]);
      }
    }
  }
  const Texts found = Strategies(mm(), "2,2").texts();
  CHECK(std::set<std::string>(found.begin(), found.end()) == expected);
  CHECK(found.size() == expected.size());  // none twice
}

TEST_CASE("a limit cuts the list short and says so") {
  StrategyOptions options;
  options.limit = 3;
  const Strategies few(mm(), "2,2", options);
  CHECK(few.all().strategies.size() == 3);
  CHECK(few.all().truncated);
  CHECK_FALSE(Strategies(mm(), "2").all().truncated);
}

TEST_CASE("uneven and empty shards can be left out") {
  const OpSchema op = applied("aten.exp.default", {"f32[5,2]"});
  CHECK(Strategies(op, "3").texts() == Texts{"R->R", "S(0)->S(0)", "S(1)->S(1)",
                                             "P(max)->P(max)",
                                             "P(min)->P(min)"});
  StrategyOptions full;
  full.allow_empty_shards = false;
  CHECK_FALSE(Strategies(op, "3", full).has("S(1)->S(1)"));
  CHECK(Strategies(op, "3", full).has("S(0)->S(0)"));
  StrategyOptions even;
  even.allow_uneven = false;
  CHECK_FALSE(Strategies(op, "3", even).has("S(0)->S(0)"));
}

TEST_CASE("no rank is left without the channels of a batch norm") {
  const auto norm = [](const char* input, const char* channels) {
    return applied("aten._native_batch_norm_legit_functional.default",
                   {input, channels, channels, channels, channels},
                   {{"training", true}, {"momentum", 0.1}, {"eps", 1e-5}});
  };
  const std::string by_channel =
      "S(1),S(0),S(0),S(0),S(0)->"
      "S(1),S(0),S(0),S(0),S(0)";
  CHECK(Strategies(norm("f32[4,6,8]", "f32[6]"), "6").has(by_channel));
  CHECK_FALSE(Strategies(norm("f32[4,6,8]", "f32[6]"), "8").has(by_channel));
}

TEST_CASE("flattening a sharded minor dim gives a strided shard") {
  const OpSchema flatten =
      applied("aten.view.default", {"f32[4,6]"}, {{"size", Ints{24}}});
  const Strategies on_one(flatten, "2");
  CHECK(on_one.has("S(0)->S(0)"));
  CHECK(on_one.has("S(1)->SS(0,4)"));
  // The result is sharded by its major factor first, in any order of the mesh
  // dims. It has a shard order if the number of pieces equals the number of
  // ranks that shard them, and strided shards otherwise.
  const Strategies on_two(flatten, "2,2");
  CHECK(on_two.has("[S(0),S(1)]->[S(0),SS(0,2)]"));
  CHECK(on_two.has("[S(1),S(0)]->[SS(0,2)@1,S(0)@0]"));
  StrategyOptions plain;
  plain.allow_strided = false;
  CHECK_FALSE(Strategies(flatten, "2", plain).has("S(1)->SS(0,4)"));

  // Two rows over two ranks: their pieces are the parts of the other mesh dim,
  // which says the same as that one cutting first.
  const OpSchema two_rows =
      applied("aten.view.default", {"f32[2,6]"}, {{"size", Ints{12}}});
  const std::string reordered = "[S(1),S(0)]->[S(0)@1,S(0)@0]";
  CHECK(Strategies(two_rows, "2,2").has(reordered));
  StrategyOptions ordered;
  ordered.allow_shard_orders = false;
  CHECK_FALSE(Strategies(two_rows, "2,2", ordered).has(reordered));
}

TEST_CASE("a factor with minor ones behind it is only cut evenly") {
  // A shard of 15 over 2 has 8 or 7 elements, and neither is a number of full
  // rows of three.
  const Strategies split(
      applied("aten.view.default", {"f32[15]"}, {{"size", Ints{3, 5}}}), "2");
  CHECK_FALSE(split.has("S(0)->S(0)"));
  const Strategies over_three(
      applied("aten.view.default", {"f32[15]"}, {{"size", Ints{3, 5}}}), "3");
  CHECK(over_three.has("S(0)->S(0)"));
}

TEST_CASE("a mean over unequal shards is a sum") {
  const auto mean = [](const char* meta) {
    return applied("aten.mean.dim", {meta}, {{"dim", Ints{0}}});
  };
  CHECK(Strategies(mean("f32[4,6]"), "2").has("S(0)->P(avg)"));
  const Strategies uneven(mean("f32[5,6]"), "2");
  CHECK(uneven.has("S(0)->P(sum)"));
  CHECK_FALSE(uneven.has("S(0)->P(avg)"));
}

TEST_CASE("signs and constants of a sum decide what it carries") {
  const Strategies both(applied("aten.sub.Tensor", {"f32[4]", "f32[4]"}), "2");
  CHECK(both.has("P(sum),P(sum)->P(sum)"));
  CHECK(both.has("R,P(max)->P(min)"));
  CHECK(both.has("P(max),R->P(max)"));
  CHECK_FALSE(both.has("P(sum),R->P(sum)"));

  // 1 - x: the number is in the first place, the tensor in the second.
  const Strategies from_one(
      applied_to("aten.sub.Tensor",
                 {{"self", std::int64_t{1}}, {"other", TensorArg{0}}},
                 {"f32[4]"}),
      "2");
  CHECK(from_one.has("P(max)->P(min)"));
  CHECK_FALSE(from_one.has("P(max)->P(max)"));
  CHECK_FALSE(from_one.has("P(sum)->P(sum)"));
}

TEST_CASE("a tensor that is written in place keeps its layout") {
  const Strategies in_place(applied("aten.add_.Tensor", {"f32[4,6]", "f32[6]"}),
                            "2");
  CHECK(in_place.has("S(0),R->S(0)"));
  CHECK(in_place.has("P(sum),P(sum)->P(sum)"));
  for (const PlacementStrategy& strategy : in_place.all().strategies) {
    CHECK(strategy.inputs[0] == strategy.outputs[0]);
  }
  // A partial other argument would make the written tensor partial.
  CHECK_FALSE(in_place.has("R,P(avg)->P(avg)"));
}

TEST_CASE("an out= argument has the layout of its result") {
  const Strategies out(
      applied_to(
          "aten.mm.out",
          {{"", TensorArg{0}}, {"", TensorArg{1}}, {"out", TensorArg{2}}},
          {"f32[16,8]", "f32[8,4]", "f32[16,4]"}),
      "2");
  CHECK(out.texts().size() == Strategies(mm(), "2").texts().size());
  CHECK(out.has("S(1),S(0),P(sum)->P(sum)"));
  CHECK(out.has("S(0),R,S(0)->S(0)"));
  for (const PlacementStrategy& strategy : out.all().strategies) {
    CHECK(strategy.inputs[2] == strategy.outputs[0]);
  }
}

// Returns the number of runs of equal values that `assignment` has over the
// mesh dims larger than 1.
std::size_t runs_of(const Assignment& assignment, const DeviceMesh& mesh) {
  std::vector<std::int16_t> given;
  for (std::size_t m = 0; m < assignment.size(); ++m) {
    if (mesh.size(static_cast<int>(m)) > 1) given.push_back(assignment[m]);
  }
  return static_cast<std::size_t>(std::unique(given.begin(), given.end()) -
                                  given.begin());
}

TEST_CASE("on four and five mesh dims the assignments come in runs") {
  for (const char* mesh : {"2,2,2,2", "2,1,2,2,2,2"}) {
    CAPTURE(mesh);
    const Strategies full(mm(), mesh);
    StrategyOptions options;
    options.most_assignments = 256;
    const Strategies some(mm(), mesh, options);
    const DeviceMesh parsed = testing::value_of(DeviceMesh::parse(mesh));
    // With ten choices the limit keeps assignments of at most two runs.
    std::set<std::string> in_runs;
    for (const PlacementStrategy& strategy : full.all().strategies) {
      if (runs_of(strategy.assignment, parsed) <= 2) {
        in_runs.insert(to_string(strategy, full.layouts()));
      }
    }
    const Texts kept = some.texts();
    CHECK(std::set<std::string>(kept.begin(), kept.end()) == in_runs);
    CHECK(kept.size() < full.all().strategies.size());
  }
  StrategyOptions options;
  options.most_assignments = 1;
  CHECK(Strategies(mm(), "2,2,2", options).texts() ==
        Strategies(mm(), "2,2,2").texts());
}

TEST_CASE("an operator of few choices keeps every assignment") {
  StrategyOptions options;
  options.most_assignments = 256;
  // Its factor, P(max), P(min) or nothing, four times.
  const OpSchema op = applied("aten.exp.default", {"f32[16]"});
  CHECK(Strategies(op, "2,2,2,2", options).texts() ==
        Strategies(op, "2,2,2,2").texts());
}

TEST_CASE("prefixes that no valid assignment has are not followed") {
  StrategyOptions options;
  options.allow_empty_shards = false;
  const Strategies all(applied("aten.exp.default", {"f32[2,2]"}),
                       "3,3,3,3,3,3,3,3", options);
  // R, or P(max) or P(min) on any of the mesh dims.
  CHECK(all.all().strategies.size() == 2 * 256 - 1);
}

TEST_CASE("strategies differ, in layouts and not only in assignments") {
  const Strategies all(
      applied("aten.view.default", {"f32[4,6]"}, {{"size", Ints{24}}}), "2,2");
  const Texts texts = all.texts();
  CHECK(std::set<std::string>(texts.begin(), texts.end()).size() ==
        texts.size());
}

}  // namespace
}  // namespace shardprop
