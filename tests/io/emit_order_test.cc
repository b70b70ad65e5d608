// Operands of kernels that read memory in the order of the whole tensor's dims.
#include "io/emit/rank_emitter.h"
#include "io/emit/tensor_ops.h"
#include "lower/program_builder.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace shardprop {
namespace {

using lowering::ProgramBuilder;
using testing::standard_library;
using testing::value_of;

TensorMeta strided(Dims shape, Dims strides) {
  return value_of(
      TensorMeta::create(std::move(shape), std::move(strides), DType::kF32));
}

std::vector<std::string> operators(const emit::TorchGraph& graph) {
  std::vector<std::string> out;
  for (const emit::TorchCall& call : graph.calls()) {
    out.push_back(call.function->name());
  }
  return out;
}

TEST_CASE("a tensor is copied into an order of dims unless it lies in it") {
  emit::TorchGraph graph(standard_library());
  const TensorMeta whole = strided({4, 6, 8}, {8, 32, 1});
  const auto same = graph.value("same", strided({2, 3, 8}, {8, 16, 1}));
  CHECK(emit::in_order_of(graph, same, whole) == same);
  // The stride of a dim of one element does not matter.
  const auto one = graph.value("one", strided({1, 3, 8}, {24, 8, 1}));
  CHECK(emit::in_order_of(graph, one, whole) == one);
  CHECK(graph.calls().empty());

  const auto other = graph.value("other", strided({2, 3, 8}, {24, 8, 1}));
  const auto copied = emit::in_order_of(graph, other, whole);
  CHECK(operators(graph) == std::vector<std::string>{"aten.permute.default",
                                                     "aten.contiguous.default",
                                                     "aten.permute.default"});
  CHECK(graph.shape(copied) == Dims{2, 3, 8});
  CHECK(graph.meta(copied).strides() == Dims{8, 16, 1});
}

// Returns the operators that one rank runs on `x`. The program has `x` in the
// order of its dims in memory, the rank has it in the other order.
std::vector<std::string> run_by(const char* op) {
  SpmdProgram program;
  program.mesh = value_of(DeviceMesh::parse("dp=2"));
  ProgramBuilder build(program);
  const Layout layout = value_of(Layout::parse("R"));
  const TensorMeta dense = strided({5, 5}, {5, 1});
  const auto given =
      build.input({.kind = InputKind::kUser}, "given", dense, layout);
  const auto x = build.value("x", dense, layout);
  build.op(
      "aten.permute.default",
      {{"self", given}, {"dims", Argument(std::vector<std::int64_t>{1, 0})}},
      {x});
  build.op(op, {{"self", x}}, {build.value("y", dense, layout)});
  auto made = emit::RankEmitter(program, standard_library(), Coordinate{1});
  return operators(value_of(made.run()).graph);
}

TEST_CASE("kernels that read memory in order find it so") {
  using Names = std::vector<std::string>;
  // Pointwise kernels take any order.
  CHECK(run_by("aten.relu.default") ==
        Names{"aten.permute.default", "aten.relu.default"});
  CHECK(run_by("aten.matrix_exp.default") == Names{"aten.permute.default",
                                                   "aten.contiguous.default",
                                                   "aten.matrix_exp.default"});
}

}  // namespace
}  // namespace shardprop
