// Operators that a test declares with a rule, and the values of all their strategies.
#pragma once

#include "verify/verified.h"

#include <doctest/doctest.h>
#include <shardprop/ops/rule_text.h>
#include <shardprop/strategy/op_strategy.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace shardprop::testing {

// `UserOperator` is one call of an operator that a library of the test declares.
struct UserOperator {
  std::string declaration;
  std::string rule;
  std::vector<std::string> tensors;
};

struct DeclaredCall {
  std::shared_ptr<const OpLibrary> library;
  OpSchema op;
};

inline Result<DeclaredCall> try_declared(const UserOperator& one) {
  auto rule = parse_definition(one.rule);
  if (!rule) return fail(std::move(rule).error());
  auto made = shared_library()->with(
      {.declaration = one.declaration, .definition = *std::move(rule)});
  if (!made) return fail(std::move(made).error());
  std::shared_ptr<const OpLibrary> library = *std::move(made);
  std::vector<GivenArgument> given;
  std::vector<TensorMeta> metas;
  for (const std::string& tensor : one.tensors) {
    given.push_back({"", TensorArg{static_cast<std::int32_t>(metas.size())}});
    metas.push_back(value_of(TensorMeta::parse(tensor)));
  }
  OpSchema op = value_of(make_op_schema(library->find("mylib.f.default"),
                                        std::move(given), std::move(metas)));
  auto results = library->infer_results(op);
  if (!results) return fail(std::move(results).error());
  set_results(op, *std::move(results));
  return DeclaredCall{std::move(library), std::move(op)};
}

inline DeclaredCall declared(const UserOperator& one) {
  return value_of(try_declared(one));
}

inline std::string wrong_value(const VerifyReport& report) {
  if (!report.mismatch) return "no wrong value";
  const VerifyMismatch& wrong = *report.mismatch;
  return wrong.value + wrong.element + " on rank " +
         std::to_string(wrong.rank) + ": expected " +
         std::to_string(wrong.expected) + ", found " +
         std::to_string(wrong.found) + ' ' + wrong.error;
}

// `OneStrategy` is a strategy of a call in words, and as the plan is forced to it.
struct OneStrategy {
  std::string text;  // "S(0),R->S(0)"
  ForcedStrategy forced;
};

inline std::vector<OneStrategy> strategies_of(const DeclaredCall& call,
                                              const char* shape) {
  LayoutTable layouts;
  StrategyOptions every;
  every.allow_empty_shards = false;
  const OpStrategy all =
      op_strategies(std::make_shared<const OpSchema>(call.op),
                    std::make_shared<const IndexSpace>(
                        value_of(call.library->index_space(call.op))),
                    value_of(DeviceMesh::parse(shape)), layouts, every);
  std::vector<OneStrategy> out;
  for (const PlacementStrategy& strategy : all.strategies) {
    out.push_back(
        {to_string(strategy, layouts), forced_first_node(strategy, layouts)});
  }
  return out;
}

// Returns the graph of that call alone.
inline Graph graph_of_call(const DeclaredCall& call) {
  GraphBuilder builder("call", *call.library);
  NewNode node;
  node.name = "call";
  node.op = call.op;
  for (const TensorMeta& meta : call.op.inputs) {
    node.inputs.push_back(value_of(
        builder.add_input({.kind = InputKind::kUser,
                           .name = "x" + std::to_string(node.inputs.size()),
                           .meta = meta})));
  }
  for (const ValueId value : value_of(builder.add_node(std::move(node)))) {
    builder.add_output({.value = value});
  }
  return value_of(std::move(builder).build());
}

// Plans the call with that strategy and lowers the plan.
inline Result<SpmdProgram> lowered(const DeclaredCall& call,
                                   const OneStrategy& strategy,
                                   const char* shape) {
  const Graph graph = graph_of_call(call);
  PlanOptions options = quick_options();
  options.forced = strategy.forced;
  auto plan = make_plan(graph, value_of(DeviceMesh::parse(shape)),
                        dear_compute(), *call.library, options);
  if (!plan) return fail(std::move(plan).error());
  REQUIRE(plan->has_plan());
  return lower(*plan, graph, *call.library);
}

// Verifies every strategy. Returns the strategies that shard an operand, such as
// "S(0)->S(0)".
inline std::vector<std::string> verified(const UserOperator& one,
                                         const char* shape) {
  CAPTURE(one.rule);
  const DeclaredCall call = declared(one);
  const Expected expected = value_of(Expected::create(
      graph_of_call(call), call.library, Optimizer::kNone, {}));
  std::vector<std::string> sharded;
  for (const OneStrategy& strategy : strategies_of(call, shape)) {
    CAPTURE(strategy.text);
    const auto program = lowered(call, strategy, shape);
    CHECK(program.has_value());
    if (!program) continue;
    const VerifyReport report = value_of(verify(*program, expected));
    INFO(wrong_value(report));
    CHECK(report.ok);
    CHECK(report.findings.empty());
    if (strategy.text.find("S(") != std::string::npos) {
      sharded.push_back(strategy.text);
    }
  }
  return sharded;
}

}  // namespace shardprop::testing
