// Programs of ranks as graphs: right ones, groups, and collectives that never
// meet. tests/tools/test_rank_programs.py tests them as files.
#include "program/torch_collectives.h"
#include "support/result_checks.h"
#include "verify/rank_groups.h"

#include <shardprop/graph/graph_builder.h>
#include <shardprop/verify/verify_rank_programs.h>

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;

const std::shared_ptr<const OpLibrary>& plain_library() {
  static const auto kLibrary = OpLibrary::standard();
  return kLibrary;
}

const std::shared_ptr<const OpLibrary>& rank_library() {
  static const auto kLibrary = value_of(with_collectives(plain_library()));
  return kLibrary;
}

ValueId call(GraphBuilder& builder, const std::string& op, const char* tensor,
             ValueId from, const char* name,
             std::vector<GivenArgument> more = {}) {
  std::vector<GivenArgument> given = {{tensor, TensorArg{0}}};
  given.insert(given.end(), more.begin(), more.end());
  NewNode node;
  node.name = name;
  const TensorMeta meta = value_of(TensorMeta::parse("f32[4]"));
  node.op = value_of(
      make_op_schema(rank_library()->find(op), std::move(given), {meta}));
  node.op.outputs = {meta};
  node.op.output_slots = {0};
  node.inputs = {from};
  return value_of(builder.add_node(std::move(node))).front();
}

ValueId started(GraphBuilder& builder, ValueId from, const char* name,
                const std::string& group) {
  return call(builder, "_c10d_functional.all_reduce.default", "input", from,
              name, {{"reduce_op", std::string("sum")}, {"group_name", group}});
}

ValueId waited(GraphBuilder& builder, ValueId from, const char* name) {
  return call(builder, "_c10d_functional.wait_tensor.default", "tensor", from,
              name);
}

ValueId input(GraphBuilder& builder) {
  return value_of(builder.add_input(
      {.name = "x", .meta = value_of(TensorMeta::parse("f32[4]"))}));
}

// Sums over two groups. `at_once` starts both sums before it waits.
Graph sums(const std::string& first, const std::string& second, bool at_once) {
  GraphBuilder b("rank", *rank_library());
  const ValueId x = input(b);
  const ValueId a = started(b, x, "a", first);
  if (at_once) {
    const ValueId c = started(b, x, "c", second);
    b.add_output({.value = waited(b, a, "a_done")});
    b.add_output({.value = waited(b, c, "c_done")});
  } else {
    const ValueId done = waited(b, a, "a_done");
    b.add_output({.value = done});
    b.add_output({.value = waited(b, started(b, x, "c", second), "c_done")});
  }
  return value_of(std::move(b).build());
}

// Twice the input, by two nodes.
Graph model() {
  GraphBuilder b("model", *plain_library());
  const ValueId x = input(b);
  for (const char* name : {"a_done", "c_done"}) {
    b.add_output(
        {.value = value_of(b.add_op("aten.mul.Scalar",
                                    {{"self", TensorArg{0}}, {"other", 2.0}},
                                    {x}, name))
                      .front()});
  }
  return value_of(std::move(b).build());
}

RankPrograms programs_of(std::vector<Graph> graphs) {
  RankPrograms out;
  out.mesh = value_of(DeviceMesh::parse("dp=2,tp=2"));
  out.library = rank_library();
  const Layout whole = Layout::replicated(2);
  out.inputs = {{.name = "x", .argument = "x", .layout = whole}};
  out.outputs = {{.name = "a_done", .argument = "a_done", .layout = whole},
                 {.name = "c_done", .argument = "c_done", .layout = whole}};
  for (Graph& graph : graphs) {
    auto program = std::make_shared<RankProgram>();
    program->file = "rank" + std::to_string(out.ranks.size());
    program->graph = std::make_shared<const Graph>(std::move(graph));
    out.ranks.push_back(std::move(program));
  }
  return out;
}

Result<RankProgramsReport> verified(const RankPrograms& programs) {
  return verify_rank_programs(programs, model(), plain_library());
}

TEST_CASE("sums over both mesh dims are right") {
  std::vector<Graph> graphs;
  for (int r = 0; r < 4; ++r) graphs.push_back(sums("dp", "tp", false));
  const RankProgramsReport report =
      value_of(verified(programs_of(std::move(graphs))));
  CHECK(report.ok);
  CHECK(report.outputs.size() == 2);
  CHECK(report.collectives[static_cast<std::size_t>(
            CollectiveKind::kAllReduce)] == 2);
}

TEST_CASE("a sum over all of the mesh is twice the expected value") {
  std::vector<Graph> graphs;
  for (int r = 0; r < 4; ++r) graphs.push_back(sums("dp", "0", false));
  const RankProgramsReport report =
      value_of(verified(programs_of(std::move(graphs))));
  CHECK_FALSE(report.ok);
  REQUIRE(report.wrong);
  CHECK(report.wrong->where.value == "c_done");
  CHECK(report.wrong->factor == doctest::Approx(2));
  CHECK(report.wrong_values == std::vector<std::string>{"c_done"});
}

ValueId scaled(GraphBuilder& builder, ValueId from, const char* name,
               double times) {
  return value_of(builder.add_op("aten.mul.Scalar",
                                 {{"self", TensorArg{0}}, {"other", times}},
                                 {from}, name))
      .front();
}

RankPrograms one_output(const char* name, std::vector<Graph> graphs) {
  RankPrograms programs = programs_of(std::move(graphs));
  programs.outputs.resize(1);
  programs.outputs[0].name = programs.outputs[0].argument = name;
  return programs;
}

