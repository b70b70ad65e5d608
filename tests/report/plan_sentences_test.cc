// The sentences of reasons and notes, from plans made by hand.
#include <shardprop/report/plan_sentences.h>

#include "support/result_checks.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;

Layout spoken_layout(const char* text) { return value_of(Layout::parse(text)); }

CopyReason node_reason(CopyCause cause) {
  CopyReason reason;
  reason.cause = cause;
  reason.user = CopyUser{CopyUser::Kind::kNode, "mm_1"};
  reason.operand = 1;
  reason.wanted = spoken_layout("R,S(1)");
  return reason;
}

CopyReason input_reason(CopyUser::Kind kind, const char* name,
                        CopyCause cause) {
  CopyReason reason = node_reason(cause);
  reason.user = CopyUser{kind, name};
  reason.operand.reset();
  return reason;
}

// Returns the sentence of a reason in a plan whose parameter `z` has a finer
// layout of the optimizer's state.
std::string sentence(CopyReason reason, bool is_limited = false,
                     bool has_equal_layers = false) {
  Plan plan;
  PlannedNode node;
  node.name = "mm_1";
  node.source = "src/model.py:53";
  plan.nodes = {node};
  plan.values.push_back({.name = "w", .kind = InputKind::kParameter});
  plan.values.push_back({.name = "z", .kind = InputKind::kParameter});
  plan.values.back().state_layout = spoken_layout("S(0),R");
  if (is_limited) plan.memory.limit_bytes = 1;
  if (has_equal_layers) plan.free_lower_bound_nanoseconds = 1;
  PlannedCopy copy;
  copy.of = "permute_3";
  copy.src = spoken_layout("S(0),S(1)");
  copy.reason = std::move(reason);
  plan.copies = {copy};
  return reasons_in_words(plan).at(0);
}

CopyReason with_alternative(std::int64_t nanoseconds) {
  CopyReason reason = node_reason(CopyCause::kCost);
  reason.alternative = CopyAlternative{nanoseconds, spoken_layout("S(0),S(1)")};
  return reason;
}

TEST_CASE("a reason names the user, its line and the layout that it reads") {
  CHECK(sentence(node_reason(CopyCause::kOnlyLayout)) ==
        "`mm_1` (model.py:53) reads it as R,S(1); the space of plans has no "
        "other layout for it");
  CHECK(sentence(
            input_reason(CopyUser::Kind::kNode, "add", CopyCause::kSource)) ==
        "`add` reads a copy of it as R,S(1)");
  CHECK(sentence(input_reason(CopyUser::Kind::kResult, "out",
                              CopyCause::kOnlyLayout)) ==
        "the program returns it as R,S(1); the space of plans has no other "
        "layout for it");
  CHECK(sentence(
            input_reason(CopyUser::Kind::kResult, "out", CopyCause::kSource)) ==
        "the program returns a copy of it as R,S(1)");
}

