// Faults put into a program on purpose: each is found, and the node named.

#include "verify/verified.h"

#include <algorithm>
#include <functional>

namespace shardprop {
namespace {

using namespace testing;

// A graph with its plan lowered, and what its values should be.
struct Subject {
  Graph graph;
  Plan plan;
  Expected expected;
  SpmdProgram program;
};

Subject subject_of(const std::string& name, std::string_view pin = {}) {
  Graph graph = tiny_graph(name);
  PlanOptions options = quick_options();
  if (!pin.empty()) options.pins.push_back(value_of(Pin::parse(pin)));
  Plan plan = planned(graph, "2,2", options);
  Expected expected = expected_of(graph, plan);
  SpmdProgram program = value_of(lower(plan, graph, *shared_library()));
  return Subject{std::move(graph), std::move(plan), std::move(expected),
                 std::move(program)};
}

const Subject& subject() {
  static const Subject kSubject = subject_of("gpt2_train");
  return kSubject;
}

// Changes a step if possible; returns whether it did.
using Fault = std::function<bool(SpmdProgram&, std::size_t step)>;

// The fault at the first step of the program that takes it must be found there.
void check_fault(const Fault& fault, const Subject& of = subject()) {
  SpmdProgram program = of.program;
  std::size_t step = 0;
  while (step < program.steps.size() && !fault(program, step)) ++step;
  REQUIRE(step < program.steps.size());
  const std::string node = program.nodes[program.steps[step].node].name;
  CAPTURE(node);
  const VerifyReport report = value_of(verify(program, of.expected));
  CHECK_FALSE(report.ok);
  REQUIRE(report.mismatch);
  CAPTURE(report.mismatch->error);
  CAPTURE(report.mismatch->value);
  CHECK(report.mismatch->node == node);
  CHECK(report.mismatch->rank >= 0);
}

ProgramOp* op_at(SpmdProgram& program, std::size_t step) {
  return std::get_if<ProgramOp>(&program.steps[step].action);
}
ProgramCollective* move_at(SpmdProgram& program, std::size_t step) {
  return std::get_if<ProgramCollective>(&program.steps[step].action);
}
// Returns whether the op produces a value of the graph. A value inside an
// operator shows in the operator's result.
bool makes_value(const SpmdProgram& program, const ProgramOp& op) {
  return !op.outputs.empty() && op.outputs[0].valid() &&
         !program.value(op.outputs[0]).is_local() && op.op.starts_with("aten.");
}
ProgramArgument* argument(ProgramOp& op, std::string_view name) {
  for (auto& [declared, value] : op.args) {
    if (declared == name) return &value;
  }
  return nullptr;
}

Fault other_operator(std::string from, std::string to) {
  return [=](SpmdProgram& program, std::size_t step) {
    ProgramOp* op = op_at(program, step);
    if (op == nullptr || op->op != from || !makes_value(program, *op)) {
      return false;
    }
    // An integer that is added to an index may be 0, so the fault may have no
    // effect.
    if (!is_floating(program.value(op->outputs[0]).meta.dtype())) return false;
    op->op = to;
    return true;
  };
}

TEST_CASE("the program as it was lowered has no fault") {
  const VerifyReport report =
      value_of(verify(subject().program, subject().expected));
  CHECK(report.ok);
}

TEST_CASE("faults of operators") {
  SUBCASE("another function") {
    check_fault(other_operator("aten.tanh.default", "aten.sigmoid.default"));
  }
  SUBCASE("another sign") {
    check_fault(other_operator("aten.add.Tensor", "aten.sub.Tensor"));
  }
  SUBCASE("a number") {
    check_fault([](SpmdProgram& program, std::size_t step) {
      ProgramOp* op = op_at(program, step);
      if (op == nullptr || op->op != "aten.mul.Scalar") return false;
      ProgramArgument* other = argument(*op, "other");
      if (other == nullptr || !makes_value(program, *op)) return false;
      *other = Argument(0.1234);
      return true;
    });
  }
  SUBCASE("operands changed about") {
    check_fault([](SpmdProgram& program, std::size_t step) {
      ProgramOp* op = op_at(program, step);
      if (op == nullptr || op->op != "aten.sub.Tensor") return false;
      if (!makes_value(program, *op) || op->args.size() < 2) return false;
      std::swap(op->args[0].second, op->args[1].second);
      return std::holds_alternative<ProgramValueId>(op->args[0].second);
    });
  }
  SUBCASE("another stream of random numbers") {
    check_fault([](SpmdProgram& program, std::size_t step) {
      ProgramOp* op = op_at(program, step);
      if (op == nullptr || op->op != "shardprop.random_bits") return false;
      *argument(*op, "node") = Argument(std::int64_t{12345});
      return true;
    });
  }
}

TEST_CASE("faults of formulas of the rank") {
  // An offset, or a size, that is one rank's on every rank.
  const auto constant = [](RankInt& value, const DeviceMesh& mesh) {
    if (value.is_constant()) return false;
    const std::int64_t last =
        value.at(mesh, mesh.coordinate_at_index(mesh.size() - 1));
    if (value.at(mesh, mesh.coordinate_at_index(0)) == last) return false;
    value = RankInt(last);
    return true;
  };
  SUBCASE("an offset of the last rank") {
    check_fault([&](SpmdProgram& program, std::size_t step) {
      ProgramOp* op = op_at(program, step);
      if (op == nullptr) return false;
      for (auto& [name, value] : op->args) {
        auto* one = std::get_if<RankInt>(&value);
        if (one != nullptr && constant(*one, program.mesh)) return true;
      }
      return false;
    });
  }
  SUBCASE("the whole size on every rank") {
    check_fault([&](SpmdProgram& program, std::size_t step) {
      ProgramOp* op = op_at(program, step);
      if (op == nullptr) return false;
      for (auto& [name, value] : op->args) {
        auto* list = std::get_if<std::vector<RankInt>>(&value);
        if (list == nullptr) continue;
        for (RankInt& size : *list) {
          if (size.is_constant()) continue;
          size = RankInt(
              size.at(program.mesh, program.mesh.coordinate_at_index(0)) + 1);
          return true;
        }
      }
      return false;
    });
  }
}

TEST_CASE("faults of redistributions") {
  SUBCASE("a reduction by another operator") {
    check_fault([](SpmdProgram& program, std::size_t step) {
      ProgramCollective* moved = move_at(program, step);
      if (moved == nullptr || moved->step.reduce_op != ReduceOp::kSum) {
        return false;
      }
      moved->step.reduce_op = ReduceOp::kMax;
      if (moved->step.src.mesh_ndim() == 0) return true;
      std::string terms = to_string(moved->step.src);
      for (std::size_t at = terms.find("P(sum"); at != std::string::npos;
           at = terms.find("P(sum", at)) {
        terms.replace(at, 5, "P(max");
      }
      moved->step.src = value_of(Layout::parse(terms));
      return true;
    });
  }
  SUBCASE("a reduction left out") {
    check_fault([](SpmdProgram& program, std::size_t step) {
      const ProgramCollective* moved = move_at(program, step);
      if (moved == nullptr || moved->step.kind != CollectiveKind::kAllReduce) {
        return false;
      }
      ProgramOp kept;
      kept.op = "aten.clone.default";
      kept.args = {{"self", moved->input}};
      kept.outputs = {moved->output};
      program.steps[step].action = std::move(kept);
      return true;
    });
  }
  SUBCASE("a reduction inside an operator left out") {
    const auto left_out = [](SpmdProgram& program, std::size_t step) {
      const ProgramCollective* moved = move_at(program, step);
      if (moved == nullptr || moved->step.src.mesh_ndim() > 0) return false;
      ProgramOp kept;
      kept.op = "aten.clone.default";
      kept.args = {{"self", moved->input}};
      kept.outputs = {moved->output};
      program.steps[step].action = std::move(kept);
      return true;
    };
    // The sum of the exponentials of classes that are cut.
    check_fault(left_out, subject_of("gpt2_train",
                                     "op:aten._log_softmax.default=S(1),R"));
  }
  SUBCASE("the terms of partials taken for sums of others") {
    check_fault([](SpmdProgram& program, std::size_t step) {
      ProgramOp* op = op_at(program, step);
      if (op == nullptr || !makes_value(program, *op)) return false;
      ProgramValue& made = program.values[op->outputs[0].index()];
      for (int d = 0; d < made.layout.mesh_ndim(); ++d) {
        if (!made.layout[d].is_partial()) continue;
        made.layout = Layout::replicated(made.layout.mesh_ndim());
        return true;
      }
      return false;
    });
  }
}

TEST_CASE("faults of memory in use") {
  SUBCASE("a value freed before it is taken") {
    check_fault([](SpmdProgram& program, std::size_t step) {
      const ProgramOp* op = op_at(program, step);
      if (op == nullptr || !makes_value(program, *op) || step < 40)
        return false;
      for (const auto& [name, value] : op->args) {
        const auto* id = std::get_if<ProgramValueId>(&value);
        if (id == nullptr || !id->valid()) continue;
        ProgramStep early;
        early.action = ProgramFree{{*id}};
        early.node = program.steps[step].node;
        program.steps.insert(
            program.steps.begin() + static_cast<std::ptrdiff_t>(step), early);
        return true;
      }
      return false;
    });
  }
  SUBCASE("a value that is never made") {
    check_fault([](SpmdProgram& program, std::size_t step) {
      const ProgramOp* op = op_at(program, step);
      if (op == nullptr || op->op != "aten.mm.default") return false;
      // The node that takes it is the first to notice.
      const ProgramValueId made = op->outputs[0];
      program.steps[step].action = ProgramFree{};
      for (std::size_t s = step; s < program.steps.size(); ++s) {
        const ProgramOp* later = op_at(program, s);
        const ProgramCollective* moved = move_at(program, s);
        const bool takes =
            (moved != nullptr && moved->input == made) ||
            (later != nullptr &&
             std::any_of(later->args.begin(), later->args.end(),
                         [&](const auto& argument) {
                           return argument.second == ProgramArgument(made);
                         }));
        if (!takes) continue;
        program.steps[step].node = program.steps[s].node;
        return true;
      }
      return false;
    });
  }
}

}  // namespace
}  // namespace shardprop
