#include <shardprop/plan/pin.h>

#include "base/glob.h"
#include "plan/invariants.h"
#include "plan/small_graphs.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/plan/make_plan.h>

#include <string>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

using test::node_of;
using testing::value_of;

TEST_CASE("a pin consists of terms and a layout") {
  const Pin pin = value_of(Pin::parse("layers.*.wq=R,S(0)"));
  CHECK(pin.place == Pin::Place::kBoth);
  CHECK(pin.terms ==
        std::vector<PinTerm>{{PinTerm::Kind::kName, "layers.*.wq"}});
  CHECK(to_string(pin.layout) == "R,S(0)");
  CHECK(value_of(Pin::parse("a=b=R")).terms[0].glob == "a=b");

  const Pin used = value_of(
      Pin::parse("used:*.wq  module:layers.* op:aten.mm phase:backward=R"));
  CHECK(used.place == Pin::Place::kUsed);
  CHECK(used.terms.size() == 4);
  CHECK(used.terms[2] == PinTerm{PinTerm::Kind::kOp, "aten.mm"});
}

TEST_CASE("pins print as they are read") {
  for (const char* text :
       {"layers.*.wq=R,S(0)", "stored:*.weight=S(0)", "used:w=R",
        "op:aten.mm* module:*.mlp phase:forward=S(1)", "aten::mm=R",
        "name:op:x=R", "stored:name:stored:x=R", "state:*.weight=S(0)"}) {
    const Pin pin = value_of(Pin::parse(text));
    CHECK(value_of(Pin::parse(to_string(pin))) == pin);
  }
  CHECK(to_string(value_of(Pin::parse(" used: name:w  =R"))) == "used:w=R");
}

TEST_CASE("malformed pins are rejected") {
  CHECK_CODE(Pin::parse("w"), ErrorCode::kPinSyntax);
  CHECK_CODE(Pin::parse("=R"), ErrorCode::kPinSyntax);
  CHECK_CODE(Pin::parse("  =R"), ErrorCode::kPinSyntax);
  CHECK_CODE(Pin::parse("stored:=R"), ErrorCode::kPinSyntax);
  CHECK_CODE(Pin::parse("state:=R"), ErrorCode::kPinSyntax);
  CHECK_CODE(Pin::parse("op:=R"), ErrorCode::kPinSyntax);
  CHECK_CODE(Pin::parse("phase:later=R"), ErrorCode::kPinSyntax);
  CHECK_CODE(Pin::parse("w=Q(1)"), ErrorCode::kPlacementSyntax);
  CHECK_CODE(Pin::parse("w=P(sum),P(max)"), ErrorCode::kMixedPartials);
}

