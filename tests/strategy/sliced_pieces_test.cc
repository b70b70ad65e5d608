// Tests slices that are one of several equal pieces of a dim, and their
// gradients. Each piece is sharded.
#include "strategy/applied.h"

#include <shardprop/ops/rule_text.h>

#include <cstdint>
#include <string>
#include <vector>

namespace shardprop {
namespace {

using testing::applied;
using testing::Strategies;

OpSchema slice(const char* self, std::int64_t start, std::int64_t end,
               std::int64_t step = 1) {
  return applied("aten.slice.Tensor", {self},
                 {{"dim", std::int64_t{0}},
                  {"start", start},
                  {"end", end},
                  {"step", step}});
}

OpSchema slice_backward(const char* grad, std::int64_t start,
                        std::int64_t end) {
  return applied("aten.slice_backward.default", {grad},
                 {{"input_sizes", std::vector<std::int64_t>{24, 4}},
                  {"dim", std::int64_t{0}},
                  {"start", start},
                  {"end", end},
                  {"step", std::int64_t{1}}});
}

// Returns the values of an argument on the ranks of a mesh of one dim.
std::vector<std::int64_t> on_ranks(const Strategies& all, const char* strategy,
                                   const std::string& argument) {
  const LocalContext context = all.context(strategy);
  std::vector<std::int64_t> values;
  for (const RankArgument& own : rank_arguments(context)) {
    if (own.name() != argument) continue;
    for (int rank = 0; rank < context.mesh.size(); ++rank) {
      values.push_back(own.at(context.mesh.coordinate_at_index(rank)).front());
    }
  }
  return values;
}

TEST_CASE("a slice that is an equal piece is sharded with the other pieces") {
  const Strategies all(slice("f32[24,4]", 8, 16), "4");
  CHECK(all.has("SS(0,3)->S(0)"));
  CHECK_FALSE(all.has("S(0)->S(0)"));
  // Each rank slices its six rows at the second piece.
  CHECK(on_ranks(all, "SS(0,3)->S(0)", "start") ==
        std::vector<std::int64_t>(4, 2));
  CHECK(on_ranks(all, "SS(0,3)->S(0)", "end") ==
        std::vector<std::int64_t>(4, 4));
  CHECK(Strategies(slice("f32[24,4]", -8, 24), "4").has("SS(0,3)->S(0)"));
}

TEST_CASE("a narrowed dim is sharded like such a slice") {
  const Strategies all(applied("aten.narrow.default", {"f32[24,4]"},
                               {{"dim", std::int64_t{0}},
                                {"start", std::int64_t{-8}},
                                {"length", std::int64_t{8}}}),
                       "4");
  CHECK(on_ranks(all, "SS(0,3)->S(0)", "start") ==
        std::vector<std::int64_t>(4, 4));
  CHECK(on_ranks(all, "SS(0,3)->S(0)", "length") ==
        std::vector<std::int64_t>(4, 2));
}

TEST_CASE("other slices are not sharded along their dim") {
  const auto is_sharded = [](const OpSchema& op) {
    const Strategies all(op, "2");
    for (const std::string& text : all.texts()) {
      if (text.ends_with("->S(0)")) return true;
    }
    return false;
  };
  CHECK(is_sharded(slice("f32[24,4]", 0, 12)));
  CHECK_FALSE(is_sharded(slice("f32[24,4]", 4, 12)));     // of no piece
  CHECK_FALSE(is_sharded(slice("f32[24,4]", 0, 10)));     // not equal
  CHECK_FALSE(is_sharded(slice("f32[24,4]", 0, 24, 2)));  // with a step
  CHECK_FALSE(is_sharded(slice("f32[24,4]", 3, 4)));      // one row
}

TEST_CASE("the gradient of such a slice is written to its piece") {
  const Strategies all(slice_backward("f32[8,4]", 8, 16), "4");
  CHECK(all.has("S(0)->SS(0,3)"));
  CHECK(on_ranks(all, "S(0)->SS(0,3)", "start") ==
        std::vector<std::int64_t>(4, 2));
  // The program shards the dim as one.
  CHECK(all.has("R->S(0)"));
  CHECK_FALSE(all.has("S(0)->S(0)"));
}

TEST_CASE("mesh dims shard the pieces or the dim as one, not both") {
  const Strategies all(slice_backward("f32[8,4]", 8, 16), "2,2");
  CHECK(all.has("[S(0),S(0)]->[SS(0,3),SS(0,3)]"));
  CHECK(all.has("[R,R]->[S(0),S(0)]"));
  for (const std::string& text : all.texts()) {
    CAPTURE(text);
    const std::size_t result = text.find("->");
    const bool by_pieces = text.find("SS(0", result) != std::string::npos;
    const bool as_one = text.find("[S(0", result) != std::string::npos ||
                        text.find(",S(0", result) != std::string::npos;
    CHECK_FALSE((by_pieces && as_one));
  }
}

TEST_CASE("a piece is written to a tensor that is sharded by pieces") {
  const Strategies all(
      applied("aten.slice_scatter.default", {"f32[24,4]", "f32[8,4]"},
              {{"dim", std::int64_t{0}},
               {"start", std::int64_t{16}},
               {"end", std::int64_t{24}},
               {"step", std::int64_t{1}}}),
      "4");
  CHECK(all.has("SS(0,3),S(0)->SS(0,3)"));
  CHECK(on_ranks(all, "SS(0,3),S(0)->SS(0,3)", "start") ==
        std::vector<std::int64_t>(4, 4));
  CHECK(all.has("S(0),R->S(0)"));
  CHECK_FALSE(all.has("S(0),S(0)->S(0)"));
}

TEST_CASE("a gradient that the slice does not give is refused") {
  const auto results_of = [](const char* grad) {
    const OpSchema right = slice_backward("f32[8,4]", 8, 16);
    const OpSchema op = testing::value_of(
        make_op_schema(right.function,
                       {{"", TensorArg{0}},
                        {"input_sizes", std::vector<std::int64_t>{24, 4}},
                        {"dim", std::int64_t{0}},
                        {"start", std::int64_t{8}},
                        {"end", std::int64_t{16}},
                        {"step", std::int64_t{1}}},
                       {testing::value_of(TensorMeta::parse(grad))}));
    return testing::library().infer_results(op);
  };
  CHECK(results_of("f32[8,4]"));
  CHECK_CODE(results_of("f32[4,4]"), ErrorCode::kShapeMismatch);
  CHECK_CODE(results_of("f32[9,4]"), ErrorCode::kShapeMismatch);
}

TEST_CASE("an operator that writes a part need not name the ends of a slice") {
  const auto library = testing::value_of(testing::library().with(
      {.declaration = "my::part(Tensor grad_output, SymInt[] input_sizes, int "
                      "dim) -> Tensor",
       .definition =
           testing::value_of(parse_definition("part_written(input_sizes)"))}));
  const OpSchema op = testing::value_of(
      make_op_schema(library->find("my.part.default"),
                     {{"", TensorArg{0}},
                      {"input_sizes", std::vector<std::int64_t>{8, 4}},
                      {"dim", std::int64_t{0}}},
                     {testing::value_of(TensorMeta::parse("f32[4,4]"))}));
  CHECK(library->infer_results(op));
}

}  // namespace
}  // namespace shardprop