TEST_CASE("a reason has the cost of the alternative") {
  CHECK(sentence(with_alternative(412'000)) ==
        "`mm_1` (model.py:53) reads it as R,S(1); as S(0),S(1) the plan would "
        "cost 412.0 us more");
  CHECK(sentence(with_alternative(-2'000)) ==
        "`mm_1` (model.py:53) reads it as R,S(1); as S(0),S(1) the plan would "
        "cost 2.0 us less");
  CHECK(sentence(with_alternative(-2'000), true) ==
        "`mm_1` (model.py:53) reads it as R,S(1); as S(0),S(1) the plan would "
        "cost 2.0 us less, but may take more memory");
  CHECK(sentence(with_alternative(-2'000), false, true) ==
        "`mm_1` (model.py:53) reads it as R,S(1); as S(0),S(1) the plan would "
        "cost 2.0 us less, but make equal layers differ");
  CHECK(sentence(with_alternative(-2'000), true, true) ==
        "`mm_1` (model.py:53) reads it as R,S(1); as S(0),S(1) the plan would "
        "cost 2.0 us less, but may take more memory or make equal layers "
        "differ");
  CHECK(sentence(with_alternative(49)) ==
        "`mm_1` (model.py:53) reads it as R,S(1)");
}

TEST_CASE("a reason names the pin or the recipe, or counts the other users") {
  CopyReason reason = node_reason(CopyCause::kPin);
  reason.pin = value_of(Pin::parse("stored:*=S(0),R"));
  CHECK(sentence(reason) ==
        "`mm_1` (model.py:53) reads it as R,S(1); pinned by --pin "
        "'stored:*=S(0),R'");
  reason = node_reason(CopyCause::kRecipe);
  reason.recipe = value_of(Recipe::parse("fsdp=dp,megatron=tp"));
  CHECK(sentence(reason) ==
        "`mm_1` (model.py:53) reads it as R,S(1); the recipe "
        "fsdp=dp,megatron=tp requires it");
  reason = node_reason(CopyCause::kShared);
  reason.other_users = 1;
  CHECK(sentence(reason) ==
        "`mm_1` (model.py:53) reads it as R,S(1), and so does 1 other user");
  reason.other_users = 2;
  CHECK(sentence(reason) ==
        "`mm_1` (model.py:53) reads it as R,S(1), and so do 2 other users");
}

TEST_CASE("gradients and updates end in the layout that is stored") {
  CHECK(sentence(
            input_reason(CopyUser::Kind::kGradient, "w", CopyCause::kSource)) ==
        "the gradient of `w` is a copy of it and ends in the stored layout "
        "R,S(1)");
  CHECK(sentence(
            input_reason(CopyUser::Kind::kGradient, "z", CopyCause::kShared)) ==
        "the gradient of `z` ends in the optimizer state's layout R,S(1)");
  CHECK(sentence(input_reason(CopyUser::Kind::kUpdate, "cache",
                              CopyCause::kShared)) ==
        "the update of `cache` ends in the stored layout R,S(1)");
}

TEST_CASE("copies without a user of their own have a reason, too") {
  CHECK(sentence(node_reason(CopyCause::kView)) ==
        "a view of the copy of `permute_3`");
  CHECK(sentence(input_reason(CopyUser::Kind::kOptimizer, "w",
                              CopyCause::kOptimizer)) ==
        "the optimizer's state has layout R,S(1)");
  CHECK(sentence(input_reason(CopyUser::Kind::kNextStep, "w",
                              CopyCause::kOptimizer)) ==
        "the optimizer updates it as S(0),S(1), and the program reads it as "
        "R,S(1)");
  CHECK(sentence({}) == "nothing reads it");
  CHECK(sentence({.cause = CopyCause::kReported, .text = "as it was"}) ==
        "as it was");
}

TEST_CASE("every note is a sentence with its figures") {
  CHECK(note_in_words(SmallBatchNote{8, 64, "tp", 4, 2'500'000}) ==
        "a batch of 8 does not fill 64 ranks: matmuls that could shard it are "
        "replicated on the 4 ranks of tp, which costs 2.50 ms");
  CHECK(note_in_words(UnevenHeadsNote{{12}, "tp", 8, 2'500}) ==
        "12 heads are not a multiple of tp=8: attention is replicated on its "
        "ranks, which costs 2.5 us");
  CHECK(
      note_in_words(UnevenHeadsNote{{1}, "tp", 8, 2'500}).find("1 head is ") ==
      0);
  CHECK(note_in_words(UnevenHeadsNote{{2, 12}, "tp", 8, 2'500})
            .find("2 and 12 heads are ") == 0);
  CHECK(note_in_words(BatchNormNote{9, {"dp", "tp"}, 1'000, 2'000}) ==
        "9 layers of batch norm compute their statistics over dp and tp, as "
        "synchronised batch norm does and data parallel training in PyTorch "
        "does not by default: 1.0 us forward, 2.0 us backward");
  CHECK(note_in_words(BatchNormNote{1, {"dp"}, 1'000, 2'000})
            .find("1 layer of batch norm computes its statistics") == 0);
  CHECK(note_in_words(ReplicatedOpsNote{{"my.op", "my.other"}, 1'000, 2'000}) ==
        "operators without a rule run replicated: my.op, my.other; they take "
        "1.0 us, and the communication before them 2.0 us");
  CHECK(note_in_words(UnlikeLayersNote{19'040'000}) ==
        "parameters of equal layers have different layouts: the best plan "
        "found in which they have the same layouts costs 19.04 ms more");
  CHECK(note_in_words(EagerActivationsNote{}) ==
        "the memory counts the activations that eager execution keeps; the "
        "times are those of a compiled program, which keeps fewer");
  CHECK(note_in_words(PipelineDimNote{"pp", 2}) ==
        "pipelines are not planned: pp=2 shards tensors as any other mesh dim "
        "does");
  CHECK(note_in_words(LeftOutNote{"the recipe fsdp=dp", ErrorCode::kOutOfMemory,
                                  "no memory"}) ==
        "the search went on without the recipe fsdp=dp: no memory");
  CHECK(note_in_words(FailedPartNote{ErrorCode::kOutOfMemory, "no memory"}) ==
        "the plan is proven, although a part of the search failed: no memory");
  EarlierPlanNote earlier{"llama3", true, 98, 96, 12, 11, true};
  CHECK(note_in_words(earlier) ==
        "the search started from the plan of `llama3`: 96 of 98 operators and "
        "11 of 12 tensors were matched by name");
  earlier.led_to_plan = false;
  CHECK(
      note_in_words(earlier) ==
      "the search did not start from the plan of `llama3`: 96 of 98 operators "
      "and 11 of 12 tensors were matched by name, and no plan was found with "
      "their layouts");
  earlier.has_same_mesh_ndim = false;
  CHECK(note_in_words(earlier) ==
        "the search did not start from the plan of `llama3`, which has another "
        "number of mesh dims");
  CHECK(note_in_words(GraphNote{"of the graph"}) == "of the graph");
  CHECK(note_in_words(ReportedNote{"of a file"}) == "of a file");
}

}  // namespace
}  // namespace shardprop