TEST_CASE("globs match full names") {
  CHECK(matches_glob("", ""));
  CHECK(matches_glob("*", ""));
  CHECK(matches_glob("*", "anything"));
  CHECK(matches_glob("a*c", "abbc"));
  CHECK(matches_glob("a*b*c", "abbcbc"));
  CHECK(matches_glob("layers.?.w", "layers.7.w"));
  CHECK_FALSE(matches_glob("layers.?.w", "layers.17.w"));
  CHECK_FALSE(matches_glob("a*c", "abcd"));
  CHECK_FALSE(matches_glob("abc", "abcd"));
  CHECK_FALSE(matches_glob("", "a"));
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

TEST_CASE("a pin is read in canonical form") {
  const Plan plan = value_of(mlp_planner().plan({"x=SS(0,2),S(0)"}));
  CHECK(to_string(plan.values[0].tensor.layout) == "S(0)@1,S(0)@0");
}

TEST_CASE("pins that match nothing say what was near") {
  const auto plan = mlp_planner().plan({"net.w3=R,R"});
  CHECK_CODE(plan, ErrorCode::kPinMatchesNothing);
  CHECK(plan.error().help == "did you mean `net.w1`?");
  CHECK(plan.error().location == "--pin 'net.w3=R,R'");
}

TEST_CASE("pins that match nothing get the help that their term asks for") {
  const auto help = [](const char* pin) {
    const auto plan = mlp_planner().plan({pin});
    REQUIRE_FALSE(plan.has_value());
    CHECK(plan.error().code == ErrorCode::kPinMatchesNothing);
    return plan.error().help;
  };
  CHECK(help("modul:net=R,R") ==
        "`modul:` is not a selector; did you mean `module:`?");
  CHECK(help("sored:net.w1=R,R") ==
        "`sored:` is not a selector; did you mean `stored:`?");
  CHECK(help("op:aten.mn*=R,R") == "did you mean `aten.mm`?");
  CHECK(help("module:nett=R,R") == "did you mean `net`?");
  CHECK(help("op:aten.convolution=R,R").find("no node has that operator") == 0);
  CHECK(help("phase:backward=R,R") == "no node of the graph is of that phase");
  CHECK(help("name:x op:aten.mm=R,R") ==
        "each term matches something, all together nothing: leave one out");
}

TEST_CASE("`used:` pins the layout in which operators read a user input") {
  const Plan plan =
      value_of(mlp_planner().plan({"stored:x=S(0),R", "used:x=R,R"}));
  REQUIRE(plan.has_plan());
  CHECK(to_string(plan.values[0].tensor.layout) == "S(0),R");
  CHECK(to_string(plan.nodes[0].inputs[0].layout) == "R,R");
}

TEST_CASE("pins that do not fit their tensor are rejected") {
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

TEST_CASE(
    "`stored` pins the layout of a parameter, `used` that of its readers") {
  const Planner planner = mlp_planner();
  const Plan stored = value_of(planner.plan({"stored:net.w1=S(0),R"}));
  const Plan used =
      value_of(planner.plan({"stored:net.w1=R,S(0)", "used:net.w1=R,S(1)"}));
  const Plan both = value_of(planner.plan({"net.w1=R,S(1)"}));
  const auto layout = [](const Plan& plan, const char* name) {
    for (const PlannedValue& value : plan.values) {
      if (value.name == name) return to_string(value.tensor.layout);
    }
    return std::string();
  };
  CHECK(layout(stored, "net.w1") == "S(0),R");
  CHECK(layout(used, "net.w1") == "R,S(0)");
  CHECK(to_string(used.nodes[0].inputs[1].layout) == "R,S(1)");
  CHECK(layout(both, "net.w1") == "R,S(1)");
  CHECK(to_string(both.nodes[0].inputs[1].layout) == "R,S(1)");
}

// Plans of joined mesh dims, and of few runs of mesh dims, come first. These
// spaces have no strategy that reads such layouts.
TEST_CASE("a search through smaller spaces keeps the pins of readers") {
  const std::pair<const char*, std::vector<std::string>> cases[] = {
      {"a=2,b=2,c=2", {"S(0),R,S(0)", "R,S(1),R", "S(1),R,R", "S(0),S(1),R"}},
      {"a=2,b=2,c=2,d=2",
       {"R,S(0),R,S(0)", "S(1),R,S(1),R", "R,S(0),S(1),R", "S(0),R,R,R"}}};
  for (const auto& [mesh, layouts] : cases) {
    for (const std::string& layout : layouts) {
      CAPTURE(mesh);
      CAPTURE(layout);
      const std::string pin = "net.w1=" + layout;
      const Plan plan = value_of(mlp_planner().plan({pin.c_str()}, mesh));
      REQUIRE(plan.has_plan());
      CHECK(to_string(plan.nodes[0].inputs[1].layout) == layout);
      CHECK(plan.lower_bound_nanoseconds <= plan.objective_nanoseconds);
    }
  }
}

TEST_CASE("nodes are pinned by operator, module and phase") {
  const Planner planner = mlp_planner();
  const Plan plan = value_of(planner.plan({"op:mm phase:forward=S(0),S(1)"}));
  int products = 0;
  for (const PlannedNode& node : plan.nodes) {
    if (node.op != "aten.mm.default") continue;
    ++products;
    CHECK(to_string(node.outputs[0].tensor.layout) == "S(0),S(1)");
  }
  CHECK(products == 2);
  REQUIRE(plan.pins.size() == 1);
  CHECK(plan.pins[0].matched == 2);
  CHECK(plan.pins[0].pinned == 2);
  CHECK_CODE(planner.plan({"op:mm phase:backward=S(0),S(1)"}),
             ErrorCode::kPinMatchesNothing);
  CHECK_CODE(planner.plan({"stored:act=S(0),S(1)"}),
             ErrorCode::kPinMatchesNothing);
}

TEST_CASE("values that a pin does not fit are passed over and counted") {
  const Planner planner = mlp_planner();
  // Everything but relu, which makes no partial sums, and what goes in.
  const Plan plan = value_of(planner.plan({"*=P(sum),R"}));
  REQUIRE(plan.pins.size() == 1);
  CHECK(plan.pins[0].pinned > 0);
  CHECK(plan.pins[0].pinned < plan.pins[0].matched);
  CHECK(to_string(node_of(plan, "act").outputs[0].tensor.layout) != "P(sum),R");
  CHECK_CODE(planner.plan({"act=P(sum),R"}), ErrorCode::kPinNoStrategy);
}

}  // namespace
}  // namespace shardprop
