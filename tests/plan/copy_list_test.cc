// CopyList builds the copies of a plan: shared, ordered and numbered.
#include "plan/explain/copy_list.h"
#include "plan/small_graphs.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;

// x [64,32] is read by relu, and as a view by neg. A buffer on 4 ranks, which
// is given as S(0), has one copy as R.
class CopiedInput {
 public:
  explicit CopiedInput(std::int64_t accumulate = 1) {
    GraphBuilder b("copied", testing::standard_library());
    x_ = test::add_input(b, InputKind::kUser, "x", "f32[64,32]");
    const std::vector<GivenArgument> one = {{"", TensorArg{0}}};
    view_ = test::add_op(
        b, "aten.permute.default",
        {{"", TensorArg{0}}, {"", std::vector<std::int64_t>{1, 0}}}, {x_},
        "turned");
    b.add_output(
        {.value = test::add_op(b, "aten.relu.default", one, {x_}, "relu")});
    b.add_output(
        {.value = test::add_op(b, "aten.neg.default", one, {view_}, "neg")});
    graph_ = std::make_unique<Graph>(value_of(std::move(b).build()));
    PlanOptions options;
    options.accumulate = accumulate;
    problem_ = std::make_unique<PlanProblem>(value_of(PlanProblem::create(
        *graph_, value_of(DeviceMesh::parse("4")), default_topology(),
        testing::standard_library(), options)));
    const PlanBuffer& buffer = problem_->buffers()[0];
    plan_.choices.assign(problem_->variables().size(), 0);
    plan_.choices[buffer.producer.index()] = choice_of("S(0)");
    plan_.copies.push_back({.buffer = PlanBufferId(0),
                            .state = state_of(buffer, "R"),
                            .produced_at = 0,
                            .freed_at = 2});
    plan_.freed_at.assign(problem_->buffers().size(), 3);
    for (const PlanBuffer& of : problem_->buffers()) {
      plan_.read.emplace_back(of.uses.size());
    }
    for (auto& read : plan_.read[0]) read = 0;
    views_ = std::make_unique<BufferViews>(*problem_, plan_);
  }

  CopyList list() const { return {*problem_, plan_, *views_, 3, 0}; }
  ValueId x() const { return x_; }
  ValueId view() const { return view_; }
  LayoutId layout(const char* text) const {
    for (std::size_t i = 0; i < problem_->layouts().size(); ++i) {
      if (to_string(problem_->layouts()[LayoutId(i)]) == text) {
        return LayoutId(i);
      }
    }
    FAIL("no such layout");
    return {};
  }

 private:
  std::uint32_t choice_of(const std::string& text) const {
    const ChoiceSet& set = *problem_->variables()[0].choices;
    for (std::uint32_t c = 0; c < set.size(); ++c) {
      if (to_string(problem_->layouts()[set.layout(c, 0)]) == text) return c;
    }
    FAIL("no such choice");
    return 0;
  }
  BufferLayout state_of(const PlanBuffer& buffer,
                        const std::string& text) const {
    const auto& layouts = buffer.kind->layouts[0];
    for (std::size_t s = 0; s < layouts.size(); ++s) {
      if (to_string(problem_->layouts()[layouts[s]]) == text) {
        return static_cast<BufferLayout>(s);
      }
    }
    FAIL("no such state");
    return 0;
  }

  ValueId x_;
  ValueId view_;
  std::unique_ptr<Graph> graph_;
  std::unique_ptr<PlanProblem> problem_;
  PlanAssignment plan_;
  std::unique_ptr<BufferViews> views_;
};

CopyList::Reader reader_node(const char* node) {
  return {{CopyUser::Kind::kNode, node}, 0};
}

PlannedCopy copy_at(std::int64_t slot, const char* name) {
  PlannedCopy copy;
  copy.from = copy.of = name;
  copy.produced_at = copy.freed_at = slot;
  return copy;
}

