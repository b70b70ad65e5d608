// OperandNeeds: the placement that each choice requires of each input.
#include "propagate/operand_needs.h"

#include "propagate/bounded_call.h"
#include "propagate/fixtures.h"

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {
namespace {

using testing::BoundedCall;
using testing::call;
using testing::layouts;
using testing::value_of;

const Placement kSumOf = Placement::partial(ReduceOp::kSum);
const Placement kMeanOf = Placement::partial(ReduceOp::kAvg);

std::vector<std::string> needs_of(const OperandNeeds& needs,
                                  std::int16_t choice, std::size_t inputs) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < inputs; ++i) {
    out.push_back(to_string(needs.of(choice, i)));
  }
  return out;
}

using Texts = std::vector<std::string>;

TEST_CASE("a factor shards the inputs that hold it and replicates the others") {
  const IndexSpace space =
      value_of(parse_index_space("mk,kn->mn {m=16,k=8,n=4} k:.,.->sum"));
  const OperandNeeds needs(space, layouts({"R", "R"}));
  REQUIRE(needs.choices() >= 3);
  CHECK(needs_of(needs, 0, 2) == Texts{"S(0)", "R"});     // m
  CHECK(needs_of(needs, 1, 2) == Texts{"S(1)", "S(0)"});  // k
  CHECK(needs_of(needs, 2, 2) == Texts{"R", "S(1)"});     // n
  CHECK(needs_of(needs, kUnassigned, 2) == Texts{"R", "R"});
  CHECK(needs.is_exact(0));
  CHECK(needs.is_exact(1));
  CHECK(needs.is_fed_choice(kUnassigned));
  CHECK(needs.is_fed_choice(0));
}

TEST_CASE("a linearity is a choice if an input is partial as it requires") {
  const OpSchema add = call("aten.add.Tensor", {"f32[8,4]", "f32[8,4]"});
  const auto fed = [&](std::vector<std::string_view> given) {
    BoundedCall c("2", add, layouts(given));
    int count = 0;
    const auto factors =
        static_cast<std::int16_t>(c.bound_op.space->factors.size());
    for (auto choice = factors;
         choice < static_cast<std::int16_t>(c.needs.choices()); ++choice) {
      if (c.needs.is_fed_choice(choice)) ++count;
    }
    return count;
  };
  CHECK(fed({"R", "R"}) == 0);
  CHECK(fed({"S(0)", "R"}) == 0);
  CHECK(fed({"P(sum)", "R"}) > 0);
  CHECK(fed({"R", "P(sum)"}) > 0);
  CHECK(fed({"P(sum)", "R"}) == fed({"P(avg)", "R"}));
}

TEST_CASE("is_fed() compares reductions, and sums feed averages") {
  const Linearity sums{{ReduceOp::kSum, std::nullopt}, {ReduceOp::kSum}};
  const Linearity means{{ReduceOp::kAvg, std::nullopt}, {ReduceOp::kAvg}};
  const Linearity none{{std::nullopt, std::nullopt}, {ReduceOp::kSum}};
  CHECK(is_fed(sums, layouts({"P(sum)", "R"})));
  CHECK(is_fed(sums, layouts({"P(avg)", "R"})));
  CHECK(is_fed(means, layouts({"P(sum)", "R"})));
  CHECK(is_fed(sums, layouts({"R,P(sum)", "R,R"})));
  CHECK(!is_fed(sums, layouts({"P(max)", "R"})));
  // The second input is not the one that the linearity names.
  CHECK(!is_fed(sums, layouts({"R", "P(sum)"})));
  CHECK(is_fed(none, layouts({"R", "R"})));
}

TEST_CASE("partials() lists each partial of a fed choice once") {
  IndexSpace space = value_of(parse_index_space("ab,ab->ab {a=4,b=8}"));
  space.linearities = {
      {{ReduceOp::kSum, ReduceOp::kSum}, {ReduceOp::kSum}},
      {{ReduceOp::kSum, std::nullopt}, {ReduceOp::kSum}},
      {{ReduceOp::kMax, ReduceOp::kMax}, {ReduceOp::kMax}},
  };
  const OperandNeeds sums(space, layouts({"P(sum)", "R"}));
  CHECK(sums.partials(0) == std::vector{kSumOf});
  CHECK(sums.partials(1) == std::vector{kSumOf});
  const OperandNeeds second(space, layouts({"R", "P(max)"}));
  CHECK(second.partials(0) == std::vector{Placement::partial(ReduceOp::kMax)});
  const OperandNeeds none(space, layouts({"R", "R"}));
  CHECK(none.partials(0).empty());
}

TEST_CASE("an input is inexact if a dim has two factors or averages occur") {
  const IndexSpace merged =
      value_of(parse_index_space("(ab)c->abc {a=4,b=8,c=2}"));
  CHECK(!OperandNeeds(merged, layouts({"R"})).is_exact(0));
  IndexSpace averaged = value_of(parse_index_space("a,b->ab {a=4,b=8}"));
  averaged.inputs_without[0][1] = Without::partial(ReduceOp::kAvg);
  const OperandNeeds needs(averaged, layouts({"R", "R"}));
  CHECK(needs.of(1, 0) == kMeanOf);
  CHECK(!needs.is_exact(0));
  CHECK(needs.is_exact(1));
}

// Compares the needs of every strategy with the layouts that the walk composes.
class ComparedNeeds : public StrategyVisitor {
 public:
  explicit ComparedNeeds(const BoundedCall& c) : c_(c) {}
  bool follows(const Assignment&) override { return true; }
  bool visit(const Assignment& assignment, const FactorShardings&,
             std::span<const Layout> operands) override {
    for (std::size_t i = 0; i < c_.given.size(); ++i) {
      if (!c_.needs.is_exact(i)) continue;
      Placements placements;
      for (const std::int16_t choice : assignment) {
        placements.push_back(c_.needs.of(choice, i));
      }
      CHECK(operands[i] == canonical(value_of(Layout::create(placements)),
                                     c_.mesh,
                                     c_.bound_op.op->inputs[i].shape()));
      ++compared;
    }
    return true;
  }
  int compared = 0;

 private:
  const BoundedCall& c_;
};

TEST_CASE("needs of exact inputs are the layouts of every strategy") {
  const std::vector<OpSchema> calls = {
      call("aten.mm.default", {"f32[16,8]", "f32[8,12]"}),
      call("aten.bmm.default", {"f32[4,16,8]", "f32[4,8,12]"}),
      call("aten.add.Tensor", {"f32[16,8]", "f32[8]"}),
      call("aten.relu.default", {"f32[8,8]"}),
  };
  int compared = 0;
  for (const OpSchema& op : calls) {
    for (const std::string_view mesh : {"2", "2,4", "2,1,2"}) {
      const int ndim = value_of(DeviceMesh::parse(mesh)).ndim();
      CAPTURE(mesh);
      CAPTURE(op.name());
      BoundedCall c(mesh, op,
                    std::vector(op.inputs.size(), Layout::replicated(ndim)));
      ComparedNeeds needs(c);
      c.bound_op.walk->run(needs);
      compared += needs.compared;
    }
  }
  CHECK(compared > 200);
}

}  // namespace
}  // namespace shardprop
