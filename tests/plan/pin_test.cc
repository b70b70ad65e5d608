#include <shardprop/plan/pin.h>

#include "support/standard_library.h"
#include "plan/small_graphs.h"
#include "support/result_checks.h"

#include <shardprop/plan/make_plan.h>

namespace shardprop {
namespace {

using testing::value_of;

TEST_CASE("a pin is a glob and a layout") {
  const Pin pin = value_of(Pin::parse("layers.*.wq=R,S(0)"));
  CHECK(pin.pattern == "layers.*.wq");
  CHECK(to_string(pin.layout) == "R,S(0)");
  CHECK(to_string(pin) == "layers.*.wq=R,S(0)");
  CHECK(value_of(Pin::parse("a=b=R")).pattern == "a=b");
}

TEST_CASE("what is no pin is refused") {
  CHECK_CODE(Pin::parse("w"), ErrorCode::kPinSyntax);
  CHECK_CODE(Pin::parse("=R"), ErrorCode::kPinSyntax);
  CHECK_CODE(Pin::parse("w=Q(1)"), ErrorCode::kPlacementSyntax);
  CHECK_CODE(Pin::parse("w=P(sum),P(max)"), ErrorCode::kMixedPartials);
}

TEST_CASE("globs match whole names") {
  CHECK(glob_matches("", ""));
  CHECK(glob_matches("*", ""));
  CHECK(glob_matches("*", "anything"));
  CHECK(glob_matches("a*c", "abbc"));
  CHECK(glob_matches("a*b*c", "abbcbc"));
  CHECK(glob_matches("layers.?.w", "layers.7.w"));
  CHECK_FALSE(glob_matches("layers.?.w", "layers.17.w"));
  CHECK_FALSE(glob_matches("a*c", "abcd"));
  CHECK_FALSE(glob_matches("abc", "abcd"));
  CHECK_FALSE(glob_matches("", "a"));
}

class Planner {
 public:
  explicit Planner(Graph graph) : graph_(std::move(graph)) {}
  Result<Plan> plan(const std::vector<const char*>& pins,
                    const char* mesh = "a=2,b=2") const {
    PlanOptions options;
    for (const char* pin : pins) {
      options.pins.push_back(value_of(Pin::parse(pin)));
    }
    return make_plan(graph_, value_of(DeviceMesh::parse(mesh)),
                     default_topology(), testing::standard_library(), options);
  }

 private:
  Graph graph_;
};

Planner mlp_planner() {
  const OpLibrary& library = testing::standard_library();
  return Planner(test::mlp(library));
}

TEST_CASE("pins are honoured, whatever they cost") {
  const Plan plan =
      value_of(mlp_planner().plan({"net.w*=S(1),S(0)", "x=R,R", "act=R,R"}));
  REQUIRE(plan.has_plan());
  for (const PlannedValue& value : plan.values) {
    CHECK(to_string(value.tensor.layout) ==
          (value.name == "x" ? "R,R" : "S(1),S(0)"));
  }
  CHECK(to_string(plan.nodes[1].outputs[0].tensor.layout) == "R,R");
}

TEST_CASE("a pin is taken in canonical form") {
  const Plan plan = value_of(mlp_planner().plan({"x=SS(0,2),S(0)"}));
  CHECK(to_string(plan.values[0].tensor.layout) == "S(0)@1,S(0)@0");
}

TEST_CASE("pins that match nothing say what was near") {
  const auto plan = mlp_planner().plan({"net.w3=R,R"});
  CHECK_CODE(plan, ErrorCode::kPinMatchesNothing);
  CHECK(plan.error().help == "did you mean `net.w1`?");
  CHECK(plan.error().location == "--pin 'net.w3=R,R'");
}

TEST_CASE("pins that do not fit") {
  const Planner planner = mlp_planner();
  CHECK_CODE(planner.plan({"x=R"}), ErrorCode::kPinDoesNotFit);
  CHECK_CODE(planner.plan({"x=S(2),R"}), ErrorCode::kPinDoesNotFit);
  CHECK_CODE(planner.plan({"x=P(sum),R"}), ErrorCode::kPinDoesNotFit);
  CHECK_CODE(planner.plan({"x=S(1),R"}, "a=33,b=2"), ErrorCode::kPinDoesNotFit);
}

TEST_CASE("no strategy of relu makes a partial sum") {
  const auto plan = mlp_planner().plan({"act=P(sum),R"});
  CHECK_CODE(plan, ErrorCode::kPinNoStrategy);
  CHECK(plan.error().notes.at(0).find("R,R") != std::string::npos);
}

TEST_CASE("two pins on one value must agree") {
  const Planner planner = mlp_planner();
  CHECK_CODE(planner.plan({"net.w1=R,R", "net.*=S(0),R"}),
             ErrorCode::kPinConflict);
  CHECK(planner.plan({"net.w1=R,R", "w1=R,R"}).has_value());
}

}  // namespace
}  // namespace shardprop