TEST_CASE("all readers of a copy share its entry") {
  const CopiedInput given;
  CopyList list = given.list();
  const PlannedInput first = list.read(given.x(), 0, reader_node("relu"));
  const PlannedInput second = list.read(given.x(), 0, reader_node("other"));
  CHECK(first.copy == 0U);
  CHECK(second.copy == first.copy);
  CHECK(to_string(first.layout) == "R");
  // A value that is read as it was produced has no copy.
  const PlannedInput produced = list.read(given.x(), {}, reader_node("relu"));
  CHECK_FALSE(produced.copy.has_value());
  CHECK(to_string(produced.layout) == "S(0)");
  Plan plan;
  list.number(plan);
  REQUIRE(plan.copies.size() == 1);
  CHECK(plan.copies[0].of == "x");
  CHECK(plan.copies[0].from == "x");
  CHECK(to_string(plan.copies[0].src) == "S(0)");
  CHECK(to_string(plan.copies[0].dst) == "R");
  CHECK(!plan.copies[0].steps.empty());
}

TEST_CASE("a reader of a view of a copy gets one entry without steps") {
  const CopiedInput given;
  CopyList list = given.list();
  const auto entry = [&] {
    return list.read(given.view(), 0, reader_node("neg"));
  };
  // The node of the view reads the copy itself, so the view adds no entry.
  const PlannedInput view = entry();
  CHECK(view.from == "turned");
  CHECK(to_string(view.layout) == "R");
  CHECK(entry().copy == view.copy);
  Plan plan;
  list.number(plan);
  for (std::size_t c = 1; c < plan.copies.size(); ++c) {
    CHECK(plan.copies[c].steps.empty());
    CHECK(plan.copies[c].source == 0U);
    CHECK(plan.copies[c].reason.cause == CopyCause::kView);
  }
}

TEST_CASE("a copy once a step has the share of one micro-batch, exactly") {
  constexpr std::int64_t kMicroBatches = 7;
  const CopiedInput given(kMicroBatches);
  const CopyList list = given.list();
  const PlannedCopy whole =
      list.moved(given.x(), given.layout("S(0)"), given.layout("R"));
  CHECK_FALSE(whole.once_a_step);
  REQUIRE(whole.nanoseconds() > 0);
  PlannedCopy shared = whole;
  list.share(shared);
  CHECK(shared.once_a_step);
  CHECK(shared.nanoseconds() == whole.nanoseconds() / kMicroBatches);
  // One micro-batch a step has no shares.
  const CopiedInput once;
  const CopyList all = once.list();
  PlannedCopy same = all.moved(once.x(), once.layout("S(0)"), once.layout("R"));
  const PlannedCopy before = same;
  all.share(same);
  CHECK(same == before);
}

TEST_CASE("copies are numbered in the order of production") {
  const CopiedInput given;
  CopyList list = given.list();
  const std::size_t late = list.add(copy_at(9, "late"));
  const std::size_t early = list.add(copy_at(1, "early"));
  PlannedCopy last = copy_at(10, "last");
  last.source = late;
  const std::size_t of_late = list.add(last);
  Plan plan;
  plan.nodes.resize(1);
  plan.nodes[0].inputs = {{"early", {}, early}, {"x", {}, std::nullopt}};
  plan.updates.resize(1);
  plan.updates[0].gradient = PlannedInput{"late", {}, late};
  plan.updates[0].value = {"last", {}, of_late};
  plan.outputs.push_back({OutputKind::kUser, "", {"late", {}, late}});
  list.number(plan);
  std::vector<std::string> names;
  for (const PlannedCopy& copy : plan.copies) names.push_back(copy.from);
  CHECK(names == std::vector<std::string>{"x", "early", "late", "last"});
  CHECK(plan.copies[3].source == 2U);
  CHECK(plan.nodes[0].inputs[0].copy == 1U);
  CHECK_FALSE(plan.nodes[0].inputs[1].copy.has_value());
  CHECK(plan.updates[0].gradient->copy == 2U);
  CHECK(plan.updates[0].value.copy == 3U);
  CHECK(plan.outputs[0].value.copy == 2U);
}

}  // namespace
}  // namespace shardprop