TEST_CASE("a wrong factor of small values is found") {
  for (const double size : {1.0, 1e-9, 1e-30}) {
    CAPTURE(size);
    GraphBuilder whole("model", *plain_library());
    const ValueId small = scaled(whole, input(whole), "small", size);
    whole.add_output({.value = scaled(whole, small, "twice", 2)});
    const Graph expected = value_of(std::move(whole).build());
    for (const bool is_right : {true, false}) {
      std::vector<Graph> graphs;
      for (int r = 0; r < 4; ++r) {
        GraphBuilder b("rank", *rank_library());
        const ValueId own = scaled(b, input(b), "small", size);
        const ValueId sum = started(b, own, "sum", is_right ? "dp" : "0");
        b.add_output({.value = waited(b, sum, "done")});
        graphs.push_back(value_of(std::move(b).build()));
      }
      const RankProgramsReport report = value_of(verify_rank_programs(
          one_output("twice", std::move(graphs)), expected, plain_library()));
      CHECK(report.ok == is_right);
      if (is_right) continue;
      REQUIRE(report.wrong);
      CHECK(report.wrong->factor == doctest::Approx(2));
    }
  }
}

// Returns the rounding error of x + 1e4 - 1e4, or of x - 1e4 + 1e4.
Graph rounding(const OpLibrary& library, double first) {
  GraphBuilder b("rounding", library);
  const ValueId x = input(b);
  const auto add = [&](ValueId to, double other, const char* name) {
    return value_of(b.add_op("aten.add.Scalar",
                             {{"self", TensorArg{0}}, {"other", other}}, {to},
                             name))
        .front();
  };
  const bool is_up = first > 0;
  const ValueId there = add(x, first, is_up ? "up" : "down");
  const ValueId back = add(there, -first, is_up ? "up_back" : "down_back");
  b.add_output({.value = value_of(b.add_op("aten.sub.Tensor",
                                           {{"self", TensorArg{0}},
                                            {"other", TensorArg{1}}},
                                           {back, x}, "rest"))
                             .front()});
  return value_of(std::move(b).build());
}

TEST_CASE("rounding errors of values that cancel are no fault") {
  std::vector<Graph> graphs;
  for (int r = 0; r < 4; ++r) {
    graphs.push_back(rounding(*rank_library(), -1e4));
  }
  const RankProgramsReport report = value_of(
      verify_rank_programs(one_output("rest", std::move(graphs)),
                           rounding(*plain_library(), 1e4), plain_library()));
  CHECK(report.ok);
}

// Ranks 0 and 3 call the sum over dp first, ranks 1 and 2 the one over tp.
std::vector<Graph> crossed(bool at_once) {
  std::vector<Graph> graphs;
  for (const bool first : {true, false, false, true}) {
    graphs.push_back(first ? sums("dp", "tp", at_once)
                           : sums("tp", "dp", at_once));
  }
  return graphs;
}

TEST_CASE("ranks that wait for each other are named") {
  const auto report = verified(programs_of(crossed(false)));
  REQUIRE_FALSE(report);
  CHECK(report.error().code == ErrorCode::kTimeout);
  REQUIRE(report.error().notes.size() == 4);
  CHECK(report.error().notes[0] ==
        "rank 0: waits for all_reduce(sum) of f32[4] over ranks {0,2} at node "
        "`a`");
}

TEST_CASE("sums that are started before a wait meet in any order") {
  CHECK(value_of(verified(programs_of(crossed(true)))).ok);
}

TEST_CASE("a group is found by its name, its ranks or its size") {
  RankPrograms programs;
  programs.mesh = value_of(DeviceMesh::parse("dp=2,tp=3"));
  programs.groups = {{"named", {{0, 5}, {1, 2}}}};
  const verification::RankGroups groups(programs);
  using Ranks = std::vector<std::int64_t>;
  TorchCollective gather;
  const auto members = [&](std::string name, std::optional<std::int64_t> size,
                           std::int64_t rank, Ranks ranks = {}) {
    gather.group = std::move(name);
    gather.group_size = size;
    gather.ranks = std::move(ranks);
    return groups.members(gather, rank);
  };
  CHECK(value_of(members("named", {}, 5)) == Ranks{0, 5});
  CHECK(value_of(members("tp", 3, 4)) == Ranks{3, 4, 5});
  CHECK(value_of(members("12", 2, 4)) == Ranks{1, 4});
  CHECK(value_of(members("12", 6, 4)).size() == 6);
  CHECK(value_of(members("0", {}, 4)).size() == 6);
  CHECK(value_of(members("", 2, 4, {2, 3, 4, 5})) == Ranks{4, 5});
  CHECK_CODE(members("12", {}, 4), ErrorCode::kGroup);
  CHECK_CODE(members("tp", 2, 4), ErrorCode::kGroup);
  CHECK_CODE(members("", 2, 4, {4, 6}), ErrorCode::kGroup);
  CHECK_CODE(members("named", {}, 4), ErrorCode::kNotInGroup);
}

TEST_CASE("operators of collectives are known by their library") {
  CHECK(is_collective("_c10d_functional.all_reduce.default"));
  CHECK(is_collective("c10d.allreduce_.default"));
  CHECK_FALSE(is_collective("aten.add.Tensor"));
  CHECK(is_wait("c10d_functional.wait_tensor.default"));
  CHECK_FALSE(is_wait("c10d_functional.all_reduce.default"));
}

}  // namespace
}  // namespace shardprop
